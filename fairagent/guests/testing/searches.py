"""What a search function shows of each group, over several queries, and an assertion about it for tests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fairagent.collection.exposure import total_gap
from fairagent.collection.labels import meant
from fairagent.errors import UsageError
from fairagent.evaluate.tables import Table
from fairagent.evaluate.thresholds import Bound
from fairagent.search.hits import HitGroups, are_shares, exposures_of
from fairagent.settings.faults import no_such
from fairagent.types import Exposure, FloatArray, Ranking, exposure_rows

SearchFunction: TypeAlias = Callable[[str], Any]
"""A search function: query -> hits of any shape, the best first (see `fair_rerank`), or the result of an agent."""
Least: TypeAlias = Mapping[str, float] | Mapping[str, Mapping[str, float]]
"""Group -> the least share of the attention that it has to get; by dimension where there are several."""


@dataclass(frozen=True, slots=True)
class SearchExposure:
    """What a search shows of each group: `by_query` has the exposures, one for each dimension, of the first `at` hits.

    A query without a hit has none. `notes` are about labels and the target's names for them. As text it is the table of
    the means, the worst query and the notes.
    """

    by_query: Mapping[str, tuple[Exposure, ...]]
    at: int
    notes: tuple[str, ...] = ()

    @property
    def measured(self) -> dict[str, tuple[Exposure, ...]]:
        return {query: exposures for query, exposures in self.by_query.items() if exposures}

    @property
    def shares(self) -> dict[str, dict[str, float]]:
        """Dimension -> group -> share of what the known groups have together, the mean over the queries with hits."""
        return {one[0].dimension: _means(one, [e.shares for e in one]) for one in self._by_dimension}

    @property
    def gap(self) -> float:
        """How far the queries are from the target: the mean of `gap_of` (nats)."""
        return float(np.mean([total_gap(exposures) for exposures in self.measured.values()]))

    def gap_of(self, query: str) -> float:
        """The sum, over the dimensions, of the divergence of the exposure from the target (nats)."""
        return total_gap(self.by_query[query])

    @property
    def worst(self) -> str:
        """The query that is furthest from the target."""
        return max(self.measured, key=self.gap_of)

    def __str__(self) -> str:
        return self.text({})

    def text(self, least: Mapping[str, Mapping[str, float]]) -> str:
        """A table for each dimension (least: dimension -> group -> the least share), and the worst query in words."""
        count = len(self.measured)
        lines = [f"attention in the first {self.at} hits" + (f", mean of {count} queries" if count > 1 else "")]
        for one in self._by_dimension:
            lines += ["", _table(one, self.shares[one[0].dimension], least.get(one[0].dimension, {})).text().rstrip()]
        shown = []
        for exposure in self.by_query[self.worst]:
            rows = [f"{row.label} {row.share:.0%}" for row in exposure_rows(exposure)[:-1]]
            rows += [f"{exposure.unknown:.0%} without a label"] if exposure.unknown else []
            shown.append(f"{exposure.dimension}: {', '.join(rows)}")
        name = "the worst query" if count > 1 else "the query"
        lines += ["", f"{name} is {self.worst!r} (gap {self.gap_of(self.worst):.4f}): {'; '.join(shown)}", *self.notes]
        return "\n".join(lines)

    @property
    def _by_dimension(self) -> Iterator[tuple[Exposure, ...]]:
        return zip(*self.measured.values(), strict=True)


def exposure_of(
    search: SearchFunction,
    queries: str | Sequence[str],
    groups: HitGroups,
    target: str | Mapping[str, Any] | None = None,
    *,
    at: int = 20,
    named: Mapping[str, Any] | None = None,
) -> SearchExposure:
    """What the first `at` hits of `search` show of each group, for one query or several.

    `search` is called once with each query, and gives hits of any shape, the best first; `groups` and `target` are what
    `fair_rerank` takes, e.g. the field of the hits, {"gender": {id: label}}, or a collection. Attention falls with the
    rank as in experiments (1 / log2(max(rank, 2))). Hits without a label are left out of the shares and shown below. A
    group that has a share in the target, or is `named` (dimension -> groups), has 0 where no hit is in it.

    Raises UsageError for no queries, a query twice, what is no hit and a field that no hit has; DataError for labels
    and targets that cannot be used: each names the query.

    >>> shelf = {"jazz": [{"id": "a", "sex": "m"}, {"id": "b", "sex": "m"}, {"id": "c", "sex": "f"}]}
    >>> str(exposure_of(shelf.get, "jazz", "sex", {"f": 0.5, "m": 0.5})).splitlines()[-1]
    "the query is 'jazz' (gap 0.0369): sex: f 24%, m 76%"
    """
    texts = [queries] if isinstance(queries, str) else list(queries)
    if not texts or not all(isinstance(query, str) for query in texts):
        raise UsageError("queries: expected a text, or a list of texts with one at least")
    if twice := [query for query in dict.fromkeys(texts) if texts.count(query) > 1]:
        raise UsageError(f"queries: {twice[0]!r} is there twice")
    answers = {query: search(query) for query in texts}
    hits = {
        query: one.ids if isinstance(one, Ranking) else [] if one is None else one for query, one in answers.items()
    }
    measured, notes = exposures_of(hits, groups, target, at, named=named)
    return SearchExposure(measured, at, notes)


def assert_exposure_of(
    search: SearchFunction,
    queries: str | Sequence[str],
    groups: HitGroups,
    target: str | Mapping[str, Any] | None = None,
    *,
    at: int = 20,
    gap: float | None = None,
    min_share: Least | None = None,
    each: bool = False,
) -> SearchExposure:
    """Raise AssertionError, with the table and the worst query, unless `search` gives the groups what they should have.

    The mean share of each group in `min_share` has to be that or more (`{"women": .3}`; of several dimensions
    `{"gender": {"women": .3}}`; a group that no hit is in has 0), and the mean gap to the target `gap` or less (nats; 0
    is the target itself); with `each` both hold for every query. A query without a hit fails. What differs by 1e-9 or
    less is equal. The rest is as in `exposure_of`, whose value it returns.

    Raises UsageError for an unknown dimension or group, a share that is none, and without any bound.

    >>> shelf = {"jazz": [{"id": "a", "sex": "m"}, {"id": "b", "sex": "m"}, {"id": "c", "sex": "f"}]}
    >>> assert_exposure_of(shelf.get, "jazz", "sex", {"f": 0.5, "m": 0.5}, min_share={"f": 0.3})
    Traceback (most recent call last):
        ...
    AssertionError: sex: f gets 24.0% of the attention; the least is 30.0%
    <BLANKLINE>
    attention in the first 20 hits
    <BLANKLINE>
    sex                share  target  at least  result
    f                  24.0%   50.0%     30.0%  MISSED
    m                  76.0%   50.0%
    no label (of all)   0.0%
    <BLANKLINE>
    the query is 'jazz' (gap 0.0369): sex: f 24%, m 76%
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    if gap is None and not min_share:
        raise UsageError("assert_exposure_of: there is no bound; give gap, min_share or both")
    shown = exposure_of(search, queries, groups, target, at=at, named=min_share)
    least = _least(min_share or {}, shown.shares)
    parts = [SearchExposure({q: one}, at) for q, one in shown.measured.items()] if each else [shown]
    missed = [f"no hits for {query!r}" for query, exposures in shown.by_query.items() if not exposures]
    for part in parts:
        where = f" for {part.worst!r}" if each else ""
        for name, bounds in least.items():
            for label, bound in bounds.items():
                share = part.shares[name][label]
                if not Bound(">=", bound).holds(share):
                    missed.append(f"{name}: {label} gets {share:.1%} of the attention{where}; the least is {bound:.1%}")
        if gap is not None and not Bound("<=", gap).holds(part.gap):
            missed.append(f"the gap to the target is {part.gap:.4f}{where}; the most is {gap:g}")
    if missed:
        raise AssertionError("\n".join([*missed, "", shown.text(least)]))
    return shown


def _means(one: Sequence[Exposure], values: Sequence[FloatArray]) -> dict[str, float]:
    """Group -> the mean of its values over the queries; `one` are their exposures in one dimension."""
    return dict(zip(one[0].labels, np.mean(values, axis=0).tolist(), strict=True))


def _least(given: Least, shares: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Dimension -> group -> the least share; UsageError for what is no dimension, no group or no share."""
    by_dimension = {next(iter(shares)): given} if len(shares) == 1 and are_shares(given) else given
    least: dict[str, dict[str, float]] = {}
    for name, bounds in by_dimension.items():
        if name not in shares or not isinstance(bounds, Mapping):
            form = '{"dimension": {"group": 0.3}}'
            raise UsageError(f"min_share: expected {form}, and not {name!r}; dimensions are: {', '.join(shares)}")
        for one, bound in bounds.items():
            (label,) = meant([one], list(shares[name])).values()
            if label not in shares[name]:
                raise UsageError(f"min_share: {no_such('group', label, shares[name])}")
            if not isinstance(bound, int | float) or not 0 <= bound <= 1:
                raise UsageError(f"min_share: {label!r}: {bound!r} is no share; it is from 0 to 1")
            least.setdefault(name, {})[label] = float(bound)
    return least


def _table(one: Sequence[Exposure], shares: Mapping[str, float], least: Mapping[str, float]) -> Table:
    """The means over the queries, in percent; with the least shares where there are some."""
    rows: list[tuple[object, ...]] = []
    targets = _means(one, [exposure.target for exposure in one])
    for label, share in shares.items():
        bound = least.get(label)
        result = "" if bound is None else "met" if Bound(">=", bound).holds(share) else "MISSED"
        rows.append((label, f"{share:.1%}", f"{targets[label]:.1%}", "" if bound is None else f"{bound:.1%}", result))
    rows.append((exposure_rows(one[0])[-1].label, f"{np.mean([e.unknown for e in one]):.1%}", "", "", ""))
    columns = [one[0].dimension, "share", "target", "at least", "result"]
    return Table.of(columns, rows) if least else Table.of(columns[:3], [row[:3] for row in rows])
