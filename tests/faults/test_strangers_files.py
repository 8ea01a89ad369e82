"""Cases 57 to 62, 67 and 68 of docs/reliability.md: what is in files of strangers, before anything is made of it."""

from __future__ import annotations

import gzip
import json
import resource
import time
from pathlib import Path

import pytest
from fuzz import targets, worker
from fuzz.mutate import BOMBS

from fairagent import DataError, SettingsError, load_collection
from fairagent.answer.citations import CitationReader, without_citations
from fairagent.collection.records import LONGEST_LINE, Faults, json_records
from fairagent.settings import load_settings
from fairagent.storage.arrays import read_array
from fairagent.storage.readers import Malformed, file_bytes, parse_json
from fairagent.storage.yaml_text import parse_yaml

from .tiny import COLLECTION, write

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key 'a' occurs twice (line 3)"),
        ("a: [1,\n  " + "9" * 50 + "]", "a number of 50 characters (line 2)"),
        ("a: 9223372036854775808", "the number 9223372036854775808 is too large (line 1)"),
        ('a: "x\\0y"', "a NUL character (line 1)"),
        ("a: !!int x", "a tag (!name), which is not available; quote what should be a text (line 1)"),
        ("a: *b", "the alias *b stands for nothing that ends before it (line 1)"),
        ("a: &a [*a]", "the alias *a stands for nothing"),
        ("a:\n - [[[[" + "[" * 40, "more than 40 lists and mappings within each other (line 2)"),
    ],
)
def test_55_values_that_surprise(text: str, words: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse_yaml(text)
    assert words in str(raised.value)


def test_55_a_date_is_a_text_and_usual_numbers_are_numbers() -> None:
    text = "a: 2022-01-01\nb: 2024-13-45\nc: 9223372036854775807\nd: 1e-3\ne: 0.5\nf: 0x1F\ng: .5\n"
    expected = {"a": "2022-01-01", "b": "2024-13-45", "c": 2**63 - 1, "d": "1e-3", "e": 0.5, "f": 31, "g": 0.5}
    assert parse_yaml(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 101 + "]" * 101, "more than 100 lists and objects"),
        ("[" * 100_000, "more than 100 lists and objects"),
        ('{"a": ' * 101 + "1" + "}" * 101, "more than 100 lists and objects"),
        ("[NaN]", "NaN is no number"),
        ("-Infinity", "-Infinity is no number"),
        ("1e999", "the number 1e999 is too large"),
        ("9" * 21, "a whole number of 21 characters"),
        ('{"a": 1,\n"b"}', "line 2"),
    ],
)
def test_56_json_of_strangers(text: str, words: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse_json(text)
    assert words in str(raised.value)


def test_56_usual_json_is_read_to_the_last_digit() -> None:
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
    with pytest.raises(Malformed, match="larger than"):
        file_bytes(bomb, 1 << 31, unzipped=True)


def _lie(path: Path, shape: tuple[int, ...], descr: str = "<f8", content: bytes = b"\0" * 64) -> Path:
    head = str({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content)
    return path


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
    path = _lie(tmp_path / "a.npy", shape, descr)
    for mapped in (True, False):
        with pytest.raises(Malformed) as raised:
            read_array(path, mapped)
        assert words in str(raised.value)


@pytest.mark.parametrize("name", ["../../../x", "a/b", "..", ".", "a\\b", "a\tb", " a", "x" * 300, "a\u202eb"])
def test_58_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "c", COLLECTION.replace("name: tiny", f"name: {json.dumps(name)}"))
    with pytest.raises(SettingsError, match="name: a folder is named after it"):
        load_collection(file)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            "id,title,text\nd1,A,law\nd2,B,court\n",
            "this looks like CSV (`format: csv`) with 3 columns, and JSON is expected",
        ),
        ("id\ttext\nd1\tlaw, court\n", "this looks like tab-separated text (`format: tsv`) with 2 columns"),
    ],
)
def test_59_csv_in_the_place_of_json_lines_is_one_fault(tmp_path: Path, lines: str, words: str) -> None:
    file = write(tmp_path / "c")
    (tmp_path / "c" / "docs.jsonl").write_text(lines)
    with pytest.raises(DataError) as raised:
        list(load_collection(file).documents())
    assert len(raised.value.faults) == 1
    assert words in str(raised.value)


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


def test_65_a_case_that_hangs_or_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(random: object, folder: Path) -> None:
        raise KeyError("x")

    monkeypatch.setitem(targets.TARGETS, "failing", fail)
    with pytest.raises(KeyError):
        worker.attempt("failing", 0, tmp_path / "case")

    def complain(random: object, folder: Path) -> None:
        raise DataError("x")

    monkeypatch.setitem(targets.TARGETS, "failing", complain)
    worker.attempt("failing", 0, tmp_path / "case")
