"""Embedding by several processes: what one gives, in order; they end with whoever has them; errors reach him."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.retrieve.crew import crew
from fairagent.retrieve.sentence_encoder import SentenceEncoder

TEXTS = [" ".join(["judge", "river", "court", "boat"][: 1 + n % 4]) + f" {n}" for n in range(50)]
CHUNKS = [TEXTS[start : start + 8] for start in range(0, 50, 8)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    return tiny_models.save_bert(tmp_path_factory.mktemp("crew") / "model")


@pytest.mark.slow
def test_what_comes_is_what_one_process_gives_in_order_and_a_dead_one_is_named(model: Path) -> None:
    alone = SentenceEncoder(str(model))
    taken: list[int] = []

    def chunks() -> object:
        for number, chunk in enumerate(CHUNKS):
            taken.append(number)
            yield chunk

    with crew(str(model), 2) as embed:
        found = embed(chunks())  # type: ignore[arg-type]
        first = next(iter(found))
        # Not all texts of a collection are held at once.
        assert len(taken) == 5
        parts = [first, *found]
        assert [len(part) for part in parts] == [len(chunk) for chunk in CHUNKS]
        for part, chunk in zip(parts, CHUNKS, strict=True):
            assert part.dtype == np.float32
            np.testing.assert_allclose(part, alone.documents(chunk), atol=1e-6)
        workers = multiprocessing.active_children()
        assert len(workers) == 2
        for worker in workers:
            worker.kill()
        with pytest.raises(BackendUnavailable, match=r"a worker process has ended .*repeat the command"):
            list(embed(CHUNKS))
    assert not multiprocessing.active_children()


def test_what_keeps_the_model_from_opening_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(BackendUnavailable, match=r"no embedding model .*nowhere"),
        crew(str(tmp_path / "nowhere"), 1) as embed,
    ):
        list(embed(CHUNKS))
    assert not multiprocessing.active_children()


def test_several_processes_are_for_a_cpu() -> None:
    with (
        pytest.raises(UsageError, match="--workers is for embedding on a CPU; cuda embeds alone"),
        crew("m", 2, "cuda"),
    ):
        pass
