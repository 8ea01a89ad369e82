"""Cases 210 to 213: what stands for far more than it is, has no end, or raises."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.test_hostile_servers import memory

from fairagent import Collection, DataError, FairAgent, GroupTable, UsageError, fair_rerank
from fairagent.collection import rows as reading
from fairagent.collection.config import RecordsFile
from fairagent.collection.look import look_at
from fairagent.collection.records import LONGEST_LINE, Faults, records
from fairagent.collection.rows import LONGEST_CELL, Bounds, bounded, plain
from fairagent.guests.testing import exposure_of
from fairagent.storage import readers
from fairagent.storage.readers import MOST_COLUMNS, UNPACKED

LONG = "word " * 20_000
"""100 kB."""


def arrow() -> Any:
    """A function, so that who does not use it needs no pyarrow."""
    import pyarrow.parquet

    return pyarrow


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


def test_210_a_dictionary_of_one_text_takes_less_than_a_gigabyte(tmp_path: Path) -> None:
    """2 million rows of one text of 100 kB."""
    file, rows = tmp_path / "rows.parquet", 2_000_000
    texts = arrow().DictionaryArray.from_arrays(arrow().array(np.zeros(rows, np.int32)), [LONG])
    ids = arrow().array(np.arange(rows)).cast(arrow().string())
    arrow().parquet.write_table(arrow().table({"id": ids, "text": texts}), file)
    assert file.stat().st_size < 12 << 20
    Path("/proc/self/clear_refs").write_text("5")  # the most begins anew
    before = memory("VmRSS")
    with pytest.raises(DataError, match=r"rows.parquet:\d+: column 'text': .* bytes that unpack to more than"):
        Collection.from_records(file, id="id")
    assert memory("VmHWM") - before < 1 << 20


def test_210_the_rows_that_a_file_says_it_has(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    rows = arrow().table({name: np.zeros(10_000_000, np.int8) for name in "abcdefghijkl"})
    arrow().parquet.write_table(rows, file, row_group_size=10_000_000)
    with pytest.raises(DataError, match=r"10,000,000 rows of 12 columns in .* bytes"):
        look_at(file)


def test_210_usual_tables_are_read_as_they_are(tmp_path: Path) -> None:
    """Dictionaries, nested and long texts, runs: each cell as Arrow itself gives it."""
    texts = [LONG if n % 3 else f"text {n}" for n in range(90)]
    rows = {
        "id": [str(n) for n in range(90)],
        "text": arrow().array(texts).dictionary_encode(),
        "view": arrow().array(texts, arrow().string_view()),
        "labels": [None if n % 7 == 0 else [LONG, "b", None][: n % 4] for n in range(90)],
        "map": arrow().array([[("a", n)] for n in range(90)], arrow().map_(arrow().string(), arrow().int64())),
        "part": [{"of": text, "n": [1, 2]} for text in texts],
    }
    table = arrow().table(rows)
    arrow().parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=50)
    faults = Faults()
    read = [row for _, row in records(tmp_path / "rows.parquet", RecordsFile(), faults)]
    assert not faults
    assert read == [{name: plain(cell) for name, cell in row.items()} for row in table.to_pylist()]
    runs = arrow().RunEndEncodedArray.from_arrays(arrow().array([40, 90], arrow().int32()), ["x", LONG])
    given = Collection.from_records(table.append_column("runs", runs), id="id", bounds=Bounds(text=10**12))
    assert [document.extra["runs"] for document in given.documents()] == ["x"] * 40 + [LONG] * 50


def test_211_columns(tmp_path: Path) -> None:
    for width, fits in ((MOST_COLUMNS + 1, False), (300, True)):
        row = {**{f"c{n}": "x" for n in range(width - 1)}, "text": "x"}
        csv, lines, parquet = (tmp_path / f"rows.{form}" for form in ("csv", "jsonl", "parquet"))
        csv.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n", encoding="utf-8")
        lines.write_text(json.dumps(row) + "\n", encoding="utf-8")
        arrow().parquet.write_table(arrow().table({name: [one] for name, one in row.items()}), parquet)
        for source in (csv, lines, parquet, [row]):
            if fits:
                assert Collection.from_records(source).source.count() == 1
            else:
                with pytest.raises(DataError, match=r"10,001 columns, of which at most 10,000 are read"):
                    Collection.from_records(source)


class Endless(Iterable[dict[str, str]]):
    """An iterable that is no iterator."""

    def __iter__(self) -> Iterator[dict[str, str]]:
        return ({"text": "x"} for _ in itertools.count())


def test_212_a_generator_without_an_end_or_a_slow_one() -> None:
    few = Bounds(rows=1_000)
    for endless in (({"text": "x"} for _ in itertools.count()), Endless()):
        with pytest.raises(DataError, match=r"more than 1,000 rows \(bound `rows`\)"):
            FairAgent.from_records(endless, bounds=few)
    with pytest.raises(DataError, match=r"more than 1,000 rows \(bound `rows`\)"):
        GroupTable.from_rows(((str(n), {"gender": "a"}) for n in itertools.count()), ["gender"], bounds=few)
    ticks = itertools.count(0.0, 10.0)
    with pytest.raises(DataError, match=r"row 61 .* \(bound `seconds`: 600\)"):
        Collection.from_records(Endless(), bounds=Bounds(clock=lambda: next(ticks)))
    # What has a length has an end, and is as long as it takes.
    assert Collection.from_records([{"text": "x"}] * 1_001, bounds=few).source.count() == 1_001
    assert len(list(bounded(["a"] * 100, "row", Bounds(clock=lambda: next(ticks))))) == 100

    def failing(error: BaseException) -> Iterator[dict[str, str]]:
        yield {"text": "x"}
        raise error

    with pytest.raises(KeyboardInterrupt):
        Collection.from_records(failing(KeyboardInterrupt()))
    with pytest.raises(DataError, match=r"row 2 cannot be read: it raises ZeroDivisionError\('by zero'\)"):
        Collection.from_records(failing(ZeroDivisionError("by zero")))


METHODS = ("__str__", "__repr__", "__len__", "__iter__", "__eq__", "__hash__", "__bool__", "__getattr__", "__float__")


class Error(Exception):
    """Somebody's."""

    def __str__(self) -> str:
        raise OSError("not even that")

    __repr__ = __str__


def odd(method: str, base: type = object) -> Any:
    """An object whose method of this name raises, or all of them."""

    def fail(*_: object) -> Any:
        raise Error

    return type("Hostile", (base,), dict.fromkeys(METHODS if method == "all" else (method,), fail))()


@pytest.mark.parametrize("method", [*METHODS, "all"])
def test_213_objects_whose_methods_raise(method: str) -> None:
    """In cells, rows, tables, hits and labels."""
    for column in ("id", "text", "gender", "title"):
        rows: list[dict[str, Any]] = [
            {"id": f"d{n}", "text": "x", "gender": "ab"[n % 2], "title": "t"} for n in range(4)
        ]
        rows[2][column] = odd(method)
        with pytest.raises(DataError, match=column) as raised:
            FairAgent.from_records(rows, groups="gender", title="title")
        assert (":3: " in str(raised.value)) or ("row 3: " in str(raised.value)), column
        assert raised.value.__suppress_context__ or raised.value.__context__ is None
    for base in (str, int, float):
        collection = Collection.from_records([{"id": "a", "text": "x", "note": odd(method, base)}])
        (document,) = collection.documents()
        assert type(document.extra["note"]) is base
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
    for door in doors:
        with pytest.raises((DataError, UsageError)):
            door(odd(method))
