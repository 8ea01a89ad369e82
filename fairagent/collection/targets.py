"""Targets: the share of exposure that each known group of a dimension should get for one topic; and who chooses them.

With a(d) the membership row of document d over the known groups, all of these add up to 1:

| kind | share of group g | sees the judgments |
|---|---|---|
| population | its world share | no |
| uniform | 1 / (number of groups) | no |
| corpus | sum of a_g(d) over all documents / the same over all groups | no |
| estimated | sum of w(d) a_g(d) over the ranking / the same over all groups | no |
| trec-estimated | (estimated + population) / 2 | no |
| qrels | sum of a_g(d) over the relevant documents / the same over all groups | yes |
| trec | (qrels + population) / 2 | yes |

The two mixed kinds are the judged or estimated share alone in a dimension without a population, as TREC Fair does in
dimensions without a background distribution.

What is counted from documents misses what those without a label (of those that can have one) would add to it. With m
for their share, its known part is (1 - m) times the share, and of the mixed kinds half of that and half the world's.

w(d) = (score(d) - lowest) / (highest - lowest), the min-max score within the ranking; 1 where all scores are
equal. In a list shorter than `ESTIMATE_FROM` the last document counts as well: with `step`, the mean difference of
neighboring scores, w(d) = (score(d) - lowest + step) / (highest - lowest + step).

`trec` is the known part of TREC Fair 2022's target, t <- t/2 + K b/2 with K the known mass, over K.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from fairagent.collection.collection import Collection
from fairagent.collection.labels import meant
from fairagent.collection.records import Faults, listed, shown
from fairagent.errors import DataError, SettingsError, UsageError
from fairagent.measures import known_part, min_max
from fairagent.settings import Label, read_yaml
from fairagent.settings.faults import no_such
from fairagent.settings.parts import Part, read_part
from fairagent.settings.seam import PartCall
from fairagent.storage.readers import Malformed, file_text, parse_json
from fairagent.types import UNKNOWN, FloatArray, Ranking
from fairagent.types.clean import in_line, label_text
from fairagent.types.common import FOLLOWS, Alarm

WorldShares = dict[str, dict[str, float]]

LARGEST = 1 << 20
"""Bytes of a file."""
TOLERANCE = 1e-6
"""How far from 1 shares may add up."""
TARGET = "trec"
"""The kind that rankings are judged by where nobody chose another."""
ESTIMATE_FROM = 50
"""How many of the first documents an estimated target is taken from (swept in evaluations/sweep)."""


def read_population(given: Any, path: Path, faults: Faults, root: Path = Path()) -> WorldShares:
    """Dimension -> label -> share of the world, from values that stand in `path` already, or a JSON or YAML file.

    What is wrong is added to `faults`.
    """
    if isinstance(given, str):
        path = root / given
        try:
            given = parse_json(file_text(path, LARGEST)) if path.suffix == ".json" else read_yaml(path)
        except FileNotFoundError:
            faults.add(path, None, "no such file")
            return {}
        except Malformed as error:
            faults.add(path, error.line, f"not JSON ({error})")
            return {}
        except (OSError, SettingsError) as error:
            faults.add(path, None, str(error).removeprefix(f"{path}: "))
            return {}
    if not isinstance(given, Mapping):
        faults.add(path, None, f"expected dimension -> label -> share, got {shown(given)}")
        return {}
    population: WorldShares = {}
    for dimension, shares in given.items():
        messages = share_faults(shares)
        for message in messages:
            faults.add(path, None, f"population of {dimension!r}: {message}")
        if not messages:
            population[str(dimension)] = {label_text(label): float(share) for label, share in shares.items()}
    return population


def share_faults(shares: Any) -> list[str]:
    """What keeps `shares` from being a distribution over known labels; empty where nothing does."""
    if not isinstance(shares, Mapping) or not shares:
        return [f"expected label -> share, got {shown(shares)}"]
    faults = [
        f"the share of {label!r} is {shown(share)}, expected a number from 0 to 1"
        for label, share in shares.items()
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1
    ]
    if strange := [name for name in shares if not isinstance(name, str | Integral | float)]:
        return [*faults, f"{shown(strange[0])} is no name of a group"]
    if UNKNOWN in shares:
        faults.append(f"{UNKNOWN} is no group; shares are over known labels only")
    if not faults and abs((total := math.fsum(shares.values())) - 1.0) > TOLERANCE:
        faults.append(f"the shares add up to {total:.6g}, expected 1")
    return faults


def shares_of(shares: Any, labels: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The shares by these labels, and what keeps them from being a distribution over these."""
    if faults := share_faults(shares):
        return {}, faults
    by = by_label(shares, meant(shares, labels))
    unknown = [name for name in by if name not in labels]
    return by, [no_such("group", listed(unknown), labels)] if unknown else []


def by_label(shares: Mapping[Any, float], meaning: Mapping[str, str]) -> dict[str, float]:
    """The shares by the labels that their names mean (`fairagent.collection.labels.meant`)."""
    summed = dict[str, float]()
    for name, share in shares.items():
        label = meaning[label_text(name)]
        summed[label] = summed.get(label, 0.0) + share
    return summed


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The shares (g,) that the known `labels` of `dimension` should get; they add up to 1.

    `source` says where they come from. An `oracle` saw the judgments: fit for evaluation, and to be marked
    wherever it was used inside the loop. One that `follows` was estimated from the engine's own list. `known` (g,) is
    the part of the shares that is known whatever labels are missing in the documents that they were counted from: what
    it lacks to 1 can be any group's. None: all.
    """

    dimension: str
    labels: tuple[str, ...]
    shares: FloatArray
    source: str
    oracle: bool = False
    known: FloatArray | None = None
    follows: bool = False


Counted = tuple[FloatArray, FloatArray | None, str, bool]
"""Shares (g,), the part of them that is known, where they come from, and whether that is a ranking."""


class TargetKind(Part):
    """A kind of target: settings name it, `make` makes it for one topic."""

    judged_by: ClassVar[str] = ""
    """The kind that judges in its place, where it is an estimate from a ranking."""
    of_judgments: ClassVar[bool] = False
    """Whether it is counted from a topic's relevant documents."""
    counts: ClassVar[bool] = False
    """Whether it is counted from documents, so that it is an oracle where labels come from the judgments."""
    mixed: ClassVar[bool] = False
    """Half what is counted and half the world's, where there are world shares."""

    @property
    def name(self) -> str:
        """What it is called beside the numbers that depend on it."""
        return self.kind

    def make(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None = None) -> Target:
        """The target of `dimension` for one topic id; `ranking` is the deep list of the original query.

        Raises UsageError for an unknown dimension or a missing ranking; DataError where the shares cannot be counted.
        """
        groups, labels = collection.groups, collection.groups.labels(dimension)
        if not labels:
            raise DataError(f"no document of {collection.name!r} has a label of {dimension!r}: no target can be made")
        shares, known, source, follows = self._count(dimension, collection, topic, ranking)
        if self.counts and dimension in groups.predicted:
            # A predicted label may be wrong: nothing of it is known.
            known = np.zeros(len(labels))
        if self.mixed and dimension in collection.population:
            world = _world(dimension, collection)
            shares, known = (shares + world) / 2, None if known is None else (known + world) / 2
        oracle = self.counts and (self.of_judgments or dimension in groups.oracle)
        return Target(dimension, labels, shares, source, oracle, known, follows)

    def faults(self, labels: Sequence[str]) -> list[str]:
        """What is wrong with it in a dimension of these groups."""
        return []

    def build(self, site: Any) -> Self:
        return self

    def _count(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None) -> Counted:
        raise NotImplementedError


class PopulationTarget(TargetKind):
    """The shares of the world."""

    kind: Literal["population"] = "population"

    def _count(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None) -> Counted:
        return _world(dimension, collection), None, self.kind, False


class UniformTarget(TargetKind):
    """The same share for every group."""

    kind: Literal["uniform"] = "uniform"

    def _count(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None) -> Counted:
        groups = len(collection.groups.labels(dimension))
        return np.full(groups, 1 / groups), None, self.kind, False


class GivenTarget(TargetKind):
    """The user's own shares."""

    kind: Literal["given"] = "given"
    shares: dict[Label, float]
    """Label -> share, of one dimension; they add up to 1, and a label that is not named has none."""

    @property
    def name(self) -> str:
        largest = sorted(self.shares.items(), key=lambda one: -one[1])
        return f"given ({listed([f'{label} {share:.3g}' for label, share in largest], 4)})"

    def faults(self, labels: Sequence[str]) -> list[str]:
        return shares_of(self.shares, labels)[1]

    def _count(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None) -> Counted:
        labels = collection.groups.labels(dimension)
        shares, faults = shares_of(self.shares, labels)
        if faults:
            raise DataError(f"the target given for {dimension!r} cannot be used: {'; '.join(faults)}")
        return np.array([float(shares.get(label, 0.0)) for label in labels]), None, self.kind, False


class CorpusTarget(TargetKind):
    """The shares of the documents."""

    kind: str = "corpus"
    counts: ClassVar[bool] = True

    def _count(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None) -> Counted:
        totals = collection.groups.shares(dimension)
        if (shares := _parts(totals)[0]) is None:
            raise DataError(f"no document of {collection.name!r} has a label of {dimension!r}: no target 'corpus'")
        known = _parts(np.append(collection.groups.missing(dimension), totals[1:]))[1]
        return shares, known, self.kind, False


class EstimatedTarget(CorpusTarget):
    """The groups' shares of the retrieved scores; the corpus's where nothing labeled is retrieved."""

    kind: str = "estimated"
    judged_by: ClassVar[str] = "qrels"

    def _count(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None) -> Counted:
        if ranking is None:
            raise UsageError(f"the target {self.kind!r} needs the ranking of the original query")
        shares, known = _parts(estimate_weights(ranking.scores) @ _rows(dimension, collection, topic, ranking.ids))
        if shares is not None:
            return shares, known, self.kind, True
        shares, of_corpus, _, _ = super()._count(dimension, collection, topic, ranking)
        source = f"{self.kind} (nothing labeled was ranked: corpus)"
        return shares, of_corpus if known is None else known, source, False


class TrecEstimatedTarget(EstimatedTarget):
    """Half estimated, half the world's."""

    kind: str = "trec-estimated"
    judged_by: ClassVar[str] = "trec"
    mixed: ClassVar[bool] = True


class QrelsTarget(TargetKind):
    """The shares of the relevant documents: an oracle."""

    kind: str = "qrels"
    of_judgments: ClassVar[bool] = True
    counts: ClassVar[bool] = True

    def _count(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None) -> Counted:
        relevant = [id for id, grade in collection.qrels.get(topic, {}).items() if grade > 0]
        shares, known = _parts(_rows(dimension, collection, topic, relevant).sum(axis=0))
        if shares is not None:
            return shares, known, self.kind, False
        if self.mixed and dimension in collection.population:
            return _world(dimension, collection), known, "trec (no relevant document labeled: population)", False
        raise DataError(
            f"topic {topic!r}: no relevant document has a label of {dimension!r}, so there is no target 'qrels'; "
            "leave the topic out, or use 'trec' or 'population'"
        )


class TrecTarget(QrelsTarget):
    """Half the relevant documents' shares, half the world's, as in TREC Fair Ranking 2022: an oracle.

    The population's alone where no relevant document is labeled.
    """

    kind: str = "trec"
    mixed: ClassVar[bool] = True


def _world(dimension: str, collection: Collection) -> FloatArray:
    """The world shares (g,)."""
    population = collection.population
    if dimension not in population:
        raise DataError(
            f"{collection.name!r} has no population for {dimension!r} (there is: {listed(list(population)) or 'none'});"
            " add it to the collection's settings file, or use 'uniform', 'corpus' or 'estimated'"
        )
    labels = collection.groups.labels(dimension)
    world = by_label(population[dimension], meant(population[dimension], labels))
    return np.array([world.get(label, 0.0) for label in labels])


def _rows(dimension: str, collection: Collection, topic: str, ids: Sequence[str]) -> FloatArray:
    """The membership rows (n, 1 + g) of documents; those that cannot have a label are nothing, also not unknown."""
    rows = collection.groups.memberships(dimension, ids, topic)
    if (of_type := collection.groups.of_type(dimension, ids, topic)) is not None:
        rows = rows.copy()
        rows[~of_type, 0] = 0.0
    return rows


def _parts(totals: FloatArray) -> tuple[FloatArray | None, FloatArray | None]:
    """Of summed memberships (1 + g,): shares of the known ones, None where there are none; and what is known of them.

    That is their part (g,) of all, whatever the missing labels are; None where none is missing.
    """
    mass = totals[1:].sum()
    return totals[1:] / mass if mass > 0 else None, totals[1:] / totals.sum() if totals[0] > 0 else None


def estimate_weights(scores: FloatArray) -> FloatArray:
    """What each document of a ranking counts for in an estimate, (n,), from the scores (n,), best first."""
    weights = min_max(scores)
    if 1 < len(scores) < ESTIMATE_FROM and float(weights.min()) < 1:
        # In units of the range, the mean difference of neighbors is 1 / (n - 1).
        step = 1 / (len(scores) - 1)
        weights = (weights + step) / (1 + step)
    return weights


def make_target(
    kind: str | Mapping[str, float] | Part,
    dimension: str,
    collection: Collection,
    topic: str,
    ranking: Ranking | None = None,
) -> Target:
    """The target of `kind` (the name of one, its part, or the user's own label -> share) for one topic id.

    `estimated` and `trec-estimated` need the `ranking`, best the whole deep list of the original query.

    Raises UsageError for an unknown kind or dimension or a missing ranking; DataError where the shares
    cannot be counted (no population, nothing labeled) or where the user's do not add up to 1.
    """
    chosen = read_target(kind)
    with PartCall("target", chosen, topic, chosen) as call:
        made = chosen.make(dimension, collection, topic, ranking and call.frozen_ranking(ranking))
    target, labels = call.one_of(made, Target), collection.groups.labels(dimension)
    if target.dimension != dimension or target.labels != labels:
        raise call.fault(f"a target of other groups than those of {dimension!r}: {listed(labels)}")
    shares = call.numbers(target.shares, len(labels))
    if len(shares) and (shares.min() < 0 or abs(shares.sum() - 1) > TOLERANCE):
        raise call.fault(f"shares from {shares.min():.6g} that add up to {shares.sum():.6g}, expected 0 to 1, and 1")
    return target if shares is target.shares else replace(target, shares=shares)


def read_target(kind: str | Mapping[str, float] | Part) -> TargetKind:
    """The part of a target that is named by its kind or given as label -> share; UsageError where it is none."""
    if isinstance(kind, Mapping):
        # Wrong shares are an error where the target is made.
        return GivenTarget.model_construct(shares=dict(kind))
    try:
        chosen = read_part("target", kind)
    except ValueError as error:
        raise UsageError(f"{error} (or give your own label: share pairs)") from None
    if not isinstance(chosen, TargetKind):
        raise UsageError(f"{chosen.kind!r} is no target")
    return chosen


def make_targets(
    chosen: Any, dimensions: Sequence[str], collection: Collection, topic: str, ranking: Ranking
) -> tuple[Target, ...]:
    """The targets of `dimensions` for one topic id; `chosen` is what the call or the settings say, None: nothing.

    `ranking` serves the targets that estimate. Raises UsageError, with what each choice would mean here, where a
    dimension has no target; else what `make_target` does.
    """
    there = collection.groups.dimensions
    if isinstance(chosen, Mapping) and (strange := [name for name in chosen if name not in there]):
        raise UsageError(f"a target is set for what is none: {no_such('dimension', in_line(strange[0]), there)}")
    kinds = {dimension: target_choice(chosen, dimension, collection) for dimension in dimensions}
    if lacking := [dimension for dimension, kind in kinds.items() if kind is None]:
        raise UsageError(open_choice(lacking, collection, topic, ranking))
    return tuple(make_target(kind, dimension, collection, topic, ranking) for dimension, kind in kinds.items())


def target_choice(chosen: Any, dimension: str, collection: Collection) -> Any:
    """The target of one dimension, as `make_target` takes it; None where nobody chose one.

    What is `chosen`, in a call or the settings, beats the collection's own `target`, and this its population, which
    makes `trec-estimated`.
    """
    for targets in (chosen, collection.target):
        if (kind := _of(targets, dimension)) is not None:
            return kind
    return "trec-estimated" if dimension in collection.population else None


def _of(targets: Any, dimension: str) -> Any:
    return targets.get(dimension) if isinstance(targets, Mapping) else targets


def judged_by(dimension: str, collection: Collection, chosen: Any = None, judged: bool | None = None) -> TargetKind:
    """The target that rankings are judged by in one dimension; every door asks here.

    What is `chosen` (one target, or one for some of the dimensions) beats the collection's own `target`, and this
    `trec`. A track judges by its own, whatever the collection's is. An estimate from a ranking is judged by what it
    estimates. Where nothing is `judged` (None: where the collection has no judgments), the population takes the place
    of a target that is counted from judgments, or the corpus.
    """
    if (kind := _of(chosen, dimension)) is not None:
        return read_target(kind)
    target = read_target(collection.judged or _of(collection.target, dimension) or TARGET)
    target = read_target(target.judged_by) if target.judged_by else target
    if target.of_judgments and not (any(collection.qrels.values()) if judged is None else judged):
        return read_target("population" if dimension in collection.population else "corpus")
    return target


def open_choice(
    dimensions: Sequence[str], collection: Collection, topic: str = "", ranking: Ranking | None = None
) -> str:
    """What has to be chosen, how, and the shares of the groups under each kind that there always is.

    Without the `ranking` of a query nothing is estimated.
    """
    first = in_line(dimensions[0])
    label = in_line(next(iter(collection.groups.labels(dimensions[0])), "GROUP"))
    lines = [
        f"no target is set for {in_line(listed(dimensions))}: the share of exposure that each group should get is for "
        'you to choose, by --target KIND, target="KIND" in Python, or `target: KIND` in the settings or the '
        f"collection's file. KIND is one of these, or {{{first}: {{{label}: 0.5, ...}}}} with shares that add up to 1:"
    ]
    for kind in ("uniform", "corpus", "estimated"):
        for dimension in dimensions:
            try:
                made = make_target(kind, dimension, collection, topic, ranking)
            except (DataError, UsageError):
                continue
            if kind == "estimated" and not made.follows:
                continue  # it would be the corpus
            largest = sorted(zip(made.shares.tolist(), made.labels, strict=True), key=lambda one: -one[0])
            shares = in_line(listed([f"{label} {share:.1%}" for share, label in largest], 9))
            lines.append(f"  {kind:<9} {in_line(dimension)}: {shares}")
    lines.append("`estimated` follows the engine's own list for each query, and its bias with it.")
    return "\n".join(lines)


def following(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """A note on the targets that follow the engine's own list."""
    names = [f"{one.dimension} ({one.source})" for one in targets if one.follows]
    what = "target of {} follows" if len(names) == 1 else "targets of {} follow"
    return (f"the {what.format(' and '.join(names))} the engine's own list for this query",) if names else ()


def below_corpus(targets: tuple[Target, ...], collection: Collection) -> tuple[Alarm, ...]:
    """One alarm for each dimension in which such a target is far below what the groups have of all documents."""
    alarms = []
    for target in (one for one in targets if one.follows):
        try:
            shares = known_part(collection.groups.shares(target.dimension))
        except UsageError:
            continue  # groups in metadata have no shares of all documents
        rows = zip(target.labels, target.shares.tolist(), shares.tolist(), strict=True)
        low = [f"{label} {due:.1%} (of all documents {share:.1%})" for label, due, share in rows if due < 0.5 * share]
        if low:
            alarms.append(Alarm(FOLLOWS, f"{target.source} in {target.dimension} gives {', '.join(low)}"))
    return tuple(alarms)
