"""Cases 210 to 213 of docs/reliability.md: what stands for far more than it is, has no end, or raises."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import Collection, DataError, FairAgent, GroupTable, UsageError, fair_rerank
from fairagent.collection import rows as reading
from fairagent.collection.config import RecordsFile
from fairagent.collection.forms import records
from fairagent.collection.look import look_at
from fairagent.collection.records import LONGEST_LINE, Faults
from fairagent.collection.rows import LONGEST_CELL, Bounds, bounded, plain
from fairagent.guests.testing import exposure_of
from fairagent.storage import readers
from fairagent.storage.readers import MOST_COLUMNS, UNPACKED

LONG = "word " * 20_000
"""100 kB."""


# --- 210: few bytes that stand for many ------------------------------------------------------------------------------

READ = """
import re, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from fairagent import Collection
from fairagent.errors import DataError
try:
    Collection.from_records(sys.argv[1], id="id")
except DataError as error:
    # Not `ru_maxrss`, which begins with that of the process that started this one.
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
    print(error, peak // 1024, sep="\\n")
"""


def arrow() -> Any:
    """A function, so that who does not use it needs no pyarrow."""
    import pyarrow.parquet

    return pyarrow


def _dictionary(rows: int) -> dict[str, Any]:
    """The issue's: 2 million rows of one text of 100 kB."""
    texts = arrow().DictionaryArray.from_arrays(arrow().array(np.zeros(rows, np.int32)), [LONG])
    return {"id": arrow().array(np.arange(rows)).cast(arrow().string()), "text": texts}


def _nested() -> dict[str, Any]:
    """Within lists: 10 of one text a row."""
    labels = arrow().DictionaryArray.from_arrays(arrow().array(np.zeros(10_000, np.int32)), [LONG])
    lists = arrow().ListArray.from_arrays(arrow().array(np.arange(0, 10_001, 10, np.int32)), labels)
    ids = list(map(str, range(1_000)))
    return {"id": ids, "text": ids, "labels": lists}


def _runs() -> dict[str, Any]:
    """Runs of one number within lists."""
    ends = arrow().array(np.arange(0, 1_000_001, 100_000, np.int32))
    numbers = arrow().ListArray.from_arrays(ends, arrow().array(np.zeros(1_000_000, np.int64)))
    return {"id": list("abcdefghij"), "text": ["x"] * 10, "labels": numbers}


def test_210_a_dictionary_of_one_text_takes_less_than_a_gigabyte(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    arrow().parquet.write_table(arrow().table(_dictionary(2_000_000)), file)
    assert file.stat().st_size < 12 << 20
    done = subprocess.run([sys.executable, "-c", READ, str(file)], capture_output=True, text=True, check=True)
    _, message, peak = done.stdout.splitlines()
    assert re.search(r"rows.parquet:\d+: column 'text': .* bytes that unpack to more than", message)
    assert int(peak) < 1_000


@pytest.fixture
def lower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds a hundredth, so that no test takes its time to reach them."""
    for module in (readers, reading):
        monkeypatch.setattr(module, "UNPACKED", UNPACKED // 100)
    monkeypatch.setattr(reading, "LONGEST_CELL", LONGEST_CELL // 100)
    monkeypatch.setattr("fairagent.collection.records.LONGEST_LINE", LONGEST_LINE // 100)


@pytest.mark.usefixtures("lower")
def test_210_other_files_that_stand_for_far_more(tmp_path: Path) -> None:
    """The same without a type that says so, within lists, runs of numbers, one packed text."""
    file = tmp_path / "rows.parquet"
    for given, options, words in (
        ({"id": list(map(str, range(1_000))), "text": [LONG] * 1_000}, {"row_group_size": 100}, r"'text'.* unpack to"),
        (_nested(), {}, "'labels'.* unpack to"),
        (_runs(), {}, "labels.*element': 1,000,000 values of 8,000,000 bytes"),
        ({"id": ["a"], "text": ["x" * 6_000_000]}, {"compression": "zstd"}, r"'text': 1 values of 6,000,0\d\d bytes"),
    ):
        arrow().parquet.write_table(arrow().table(given), file, **options)
        assert file.stat().st_size < 100_000
        with pytest.raises(DataError, match=rf"rows\.parquet:\d+: .*{words}"):
            Collection.from_records(file, id="id")


def test_210_the_rows_that_a_file_says_it_has(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    rows = arrow().table({name: np.zeros(10_000_000, np.int8) for name in "abcdefghijkl"})
    arrow().parquet.write_table(rows, file, row_group_size=10_000_000)
    with pytest.raises(DataError, match=r"10,000,000 rows of 12 columns in .* bytes"):
        look_at(file)


def test_210_usual_tables_are_read_as_they_are(tmp_path: Path) -> None:
    """Dictionaries, nested and long texts, runs: each cell as Arrow itself gives it."""
    texts = [LONG if n % 3 else f"text {n}" for n in range(90)]
    labels = [None if n % 7 == 0 else [LONG, "b", None][: n % 4] for n in range(90)]
    rows = {
        "id": [str(n) for n in range(90)],
        "text": arrow().array(texts).dictionary_encode(),
        "large": arrow().array(texts, arrow().large_string()),
        "view": arrow().array(texts, arrow().string_view()),
        "labels": arrow().array(labels, arrow().list_(arrow().string())),
        "map": arrow().array([[("a", n)] for n in range(90)], arrow().map_(arrow().string(), arrow().int64())),
        "number": [None if n % 5 == 0 else n for n in range(90)],
        "part": [{"of": text, "n": [1, 2]} for text in texts],
    }
    table = arrow().table(rows)
    runs = arrow().RunEndEncodedArray.from_arrays(arrow().array([40, 90], arrow().int32()), ["x", LONG])
    arrow().parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=50)
    expected = [{name: plain(cell) for name, cell in row.items()} for row in table.to_pylist()]
    faults = Faults()
    read = [row for _, row in records(tmp_path / "rows.parquet", RecordsFile(), faults)]
    assert not faults
    assert read == expected
    given = Collection.from_records(table.append_column("runs", runs), id="id", bounds=Bounds(text=10**12))
    extras = [document.extra for document in given.documents()]
    assert [extra["runs"] for extra in extras] == ["x"] * 40 + [LONG] * 50
    assert [extra["labels"] for extra in extras] == labels


@pytest.mark.usefixtures("lower")
def test_210_a_cell_that_is_too_long_is_named(tmp_path: Path) -> None:
    long = "x" * 200_000
    nested: list[Any] = ["x"]
    for _ in range(30):
        nested = [nested, nested]
    for cell in (long, [long], nested, {"a": nested}, [0] * 4_000):
        with pytest.raises(
            DataError, match=r"row 2: column 'text': holds more than 167,772 characters, or 3,355 values"
        ):
            Collection.from_records([{"id": "a", "text": "x"}, {"id": "b", "text": cell}])
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    with pytest.raises(DataError, match="row 1: column 'text': more than 100 lists and mappings"):
        Collection.from_records([{"text": cyclic}])
    csv = tmp_path / "rows.csv"
    csv.write_text('id,text\na,"' + (LONG + "\n") * 2, encoding="utf-8")
    with pytest.raises(DataError, match=r"rows.csv:2: a row of more than 167,772 characters"):
        Collection.from_records(csv)


# --- 211: columns ----------------------------------------------------------------------------------------------------


def _wide(folder: Path, form: str, width: int) -> Any:
    row = {**{f"c{n}": "x" for n in range(width - 1)}, "text": "x"}
    file = folder / f"rows.{form}"
    if form == "csv":
        file.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n", encoding="utf-8")
    elif form == "jsonl":
        file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    elif form == "parquet":
        arrow().parquet.write_table(arrow().table({name: [one] for name, one in row.items()}), file)
    return [row] if form == "dicts" else file


def test_211_columns(tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "dicts", "parquet"):
        with pytest.raises(DataError, match=r"10,001 columns, of which at most 10,000 are read"):
            Collection.from_records(_wide(tmp_path, form, MOST_COLUMNS + 1))
        assert Collection.from_records(_wide(tmp_path, form, 300)).source.count() == 1


# --- 212: what has no end --------------------------------------------------------------------------------------------


class Endless(Iterable[dict[str, str]]):
    """An iterable that is no iterator."""

    def __iter__(self) -> Iterator[dict[str, str]]:
        return ({"text": "x"} for _ in itertools.count())


def test_212_a_generator_without_an_end() -> None:
    few = Bounds(rows=1_000)
    for endless in (({"text": "x"} for _ in itertools.count()), Endless()):
        with pytest.raises(DataError, match=r"more than 1,000 rows \(bound `rows`\)"):
            FairAgent.from_records(endless, bounds=few)
    with pytest.raises(DataError, match=r"more than 1,000 rows \(bound `rows`\)"):
        GroupTable.from_rows(((str(n), {"gender": "a"}) for n in itertools.count()), ["gender"], bounds=few)
    # What has a length has an end.
    assert Collection.from_records([{"text": "x"}] * 1_001, bounds=few).source.count() == 1_001


def test_212_a_generator_that_is_slow() -> None:
    """By the clock that the bounds have; Ctrl-C ends it as anything else."""
    ticks = itertools.count(0.0, 10.0)
    with pytest.raises(DataError, match=r"row 61 came 610 s after .* \(bound `seconds`: 600\)"):
        Collection.from_records(Endless(), bounds=Bounds(clock=lambda: next(ticks)))

    def interrupted() -> Iterator[dict[str, str]]:
        yield {"text": "x"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Collection.from_records(interrupted())
    # A list is as long as it takes.
    assert len(list(bounded(["a"] * 100, "row", Bounds(clock=lambda: next(ticks))))) == 100


# --- 213: objects that raise -----------------------------------------------------------------------------------------


class Error(Exception):
    """Somebody's."""

    def __str__(self) -> str:
        raise OSError("not even that")

    __repr__ = __str__


def _raise(*_: object) -> Any:
    raise Error


METHODS = ("__str__", "__repr__", "__len__", "__iter__", "__eq__", "__hash__", "__bool__", "__getattr__", "__float__")


def _hostile(method: str, base: type = object) -> Any:
    """An object whose method of this name raises, or all of them."""
    return type("Hostile", (base,), dict.fromkeys(METHODS if method == "all" else (method,), _raise))()


@pytest.mark.parametrize("column", ["id", "text", "gender", "title"])
def test_213_a_cell_that_raises(column: str) -> None:
    for method in (*METHODS, "all"):
        rows: list[dict[str, Any]] = [
            {"id": f"d{n}", "text": "x", "gender": "ab"[n % 2], "title": "t"} for n in range(4)
        ]
        rows[2][column] = _hostile(method)
        with pytest.raises(DataError) as raised:
            FairAgent.from_records(rows, groups="gender", title="title")
        assert (":3: " in str(raised.value)) or ("row 3: " in str(raised.value)), method
        assert column in str(raised.value), method
        assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_213_what_is_text_or_a_number_is_that_alone() -> None:
    for method in (*METHODS, "all"):
        for base in (str, int, float):
            collection = Collection.from_records([{"id": "a", "text": "x", "note": _hostile(method, base)}])
            (document,) = collection.documents()
            assert type(document.extra["note"]) is base, method


def test_213_rows_tables_hits_and_labels_that_raise() -> None:
    groups = {"gender": {"d1": "a", "d2": "b"}}
    doors: list[Callable[[Any], object]] = [
        lambda odd: Collection.from_records(odd),
        lambda odd: Collection.from_records([{"text": "x"}, odd]),
        lambda odd: fair_rerank(["d1", "d2", odd], groups, "uniform"),
        lambda odd: fair_rerank([("d1", 2), ("d2", odd)], groups, "uniform"),
        lambda odd: fair_rerank([{"id": odd, "gender": "a"}, {"id": "d2", "gender": odd}], "gender", "uniform"),
        lambda odd: GroupTable.from_rows([("a", {"gender": "x"}), ("b", {"gender": odd})], ["gender"]),
        lambda odd: GroupTable.from_rows([("a", {"gender": "x"}), (odd, {"gender": "x"})], ["gender"]),
        lambda odd: exposure_of(lambda query: ["d1", odd], "q", groups, "uniform"),
    ]
    for method, door in itertools.product((*METHODS, "all"), doors):
        with pytest.raises((DataError, UsageError)) as raised:
            door(_hostile(method))
        assert str(raised.value)


def test_213_a_generator_that_raises_names_its_row() -> None:
    def failing() -> Iterator[dict[str, str]]:
        yield {"text": "x"}
        raise ZeroDivisionError("by zero")

    with pytest.raises(DataError, match=r"row 2 cannot be read: it raises ZeroDivisionError\('by zero'\)"):
        Collection.from_records(failing())
