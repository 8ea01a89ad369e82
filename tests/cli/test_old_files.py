"""Files of an older version: each is refused in one sentence that says what to do, and stays as it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from fairagent.evaluate.run import HEAD
from fairagent.retrieve.manifest import MANIFEST

from .conftest import Call, Small


def test_an_old_run(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / HEAD).write_text('{"format": 1}', encoding="utf-8")
    result = call("report", str(run))
    assert result.exit_code != 0
    for words in ("older version of fairagent", "--new"):
        assert words in result.stderr
    assert (run / HEAD).read_text(encoding="utf-8") == '{"format": 1}'


def test_an_old_settings_file(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text("reranker: mmr\nengine: {kind: rm3, terms_added: 5}\n", encoding="utf-8")
    result = call("config", "--settings", str(file))
    assert result.exit_code == 2
    assert "reranker: unknown key; did you mean 'rerank'?" in result.stderr
    assert "engine.terms_added: unknown key" in result.stderr


def test_an_old_index(call: Call, small: Small, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(small.index, index)
    manifest = json.loads((index / MANIFEST).read_text(encoding="utf-8")) | {"format": 1}
    (index / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    result = call("search", "lawyer", "-c", str(small.file), "--index", str(index))
    assert result.exit_code == 4
    assert "another version of fairagent" in result.stderr
    assert "run `fairagent index`" in result.stderr
