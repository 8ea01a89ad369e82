"""What a collection's file says to use made labels, and `label --write`, which puts it there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from fairagent.collection.config import CollectionFile
from fairagent.errors import UsageError
from fairagent.retrieve.site import Site
from fairagent.settings import read_yaml, validate
from fairagent.storage.readers import LARGEST_YAML, Malformed, compose_yaml, file_text, parse_yaml


def section_of(site: Site, path: Path, errors: Path, dimension: str, typed: bool) -> dict[str, Any]:
    """The block of `groups` that names the labels; `typed`: none but documents of the type are in theirs."""
    root = Path()
    if origin := site.collection.origin:
        # Paths in the collection's file are relative to this.
        root = origin.file.parent / (validate(CollectionFile, read_yaml(origin.file), str(origin.file)).root or "")
    labels, error_file = (os.path.relpath(one, root) for one in (path, errors))
    column = {"predicted": True, "errors": error_file, **({"applies_to": "all"} if typed else {})}
    return {"path": labels, "id": "id", "dimensions": {dimension: column}}


def dumped(value: object) -> str:
    """YAML as the lines of a file."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)


def with_section(site: Site, section: dict[str, Any]) -> tuple[Path, str]:
    """The collection's file, and its text with this block of groups in the place of its dimension's column.

    Other lines stay as they are. The `groups` of before become comments above the new ones, which have the other
    columns too. UsageError without a file, where it names other made labels of the dimension or none of its columns is
    the dimension's (a saved table's), and where lines cannot be taken out of the text.
    """
    if (origin := site.collection.origin) is None:
        raise UsageError("--write needs a collection that was read from a file")
    file = origin.file
    text = file_text(file, LARGEST_YAML)
    text += "\n" * (not text.endswith("\n"))
    there = validate(CollectionFile, before := parse_yaml(text), str(file))
    (dimension,) = section["dimensions"]
    groups = before.get("groups") or []
    blocks, rest = groups if isinstance(groups, list) else [groups], []
    for block, read in zip(blocks, there.groups, strict=True):
        column = read.dimensions.get(dimension)
        if column and column.predicted and block["path"] != section["path"]:
            raise UsageError(f"{file}: {dimension!r} has made labels already, of {block['path']}; take them out first")
        others = {name: one for name, one in (block.get("dimensions") or {}).items() if name != dimension}
        if others or not column:
            rest.append({**block, "dimensions": others} if column else block)
    after = {**before, "groups": [*rest, section] if rest else section}
    if rest == blocks and dimension in site.collection.groups.dimensions:
        raise UsageError(
            f"{file}: {dimension!r} is no column of its groups, but of a saved table: make that without it"
        )
    lines, added = text.splitlines(keepends=True), dumped({"groups": after["groups"]})
    start, end = _lines_of(text, "groups") or (len(lines), len(lines))
    was = [f"# {line}" for line in lines[start:end]]
    remark = (
        [f"# fairagent label --write put made labels of {dimension!r} into the groups, which were:\n"] if was else []
    )
    new = "".join([*lines[:start], *remark, *was, added, *lines[end:]])
    try:
        same = parse_yaml(new) == after
    except Malformed:
        same = False
    if not same:
        raise UsageError(f"{file}: its lines cannot be changed one by one; put these there by hand:\n{added}")
    validate(CollectionFile, after, str(file))
    return file, new


def _lines_of(text: str, key: str) -> tuple[int, int] | None:
    """From which line, 0 the first, to before which a key's value stands; None without one."""
    root = compose_yaml(text)
    lines = text.splitlines()
    for name, value in root.value:
        if name.value == key:
            end = value.end_mark.line + (value.end_mark.column > 0)
            # What a block ends with are the remarks on what comes next.
            while not lines[end - 1].strip() or lines[end - 1].startswith("#"):
                end -= 1
            return name.start_mark.line, end
    return None
