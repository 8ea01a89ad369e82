"""Embedding by several processes: what one gives, in order; they end with whoever has them; errors reach him."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.guests.dense import encoders as sentence_encoder
from fairagent.guests.dense.encoders import SentenceEncoder, embedding
from fairagent.retrieve.forecast import FIRST

TEXTS = [" ".join(["judge", "river", "court", "boat"][: 1 + n % 4]) + f" {n}" for n in range(50)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    return tiny_models.save_bert(tmp_path_factory.mktemp("crew") / "model")


@pytest.fixture
def small_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "SHARE", 20)
    monkeypatch.setattr(sentence_encoder, "PIECE", 8)


@pytest.mark.slow
@pytest.mark.usefixtures("small_share")
def test_what_comes_is_what_one_process_gives_in_order_and_a_dead_one_is_named(model: Path) -> None:
    alone = SentenceEncoder(str(model)).documents(TEXTS)
    with embedding(str(model), 3) as work:
        work.ready(len(TEXTS))
        # 50 documents are worth two processes and not three.
        workers = multiprocessing.active_children()
        assert len(workers) == 2
        found = work.encode(TEXTS)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, alone, atol=1e-6)
        for worker in workers:
            worker.kill()
        with pytest.raises(BackendUnavailable, match=r"a worker process has ended .*repeat the command"):
            work.encode(TEXTS)
    assert not multiprocessing.active_children()


def test_few_documents_are_embedded_here(model: Path) -> None:
    with embedding(str(model), 4) as work:
        work.ready(len(TEXTS))
        assert not multiprocessing.active_children()
        assert np.array_equal(work.encode(TEXTS), SentenceEncoder(str(model)).documents(TEXTS))


@pytest.mark.usefixtures("small_share")
@pytest.mark.parametrize("documents", [1, 1000])
def test_what_keeps_the_model_from_opening_is_said(tmp_path: Path, documents: int) -> None:
    pytest.importorskip("sentence_transformers")
    with (
        pytest.raises(BackendUnavailable, match=r"no embedding model .*nowhere"),
        embedding(str(tmp_path / "nowhere"), 2) as work,
    ):
        work.ready(documents)
    assert not multiprocessing.active_children()


def test_several_processes_are_for_a_cpu() -> None:
    with (
        pytest.raises(UsageError, match="--workers is for embedding on a CPU; cuda embeds alone"),
        embedding("m", 2, "cuda"),
    ):
        pass
    with embedding("m", 0, "cuda") as work:
        assert work.first == FIRST
