"""How far a labeler was right: the file that `fairagent label` writes beside its labels, and `errors` names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field, model_validator

from fairagent.errors import DataError
from fairagent.settings import Section, validate
from fairagent.storage.files import write_whole
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import FloatArray

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
    """A row a label: column j has the mean chances of the examples of label j (`measures.confusion_matrix`)."""
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
        return self

    def matrix(self, labels: Sequence[str]) -> FloatArray:
        """The confusion matrix (g, g) over these labels; one that the labeler does not know is confused with none."""
        whole = np.eye(len(labels))
        known = [place for place, label in enumerate(labels) if label in self.labels]
        own = [self.labels.index(labels[place]) for place in known]
        whole[np.ix_(known, known)] = np.array(self.confusion)[np.ix_(own, own)]
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
