"""Indexes that Anserini has built of twelve documents, in two segments, with and without what it may store."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anserini_indexes import impacts, joined, texts, vectors

STORED = {
    "full": ("-storePositions", "-storeDocvectors", "-storeRaw"),
    "raw": ("-storeRaw",),
    "contents": ("-storeContents",),
    "vectors": ("-storeDocvectors",),
    "bare": (),
}
"""What an index stores, by IndexCollection's options."""

_TEXTS = (
    "The lawyers of Bonn argued about fees, fees and histories.",
    "A judge in Berlin heard the lawyer.",
    "The river Rhine flows through Bonn; rivers flow.",
    "A history of lawyers, judges and courts in Germany.",
    "Painters painted the river at night.",
    "A judge judged a painter.",
    "The court of Bonn sits at night.",
    "Berlin, Berlin, Berlin: a history.",
    "Fees of courts are high.",
    "The painter's lawyer lost.",
    "A quiet harbor.",
    "A quiet harbor.",
)
ROWS: tuple[dict[str, Any], ...] = tuple(
    {"id": f"d{n * 5 % 12:02d}", "contents": text} for n, text in enumerate(_TEXTS)
)
"""Ids are not in the order of the documents; the last two can be told apart by nothing else."""
IDS = tuple(row["id"] for row in ROWS)
WEIGHTS = tuple({"lawyer": n * (n % 3), "bonn": (7 * n) % 5, "judge": 3 * (n % 4), "##s": 2} for n in range(len(ROWS)))
"""No two terms but the last, which is in every document, are in the same ones; 0 is not there."""


def rows_of_weights() -> list[dict[str, Any]]:
    kept = [{term: weight for term, weight in weights.items() if weight} for weights in WEIGHTS]
    return [row | {"vector": weights} for row, weights in zip(ROWS, kept, strict=True)]


def unit_rows(n: int = len(ROWS), d: int = 8, seed: int = 5) -> np.ndarray[Any, np.dtype[np.float32]]:
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index for each of `STORED`, and `impact`, `hnsw` and `hnsw-int8`."""
    folder = tmp_path_factory.mktemp("anserini")
    for name, options in STORED.items():
        halves = [texts(folder / f"{name}-{n}", ROWS[n * 7 : n * 7 + 7], *options) for n in range(2)]
        joined(folder / name, *halves)
    impacts(folder / "impact", rows_of_weights())
    rows = unit_rows()
    halves = [vectors(folder / f"hnsw-{n}", IDS[n * 7 : n * 7 + 7], rows[n * 7 : n * 7 + 7]) for n in range(2)]
    joined(folder / "hnsw", *halves)
    vectors(folder / "hnsw-int8", IDS, rows, "-quantize.int8")
    return folder
