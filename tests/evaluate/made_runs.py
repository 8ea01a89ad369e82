"""Runs made by hand: outcomes with values and exposures, without anything that was searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairagent.evaluate.comparison import compare
from fairagent.evaluate.kind import as_kind
from fairagent.evaluate.outcome import GroupShares, Outcome
from fairagent.evaluate.run import Results
from fairagent.types import Topic, Usage


def shares(
    first: float | None,
    unknown: float,
    missing: float | None = None,
    predicted: bool = False,
    target: float = 0.5,
    target_known: tuple[float, float] | None = None,
) -> GroupShares:
    """The exposure of gender: `first` of the labeled is of the first group; None: nothing has a label."""
    known, due = (0.0, 0.0) if first is None else (first, 1.0 - first), (target, 1.0 - target)
    return GroupShares("gender", ("female", "male"), known, due, unknown, missing, predicted, target_known)


def outcome(
    topic: str,
    system: str,
    values: Mapping[str, Mapping[str, float]],
    exposures: Sequence[GroupShares] = (),
    group: str = "",
    cited: Sequence[GroupShares] = (),
) -> Outcome:
    made = Outcome.of(Topic(topic, topic, group=group), system, values, Usage())
    return replace(made, exposures=tuple(exposures), cited=tuple(cited))


def run_of(outcomes: Sequence[Outcome], seed: int = 0, excluded: Mapping[str, str] = {}, **settings: object) -> Results:
    """The run of these outcomes, whose first system is the baseline; `settings` are keys of the experiment."""
    systems = tuple(dict.fromkeys(one.system for one in outcomes))
    topics = list(dict.fromkeys(one.topic for one in outcomes))
    answers = {(one.topic, one.system): one for one in outcomes if one.failed is None}
    done = [topic for topic in topics if all((topic, system) in answers for system in systems)]
    measures = tuple(dict.fromkeys(name for one in outcomes for of in one.values.values() for name in of))
    dimensions = tuple(dict.fromkeys(name for one in outcomes for name in one.values if name)) or ("gender",)
    columns = [(dimension, measure) for dimension in ("", *dimensions) for measure in measures]
    made = {"kind": "ranking", "name": "made", "collection": "c.yaml", "systems": {name: {} for name in systems}}
    return Results(
        name="made",
        collection="made",
        n=20,
        systems=systems,
        baseline=systems[0],
        dimensions=dimensions,
        measures=measures,
        comparisons=compare(answers, done, systems, columns, seed),
        outcomes=tuple(outcomes),
        excluded=excluded,
        provenance={},
        partial=False,
        oracle_systems=(),
        expected=None,
        kind=as_kind({**made, **settings}),
        rows={},
    )
