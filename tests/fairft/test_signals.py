"""Signals: what they are, asked once, kept whatever happens, and refused where they are another model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import IndexMismatch
from fairagent.llm.prompts import Prompts
from fairagent.papers.fairft.settings import TrainingExample
from fairagent.papers.fairft.signals import PROBE, Signals
from fairagent.types import Document, FloatArray

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
