"""The program: signals, pipes, and whatever a user can get wrong: one message with what, where and what to do."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
from faults import tiny
from running import start
from typer.testing import CliRunner

from fairagent import load_collection
from fairagent.cli import app as program
from fairagent.cli import options
from fairagent.evaluate.run import HEAD
from fairagent.retrieve.manifest import MANIFEST
from fairagent.storage.signals import Ended

from .conftest import Call, Small, write_collection


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "fairagent: interrupted\n"),
        (Ended(signal.SIGTERM), 143, "fairagent: ended by SIGTERM\n"),
        (Ended(signal.SIGHUP), 129, "fairagent: ended by SIGHUP\n"),
        (ZeroDivisionError("a fault of ours"), 1, ""),
    ],
)
def test_what_ends_a_command(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(options, "settings_of", broken)
    result = CliRunner().invoke(program, ["search", "x"])
    assert (result.exit_code, result.stderr) == (code, message)
    # A fault of ours keeps its traceback.
    assert isinstance(result.exception, ZeroDivisionError) == (code == 1)


INTERRUPTED = """
import os, signal
from fairagent.collection import Collection

documents = Collection.documents

def interrupted(self):
    for number, document in enumerate(documents(self)):
        if number == 12:
            os.kill(os.getpid(), signal.SIGINT)
        yield document

Collection.documents = interrupted
from fairagent.cli import main
main()
"""
"""The program, which Ctrl-C reaches while it reads the documents that it indexes."""


def test_ctrl_c_while_indexing_leaves_nothing_behind(tmp_path: Path) -> None:
    file = write_collection(tmp_path / "many")
    process = start("index", "-c", str(file), "--index", "index", folder=tmp_path, program=INTERRUPTED)
    out, err = process.communicate(timeout=250)
    assert (process.returncode, out, err) == (130, "", "fairagent: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["many"]


def test_pipes_get_no_control_codes_and_any_encoding_will_do(small: Small, tmp_path: Path) -> None:
    process = start("search", "lawyer", *small.options, folder=tmp_path, PYTHONIOENCODING="ascii", COLUMNS="80")
    out, err = process.communicate(timeout=250)
    assert (process.returncode, err) == (0, "")
    assert "\x1b" not in out
    assert out.isascii()
    assert "#|" in out
    assert max(map(len, out.splitlines())) <= 80


# --- bad input ------------------------------------------------------------------------------------------------------

SEARCH = [
    (["--set", "rerankin.kind=fused"], 2, "rerankin: unknown key; did you mean 'rerank'?"),
    (["--set", "rerank=[mmr, {kind: exposur}]"], 2, "rerank.parts[1]: no re-ranker of kind 'exposur'; did you mean"),
    (["--set", "rerank={kind: fa-star-ir, group: {gender: femal}}"], 2, "did you mean 'female'?"),
    (["--set", "n=[1"], 2, "not valid YAML"),
    (["--set", "n=0", "--set", "depth=-1"], 2, "2 errors"),
    (["--dimension", "gendr"], 2, "no dimension 'gendr'; did you mean 'gender'?"),
    (["--set", "target={gender: {female: 0.5, male: 0.4}, era: corpus}"], 4, "add up to 0.9, expected 1"),
    (["--target", "uniformly"], 2, "no target of kind 'uniformly'"),
    (["--set", "analyzer=whitespace"], 4, "analyzer: index english, now whitespace"),
    (["--set", "analyzer=german"], 4, "fairagent index --force"),
    (["--settings", "nowhere.yaml"], 2, "nowhere.yaml: no such file"),
    (["--index", "nowhere"], 3, "build it with `fairagent index`"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), SEARCH)
def test_search(call: Call, small: Small, arguments: list[str], code: int, message: str) -> None:
    result = call("search", "lawyer", *small.options, *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


def test_no_collection_and_no_command(call: Call) -> None:
    for name in (["search", "lawyer"], ["index"]):
        said = call.refused(2, *name)
        assert all(words in said for words in ("--collection FILE", "fairagent demo"))
        assert "nowhere.yaml: no such file" in call.refused(2, *name, "-c", "nowhere.yaml")
    assert "search" in call.refused(2, "serach")


def test_every_fault_of_the_collection_is_named_with_its_line(call: Call, tmp_path: Path) -> None:
    file = write_collection(tmp_path / "faulty")
    (file.parent / "qrels.tsv").write_text("T1 0 d00 1\nT1 0 d01\nT9 0 d02 yes\n", encoding="utf-8")
    (file.parent / "groups.tsv").write_text("id\tgender\tera\nd00\tmal\told\n", encoding="utf-8")
    result = call.refused(4, "index", "-c", str(file))
    for place in ("qrels.tsv:2", "qrels.tsv:3", "groups.tsv:2"):
        assert place in result
    assert not Path("indexes").exists()


def test_a_folder_that_is_no_index_is_never_replaced(call: Call, small: Small, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear ...", encoding="utf-8")
    for force in ([], ["--force"]):
        said = call.refused(2, "index", "-c", str(small.file), "--index", "letters", *force)
        assert "was not made by fairagent" in said
    assert (tmp_path / "letters" / "dear.txt").read_text(encoding="utf-8") == "Dear ..."


def test_what_is_old_is_refused_in_one_sentence_and_stays(call: Call, small: Small) -> None:
    """Accounts, settings and templates: tests/faults."""
    Path("run").mkdir()
    Path("run", HEAD).write_text('{"format": 1}', encoding="utf-8")
    assert "name another folder with --run, or start over with --new" in call.refused(4, "report", "run")
    manifest = Path(shutil.copytree(small.index, "index"), MANIFEST)
    old = json.dumps(json.loads(manifest.read_text(encoding="utf-8")) | {"format": 1})
    manifest.write_text(old, encoding="utf-8")
    said = call.refused(4, "search", "law", "-c", str(small.file), "--index", "index")
    assert "of another version of fairagent (format 1, now 5); run `fairagent index`" in said
    assert manifest.read_text(encoding="utf-8") == old
    # And what it says does it.
    call.well("index", "-c", str(small.file), "--index", "index")


@pytest.mark.parametrize("index", [".", "/"])
def test_an_index_whose_folder_has_no_name(index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tiny.write(tmp_path / "files")
    monkeypatch.chdir(tmp_path)
    assert load_collection(file, index).groups.dimensions
