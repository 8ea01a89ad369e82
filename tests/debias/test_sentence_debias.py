"""SentenceDebias: the subspace by hand, and an encoder without it as a folder."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from fairft.small import save_retriever

from fairagent.errors import DataError, UsageError
from fairagent.guests.dense.encoders import SentenceEncoder

from .parts import lexicon

SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[2] / "evaluations" / "debias" / "sentence_debias.py"))
bias_subspace, counterfactuals = SCRIPT["bias_subspace"], SCRIPT["counterfactuals"]
save_debiased, without = SCRIPT["save_debiased"], SCRIPT["without"]
PAIRS = [
    ("he was a judge", "she was a judge"),
    ("he wrote the book", "she wrote the book"),
    ("he is bad", "she is bad"),
]


def test_the_subspace_is_that_of_the_principal_components() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(9, 5)), rng.normal(size=(9, 5))
    means = (first + second) / 2
    apart = np.concatenate([first - means, second - means])
    values, vectors = np.linalg.eigh(apart.T @ apart)
    found = bias_subspace(first, second, 2)
    for direction, expected in zip(found, vectors.T[::-1][:2], strict=True):
        assert abs(direction @ expected) == pytest.approx(1)
    assert values[-1] > values[-2]
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-12)
    left = without(first, found)
    np.testing.assert_allclose(left @ found.T, 0, atol=1e-12)
    np.testing.assert_allclose(without(left, found), left, atol=1e-12)


def test_too_few_directions() -> None:
    one = np.array([[1.0, 0.0, 0.0]])
    with pytest.raises(DataError, match="1 pairs of counterfactual sentences do not differ in 2 directions"):
        bias_subspace(one, -one, 2)
    with pytest.raises(DataError, match="do not differ in 1"):
        bias_subspace(one, one)
    with pytest.raises(UsageError, match="at least one direction"):
        bias_subspace(one, -one, 0)


def test_counterfactuals_are_of_the_class(tmp_path: Path) -> None:
    words = lexicon(tmp_path)
    texts = ["He is late.", "The mosque is late.", "It is late."]
    assert counterfactuals(texts, words) == [
        ("He is late.", "She is late."),
        ("The mosque is late.", "The church is late."),
    ]
    assert counterfactuals(texts, words, "gender") == [("He is late.", "She is late.")]


def test_an_encoder_without_the_subspace(tmp_path: Path) -> None:
    plain = save_retriever(tmp_path / "plain")
    subspace = save_debiased(str(plain), PAIRS, tmp_path / "debiased")
    texts = ["he was a nurse", "she was a nurse", "the river"]
    before, after = (SentenceEncoder(str(tmp_path / name)).documents(texts) for name in ("plain", "debiased"))
    expected = without(before.astype(float), subspace)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(after, expected, atol=1e-5)
    np.testing.assert_allclose(after @ subspace.T, 0, atol=1e-5)
    assert np.abs(before @ subspace.T).max() > 1e-3
    with pytest.raises(DataError, match="no pair"):
        save_debiased(str(plain), [], tmp_path / "none")
