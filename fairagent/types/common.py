"""`Alarm`: what must not go unnoticed, since a search or an answer may have served its user badly."""

from dataclasses import dataclass

from fairagent.usage import Usage

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
NO_VERDICTS = "most documents without a verdict"
"""A filter's or judge's model said nothing usable on more than half of what it was shown."""
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


def without_verdict(who: str, missing: int, of: int) -> tuple[Alarm, ...]:
    """That a filter or a judge said nothing on most of the documents that it was shown.

    >>> without_verdict("judge", 2, 4)
    ()
    """
    if 2 * missing <= of:
        return ()
    return (Alarm(NO_VERDICTS, f"the {who}'s model gave no usable verdict on {missing} of {of}"),)


def of_usage(usage: Usage) -> tuple[Alarm, ...]:
    """That nothing a model was asked gave a usable reply.

    >>> [str(alarm) for alarm in of_usage(Usage(calls=3, unusable=3))]
    ['no usable reply: the model was called 3 times, for nothing']
    """
    calls, unusable = usage.whole.calls, usage.whole.unusable
    if not calls or unusable < calls:
        return ()
    return (Alarm(NO_REPLY, f"the model was called {calls} time{'s' * (calls != 1)}, for nothing"),)
