"""`Usage` of language models, `Alarm`s, and values whose `repr` is one line of what matters."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

Compat = Literal["authors"] | None
"""None: what a paper says; "authors": what its authors' code does, where the two differ. Each function says how."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls of language models consumed; `cost` is in US dollars, None where a price is unknown.

    `estimated`: a server did not count its tokens. `notes` are what had to be done to get the replies (each once).
    `saved` is what the replies from a cache took when they were paid for. `unusable` of the `calls` failed, or gave no
    reply of the form wanted.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    estimated: bool = False
    notes: tuple[str, ...] = ()
    saved: Usage | None = None
    unusable: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.seconds + other.seconds,
            self.estimated or other.estimated,
            tuple(dict.fromkeys(self.notes + other.notes)),
            self.saved + other.saved if self.saved and other.saved else self.saved or other.saved,
            self.unusable + other.unusable,
        )

    @property
    def whole(self) -> Usage:
        """What the replies took, whether they were paid for now or came from a cache."""
        return self if self.saved is None else replace(self, saved=None) + self.saved


WORSE = "worse than the engine"
"""The agent's list is less fair, or far less relevant, than the engine's own."""
UNLABELED = "exposure without a label off its target"
"""Documents without a label get much more, or much less, of the exposure than they should."""
REMOVED = "most documents removed"
"""A filter left less than half of what it saw."""
GROUP_REMOVED = "a group removed far more often"
"""A filter removed more documents of a group than chance explains."""
FOLLOWS = "a target that follows the engine"
"""A target that is estimated from the engine's own list gives a group less than half of its share of the documents."""
UNFINISHED = "an unfinished filter"
"""A filter gave no verdict on some documents: the budget was used up, or the model gave no usable reply."""
NO_VERDICTS = "most documents without a verdict"
"""A judge's model gave no usable verdict on more than half of what it was shown."""
NO_REPLY = "no usable reply"
"""No call of a model came to anything."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """`what` is one of the phrases above, by which alarms are counted; `detail` says more.

    >>> print(Alarm(REMOVED, "the filter removed 9 of 10 documents"))
    most documents removed: the filter removed 9 of 10 documents
    """

    what: str
    detail: str

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}"


def without_verdict(missing: int, of: int) -> tuple[Alarm, ...]:
    """The alarm of a judge without a verdict on most of the documents that it was shown.

    >>> without_verdict(2, 4)
    ()
    """
    if 2 * missing <= of:
        return ()
    return (Alarm(NO_VERDICTS, f"the judge's model gave no usable verdict on {missing} of {of}"),)


def is_unfinished(alarms: Iterable[Alarm | str]) -> bool:
    """Whether one of the alarms, or of their texts, is that of an unfinished filter.

    >>> is_unfinished([Alarm(UNFINISHED, "no verdict on 2 of 5")]), is_unfinished([f"{REMOVED}: 3 of 5"])
    (True, False)
    """
    return any(str(alarm).startswith(UNFINISHED) for alarm in alarms)


def of_usage(usage: Usage) -> tuple[Alarm, ...]:
    """The alarm of a model none of whose calls gave a usable reply.

    >>> [str(alarm) for alarm in of_usage(Usage(calls=3, unusable=3))]
    ['no usable reply: the model was called 3 times, for nothing']
    """
    calls, unusable = usage.whole.calls, usage.whole.unusable
    if not calls or unusable < calls:
        return ()
    return (Alarm(NO_REPLY, f"the model was called {calls} time{'s' * (calls != 1)}, for nothing"),)


class Summarized:
    """A value whose `repr` is its class and `_summary`, one line of what matters."""

    __slots__ = ()
    _summary: Any

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._summary}>"


class Recorded(Summarized):
    """A result that a notebook displays, and that is also plain values: what the command line prints with --json."""

    __slots__ = ()
    writer: ClassVar[Any]

    def _repr_html_(self) -> str:
        html: str = self.writer.html_of(self)
        return html

    def to_dict(self) -> dict[str, Any]:
        """Plain values: dicts, lists, texts, numbers and None; a gap may be infinite."""
        record: dict[str, Any] = self.writer.record_of(self)
        return record

    def to_json(self) -> str:
        """One JSON object in ASCII, equal to the command line's; what is not finite is null."""
        text: str = self.writer.to_json(self.to_dict())
        return text

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each hit, or document of an answer's context.

        Groups are columns of the dimensions' names, unless a column of the documents has that name; several labels
        are joined by ", ". BackendUnavailable, with what to install, where pandas is not on this machine.
        """
        return self.writer.frame_of(self)


def dollars(cost: float | None) -> str:
    """An amount of US dollars as it is printed; None: a price is not known."""
    return "price unknown" if cost is None else f"${cost:.4f}"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "document"), counted(1200, "step")
    ('1 document', '1,200 steps')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(names: Collection[str], most: int = 20) -> str:
    """`names` in one line, in order; beyond `most` the rest is counted.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    first = ", ".join(list(names)[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most} more"


def quoted(text: str) -> str:
    r"""A text as it is written in Python, or its first 60 characters.

    >>> quoted("lawyers\x1b"), quoted("a" * 90)[-5:]
    ("'lawyers\\x1b'", "aaa…'")
    """
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: `ok`, `note` (works, but worth knowing) or `problem`, with what to do about it."""

    name: str
    status: Literal["ok", "note", "problem"]
    detail: str
    fix: str = ""
