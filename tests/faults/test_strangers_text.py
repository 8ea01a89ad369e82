"""Cases 60 to 63 of docs/reliability.md: what strangers wrote, on its way to a terminal, a table, a page or a log."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from report.test_page import Parsed, digest, hostile_run

from fairagent.evaluate.tables import Column, Table
from fairagent.report.page import page
from fairagent.types.clean import in_line, printable, spreadsheet_cell

from .tiny import DOCUMENTS, write

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eltr\u2066\nrank 1  fake"
"""It would rename the window, clear it, write in red and from right to left, and add a line."""
SEEN = "\ufffd]0;owned\ufffd\ufffd[2J\ufffd31m\ufffdltr\ufffd rank 1  fake"
OWN = re.compile(r"\x1b\[[0-9;?]*[mhlKAG]|\r")
"""What rich sends a terminal of its own: colors, the cursor shown or hidden, a line begun anew."""
PROGRAM = "from fairagent.cli import main; main()"


def hostile(folder: Path) -> Path:
    """A collection in which titles, labels, a dimension, topics and further fields are hostile."""
    label = json.dumps(f"fem{EVIL}")
    file = write(
        folder,
        f"""\
name: tiny
documents: {{path: docs.jsonl, title: title}}
topics: {{path: topics.jsonl}}
qrels: {{path: qrels.tsv}}
groups: {{path: groups.jsonl, dimensions: {{"gen\\e[31mder\\u202E": {{column: gender}}}}}}
population: {{"gen\\e[31mder\\u202E": {{{label}: 0.5, male: 0.5}}}}
""",
    )
    pages = ({"id": id, "title": f"{id}{EVIL}", "text": text} for id, text in DOCUMENTS.items())
    groups = ({"id": id, "gender": "male" if id[0] == "m" else f"fem{EVIL}"} for id in DOCUMENTS)
    (folder / "docs.jsonl").write_text("".join(f"{json.dumps(page)}\n" for page in pages))
    (folder / "groups.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in groups))
    (folder / "topics.jsonl").write_text(json.dumps({"id": "T1", "query": f"law {EVIL}"}) + "\n")
    (folder / "qrels.tsv").write_text("T1 0 f1 1\nT1 0 m1 1\n")
    return file


def in_a_terminal(*arguments: str, folder: Path) -> tuple[int, str]:
    """Exit code and all that `fairagent` sends a terminal."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm-256color", "COLUMNS": "200"},
    )
    os.close(theirs)
    said = b""
    with suppress(OSError):  # how Linux says that nobody writes any more
        while piece := os.read(ours, 65536):
            said += piece
    os.close(ours)
    return process.wait(), said.decode()


@pytest.mark.slow
def test_60_a_terminal_is_not_steered(tmp_path: Path) -> None:
    folder = tmp_path
    hostile(folder / "c")
    (folder / "one.txt").write_text("T1 Q0 f1 1 2 me\nT1 Q0 m1 2 1 me\n")
    (folder / f"two{EVIL.partition('/')[0][:12]}.txt").write_text("T1 Q0 m1 1 2 me\n")
    two = next(path.name for path in folder.glob("two*"))
    (folder / "bad.yaml").write_text(f"name: {json.dumps(EVIL)}\ndocuments: {{path: {json.dumps(EVIL)}}}\n")
    calls = {
        ("index", "--collection", "c/collection.yaml"): 0,
        ("search", "law", "--collection", "c/collection.yaml"): 0,
        ("search", f"law {EVIL}", "--collection", "c/collection.yaml"): 0,
        ("evaluate-run", "one.txt", two, "--collection", "c/collection.yaml"): 0,
        ("index", "--collection", "bad.yaml"): 2,
        ("search", "law", "--collection", f"none{EVIL}.yaml"): 2,
        (f"no{EVIL}",): 2,
    }
    for arguments, code in calls.items():
        exit_code, sent = in_a_terminal(*arguments, folder=folder)
        said = OWN.sub("", sent)
        assert exit_code == code, said
        assert said == printable(said), arguments
        assert not any(line.startswith("rank 1  fake") for line in said.splitlines()), said


def test_60_what_is_printable_stays() -> None:
    text = "Ren\u00e9 \u5224\u4e8b \u0646\u200c\u0645 \U0001f469\u200d\u2696\ufe0f a\tb\nc"
    assert printable(text) == text
    assert in_line(EVIL) == SEEN


def test_61_a_cell_is_one_line_of_printable_text() -> None:
    table = Table.of(["system", Column(EVIL, above=EVIL)], [(EVIL, 0.5), ("b", None)], title=EVIL, notes=[EVIL])
    lines = table.text().splitlines()
    assert len(lines) == 6  # title, above, columns, two rows, the note
    assert all(line == printable(line) for line in lines)
    assert lines[0] == lines[-1] == SEEN
    for written in (table.csv(), table.latex()):
        assert written == printable(written)
    assert len(list(csv.reader(io.StringIO(table.csv())))) == 3
    assert sum(line.endswith(r"\\") for line in table.latex().splitlines()) == 4


def test_61_a_spreadsheet_runs_nothing() -> None:
    for text in ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\n=1", " =1", "-- x"):
        assert spreadsheet_cell(text).startswith("'")
        (_, (cell, value)) = csv.reader(io.StringIO(Table.of([text, "n"], [(text, -0.5)]).csv()))
        assert (cell, value) == (spreadsheet_cell(text), "-0.5")
    for text in ("-0.5", "+1e-3", "law", "a=b", "", "3"):
        assert spreadsheet_cell(text) == text


def test_62_the_page_shows_nothing_hidden_and_keeps_its_policy() -> None:
    written = page(hostile_run())
    assert written == printable(written)
    parsed = Parsed(written)
    (policy,) = [m["content"] for m in parsed.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    (style,) = re.findall(r"<style>(.*?)</style>", written, re.DOTALL)
    assert digest(style) in policy


def test_63_a_record_of_a_log_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    from fairagent.types.clean import logger

    log = logger("fairagent.test_66")
    with caplog.at_level(logging.DEBUG, log.name):
        log.warning("no usable groups at %s", EVIL)
    assert caplog.messages == [f"no usable groups at {SEEN}"]
