"""Training learns, goes on after any break to the same weights, refuses what does not belong together; its signals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.llm.prompts import Prompts
from fairagent.papers.fairft import train
from fairagent.papers.fairft.run import RECORD, Trained, check, run_training
from fairagent.papers.fairft.settings import TrainingExample
from fairagent.papers.fairft.train import CHECKPOINT, PROBE, Direction, Reduction, Signals, kl_loss, log_target
from fairagent.types import Document, FloatArray

from .small import write_lines, write_task

QUERIES = ["the judge", "a good book", "river law"]


def vectors(trained: Trained) -> np.ndarray:
    return SentenceEncoder(str(trained.model)).queries(QUERIES)


@pytest.fixture(scope="module")
def whole(task_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A training that nothing broke off."""
    return run_training(check(task_file), tmp_path_factory.mktemp("whole") / "run")


def test_the_held_out_kl_falls(whole: Trained) -> None:
    assert whole.history.best > 0
    assert whole.change.after.kl < whole.change.before.kl
    assert whole.change.before.kl == pytest.approx(whole.history.measured[0], rel=1e-6)
    assert whole.change.after.kl == pytest.approx(min(whole.history.measured), rel=1e-6)


def test_the_model_is_one_for_the_dense_retriever_anywhere(whole: Trained, task_file: Path) -> None:
    before = SentenceEncoder(str(task_file.parent / "retriever")).queries(QUERIES)
    assert vectors(whole).shape == before.shape
    assert np.abs(vectors(whole) - before).max() > 1e-4
    record = json.loads((whole.model.parent / RECORD).read_text(encoding="utf-8"))
    assert record["measured"] == list(whole.history.measured)


def the_same(trained: Trained, whole: Trained) -> None:
    """But for rounding: on a busy machine libraries share sums out among other numbers of threads.

    A round changes the KL by a hundredth of it, so a step that was lost or made twice would be seen.
    """
    assert trained.history.measured == pytest.approx(whole.history.measured, rel=2e-4)
    assert trained.history.best == whole.history.best
    np.testing.assert_allclose(vectors(trained), vectors(whole), atol=2e-4)


class Broken(BaseException):
    """What Ctrl-C is like."""


def test_broken_off_anywhere_it_comes_to_the_same(
    whole: Trained, task_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption before or after files are written, each time a little further on."""
    left = {"writes": 0, "breaks": 0}
    original = train.whole_file

    @contextmanager
    def breaking(path: Path) -> Iterator[IO[bytes]]:
        left["writes"] -= 1
        if left["writes"] == 0 and left["breaks"] % 2:
            raise Broken
        with original(path) as file:
            yield file
        if left["writes"] == 0:
            raise Broken

    monkeypatch.setattr(train, "whole_file", breaking)
    folder = tmp_path / "run"
    while True:
        # At the beginning of a round the embeddings are written and then the checkpoint: so two get it no further.
        left["writes"] = 3
        try:
            trained = run_training(check(task_file), folder)
        except Broken:
            left["breaks"] += 1
            assert left["breaks"] < 20
            continue
        break
    assert left["breaks"] >= 4
    the_same(trained, whole)
    assert not list(folder.glob("vectors-*"))


def test_a_finished_training_is_not_done_again(whole: Trained, task_file: Path) -> None:
    steps: list[int] = []
    again = run_training(check(task_file), whole.model.parent, lambda done, all, best: steps.append(done))
    assert steps == []
    assert again.history == whole.history


def test_another_training_in_the_folder_is_refused_or_replaced(whole: Trained, task_file: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole.model.parent, tmp_path / "run"))
    with pytest.raises(UsageError, match="other settings"):
        run_training(check(task_file, seed=1), folder)
    second = run_training(check(task_file, seed=1), folder, new=True)
    assert second.history != whole.history
    (folder / CHECKPOINT).write_bytes(b"no checkpoint")
    with pytest.raises(DataError, match="start over with --new"):
        run_training(check(task_file, seed=1), folder)


@pytest.mark.parametrize(
    "training",
    [{"direction": "q-p", "reduction": "documents"}, {"documents": 100, "refreshes": 12, "epochs": 1, "patience": 50}],
    ids=["the code's loss", "more refreshes than questions"],
)
def test_other_settings_run_too(one_thread: None, tmp_path: Path, training: dict[str, object]) -> None:
    file = write_task(tmp_path, **training)
    text = file.read_text(encoding="utf-8").replace("device: cpu", "device: cpu\n  towers: query\n  dtype: bfloat16", 1)
    file.write_text(text, encoding="utf-8")
    trained = run_training(check(file), tmp_path / "run")
    assert np.isfinite(trained.history.measured).all()


def test_leaks_are_refused(task_file: Path) -> None:
    folder = task_file.parent
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    write_lines(
        folder / "test.jsonl",
        [{"prompt": f"You are a helpful assistant. {one['query'].upper()}?"} for one in questions],
    )
    leaking = folder / "leaking.yaml"
    leaking.write_text(
        task_file.read_text(encoding="utf-8") + "test:\n- {path: test.jsonl, fields: [prompt]}\n", encoding="utf-8"
    )
    with pytest.raises(DataError, match=r"9 texts of test.jsonl stand in the training questions"):
        check(leaking)


FEW = settings(max_examples=30)
SCORES = arrays(np.float64, (3, 4), elements=st.floats(-1, 1))
LIKELIHOODS = arrays(np.float64, (3, 4), elements=st.floats(-80, 0))
DIRECTIONS = st.sampled_from(["p-q", "q-p"])


def loss_and_gradient(
    scores: np.ndarray, log_q: np.ndarray, direction: Direction = "p-q", reduction: Reduction = "mean"
) -> tuple[float, np.ndarray]:
    tensor = torch.tensor(scores, requires_grad=True)
    loss = kl_loss(tensor, torch.tensor(log_q), 0.1, direction, reduction)
    loss.backward()
    return loss.item(), tensor.grad.numpy()


@FEW
@given(SCORES, LIKELIHOODS, DIRECTIONS)
def test_the_gradient_is_that_of_differences(scores: np.ndarray, likelihoods: np.ndarray, direction: Direction) -> None:
    log_q = log_target(likelihoods, 0.1)
    step = np.zeros_like(scores)
    step[1, 2] = 1e-6
    above, below = (loss_and_gradient(scores + by, log_q, direction, "documents")[0] for by in (step, -step))
    _, gradient = loss_and_gradient(scores, log_q, direction, "documents")
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-9)
    assert gradient[1, 2] == pytest.approx((above - below) / 2e-6, abs=1e-4)


ASKED = TrainingExample("q1", "Who can be a nurse?", "Anyone can")
DOCUMENTS = [Document("a", "Nurses care."), Document("b", "Judges judge.", "Court"), Document("c", "Nurses care.")]


@dataclass
class Counted:
    """Finds each word of a text the less likely the longer the context."""

    factor: float = 1.0
    name: str = "counted"
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[FloatArray]:
        self.pairs += [pair for pair in pairs if pair != PROBE]
        return [np.full(len(text.split()), -self.factor * len(context) / 1000) for context, text in pairs]


def opened(path: Path, model: Counted | None = None, **more: int) -> Signals:
    return Signals(model or Counted(), Prompts(), path, **more)


def test_it_is_the_sum_of_the_answers_log_probabilities(tmp_path: Path) -> None:
    model = Counted()
    found = opened(tmp_path / "s.jsonl", model).likelihoods(ASKED, DOCUMENTS)
    assert found[:2].tolist() == [-2 * len(context) / 1000 for context, _ in model.pairs]
    assert found[0] == found[2]
    for context, text in model.pairs:
        assert text == "Anyone can"
        assert "Who can be a nurse?" in context
    assert "Judges judge." in model.pairs[1][0]
    assert "Judges judge." not in model.pairs[0][0]


def test_nothing_is_asked_twice_by_any_process(tmp_path: Path) -> None:
    first = opened(tmp_path / "s.jsonl").likelihoods(ASKED, DOCUMENTS[:2])
    model = Counted(name="moved/elsewhere")
    again = opened(tmp_path / "s.jsonl", model)
    np.testing.assert_array_equal(again.likelihoods(ASKED, DOCUMENTS), [*first, first[0]])
    assert model.pairs == []
    assert again.computed == 0


def test_a_broken_off_line_is_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first = opened(path).likelihoods(ASKED, DOCUMENTS[:2])
    path.write_bytes(path.read_bytes()[:-9])
    model = Counted()
    np.testing.assert_array_equal(opened(path, model).likelihoods(ASKED, DOCUMENTS[:2]), first)
    assert len(model.pairs) == 2
    third = Counted()
    np.testing.assert_array_equal(opened(path, third).likelihoods(ASKED, DOCUMENTS[:2]), first)
    assert third.pairs == []


@pytest.mark.parametrize("line", ["[1]", '{"question": "x"}', '{"question": "x", "documents": {"d": 0.5}}'])
def test_lines_that_are_no_signals_are_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.jsonl"
    opened(path).likelihoods(ASKED, DOCUMENTS[:1])
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    model = Counted()
    opened(path, model).likelihoods(ASKED, DOCUMENTS[:1])
    assert model.pairs == []


def test_signals_of_something_else_are_refused(tmp_path: Path) -> None:
    opened(tmp_path / "s.jsonl")
    with pytest.raises(IndexMismatch, match="another model"):
        opened(tmp_path / "s.jsonl", Counted(factor=2.0))
    with pytest.raises(IndexMismatch, match="another prompt"):
        opened(tmp_path / "s.jsonl", tokens=64)


def test_long_documents_are_cut(tmp_path: Path) -> None:
    model = Counted()
    opened(tmp_path / "s.jsonl", model, tokens=16).likelihoods(ASKED, [Document("a", "word " * 1000)])
    assert model.pairs[0][0].count("word") < 20
