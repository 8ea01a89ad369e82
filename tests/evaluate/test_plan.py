"""Files of an unknown kind, sections of two kinds, keys of another kind, and runs of an old layout: one error each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent.errors import DataError
from fairagent.evaluate.kind import SHIPPED, kinds
from fairagent.evaluate.run import FORMAT, load_run, plan_in, read_head, write_head

from . import words


def test_the_kinds_that_there_are() -> None:
    assert (
        " ".join(kinds()) == "ranking answers accuracy agreement bold crows-pairs fair-rag lamp seat stereoset utility"
    )


def test_a_kind_of_another_package_and_its_keys_in_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "doubled.py").write_text(
        "from typing import Literal\n"
        "from fairagent.evaluate.ranking import RankingKind\n"
        "class Doubled(RankingKind):\n    kind: Literal['doubled'] = 'doubled'\n    twice: int = 2\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(SHIPPED, "doubled", "doubled:Doubled")
    file = words.write(tmp_path, f"kind: doubled\n{words.EXPERIMENT}twice: 3\n")
    run = words.run(file, tmp_path / "run", limit=2)
    assert run.kind.twice == 3  # type: ignore[attr-defined]
    text = words.refused(words.write(tmp_path, f"{words.EXPERIMENT}twice: 3\n"))
    assert "twice: no key of kind 'ranking'; it is one of kind doubled (write `kind: doubled`)" in text


def test_an_unknown_kind(tmp_path: Path) -> None:
    for line, message in (
        ("rankings", "no kind of experiment 'rankings'; did you mean 'ranking'?"),
        ("", "expected the"),
    ):
        text = words.refused(words.write(tmp_path, f"kind: {line}\n{words.EXPERIMENT}"))
        assert f"kind: {message}" in text
        assert "1 problem, nothing was run" in text


def test_sections_of_two_kinds(tmp_path: Path) -> None:
    two = "utility: {ks: [1]}\nfair_rag: {k: 2}\nquestions: {path: q.jsonl}\n"
    text = words.refused(words.write(tmp_path, words.EXPERIMENT + two))
    assert "3 problems, nothing was run" in text
    assert "utility: no key of kind 'ranking'; it is one of kind utility (write `kind: utility`)" in text
    assert "fair_rag: no key of kind 'ranking'; it is one of kind fair-rag and lamp" in text
    text = words.refused(words.write(tmp_path, f"kind: utility\n{words.EXPERIMENT}{two}"))
    assert "fair_rag: no key of kind 'utility'; it is one of kind fair-rag and lamp" in text
    assert "utility: no key" not in text


def test_a_run_of_the_old_layout(tmp_path: Path) -> None:
    file = words.write(tmp_path)
    folder = tmp_path / "run"
    words.run(file, folder, limit=2)
    head = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert head["format"] == FORMAT
    (folder / "run.json").write_text(json.dumps({**head, "format": FORMAT - 1}), encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    message = r"run\.json: this is no run of this version of fairagent, but of an older version .*nothing was changed"
    with pytest.raises(DataError, match=message):
        words.run(file, folder)
    with pytest.raises(DataError, match=message):
        load_run(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert words.run(file, folder, new=True, limit=2).systems == ("plain", "fair", "random")


def test_a_damaged_plan(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words.run(words.write(tmp_path), folder, limit=1)
    head = read_head(folder)
    del head["plan"]["experiment"]["name"]
    write_head(folder, head)
    with pytest.raises(DataError, match=r"run\.json: is damaged \(plan\.experiment\.name: is missing\);"):
        load_run(folder)
    for experiment in (None, []):
        with pytest.raises(DataError, match=r"run\.json: is damaged \(plan: .+\);"):
            plan_in({"plan": {"experiment": experiment}}, tmp_path)
