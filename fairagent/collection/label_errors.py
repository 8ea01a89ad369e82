"""How far a labeler was right: the file that `fairagent label` writes, `errors` names, and what it does to AWRF."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, model_validator

from fairagent.errors import DataError
from fairagent.measures import awrf_under_error, known_part, odds_spread
from fairagent.measures.base import seeded
from fairagent.measures.unawareness import SAFE_SPREAD, as_posteriors, shared_part
from fairagent.settings import Section, validate
from fairagent.storage.files import write_whole
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import FloatArray

if TYPE_CHECKING:
    from fairagent.collection.collection import Collection
    from fairagent.collection.targets import Target

LARGEST = 1 << 24
"""Bytes of such a file."""


class LabelErrors(Section):
    """What cross-validation says of the made labels of one dimension."""

    dimension: str
    """The dimension."""
    source: str
    """What made the labels."""
    labels: tuple[str, ...] = Field(min_length=2)
    """The groups that the labeler knows."""
    examples: tuple[int, ...]
    """How many labeled examples of each it was made from."""
    confusion: tuple[tuple[float, ...], ...]
    """A row a label: column j has the mean chances of the examples of label j (`measures.confusion_matrix`), which
    add up to 1."""
    right: tuple[float, ...]
    """The share of the examples of each label whose likeliest label it is."""
    accuracy: float = Field(ge=0, le=1)
    """The share of all examples whose likeliest label is right."""
    calibration: float = Field(ge=0, le=1)
    """The expected calibration error (`measures.calibration_error`)."""

    @model_validator(mode="after")
    def _fits(self) -> LabelErrors:
        count = len(self.labels)
        if {len(self.examples), len(self.right), len(self.confusion), *map(len, self.confusion)} != {count}:
            raise ValueError(f"expected {count} examples, {count} shares of right ones and {count} x {count} chances")
        try:
            as_posteriors(np.array(self.confusion).T, "confusion", "column")
        except DataError as error:
            raise ValueError(str(error)) from None
        return self

    def matrix(self, labels: Sequence[str]) -> FloatArray:
        """The confusion matrix (g, g) over these labels; one that the labeler does not know is confused with none.

        Where the labeler knows more, the chances of the others are no label here, and documents count by what is left
        of theirs: so does a column, divided by what is left of it. DataError where nothing is.
        """
        whole = np.eye(len(labels))
        known = [place for place, label in enumerate(labels) if label in self.labels]
        own = [self.labels.index(labels[place]) for place in known]
        left = np.array(self.confusion)[np.ix_(own, own)]
        if not (mass := left.sum(axis=0)).all():
            never = self.labels[own[int(mass.argmin())]]
            raise DataError(
                f"{self.dimension}: what made the labels takes {never!r} for labels alone that are not here"
            )
        whole[np.ix_(known, known)] = left / mass
        return whole

    def counts(self, labels: Sequence[str]) -> FloatArray:
        """How many examples there were of each of these labels, (g,)."""
        known = dict(zip(self.labels, self.examples, strict=True))
        return np.array([known.get(label, 0) for label in labels], np.float64)

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        write_whole(path, json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")


def read_label_errors(path: Path) -> LabelErrors:
    """Read such a file; DataError where it is not there or is none."""
    try:
        return validate(LabelErrors, parse_json(file_text(path, LARGEST)), str(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no file of label errors ({error}); `fairagent label` writes one") from None


def under_error(
    collection: Collection,
    topic: str,
    target: Target,
    ids: Sequence[str],
    attention: FloatArray,
    base: float = math.e,
    of_topic: float = SAFE_SPREAD,
) -> tuple[float, float, float, float] | None:
    """AWRF of the documents `ids` in a predicted dimension, and the ends of 95 % of what label errors make of it.

    Last comes the `shared_part` of the error: 0 where nothing says that one labeler made the labels.

    Labels that the `target` is counted from are as uncertain as those shown. A document that could have a label and has
    none is of the groups by their shares of the collection. The ends are drawn with topics that differ by `of_topic`.
    None where nothing shown could have one.
    """
    dimension, groups = target.dimension, collection.groups
    kind = target.source.partition(" ")[0]
    grades = collection.qrels.get(topic, {}) if kind in ("trec", "qrels") else {}
    relevant = [id for id, grade in grades.items() if grade > 0]
    every = list(dict.fromkeys([*ids, *relevant]))
    if not every:
        return None
    rows = groups.memberships(dimension, every, topic)
    if (of_type := groups.of_type(dimension, every, topic)) is not None:
        rows = np.where(of_type[:, None], rows, 0.0)
    chances = rows[:, 1:] + rows[:, :1] * known_part(groups.shares(dimension))
    own = chances.sum(axis=1) > 0
    place = {id: number for number, id in enumerate(every)}
    weights, counts = np.zeros(len(every)), np.zeros(len(every))
    weights[: len(ids)] = attention[: len(ids)]
    counts[[place[id] for id in relevant]] = 1.0
    if not (weights * own).any():
        return None
    world = collection.population.get(dimension)
    fixed, share = target.shares, 0.0
    if relevant:
        share = 0.5 if kind == "trec" and world else 1.0
        fixed = np.array([(world or {}).get(label, 0.0) for label in target.labels]) if share < 1 else fixed
    errors = collection.label_errors.get(dimension)
    # Without a word on errors, as after a thousand examples of each group.
    examples = errors.counts(target.labels) if errors else np.full(len(target.labels), 1000.0)
    given = chances[own], weights[own], counts[own], fixed, share
    likely, safe = (
        awrf_under_error(*given, spread, seeded(0, "label errors", topic, dimension), base)
        for spread in (odds_spread(examples), odds_spread(examples, of_topic))
    )
    shared = shared_part(examples) if errors else 0.0
    return likely.value, min(likely.low, safe.low), max(likely.high, safe.high), shared
