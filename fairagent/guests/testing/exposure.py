"""An assertion for tests: that a ranking gives groups the exposure that they should have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from fairagent.extend import (
    AWRF,
    LOG2_MAX2,
    Bound,
    Bounds,
    Collection,
    DataError,
    Exposure,
    ExposureMeter,
    Groups,
    GroupTable,
    Labels,
    Ranking,
    SearchResult,
    Table,
    UsageError,
    bounded,
    compare_ids,
    groups_alone,
    judged_value,
    known_documents,
    label_text,
    make_target,
    meant,
    nearest,
    warn_once,
    with_named,
)

Shown: TypeAlias = SearchResult | Ranking | Sequence[str]
"""A ranking, or the ids of its documents from rank 1 on."""
Grouped: TypeAlias = Mapping[str, Labels] | GroupTable | Groups | Collection
"""Whose groups are known: id -> label (or label -> share; None: unknown), or what holds the groups of a collection."""


def assert_exposure(
    ranking: Shown,
    groups: Grouped,
    target: str | Mapping[str, float],
    *,
    dimension: str = "",
    n: int = 20,
    at_least: float | None = 0.95,
    shares: Mapping[str, str] | None = None,
    topic: str = "",
) -> None:
    """Raise AssertionError, with a table, unless the first `n` documents give the groups what they should have.

    `target` has the share of each group (label -> share, in sum 1; a group that is not named has none), or is the name
    of a target: "uniform", and with a collection "population" or "trec". AWRF(unknown=ignore)@n of the exposure has to
    be `at_least` that, from 1 - ln 2 to 1 (None: no bound), and the exposure of a group, a share of what the known
    groups have together, within the bound that `shares` says: `{"female": ">= .4"}`. Documents without a label are
    left out of both and shown below them; where none has a label, AWRF is 1 - ln 2 and every share 0. Exposure goes by
    the discount 1 / log2(max(rank, 2)), as in the TREC Fair Ranking track and in experiments; what differs by 1e-9 or
    less is equal. `dimension` says which one of several, `topic` which one where groups or target depend on it.

    Of a mapping that is large make a GroupTable once (`GroupTable.from_rows`).

    Raises UsageError for an unknown dimension, group or bound, and without any bound; DataError for a
    target that does not add up to 1, a document that is ranked twice, n < 1, and a ranking of documents of which none
    is known.

    >>> gender = {"a": "male", "b": "female", "c": "male", "d": None}
    >>> assert_exposure(["b", "a", "d", "c"], gender, "uniform", shares={"female": ">= .4"})
    >>> assert_exposure(["a", "c", "d", "b"], gender, "uniform", shares={"female": ">= .4"})
    Traceback (most recent call last):
        ...
    AssertionError: exposure in 4 documents, by group
    group      exposure  target   bound  result
    female       0.2000  0.5000  >= 0.4  MISSED
    male         0.8000  0.5000
    (unknown)    0.2015
    AWRF(unknown=ignore)@20 is 0.9493, bound >= 0.95: MISSED
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    bounds = {label: _bound(label, text) for label, text in (shares or {}).items()}
    if at_least is None and not bounds:
        raise UsageError("assert_exposure: there is no bound; give at_least, shares or both")
    collection, dimension, notes = _grouped(groups, dimension, target, bounds)
    due = make_target(target, dimension, collection, topic)
    of = meant(bounds, due.labels)
    if strange := [label for label in of.values() if label not in due.labels]:
        raise UsageError(f"shares: no group {strange[0]!r}; {nearest(strange[0], due.labels)}")
    bounds = {of[label_text(name)]: bound for name, bound in bounds.items()}
    ranked = _ranking(ranking)
    # What has no label has one that is not known; what nobody has heard of may be another's.
    known = known_documents(collection)
    unknown = compare_ids("documents of the ranking", ranked.ids, known) if known and ranked.ids else ""
    if unknown:
        warn_once(unknown)
    (exposure,) = ExposureMeter(collection, topic, (due,), n, LOG2_MAX2, "js").measure(ranked)
    fairness = judged_value(AWRF(n, unknown="ignore"), collection, topic, ranked.ids, dimension, target)
    if fairness is None:
        raise DataError(f"topic {topic!r} has no target {target!r} in {dimension!r}: no relevant document with a label")
    wanted = None if at_least is None else Bound(">=", at_least)
    reached = wanted is None or wanted.holds(fairness)
    of_groups = dict(zip(exposure.labels, exposure.shares.tolist(), strict=True))
    if reached and all(bound.holds(of_groups[label]) for label, bound in bounds.items()):
        return
    shown = min(n, len(ranked.ids))
    among = f"{shown} documents" if shown == len(ranked.ids) else f"the first {shown} of {len(ranked.ids)} documents"
    head = "; ".join(filter(None, (f"exposure in {among}, by {dimension}", unknown)))
    lines = [head, _table(exposure, bounds).text()]
    if wanted:
        verdict = "" if reached else ": MISSED"
        lines.append(f"AWRF(unknown=ignore)@{n} is {fairness:.4f}, bound {wanted}{verdict}")
    raise AssertionError("\n".join([*lines, *notes]))


def _bound(label: str, text: str) -> Bound:
    bound = Bound.parse(text)
    if bound.relative:
        raise UsageError(f"shares: {label!r}: there is no baseline here, so {text!r} has no meaning")
    return bound


def _ranking(shown: Shown) -> Ranking:
    """What is shown as a ranking; DataError where a document stands in it twice."""
    if isinstance(shown, str):
        raise UsageError(f"a ranking is a sequence of ids, not the text {shown!r}")
    if isinstance(shown, SearchResult):
        return shown.ranking
    if isinstance(shown, Ranking):
        return shown
    places: dict[str, int] = {}
    for rank, id in bounded(shown, "document", Bounds()):
        if not isinstance(id, str):
            raise UsageError(f"rank {rank}: expected the id of a document, a text, and not a {type(id).__name__}")
        if (first := places.setdefault(id, rank)) != rank:
            raise DataError(f"document {id!r} stands at ranks {first} and {rank}")
    return Ranking(tuple(places), np.arange(len(places), 0, -1, dtype=np.float64))


def _grouped(
    groups: Grouped, dimension: str, target: str | Mapping[str, float], named: Iterable[object]
) -> tuple[Collection, str, list[str]]:
    """What holds the groups, the dimension that is meant, and notes; UsageError where several are possible.

    A group of the target that no document has is one all the same; so is one that is `named` where no target names all.
    """
    if isinstance(groups, Mapping):
        dimension = dimension or "group"
        rows = [(id, {dimension: labels}) for id, labels in groups.items()]
        table = GroupTable.from_rows(rows, [dimension])
        notes: list[str] = []
        table, _ = with_named(table, {dimension: target}, {dimension: named}, notes, "document")
        return groups_alone(table, {}), dimension, notes
    collection = groups_alone(groups, {})
    there = collection.groups.dimensions
    if not dimension and len(there) != 1:
        raise UsageError(f"assert_exposure needs a dimension; there are: {', '.join(there) or 'none'}")
    return collection, dimension or there[0], []


def _table(exposure: Exposure, bounds: Mapping[str, Bound]) -> Table:
    lines: list[tuple[object, ...]] = []
    for label, share, due in zip(exposure.labels, exposure.shares.tolist(), exposure.target.tolist(), strict=True):
        bound = bounds.get(label)
        result = "" if bound is None else "met" if bound.holds(share) else "MISSED"
        lines.append((label, share, due, str(bound or ""), result))
    lines.append(("(unknown)", exposure.unknown, "", "", ""))
    return Table.of(["group", "exposure", "target", "bound", "result"], lines)
