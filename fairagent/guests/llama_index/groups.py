"""Group labels read from the nodes' own metadata."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import (
    DataError,
    Document,
    FloatArray,
    Part,
    Shares,
    TextSource,
    UsageError,
    listed,
    no_such,
    shown,
)

Keys = Mapping[str, str]
"""Metadata key -> dimension, e.g. {"author_gender": "gender"}."""

Target = str | Mapping[str, str | Mapping[str, float]]
"""The name of a target, or for each dimension a name or label -> share."""


class MetadataGroups:
    """Groups of documents as the metadata of their nodes tell them.

    A value is a label, a list of labels (equal shares) or a mapping from labels to weights; where it is missing or
    empty, the group is not known. The shares of a whole collection are not known, so there is no target `corpus`.
    """

    oracle: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()

    def __init__(self, texts: TextSource, keys: Keys, shares: Shares) -> None:
        """Take what shows the documents, the metadata `keys`, and `shares`, which name all labels of each dimension.

        Raises UsageError where a dimension has no labels, or two keys.
        """
        self._texts = texts
        self._keys = {dimension: key for key, dimension in keys.items()}
        if missing := [dimension for dimension in self._keys if not shares.get(dimension)]:
            raise UsageError(
                f"groups in metadata need a target that names all of them: say what share each group of "
                f'{listed(missing)} should get, e.g. target={{"gender": {{"female": 0.5, "male": 0.5}}}}'
            )
        if len(self._keys) < len(keys):
            raise UsageError(f"two metadata keys are one dimension: {dict(keys)}; name one key for each")
        self._labels = {dimension: tuple(shares[dimension]) for dimension in self._keys}

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(self._labels)

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels, in the order of the columns 1 .. g."""
        if dimension not in self._labels:
            raise UsageError(no_such("dimension", dimension, self.dimensions))
        return self._labels[dimension]

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown. `topic` makes no difference.

        Raises DataError, naming the document, where a value is none of the labels or has no such form.
        """
        labels, key = self.labels(dimension), self._keys[dimension]
        rows = np.zeros((len(ids), 1 + len(labels)))
        for row, id in zip(rows, ids, strict=True):
            value = self._texts.document(id).extra.get(key)
            try:
                weights = _weights(value)
                columns = [1 + labels.index(label) for label in weights]
            except ValueError:
                raise DataError(
                    f"document {id!r}: metadata {key!r} is {shown(value)}; expected nothing, one of the groups "
                    f"{listed(labels)}, a list of them, or a mapping from them to weights. A group that is missing "
                    "there belongs into the target, with share 0 if need be"
                ) from None
            row[columns] = list(weights.values())
            row[0] = not weights
        return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Not known: None. Raises UsageError for an unknown dimension."""
        self.labels(dimension)
        return None

    def shares(self, dimension: str) -> FloatArray:
        """Not known: raises UsageError."""
        raise UsageError(
            f"groups in metadata do not tell what share of all documents each group of {dimension!r} has; "
            "use a target other than 'corpus'"
        )

    def missing(self, dimension: str) -> float:
        """Not known: raises UsageError."""
        return float(self.shares(dimension)[0])


def _weights(value: object) -> dict[str, float]:
    """Label -> weight > 0; ValueError for anything that says no such thing."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        return {value: 1.0}
    if isinstance(value, Mapping):
        weights = {str(label): float(weight) for label, weight in value.items()}
        if not all(0 <= weight < np.inf for weight in weights.values()):
            raise ValueError("a weight below 0")
        return {label: weight for label, weight in weights.items() if weight}
    if isinstance(value, list | tuple):
        return {str(label): 1.0 for label in value if label}
    raise ValueError("no label")


def given(
    target: Target | Part | Mapping[str, Part] | None, dimensions: Iterable[str]
) -> dict[str, Mapping[str, float]]:
    """Those of the `dimensions` whose shares stand in the target."""
    shares_of = {}
    for dimension in dimensions:
        one = target.get(dimension) if isinstance(target, Mapping) else target
        shares = getattr(one, "shares", one)
        if isinstance(shares, Mapping):
            shares_of[dimension] = shares
    return shares_of


class Shelf:
    """Documents by id, at hand."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents

    def document(self, id: str) -> Document:
        """The document."""
        return self._documents[id]
