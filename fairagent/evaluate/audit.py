"""An audit of a log of requests: what the groups got of the attention, over time, against what they were due.

Everything is a share of all attention of a request: the discounts of its ranks over their sum. The due of a known group
is its target's share of what documents with a label got, so that nobody is blamed for labels that are missing; in an
account it is what the account counted as due. What missing labels may hide is said by bounds instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.exposure import dimensions_of
from fairagent.collection.known import KnownIds, compare_ids
from fairagent.collection.target_choice import target_choice
from fairagent.collection.targets import make_target
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.comparison import holm
from fairagent.evaluate.request_log import LoggedRequest
from fairagent.measures import exposure_bounds, group_exposure, parse_discount
from fairagent.measures.amortized import attention
from fairagent.measures.base import seeded
from fairagent.measures.drift import window_p_values
from fairagent.search.account import Account
from fairagent.settings import Settings
from fairagent.types import UNKNOWN, FloatArray
from fairagent.types.common import counted

RESAMPLES = 1_000
WORST = 10
"""Queries that are named."""
EQUAL_WINDOWS = 10
MOST_DAYS = 31
"""Days that are shown singly; of a longer log weeks are."""
LEAST_WINDOW = 30
"""Requests of a window that is tested."""
LARGEST_WINDOW = 2_000
LAST = 0.2
"""The share of the requests that is the reference window, and the last one."""
SMALLEST_CHANGE = 0.02
"""A change of a share by less is no alarm, however sure it is."""
SIGNIFICANT = 0.05
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class AuditedGroup:
    """A group's share of all attention with its 95 % interval, its due, and between what missing labels leave it."""

    label: str
    share: float
    low: float
    high: float
    due: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Window:
    """A time, and the shares of the groups in it (g,) with their intervals."""

    name: str
    requests: int
    shares: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    unlabeled: float


@dataclass(frozen=True, slots=True)
class WorstQuery:
    """A query, how often it was asked, how much attention went to others than it was due to, and who lacked most."""

    query: str
    requests: int
    distance: float
    lacking: str


@dataclass(frozen=True, slots=True)
class AuditedDimension:
    """One dimension: `target` says where the due is from, `unlabeled` is the share of documents without a label."""

    name: str
    target: str
    groups: tuple[AuditedGroup, ...]
    unlabeled: float
    windows: tuple[Window, ...]
    worst: tuple[WorstQuery, ...]


@dataclass(frozen=True, slots=True)
class Drift:
    """What a series came to in the reference window and in the last one; `alarm`: sure after Holm, and large enough."""

    what: str
    before: float
    after: float
    p: float
    holm: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found."""

    log: str
    form: str
    collection: str
    requests: int
    queries: int
    begins: str
    ends: str
    n: int
    discount: str
    dimensions: tuple[AuditedDimension, ...]
    drifts: tuple[Drift, ...]
    tested: tuple[int, int]
    quality: float | None
    calls: int
    unusable: int
    unknown_ids: str
    notes: tuple[str, ...]

    @property
    def alarms(self) -> list[Drift]:
        """The series that changed."""
        return [one for one in self.drifts if one.alarm]


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """A dimension's shares in each request, (r, 1 + g), with the unlabeled first, and what was due."""

    name: str
    labels: tuple[str, ...]
    target: str
    received: FloatArray
    due: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Log:
    """What every form of log comes to."""

    queries: Sequence[str]
    times: Sequence[float | None]
    shares: Sequence[_Shares]
    calls: FloatArray
    unusable: FloatArray
    quality: FloatArray | None


def audit_requests(
    requests: Sequence[LoggedRequest],
    collection: Collection,
    settings: Settings,
    known: KnownIds | None,
    log: Path,
    seed: int = 0,
) -> Audit:
    """An audit of the first `settings.n` documents of each request, by the groups of a collection.

    `known` are its documents (None: nobody knows). Raises DataError where it has none of the ids, or no request shows
    anything; UsageError where a dimension has no target that holds for every query.
    """
    shown = [one for one in requests if one.ids]
    if not shown:
        raise DataError(f"{log}: no request shows a document")
    tops = [one.ids[: settings.n] for one in shown]
    ids = list(dict.fromkeys(id for top in tops for id in top))
    unknown = compare_ids(f"documents of {log.name}", ids, known) if known else ""
    discount = parse_discount(settings.discount)
    weights = [attention(discount(len(top))) for top in tops]
    place = {id: number for number, id in enumerate(ids)}
    places = [[place[id] for id in top] for top in tops]
    shares = []
    for dimension in dimensions_of(collection, settings):
        rows = np.vstack(
            [
                collection.groups.memberships(dimension, ids[start : start + 10_000], "")
                for start in range(0, len(ids), 10_000)
            ]
        )
        received = np.array([group_exposure(rows[some], one) for some, one in zip(places, weights, strict=True)])
        target, source = _target(dimension, collection, settings)
        due = np.column_stack([received[:, 0], (1 - received[:, :1]) * target[None, :]])
        shares.append(_Shares(dimension, collection.groups.labels(dimension), source, received, due))
    read = _Log(
        [one.query for one in shown],
        [one.time for one in shown],
        shares,
        np.array([one.calls for one in shown], dtype=np.float64),
        np.array([one.unusable for one in shown], dtype=np.float64),
        None,
    )
    notes = [f"{counted(len(requests) - len(shown), 'request')} showed nothing"] if len(shown) < len(requests) else []
    if known is None:
        notes.append("nothing tells which documents the collection has, so ids that it lacks count as without a label")
    about = (log.name, "a log of ids", collection.name, settings.n, settings.discount, unknown)
    return _audit(read, about, notes, seed)


def audit_account(account: Account, seed: int = 0) -> Audit:
    """An audit of the single requests that an account holds; DataError where there are none."""
    rows = list(account.requests())
    if not rows:
        raise DataError(f"{account.path}: there are no requests yet")
    columns = dict.fromkeys(column for row in rows for column in row.groups)
    dimensions = dict.fromkeys(dimension for dimension, _ in columns)
    basis = account.basis
    source = "its documents' share of the candidates' relevance" if basis.get("due") == "relevance" else "the target"
    shares = []
    for dimension in dimensions:
        labels = tuple(label for one, label in columns if one == dimension and label != UNKNOWN)
        both = np.array(
            [[row.groups.get((dimension, label), (0.0, 0.0)) for label in (UNKNOWN, *labels)] for row in rows]
        )
        shares.append(_Shares(dimension, labels, source, both[:, :, 0], both[:, :, 1]))
    read = _Log(
        [row.query for row in rows],
        [row.time for row in rows],
        shares,
        np.array([row.calls for row in rows], dtype=np.float64),
        np.array([row.unusable for row in rows], dtype=np.float64),
        np.array([row.quality for row in rows]),
    )
    size = account.size()
    notes = [str(size)]
    if account.queries == "none":
        notes.append("the account holds nothing of the queries, so none is named")
    about = (account.path.name, "an account of exposure", size.collection, 0, basis.get("discount", ""), "")
    return _audit(read, about, notes, seed)


def _target(dimension: str, collection: Collection, settings: Settings) -> tuple[FloatArray, str]:
    """A target for all queries: the one that is set, else the population, else the collection's own shares."""
    chosen = target_choice(settings.target, dimension, collection)
    kind = chosen if isinstance(chosen, str | Mapping) else getattr(chosen, "kind", None)
    if settings.target is None and kind in (None, "estimated", "trec-estimated", "trec", "qrels"):
        chosen = "population" if dimension in collection.population else "corpus"
    try:
        made = make_target(chosen, dimension, collection, "")
    except (UsageError, DataError) as error:
        raise UsageError(
            f"the target of {dimension!r} has to hold for every query of a log: population, uniform, corpus, or shares "
            f"of your own (--set target=...): {error}"
        ) from None
    return made.shares, made.source


def _audit(log: _Log, about: tuple[str, str, str, int, str, str], notes: Sequence[str], seed: int) -> Audit:
    name, form, collection, n, discount, unknown = about
    windows, ordered = _windows(log.times)
    dimensions = tuple(_dimension(log, one, windows, seed) for one in log.shares)
    drifts, tested = _drifts(log, seed)
    notes = list(notes)
    if not ordered:
        notes.append("not every request has a time: windows are equal numbers of requests, in the order of the log")
    if not drifts:
        notes.append(f"fewer than {2 * LEAST_WINDOW} requests: nothing can be said about changes")
    moments = [one for one in log.times if one is not None]
    begins, ends = (_day(ends(moments)) if ordered else "" for ends in (min, max))
    return Audit(
        name,
        form,
        collection,
        len(log.queries),
        len(set(log.queries)),
        begins,
        ends,
        n,
        discount,
        dimensions,
        drifts,
        tested,
        float(log.quality.mean()) if log.quality is not None else None,
        int(log.calls.sum()),
        int(log.unusable.sum()),
        unknown,
        tuple(notes),
    )


def _dimension(log: _Log, of: _Shares, windows: Mapping[str, Sequence[int]], seed: int) -> AuditedDimension:
    mean, due = of.received.mean(axis=0), of.due.mean(axis=0)
    least, most = exposure_bounds(mean / mean.sum())
    low, high = intervals(of.received, seeded(seed, "audit", of.name))
    groups = tuple(
        AuditedGroup(
            label,
            share=float(mean[g]),
            low=float(low[g]),
            high=float(high[g]),
            due=float(due[g]),
            least=float(least[g - 1]),
            most=float(most[g - 1]),
        )
        for g, label in enumerate(of.labels, start=1)
    )
    shown = []
    for window, places in windows.items():
        received = of.received[list(places)]
        low, high = intervals(received, seeded(seed, "audit", of.name, window))
        means = received.mean(axis=0)
        shares, lows, highs = (tuple(one[1:].tolist()) for one in (means, low, high))
        shown.append(Window(window, len(places), shares, lows, highs, float(means[0])))
    return AuditedDimension(of.name, of.target, groups, float(mean[0]), tuple(shown), _worst(log, of))


def intervals(values: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Low and high ends (s,) of the 95 % percentile bootstrap intervals of means over requests, `values` (r, s)."""
    count = len(values)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    low, high = np.quantile(weights @ values, [0.025, 0.975], axis=0)
    return low, high


def _worst(log: _Log, of: _Shares) -> tuple[WorstQuery, ...]:
    """The queries whose attention is furthest from what was due, by half the sum of the differences."""
    if not any(log.queries):
        return ()
    places: dict[str, list[int]] = {}
    for place, query in enumerate(log.queries):
        places.setdefault(query, []).append(place)
    worst = []
    for query, some in places.items():
        lacks = (of.due[some] - of.received[some]).mean(axis=0)
        lacking = int(np.argmax(lacks[1:])) if len(of.labels) else 0
        worst.append(WorstQuery(query, len(some), float(np.abs(lacks).sum()) / 2, of.labels[lacking]))
    # Of equally bad ones the one that is asked more often.
    return tuple(sorted(worst, key=lambda one: (-round(one.distance, 6), -one.requests, one.query))[:WORST])


def _windows(times: Sequence[float | None]) -> tuple[dict[str, list[int]], bool]:
    """Name -> places of the requests: days, weeks, or equal numbers; and whether all have a time."""
    known = [one for one in times if one is not None]
    if len(known) == len(times):
        days = [datetime.fromtimestamp(one, UTC).date() for one in known]
        if len(set(days)) > 1:
            weekly = (max(days) - min(days)).days >= MOST_DAYS
            periods: dict[str, list[int]] = {}
            for place in np.argsort(known, kind="stable").tolist():
                day: date = days[place]
                first = day - timedelta(days=day.weekday()) if weekly else day
                periods.setdefault(f"{'week of ' * weekly}{first.isoformat()}", []).append(place)
            return periods, True
    parts = np.array_split(np.arange(len(times)), max(1, min(EQUAL_WINDOWS, len(times) // 5)))
    named = {f"{int(one[0]) + 1:,} to {int(one[-1]) + 1:,}": one.tolist() for one in parts}
    return named, len(known) == len(times)


def _drifts(log: _Log, seed: int) -> tuple[tuple[Drift, ...], tuple[int, int]]:
    """Every series in the first window and in the last one; none where there are too few requests."""
    total = len(log.queries)
    size = min(LARGEST_WINDOW, max(LEAST_WINDOW, round(LAST * total)))
    if total < 2 * LEAST_WINDOW:
        return (), (0, 0)
    series: dict[str, FloatArray] = {}
    for one in log.shares:
        series[f"{one.name}: share without a label"] = one.received[:, 0]
        for g, label in enumerate(one.labels, start=1):
            series[f"{one.name}: share of {label}"] = one.received[:, g]
            # Of documents with a label, since their number moves it as well.
            labeled = one.due[:, 1:].sum(axis=1)
            series[f"{one.name}: due of {label}"] = one.due[:, g] / np.where(labeled > 0, labeled, 1)
    if log.quality is not None:
        series["estimated nDCG"] = log.quality
    if log.calls.any():
        series["replies of models that could not be used"] = log.unusable / np.maximum(log.calls, 1)
    first, last = slice(0, size), slice(total - size, total)
    moving = {what: values for what, values in series.items() if np.ptp(values) > ROUNDING}
    if not moving:
        return (), (size, size)
    values = np.column_stack(list(moving.values()))
    p_values = window_p_values(values[first], values[last], seeded(seed, "audit", "drift"))
    corrected = holm(p_values.tolist())
    drifts = []
    for (what, moved), p, sure in zip(moving.items(), p_values.tolist(), corrected, strict=True):
        before, after = float(moved[first].mean()), float(moved[last].mean())
        adjusted = 1.0 if sure is None else sure
        alarm = adjusted < SIGNIFICANT and abs(after - before) >= SMALLEST_CHANGE
        drifts.append(Drift(what, before, after, p, adjusted, alarm))
    return tuple(drifts), (size, size)


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
