"""Large tables of groups are read once and cached beside the index, as long as what they are read from is the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from fairagent.collection import GroupTable, load_collection
from fairagent.collection import load as loading
from fairagent.storage.digests import RECORD

ROWS = 10_000
COLLECTION = """
name: big
documents: {path: docs.jsonl}
groups: {path: groups.tsv, dimensions: {gender: {}, region: {separator: "|"}}}
"""


def rows(first: str = "female") -> str:
    """Enough text that its table is cached; `first` is the gender of p0."""
    genders, regions = ("female", "male", "nonbinary"), ("Asia", "Africa|Asia", "", "Europe")
    lines = [f"page-{n:012}\t{first if n == 0 else genders[n % 3]}\t{regions[n % 4]}" for n in range(ROWS)]
    return "\n".join(["id\tgender\tregion", *lines, ""])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "collection.yaml").write_text(COLLECTION)
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "b"}\n')
    (tmp_path / "groups.tsv").write_text(rows())
    assert (tmp_path / "groups.tsv").stat().st_size > loading.WORTH_CACHING
    return tmp_path / "collection.yaml"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The group files that were read as text."""
    read, paths = loading.read_groups, list[Path]()

    def reading(path: Path, *rest: object) -> GroupTable | None:
        paths.append(path)
        return read(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(loading, "read_groups", reading)
    return paths


def table(file: Path) -> GroupTable:
    groups = load_collection(file, file.parent / "index").groups
    assert isinstance(groups, GroupTable)
    return groups


def folders(file: Path) -> list[Path]:
    return sorted(path for path in file.parent.glob("index*") if path.is_dir())


def same(one: GroupTable, other: GroupTable) -> bool:
    ids = [f"page-{n:012}" for n in (*range(ROWS), ROWS)]
    return len(one) == len(other) and all(
        one.labels(name) == other.labels(name)
        and np.array_equal(one.memberships(name, ids), other.memberships(name, ids))
        and np.array_equal(one.shares(name), other.shares(name))
        for name in ("gender", "region")
    )


def test_a_table_is_read_once_and_says_the_same(file: Path, reads: list[Path]) -> None:
    read = table(file)
    assert len(reads) == 1
    mapped = table(file)
    assert len(reads) == 1
    assert same(read, mapped)
    row = mapped.memberships("region", ["page-000000000001"])
    assert row.tolist() == [[0.0, 0.5, 0.5, 0.0]]
    assert len(folders(file)) == 1


def test_a_changed_file_is_read_again(file: Path, reads: list[Path]) -> None:
    groups = file.parent / "groups.tsv"
    first, time = table(file), groups.stat().st_mtime_ns
    groups.write_text(rows("nobody"))
    os.utime(groups, ns=(time, time))
    assert first.labels("gender") == ("female", "male", "nonbinary")
    assert table(file).labels("gender") == ("female", "male", "nobody", "nonbinary")
    # The one from before is gone, with the labels of what may have been deleted; whoever has it can go on reading it.
    assert len(folders(file)) == 1
    groups.write_text(rows())
    assert same(table(file), first)
    assert len(reads) == 3


def test_a_file_that_changes_while_it_is_read_is_not_cached(
    file: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = loading.read_groups

    def changing(path: Path, *rest: object) -> GroupTable | None:
        path.write_text(rows("nobody"))
        return read(path, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(loading, "read_groups", changing)
        table(file)
    assert folders(file) == []
    (file.parent / "groups.tsv").write_text(rows())
    assert table(file).labels("gender") == ("female", "male", "nonbinary")


def test_what_is_half_gone_is_made_anew(file: Path, reads: list[Path]) -> None:
    first = table(file)
    (folder,) = folders(file)
    for name in sorted(path.name for path in folder.iterdir()):
        (folder / name).unlink()
        assert same(table(file), first)
        assert (folder / name).is_file()
    shutil.rmtree(folder)
    assert same(table(file), first)
    assert (folder / RECORD).is_file()
