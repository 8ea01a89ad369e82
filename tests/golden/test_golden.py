"""Every row of every golden file in a folder: that of this repository, or FAIRAGENT_GOLDEN.

A row is a case. The end of the report says how many of each file hold, and of all: "N of M".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import GOLDEN

from . import of_measures, of_parts, of_rerankers, of_trec_fair
from .rows import NOT_HERE, READERS, differences, judged, readers_of

__all__ = ["of_measures", "of_parts", "of_rerankers", "of_trec_fair"]  # which register their readers

FILES = sorted(path for path in GOLDEN.rglob("*") if path.is_file())
EXPECTED = [path for path in FILES if path.suffix == ".json" and path.parent.name == "seed_systems"] + [
    path for path in FILES if path.name.startswith("expected_")
]
SHOWN = 5
LONG = ("fa_star_ir_grid.tsv", "raw8/expected_task2.tsv")
"""Files whose rows take seconds."""


def name_of(path: Path) -> str:
    return path.relative_to(GOLDEN).as_posix()


def rows_of(path: Path) -> Any:
    slow = [pytest.mark.slow] if path.as_posix().endswith(LONG) else []
    return pytest.param(path, marks=slow, id=name_of(path))


@pytest.mark.parametrize("path", [rows_of(path) for path in FILES if readers_of(path)])
def test_every_row(path: Path, record_property: Callable[[str, Any], None]) -> None:
    verdicts = judged(path)
    failed = {id: one.faults for id, one in verdicts.items() if one.faults}
    differing = sum(one.differs for one in verdicts.values())
    record_property("golden", [name_of(path), len(verdicts) - len(failed), len(verdicts), differing])
    assert verdicts, "the file has no row"
    shown = "\n".join(f"{id}: {'; '.join(faults[:SHOWN])}" for id, faults in list(failed.items())[:SHOWN])
    assert not failed, f"{len(failed)} of {len(verdicts)} rows of {name_of(path)} do not hold:\n{shown}"


@pytest.mark.parametrize("path", EXPECTED, ids=name_of)
def test_no_rows_are_left_out(path: Path) -> None:
    """Whatever holds rows has a reader, or a reason why not."""
    found = readers_of(path)
    if path.parent.name != "seed_systems":
        assert found
        return
    read = {reader.section for reader in found}
    for section, content in json.loads(path.read_text(encoding="utf-8")).items():
        holds_rows = isinstance(content, dict | list) and section != "lexicon"
        assert not holds_rows or section in read or (path.name, section) in NOT_HERE, section


def test_every_reader_has_rows() -> None:
    if GOLDEN.parent != Path(__file__).parent:
        pytest.skip("another folder need not have all files")
    for reader in READERS:
        assert any(next(iter(reader.rows(path)), None) for path in FILES if path.match(reader.pattern)), reader


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"a": 1.0}, {"a": 1.1}),
        ({"a": None}, {"a": 0}),
        ({"a": 0.0}, {"a": "nan"}),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}),
    ],
)
def test_what_differs_is_seen(ours: Any, theirs: Any) -> None:
    assert list(differences(ours, theirs, {}))
    assert not list(differences(ours, ours, {}))
