"""The seam to parts of other packages: what one returns is checked where it is called, and what it raises is reported.

A number that is not finite, or a document that nobody requested, would become a wrong ranking, unseen. What a part
raises becomes a `PartError`, which names the package and quotes the cause in one printable line; the cause is chained
only where fairagent's logs are at DEBUG, since Python prints it as it is. Parts that fairagent brings are trusted.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint
from numbers import Real
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from fairagent.errors import FairAgentError, PartError
from fairagent.settings import plugins
from fairagent.settings.parts import SLOTS, Part, Slot
from fairagent.types import Document, FloatArray, Query, Ranking
from fairagent.types.clean import in_line, logger

NOISE = 1e-9
"""By so much of the largest score may a score exceed the one before it: sums in another order differ by less. Scores
that rise by no more are made level; the order stays."""
_OTHERS = {"measure": Slot("measure", "fairagent.measures", ""), "scorer": Slot("scorer", "fairagent.rerankers", "")}
T = TypeVar("T")
log = logger(__name__)


class PartCall:
    """One call of a part in `slot`, for a query or a topic: the context of the call, and then the checks of its result.

    `made` is the object that does the work, `part` what it was built from, where that is known. Each check returns what
    was given, and raises PartError where that is not what it should be.
    """

    def __init__(self, slot: str, made: object, query: Query | str, part: Part | None = None) -> None:
        self._slot = SLOTS.get(slot) or _OTHERS[slot]
        self._made, self._part = made, part
        text, topic = (query, "") if isinstance(query, str) else (query.text, query.id)
        self._where = f"for {in_line(text)[:80]!r}" + (f" (topic {in_line(topic)[:80]})" if topic else "")
        self._raised: list[BaseException] = []

    def __enter__(self) -> PartCall:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._raised:
            # What the caller's own callback has raised ends the work, whatever the part makes of it.
            raise self._raised[0]
        if error is None or isinstance(error, FairAgentError) or not isinstance(error, Exception | SystemExit):
            return
        modules = self._theirs
        while trace is not None and not self._theirs:
            # One of ours may have called what a package brings.
            module = str(trace.tb_frame.f_globals.get("__name__", ""))
            modules = [*modules, *([module] if _entries([module], self._slot.group, "") else [])]
            trace = trace.tb_next
        if modules:
            failed = PartError(f"{self._named(modules)} failed {self._where}: {error_line(error)}")
            raise failed from (error if log.isEnabledFor(logging.DEBUG) else None)

    def passing(self, callback: Callable[..., T] | None) -> Callable[..., T] | None:
        """The callback for the part; what it raises leaves the context as it is."""
        if callback is None:
            return None

        def passed(*values: Any) -> T:
            try:
                return callback(*values)
            except BaseException as error:
                self._raised.append(error)
                raise

        return passed

    def frozen(self, array: FloatArray) -> FloatArray:
        """The numbers for the part, which cannot write into them; one of another package gets a copy."""
        lent = array.copy() if self._theirs else array.view()
        lent.flags.writeable = False
        # Of a view of what is read-only itself nobody can make it writeable again.
        return lent.view() if self._theirs else lent

    def frozen_ranking(self, ranking: Ranking) -> Ranking:
        """The ranking for the part, with such scores."""
        return Ranking(ranking.ids, self.frozen(ranking.scores))

    def fault(self, what: str) -> PartError:
        """The error that the part gave `what`."""
        return PartError(f"{self._named(self._theirs)} gave {self._where} {what}")

    def one_of(self, given: Any, kind: type[T]) -> T:
        """A `kind`."""
        if self._theirs and not isinstance(given, kind):
            raise self.fault(f"{_kind(given)}, expected {kind.__name__}")
        return given  # type: ignore[no-any-return]

    def ranking(self, given: Any, most: int, among: Sequence[str] | None = None) -> Ranking:
        """A `Ranking` of `most` documents at most, or of just so many of those `among` which it chooses.

        Its own distinct ids, with finite scores (n,) that do not rise.
        """
        ids, scores = self.one_of(given, Ranking).ids, given.scores
        if self._theirs:
            if not isinstance(ids, tuple) or not all(isinstance(id, str) for id in ids):
                raise self.fault("ids that are no tuple of texts")
            known = set(ids)
            if len(known) < len(ids):
                raise self.fault(f"a document twice: {_quoted(next(id for id in ids if ids.count(id) > 1))}")
            if among is not None and (others := known.difference(among)):
                first = next(id for id in ids if id in others)
                raise self.fault(f"{len(others):,} documents that are no candidates, {_quoted(first)} first")
            scores = self.numbers(scores, len(ids), ids)
        if len(ids) > 1 and (rises := np.diff(scores)).max() > 0:
            place = int(rises.argmax())
            if self._theirs and rises[place] > NOISE * np.abs(scores).max():
                rise = f"from {scores[place]:.6g} to {scores[place + 1]:.6g}"
                raise self.fault(f"scores that rise, {rise} at document {_quoted(ids[place + 1])}")
            scores = np.minimum.accumulate(scores)
        if self._theirs and among is not None and len(ids) != (wanted := min(most, len(among))):
            number = f"{len(ids):,} documents" if ids else "an empty ranking"
            raise self.fault(f"{number}, expected {wanted:,} of {len(among):,} candidates")
        if self._theirs and len(ids) > most:
            raise self.fault(f"{len(ids):,} documents, where {most:,} were asked for")
        return given if scores is given.scores else Ranking(ids, scores)

    def numbers(self, given: Any, n: int, ids: Sequence[str] = ()) -> FloatArray:
        """An array of `n` finite numbers, as floats; those of a foreign part are copied, for it may change its own."""
        if not self._theirs:
            return np.asarray(given, np.float64)
        if not (isinstance(given, np.ndarray) and given.dtype.kind in "fiu"):
            raise self.fault(f"{_kind(given)} in the place of an array of {n:,} numbers")
        if given.shape != (n,):
            raise self.fault(f"not one score a document: {n:,} documents, scores of the shape {given.shape}")
        if not np.isfinite(given).all():
            place = int(np.flatnonzero(~np.isfinite(given))[0])
            of = f" of document {_quoted(ids[place])}" if len(ids) else f" at place {place + 1}"
            raise self.fault(f"a score that is no finite number: {given[place]}{of}")
        return np.array(given, np.float64, subok=False)

    def number(self, given: Any) -> float:
        """A finite number."""
        if self._theirs and (isinstance(given, bool) or not isinstance(given, Real) or not math.isfinite(given)):
            raise self.fault(f"{given if isinstance(given, float) else _kind(given)}, expected a finite number")
        return float(given)

    def documents(self, given: Any, ids: Sequence[str]) -> list[Document]:
        """The documents of these ids, in their order."""
        if not self._theirs:
            return list(given)
        documents = list(given) if isinstance(given, list | tuple) else []
        if len(documents) != len(ids) or not all(isinstance(one, Document) for one in documents):
            raise self.fault(f"{_kind(given)} in the place of {len(ids):,} documents")
        if odd := next((id for id, one in zip(ids, documents, strict=True) if one.id != id), None):
            raise self.fault(f"another document than {_quoted(odd)}")
        return documents

    @cached_property
    def _theirs(self) -> list[str]:
        """The module that a part of another package is from; none where the part is fairagent's."""
        part = self._part if self._part is not None else self._made
        modules = (type(one).__module__ for one in (part, self._made))
        return [module for module in modules if not module.startswith(plugins.OWN)][:1]

    def _named(self, modules: Sequence[str]) -> str:
        """What the part is called: by its entry point, where it comes from another package."""
        kind = self._part.kind if self._part is not None else ""
        made = type(self._made)
        if entries := _entries(modules, self._slot.group, kind):
            points = [(one.name, one.dist.name if one.dist else "a package", one.value) for one in entries]
            named = " or ".join(f"{name!r} of {package} ({value})" for name, package, value in points)
        else:
            named = f"{made.__module__}.{made.__qualname__}" if modules else str(self._part or made.__name__)
        return f"{self._slot.what} {in_line(named)}"


def error_line(error: BaseException) -> str:
    """An error as one printable line of at most 300 characters, with its type; whatever it does when it is asked."""
    try:
        message = str(error)
    except Exception:
        message = "(it cannot say what)"
    return in_line(f"{type(error).__name__}: {message}" if message else type(error).__name__)[:300]


def _entries(modules: Iterable[str], group: str, kind: str) -> list[EntryPoint]:
    """The entry points of other packages that a part in one of these modules, or beside them, comes in by."""
    there = [one for named in plugins.plugins(group, own=False).values() for one in named]
    for module in modules:
        package = [one for one in there if one.module.partition(".")[0] == module.partition(".")[0]]
        named = [one for one in package if one.name == kind]
        if matching := named or [one for one in package if one.module == module] or package:
            return matching
    return []


def _quoted(id: object) -> str:
    return repr(in_line(str(id))[:80])


def _kind(given: object) -> str:
    return "None" if given is None else f"a value of type {in_line(type(given).__name__)[:80]}"
