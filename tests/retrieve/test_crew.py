"""Embedding by several processes: what one gives, in order; they end with whoever has them; errors reach him."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.retrieve.crew import crew
from fairagent.retrieve.encoder import SentenceEncoder

TEXTS = [" ".join(["judge", "river", "court", "boat"][: 1 + n % 4]) + f" {n}" for n in range(50)]
CHUNKS = [TEXTS[start : start + 8] for start in range(0, 50, 8)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    return tiny_models.save_bert(tmp_path_factory.mktemp("crew") / "model")


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
        with pytest.raises(BackendUnavailable, match=r"ended before its time.*the same command goes on"):
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


ENDLESS = """
import multiprocessing, sys, time
from fairagent.retrieve.crew import crew
if __name__ == "__main__":
    with crew("m", 2):
        print(*(process.pid for process in multiprocessing.active_children()), flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_they_end_with_the_process_that_has_them(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(tmp_path / "endless.py")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        workers = [int(pid) for pid in process.stdout.readline().split()]
        assert len(workers) == 2
        assert all(alive(pid) for pid in workers)
        process.send_signal(number)
    end = time.monotonic() + 60
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < end, "they went on alone"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process runs, which a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
