"""Cases 54 to 64: files of strangers, and what they wrote on its way to a terminal, a table, a page or a log."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import resource
import time
from pathlib import Path
from typing import Any

import pytest
from fuzz.mutate import BOMBS
from typer.testing import CliRunner

from fairagent import DataError, SettingsError, load_collection
from fairagent.answer.citations import CitationReader, without_citations
from fairagent.cli import app
from fairagent.collection.records import LONGEST_LINE, Faults, json_records
from fairagent.evaluate.tables import Column, Table
from fairagent.settings import load_settings
from fairagent.storage.arrays import read_array
from fairagent.storage.readers import Malformed, file_bytes, parse_json, parse_yaml
from fairagent.types.clean import in_line, logger, printable, spreadsheet_cell

from .tiny import COLLECTION, DOCUMENTS, write

NESTED = "a: &a {k: 1}\n" + "".join(
    f"{name}{number}: &{name}{number} {{<<: [*{before}, *{before}]}}\n"
    for name, number, before in (("m", n, f"m{n - 1}" if n else "a") for n in range(25))
)


@pytest.mark.parametrize("text", [*BOMBS, NESTED, "".join(f"k{n}: 1\n" for n in range(60_000))], ids=range(14))
def test_54_yaml_that_stands_for_more_than_it_says(tmp_path: Path, text: str) -> None:
    file = tmp_path / "fairagent.yaml"
    file.write_text(text, encoding="utf-8")
    before = time.process_time()
    with pytest.raises(SettingsError) as raised:
        load_settings(file, environ={})
    assert time.process_time() - before < 1
    assert str(raised.value).startswith(f"{file}: ")
    assert "\n" not in str(raised.value)


ODD = [
    (parse_yaml, "a: 1\nb: 2\na: 3\n", "the key 'a' occurs twice (line 3)"),
    (parse_yaml, "a: [1,\n  " + "9" * 50 + "]", "a number of 50 characters (line 2)"),
    (parse_yaml, "a: 9223372036854775808", "the number 9223372036854775808 is too large (line 1)"),
    (parse_yaml, 'a: "x\\0y"', "a NUL character (line 1)"),
    (parse_yaml, "a: !!int x", "a tag (!name), which is not available; quote what should be a text (line 1)"),
    (parse_yaml, "a: *b", "the alias *b stands for nothing that ends before it (line 1)"),
    (parse_yaml, "a: &a [*a]", "the alias *a stands for nothing"),
    (parse_yaml, "a:\n - [[[[" + "[" * 40, "more than 40 lists and mappings within each other (line 2)"),
    (parse_json, "[" * 101 + "]" * 101, "more than 100 lists and objects"),
    (parse_json, "[" * 100_000, "more than 100 lists and objects"),
    (parse_json, '{"a": ' * 101 + "1" + "}" * 101, "more than 100 lists and objects"),
    (parse_json, "[NaN]", "NaN is no number"),
    (parse_json, "-Infinity", "-Infinity is no number"),
    (parse_json, "1e999", "the number 1e999 is too large"),
    (parse_json, "9" * 21, "a whole number of 21 characters"),
    (parse_json, '{"a": 1,\n"b"}', "line 2"),
]


@pytest.mark.parametrize(("parse", "text", "words"), ODD, ids=range(len(ODD)))
def test_55_and_56_values_that_surprise(parse: Any, text: str, words: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse(text)
    assert words in str(raised.value)


def test_55_and_56_usual_values_are_read_to_the_last_digit_and_a_date_is_a_text() -> None:
    text = "a: 2022-01-01\nb: 2024-13-45\nc: 9223372036854775807\nd: 1e-3\ne: 0.5\nf: 0x1F\ng: .5\nno: yes\nh: True\n"
    expected = {"a": "2022-01-01", "b": "2024-13-45", "c": 2**63 - 1, "d": "1e-3", "e": 0.5, "f": 31, "g": 0.5}
    assert parse_yaml(text) == expected | {"no": "yes", "h": True}
    value = {"a": [1, -(2**63), 0.1, 1e-320, None, True], "b": {"c": "\u00e9\n"}}
    assert parse_json(json.dumps(value)) == value
    assert parse_json("[" * 100 + "]" * 100)
    assert len(parse_json("[" + ", ".join(["{}"] * 1000) + "]")) == 1000


def test_56_a_line_without_an_end(tmp_path: Path) -> None:
    bomb = tmp_path / "docs.jsonl.gz"
    bomb.write_bytes(gzip.compress(b'{"id": "' + b"x" * (LONGEST_LINE * 4)))
    before, faults = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, Faults()
    assert list(json_records(bomb, faults)) == []
    assert [fault.message for fault in faults.entries] == ["longer than 16,777,216 bytes; from here on nothing is read"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
    with pytest.raises(Malformed, match="unpack to more than 6,526,200"):
        file_bytes(bomb, 1 << 31, unzipped=True)


@pytest.mark.parametrize(
    ("shape", "descr", "words"),
    [
        ((10**12,), "<f8", "where its header says 8,000,000,000,"),
        ((9,), "<f8", "has 192 bytes, where its header says 200"),
        ((-8,), "<f8", "is no array of NumPy's (ValueError: the header is "),
        ((8,), "|O", "holds object in the shape (8,)"),
        ((8,), "V8", "which no file of ours does"),
        ((8,), "__import__", "is no array of NumPy's"),
    ],
)
def test_57_arrays_that_lie(tmp_path: Path, shape: tuple[int, ...], descr: str, words: str) -> None:
    path = tmp_path / "a.npy"
    head = str({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(64))
    for mapped in (True, False):
        with pytest.raises(Malformed) as raised:
            read_array(path, mapped)
        assert words in str(raised.value)


@pytest.mark.parametrize("name", ["../../../x", "a/b", "..", ".", "a\\b", "a\tb", " a", "x" * 300, "a\u202eb"])
def test_58_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "c", COLLECTION.replace("name: tiny", f"name: {json.dumps(name)}"))
    with pytest.raises(SettingsError, match="name: a folder is named after it"):
        load_collection(file)


def test_64_thirty_thousand_spaces() -> None:
    text = "A judge" + " " * 30_000 + "x [1]" + "[ " * 10_000
    before = time.process_time()
    reader = CitationReader(1)
    for place in range(0, len(text), 4):
        reader.read(text[place : place + 4])
    reader.close()
    without_citations(text)
    assert time.process_time() - before < 2
    assert reader.cited == [1]


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eltr\u2066\nrank 1  fake"
"""It would rename the window, clear it, write in red and from right to left, and add a line."""
SEEN = "\ufffd]0;owned\ufffd\ufffd[2J\ufffd31m\ufffdltr\ufffd rank 1  fake"


def test_60_and_61_what_is_printable_stays_and_a_cell_is_one_line_of_it() -> None:
    text = "Ren\u00e9 \u5224\u4e8b \u0646\u200c\u0645 \U0001f469\u200d\u2696\ufe0f a\tb\nc"
    assert printable(text) == text
    assert in_line(EVIL) == SEEN
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


def test_60_a_terminal_is_not_steered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By titles, labels, a dimension, topics, further fields, settings and arguments."""
    gender, label = json.dumps("gen\x1b[31mder\u202e"), json.dumps(f"fem{EVIL}")
    collection = f"""\
name: tiny
documents: {{path: docs.jsonl, title: title}}
topics: {{path: topics.jsonl}}
qrels: {{path: qrels.tsv}}
groups: {{path: groups.jsonl, dimensions: {{{gender}: {{column: gender}}}}}}
population: {{{gender}: {{{label}: 0.5, male: 0.5}}}}
"""
    write(tmp_path / "c", collection)
    pages = ({"id": id, "title": f"{id}{EVIL}", "text": text} for id, text in DOCUMENTS.items())
    groups = ({"id": id, "gender": "male" if id[0] == "m" else f"fem{EVIL}"} for id in DOCUMENTS)
    (tmp_path / "c" / "docs.jsonl").write_text("".join(f"{json.dumps(page)}\n" for page in pages))
    (tmp_path / "c" / "groups.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in groups))
    (tmp_path / "c" / "topics.jsonl").write_text(json.dumps({"id": "T1", "query": f"law {EVIL}"}) + "\n")
    (tmp_path / "c" / "qrels.tsv").write_text("T1 0 f1 1\nT1 0 m1 1\n")
    (tmp_path / "one.txt").write_text("T1 Q0 f1 1 2 me\nT1 Q0 m1 2 1 me\n")
    two = tmp_path / f"two{EVIL.partition('/')[0][:12]}.txt"
    two.write_text("T1 Q0 m1 1 2 me\n")
    (tmp_path / "bad.yaml").write_text(f"name: {json.dumps(EVIL)}\ndocuments: {{path: {json.dumps(EVIL)}}}\n")
    monkeypatch.chdir(tmp_path)
    for arguments, expected in (
        (("index", "--collection", "c/collection.yaml"), 0),
        (("search", f"law {EVIL}", "--collection", "c/collection.yaml"), 0),
        (("evaluate-run", "one.txt", two.name, "--collection", "c/collection.yaml"), 0),
        (("index", "--collection", "bad.yaml"), 2),
        (("search", "law", "--collection", f"none{EVIL}.yaml"), 2),
        ((f"no{EVIL}",), 2),
    ):
        done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
        assert (done.exit_code, done.output) == (expected, printable(done.output)), arguments
        assert not any(line.startswith("rank 1  fake") for line in done.output.splitlines())


def test_59_csv_in_the_place_of_json_lines_is_one_fault(tmp_path: Path) -> None:
    file = write(tmp_path / "c")
    (tmp_path / "c" / "docs.jsonl").write_text("id,title,text\nd1,A,law\nd2,B,court\n")
    with pytest.raises(DataError, match="CSV") as raised:
        list(load_collection(file).documents())
    assert len(raised.value.faults) == 1


def test_63_a_record_of_a_log_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log = logger("fairagent.test_63")
    with caplog.at_level(logging.DEBUG, log.name):
        log.warning("no usable groups at %s", EVIL)
    assert caplog.messages == [f"no usable groups at {SEEN}"]
