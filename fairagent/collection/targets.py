"""Targets: the share of exposure that each known group of a dimension should get for one topic.

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
from fairagent.collection.records import Faults, listed, shown
from fairagent.collection.spellings import meant
from fairagent.errors import DataError, SettingsError, UsageError
from fairagent.measures import min_max
from fairagent.settings import Label, read_yaml
from fairagent.settings.faults import no_such
from fairagent.settings.parts import Part, read_part
from fairagent.settings.seam import PartCall
from fairagent.storage.readers import Malformed, file_text, parse_json
from fairagent.types import UNKNOWN, FloatArray, Ranking
from fairagent.types.clean import label_text

WorldShares = dict[str, dict[str, float]]

LARGEST = 1 << 20
"""Bytes of a file."""
TOLERANCE = 1e-6
"""How far from 1 shares may add up."""
TARGET = "trec"
"""The kind that rankings are judged by where nobody chose another."""
SHARES_NAMED = 4
"""Groups of a given target that its name has."""
ESTIMATE_FROM = 50
"""How many of the first documents an estimated target is taken from (swept in evaluations/sweep)."""


def read_population(path: Path, faults: Faults) -> WorldShares:
    """Dimension -> label -> share of the world, from a JSON or YAML file; what is wrong is added to `faults`."""
    try:
        values = parse_json(file_text(path, LARGEST)) if path.suffix == ".json" else read_yaml(path)
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except Malformed as error:
        faults.add(path, error.line, f"not JSON ({error})")
    except OSError as error:
        faults.add(path, None, f"cannot be read ({error})")
    except SettingsError as error:
        faults.add(path, None, str(error).removeprefix(f"{path}: "))
    else:
        return checked_population(values, path, faults)
    return {}


def checked_population(values: Any, path: Path, faults: Faults) -> WorldShares:
    """The same from values that stand in `path` already."""
    if not isinstance(values, Mapping):
        faults.add(path, None, f"expected dimension -> label -> share, got {shown(values)}")
        return {}
    population: WorldShares = {}
    for dimension, shares in values.items():
        messages = share_faults(shares)
        for message in messages:
            faults.add(path, None, f"population of {dimension!r}: {message}")
        if not messages:
            population[str(dimension)] = {label_text(label): float(share) for label, share in shares.items()}
    return population


def share_faults(shares: Any, labels: Sequence[str] | None = None) -> list[str]:
    """What keeps `shares` from being a distribution over known labels, or over these; empty where nothing does.

    >>> share_faults({"female": 0.5, "male": 0.4})
    ['the shares add up to 0.9, expected 1']
    """
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
    total = math.fsum(shares.values()) if not faults else 1.0
    if abs(total - 1.0) > TOLERANCE:
        faults.append(f"the shares add up to {total:.6g}, expected 1")
    if labels is not None and (unknown := [name for name in by_label(shares, labels) if name not in labels]):
        faults.append(no_such("group", listed(unknown), labels))
    return faults


def by_label(shares: Mapping[Any, float], labels: Sequence[str]) -> dict[str, float]:
    """The shares by those of `labels` that their names mean; a name that means none stays.

    >>> by_label({"Female": 0.5, 1: 0.5}, ["1", "female"])
    {'female': 0.5, '1': 0.5}
    """
    of, summed = meant(shares, labels), dict[str, float]()
    for name, share in shares.items():
        label = of[label_text(name)]
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


@dataclass(frozen=True, slots=True)
class _Counts:
    """What a topic's targets in one dimension are made of."""

    dimension: str
    labels: tuple[str, ...]
    collection: Collection
    topic: str

    @classmethod
    def of(cls, dimension: str, collection: Collection, topic: str) -> Self:
        labels = collection.groups.labels(dimension)
        if not labels:
            raise DataError(f"no document of {collection.name!r} has a label of {dimension!r}: no target can be made")
        return cls(dimension, labels, collection, topic)

    @property
    def judged(self) -> bool:
        """Whether the labels come from the judgments, which makes an oracle of whatever counts them."""
        return self.dimension in self.collection.groups.oracle

    @property
    def has_world(self) -> bool:
        return self.dimension in self.collection.population

    def world(self) -> FloatArray:
        """The world shares (g,)."""
        population = self.collection.population
        if not self.has_world:
            raise DataError(
                f"{self.collection.name!r} has no population for {self.dimension!r} (there is: "
                f"{listed(list(population)) or 'none'}); add it to the collection's settings file, or use 'uniform', "
                "'corpus' or 'estimated'"
            )
        world = by_label(population[self.dimension], self.labels)
        return np.array([world.get(label, 0.0) for label in self.labels])

    def corpus(self) -> tuple[FloatArray, FloatArray | None]:
        """The shares of the documents, and the known part of them."""
        groups = self.collection.groups
        totals = groups.shares(self.dimension)
        if (shares := _known_shares(totals)) is None:
            name = self.collection.name
            raise DataError(f"no document of {name!r} has a label of {self.dimension!r}: no target 'corpus'")
        return shares, self.known(np.append(groups.missing(self.dimension), totals[1:]))

    def rows(self, ids: Sequence[str]) -> FloatArray:
        """The membership rows (n, 1 + g) of documents; those that cannot have a label are nothing, also not unknown."""
        rows = self.collection.groups.memberships(self.dimension, ids, self.topic)
        of_type = self.collection.groups.of_type(self.dimension, ids, self.topic)
        if of_type is not None:
            rows = rows.copy()
            rows[~of_type, 0] = 0.0
        return rows

    def known(self, totals: FloatArray) -> FloatArray | None:
        """The known part (g,) of summed memberships, whatever the missing labels are; None where none is missing.

        A predicted label may be wrong: nothing of it is known.
        """
        if self.dimension in self.collection.groups.predicted:
            return np.zeros(totals.size - 1)
        return totals[1:] / totals.sum() if totals[0] > 0 else None

    def mixed(self, shares: FloatArray, known: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Half these and half the world's, or these alone where there are no world shares."""
        if not self.has_world:
            return shares, known
        world = self.world()
        return (shares + world) / 2, None if known is None else (known + world) / 2


def _known_shares(totals: FloatArray) -> FloatArray | None:
    """The known part (column 1 on) of summed memberships as shares; None where it has no mass."""
    mass = totals[1:].sum()
    return totals[1:] / mass if mass > 0 else None


class TargetKind(Part):
    """A kind of target: settings name it, `make` makes it for one topic."""

    judged_by: ClassVar[str] = ""
    """The kind that judges in its place, where it is an estimate from a ranking."""
    of_judgments: ClassVar[bool] = False
    """Whether it is counted from a topic's relevant documents."""

    @property
    def name(self) -> str:
        """What it is called beside the numbers that depend on it."""
        return self.kind

    def make(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None = None) -> Target:
        """The target of `dimension` for one topic id; `ranking` is the deep list of the original query.

        Raises UsageError for an unknown dimension or a missing ranking; DataError where the shares cannot be counted.
        """
        return self._made(_Counts.of(dimension, collection, topic), ranking)

    def faults(self, labels: Sequence[str]) -> list[str]:
        """What is wrong with it in a dimension of these groups."""
        return []

    def _made(self, counts: _Counts, ranking: Ranking | None) -> Target:
        raise NotImplementedError

    def build(self, site: Any) -> Self:
        """Itself."""
        return self


class PopulationTarget(TargetKind):
    """The shares of the world."""

    kind: Literal["population"] = "population"

    def _made(self, counts: _Counts, ranking: Ranking | None) -> Target:
        return Target(counts.dimension, counts.labels, counts.world(), self.kind)


class UniformTarget(TargetKind):
    """The same share for every group."""

    kind: Literal["uniform"] = "uniform"

    def _made(self, counts: _Counts, ranking: Ranking | None) -> Target:
        groups = len(counts.labels)
        return Target(counts.dimension, counts.labels, np.full(groups, 1 / groups), self.kind)


class CorpusTarget(TargetKind):
    """The shares of the documents."""

    kind: Literal["corpus"] = "corpus"

    def _made(self, counts: _Counts, ranking: Ranking | None) -> Target:
        shares, known = counts.corpus()
        return Target(counts.dimension, counts.labels, shares, self.kind, counts.judged, known)


class EstimatedTarget(TargetKind):
    """The groups' shares of the retrieved scores; the corpus's where nothing labeled is retrieved."""

    kind: str = "estimated"
    judged_by: ClassVar[str] = "qrels"
    mixed: ClassVar[bool] = False

    def _made(self, counts: _Counts, ranking: Ranking | None) -> Target:
        if ranking is None:
            raise UsageError(f"the target {self.kind!r} needs the ranking of the original query")
        totals = estimate_weights(ranking.scores) @ counts.rows(ranking.ids)
        shares, known = _known_shares(totals), counts.known(totals)
        source, follows = self.kind, shares is not None
        if shares is None:
            source = f"{self.kind} (nothing labeled was ranked: corpus)"
            shares, of_corpus = counts.corpus()
            known = of_corpus if known is None else known
        if self.mixed:
            shares, known = counts.mixed(shares, known)
        return Target(counts.dimension, counts.labels, shares, source, counts.judged, known, follows)


class TrecEstimatedTarget(EstimatedTarget):
    """Half estimated, half the world's."""

    kind: str = "trec-estimated"
    judged_by: ClassVar[str] = "trec"
    mixed: ClassVar[bool] = True


class QrelsTarget(TargetKind):
    """The shares of the relevant documents: an oracle."""

    kind: str = "qrels"
    of_judgments: ClassVar[bool] = True
    mixed: ClassVar[bool] = False

    def _made(self, counts: _Counts, ranking: Ranking | None) -> Target:
        grades = counts.collection.qrels.get(counts.topic, {})
        totals = counts.rows([id for id, grade in grades.items() if grade > 0]).sum(axis=0)
        shares, known, source = _known_shares(totals), counts.known(totals), self.kind
        if shares is None and self.mixed and counts.has_world:
            shares, source = counts.world(), "trec (no relevant document labeled: population)"
        if shares is None:
            raise DataError(
                f"topic {counts.topic!r}: no relevant document has a label of {counts.dimension!r}, so there is no "
                "target 'qrels'; leave the topic out, or use 'trec' or 'population'"
            )
        if self.mixed:
            shares, known = counts.mixed(shares, known)
        return Target(counts.dimension, counts.labels, shares, source, True, known)


class TrecTarget(QrelsTarget):
    """Half the relevant documents' shares, half the world's, as in TREC Fair Ranking 2022: an oracle.

    The population's alone where no relevant document is labeled.
    """

    kind: str = "trec"
    mixed: ClassVar[bool] = True


class GivenTarget(TargetKind):
    """The user's own shares."""

    kind: Literal["given"] = "given"
    shares: dict[Label, float]
    """Label -> share, of one dimension; they add up to 1, and a label that is not named has none."""

    @property
    def name(self) -> str:
        """With the largest shares."""
        largest = sorted(self.shares.items(), key=lambda one: -one[1])
        return f"given ({listed([f'{label} {share:.3g}' for label, share in largest], SHARES_NAMED)})"

    def faults(self, labels: Sequence[str]) -> list[str]:
        """Labels that are no groups, and shares that do not add up to 1."""
        return share_faults(self.shares, labels)

    def _made(self, counts: _Counts, ranking: Ranking | None) -> Target:
        return _given(self.shares, counts)


def _given(shares: Mapping[str, float], counts: _Counts) -> Target:
    if faults := share_faults(shares, counts.labels):
        raise DataError(f"the target given for {counts.dimension!r} cannot be used: {'; '.join(faults)}")
    own = by_label(shares, counts.labels)
    given = np.array([float(own.get(label, 0.0)) for label in counts.labels])
    return Target(counts.dimension, counts.labels, given, "given")


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
        # What is wrong with shares is told by what they are for.
        return GivenTarget.model_construct(shares=dict(kind))
    try:
        chosen = read_part("target", kind)
    except ValueError as error:
        raise UsageError(f"{error} (or give your own label: share pairs)") from None
    if not isinstance(chosen, TargetKind):
        raise UsageError(f"{chosen.kind!r} is no target")
    return chosen


def estimate_weights(scores: FloatArray) -> FloatArray:
    """What each document of a ranking counts for in an estimate, (n,), from the scores (n,), best first.

    >>> estimate_weights(np.array([3.0, 2.0, 1.0])).round(3).tolist()
    [1.0, 0.667, 0.333]
    """
    weights = min_max(scores)
    if 1 < len(scores) < ESTIMATE_FROM and float(weights.min()) < 1:
        # In units of the range, the mean difference of neighbors is 1 / (n - 1).
        step = 1 / (len(scores) - 1)
        weights = (weights + step) / (1 + step)
    return weights
