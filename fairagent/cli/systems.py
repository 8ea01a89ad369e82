"""Comparison of systems on a collection's topics: engines alone, the dullest baselines, the paper's loop, the agent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from fairagent.cli.options import progress_bar
from fairagent.collection import Collection
from fairagent.collection.targets import judged_by
from fairagent.evaluate.comparison import SIGN, Equal, equal_systems
from fairagent.evaluate.findings import paired
from fairagent.evaluate.judging import FUSED, SYSTEMS, Judge, judged_topics, judged_value, standard_measures
from fairagent.evaluate.tables import Cell, Column, Table
from fairagent.measures import Measure
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build, resolve, with_settings
from fairagent.types import ExposureRow, Ranking, exposure_rows
from fairagent.types.change import SHOWN_CHANGE, ExposureChange, exposure_change

BEST = "*"
"""Marks the best values of a column."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """Means over the topics that count for one dimension; the product is taken topic by topic.

    `groups` has each group's mean exposure and its target in the judgment, last the documents without a label;
    `topics` is AWRF of each topic that counts, in the collection's order; `target` names what it is judged by.
    """

    awrf: float
    product: float
    groups: tuple[ExposureRow, ...] = ()
    topics: tuple[float, ...] = ()
    target: str = ""


@dataclass(frozen=True, slots=True)
class SystemMeans:
    """One system: nDCG over all judged topics, fairness by dimension, and what all topics took together.

    `equal` says which system before it has the same rankings on all topics; None: none has.
    """

    system: str
    ndcg: float
    fairness: Mapping[str, Fairness]
    calls: int
    seconds: float
    equal: Equal | None = None


def compare(site: Site) -> Iterator[SystemMeans]:
    """Run every system on every topic, and judge it at the settings' cut-off; without vectors `FUSED` is no row.

    The agent goes over all topics once before anything is timed: what the others read is in memory then.
    """
    agent = build(site)
    _run("warming up", agent)
    ranked: dict[str, list[tuple[str, ...]]] = {}
    for name, overrides in SYSTEMS.items():
        if name == FUSED and not agent.settings.engine.inner:
            continue
        means, rankings = _run(name, build(with_settings(site, resolve(site.settings, overrides))))
        ranked[name] = [one.ids for one in rankings.values()]
        equal = {one.system: one for one in equal_systems(ranked)}
        yield replace(means, equal=equal.get(name))


def verdicts(rows: Sequence[SystemMeans]) -> tuple[str, list[ExposureChange]]:
    """The engine that the last row, the agent, is compared with, and what this changes in each dimension."""
    engine = next((row for row in rows if row.system == FUSED), rows[0])
    changes = []
    for dimension, one in rows[-1].fairness.items():
        was = engine.fairness[dimension]
        if one.groups and len(one.topics) > 1:
            test = paired("AWRF", np.array(one.topics) - np.array(was.topics), dimension)
            about = {"verdict": test.fairness, "test": str(test), "source": one.target}
            changes.append(exposure_change(dimension, was.groups, one.groups, **about))
    return engine.system, changes


def systems_table(rows: Sequence[SystemMeans], n: int) -> Table:
    """The rows as a table, the measures of a dimension below its name; the best of each measure is marked."""
    columns = [Column("system"), Column(f"nDCG@{n}", ".3f", "relevance", short="nDCG")]
    for name in rows[0].fairness:
        columns += [Column(f"AWRF@{n}", ".3f", name, short="AWRF"), Column("product", ".3f", name)]
    columns += [Column("calls", ",", "effort"), Column("seconds", ".2f", "effort")]
    values = [_values(row) for row in rows]
    best = [max(column) for column in zip(*values, strict=True)]
    lines = [
        [
            f"{row.system}{f' {SIGN}' * bool(row.equal)}",
            *(Cell(value, BEST * (f"{value:.3f}" == f"{top:.3f}")) for value, top in zip(numbers, best, strict=True)),
            row.calls,
            row.seconds,
        ]
        for row, numbers in zip(rows, values, strict=True)
    ]
    return Table.of(columns, lines, notes=[f"{BEST} the best of its column; at the first {n} documents"])


def better_rows(rows: Sequence[SystemMeans], collection: Collection) -> Iterator[str]:
    """Which rows are best of a column in which the last, the agent, is not, and why: a sentence for each row.

    What a row is better at it may buy with relevance, or by passing over documents without a label: how many of these
    are relevant, or of a type that can have one, says what that is worth.
    """
    agent = rows[-1]
    names = ["nDCG", *(f"{measure} of {name}" for name in agent.fairness for measure in ("AWRF", "product"))]
    best: dict[str, list[str]] = {}
    for name, *column in zip(names, *map(_values, rows), strict=True):
        top = max(column)
        if top - column[-1] > SHOWN_CHANGE:
            best.setdefault(rows[column.index(top)].system, []).append(name)
    for row in (one for one in rows if one.system in best):
        why = []
        if agent.ndcg - row.ndcg > SHOWN_CHANGE:
            why.append(f"at {agent.ndcg - row.ndcg:.3f} less nDCG than the agent")
        bare = {
            name: (row.fairness[name].groups[-1].share, one.groups[-1].share)
            for name, one in agent.fairness.items()
            if one.groups
        }
        name = max(bare, key=lambda one: bare[one][1] - bare[one][0], default="")
        if name and (shares := bare[name])[1] - shares[0] > UNLABELED_LESS:
            unable, relevant = _without_label(collection, name)
            of_type = f"{unable:.0%} of them are of a type that has none, and " if unable else ""
            why.append(
                f"documents without a {name} get {shares[0]:.0%} of the attention, the agent's {shares[1]:.0%}; "
                f"{of_type}{relevant:.0%} of the relevant documents are among them"
            )
        yield f"{row.system} is best in {', '.join(best[row.system])}{': ' if why else ''}{'; '.join(why)}"


UNLABELED_LESS = 0.02
"""By how much less attention a row gives documents without a label, for that to say anything of it."""


def _without_label(collection: Collection, dimension: str) -> tuple[float, float]:
    """Of all documents without a label the share that can have none; of the relevant ones the share without."""
    groups = collection.groups
    relevant = [id for grades in collection.qrels.values() for id, grade in grades.items() if grade > 0]
    ids = list(dict.fromkeys([*(one.id for one in collection.documents()), *relevant]))
    labeled = groups.memberships(dimension, ids)[:, 1:].sum(axis=1) > 0
    bare = dict.fromkeys(id for id, known in zip(ids, labeled.tolist(), strict=True) if not known)
    types = groups.of_type(dimension, list(bare))
    unable = 0.0 if types is None or not bare else 1 - float(np.mean(np.asarray(types, dtype=np.float64)))
    return unable, sum(id in bare for id in relevant) / max(len(relevant), 1)


def _run(system: str, agent: FairAgent) -> tuple[SystemMeans, dict[str, Ranking]]:
    """The system's row, and its rankings by topic."""
    collection, n = agent.collection, agent.settings.n
    rankings: dict[str, Ranking] = {}
    calls = 0
    started = perf_counter()
    with progress_bar() as bar:
        for topic in bar.track(list(collection.topics.values()), description=system):
            result = agent.search(topic)
            rankings[topic.id] = result.ranking
            calls += result.trace.usage.calls
    seconds = perf_counter() - started
    relevance, fairness, product = standard_measures(n)
    ndcg = float(np.mean(_values_of(relevance, collection, rankings)))
    by_dimension = {
        dimension: Fairness(
            float(np.mean(of_topics := _values_of(fairness, collection, rankings, dimension))),
            float(np.mean(_values_of(product, collection, rankings, dimension))),
            _groups(collection, dimension, rankings, n),
            of_topics,
            judged_by(dimension, collection).name,
        )
        for dimension in collection.groups.dimensions
    }
    return SystemMeans(system, ndcg, by_dimension, calls, seconds), rankings


def _values_of(
    measure: Measure, collection: Collection, rankings: Mapping[str, Ranking], dimension: str = ""
) -> tuple[float, ...]:
    """The values of the topics that count."""
    values = [judged_value(measure, collection, topic, one.ids, dimension) for topic, one in rankings.items()]
    return tuple(value for value in values if value is not None)


def _groups(collection: Collection, dimension: str, rankings: Mapping[str, Ranking], n: int) -> tuple[ExposureRow, ...]:
    """Each group's mean exposure and target over the topics that count for the dimension; () where none does."""
    counted = frozenset(judged_topics(collection, dimension).counted) & rankings.keys()
    judge = Judge(collection, {}, {dimension: counted}, None, False, n)
    shown = [exposure_rows(*judge.exposures(topic, rankings[topic])) for topic in sorted(counted)]
    return tuple(
        ExposureRow(
            group[0].label,
            float(np.mean([row.share for row in group])),
            None if group[0].target is None else float(np.mean([row.target for row in group])),
        )
        for group in zip(*shown, strict=True)
    )


def _values(row: SystemMeans) -> list[float]:
    return [row.ndcg, *(value for fairness in row.fairness.values() for value in (fairness.awrf, fairness.product))]
