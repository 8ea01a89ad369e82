"""The beam search over prompts: on completions written down, against trying everything, and on tiny local models."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_models import save_causal, save_masked

from fairagent.errors import DataError, UsageError
from fairagent.guests.local.likelihood import CausalModel, MaskedModel
from fairagent.types import FloatArray

SCRIPT = Path(__file__).resolve().parents[2] / "evaluations" / "debias" / "search_prompts.py"
_searching = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
LocalCompletions, divergence = _searching.LocalCompletions, _searching.divergence
passages_of, search_prompts = _searching.passages_of, _searching.search_prompts
PAIRS = [("he", "she")]


class Leaning:
    """The more often "works" is in a text, the surer: she is a nurse, he a judge."""

    words = ("nurse", "judge")

    def distributions(self, texts: Sequence[str]) -> FloatArray:
        rows = []
        for text in texts:
            sure = 0.5 + 0.2 * min(text.split().count("works"), 2)
            rows.append([sure, 1 - sure] if text.startswith("she") else [1 - sure, sure])
        return np.array(rows)


def test_the_beam_finds_what_tells_the_groups_apart() -> None:
    found = search_prompts(Leaning(), PAIRS, ["is", "works"], length=2, width=3)
    assert [prompt.text for prompt in found] == ["works works", "is works", "works"]
    assert found[0].divergence == pytest.approx(np.log(2) + 0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    passages = passages_of(found[:1], Leaning(), PAIRS, "gender")
    assert [(one.id, one.text, one.kind) for one in passages] == [
        ("prompt-1-he", "he works works judge", "gender"),
        ("prompt-1-she", "she works works nurse", "gender"),
    ]


def test_equal_groups_are_not_apart_and_three_may_be() -> None:
    assert divergence(np.full((1, 2, 4), 0.25)).tolist() == [0]
    assert divergence(np.eye(3)) == pytest.approx(np.log(3))


@pytest.mark.parametrize(
    "open_model", [lambda f: CausalModel(str(save_causal(f))), lambda f: MaskedModel(str(save_masked(f)))]
)
def test_local_models_beside_trying_all_prompts(tmp_path: Path, open_model: Callable[[Path], CausalModel]) -> None:
    completions = LocalCompletions(open_model(tmp_path), ["nurse", "doctor", "judge", "zebra"], batch=5)
    assert (completions.words, completions.left_out) == (("nurse", "doctor", "judge"), ("zebra",))
    rows = completions.distributions(["he is", "she is born", "he"])
    assert rows.sum(axis=1) == pytest.approx([1, 1, 1])
    # Padding makes no difference.
    assert completions.distributions(["he"])[0] == pytest.approx(rows[2], abs=1e-6)

    words, groups = ["is", "born"], [("he", "she"), ("man", "woman")]
    found = search_prompts(completions, groups, words, length=2, width=6)
    tried = {}
    for prompt in [*((word,) for word in words), *product(words, words)]:
        spread = [completions.distributions([f"{member} {' '.join(prompt)}" for member in group]) for group in groups]
        tried[" ".join(prompt)] = float(np.mean([divergence(rows) for rows in spread]))
    assert {prompt.text: prompt.divergence for prompt in found} == pytest.approx(tried, abs=1e-6)
    assert len(passages_of(found[:2], completions, groups)) == 8


def test_what_makes_no_sense(tmp_path: Path) -> None:
    for groups, words, length in (([], ["is"], 1), ([("he",)], ["is"], 1), (PAIRS, [], 1), (PAIRS, ["is"], 0)):
        with pytest.raises(UsageError, match="a search of prompts"):
            search_prompts(Leaning(), groups, words, length)
    with pytest.raises(UsageError, match="same number"):
        search_prompts(Leaning(), [("he", "she"), ("a", "b", "c")], ["is"])
    with pytest.raises(DataError, match="fewer than two"):
        LocalCompletions(CausalModel(str(save_causal(tmp_path))), ["zebra", "nurse"])


def test_the_script_writes_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "words.txt").write_text("nurse\njudge\ndoctor\nunheardof\n")
    (tmp_path / "vocabulary.txt").write_text("is\na\nthe\n")
    out = tmp_path / "avoid.jsonl"
    files = ("--words", tmp_path / "words.txt", "--vocabulary", tmp_path / "vocabulary.txt", "--out", out)
    model = save_causal(tmp_path / "causal")
    arguments = (SCRIPT, model, "he/she", *files, "--length", "2", "--width", "3", "--class", "gender")
    monkeypatch.setattr("sys.argv", list(map(str, arguments)))
    runpy.run_path(sys.argv[0], run_name="__main__")
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert (len(found), {one["class"] for one in found}) == (3 * 2, {"gender"})
    said = capsys.readouterr().out.splitlines()
    assert said[-1].endswith(": unheardof")
    divergences = [float(line.split()[0]) for line in said[:3]]
    assert divergences == sorted(divergences, reverse=True)
