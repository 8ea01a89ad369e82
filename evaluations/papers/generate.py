"""Writes the papers' tables as experiment files, and what was measured into their pages and evaluations/README.md.

python evaluations/papers/generate.py             writes them
python evaluations/papers/generate.py --check     writes nothing; exit code 1 and their names where they differ

The numbers are read from ../shared/spec/seed_numbers.tsv beside the project. Where that is not, the files are taken as
they are, and only the pages are made.
"""

from __future__ import annotations

import csv
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pages import HERE, SMALL, pages
from tables import files, smalls, trainings, twins
from tables.file import Body, File, Keys, Number, without_numbers

NUMBERS = HERE.parents[2] / "shared" / "spec" / "seed_numbers.tsv"
WIDTH = 120
SIGNIFICANT = "p<.05"
"""The only note that is a mark at a number and tells none from another: a comment in the files."""


class Printed(str):
    """A number as it is printed, which YAML is to show so."""


def _printed(dumper: yaml.SafeDumper, value: Printed) -> yaml.ScalarNode:
    return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in value else 'int'}", value)


class Dumper(yaml.SafeDumper):
    """Writes no anchors: every file can be read from any line."""

    def ignore_aliases(self, data: object) -> bool:
        """Always."""
        return True


Dumper.add_representer(Printed, _printed)


def flow(value: object) -> str:
    """`value` in one line, without the braces or brackets around it."""
    line = yaml.dump(value, Dumper=Dumper, default_flow_style=True, width=1e6, sort_keys=False, allow_unicode=True)
    return line.strip()[1:-1]


def lines_of(values: Mapping[str, Any], indent: int, marks: Mapping[str, str] | None = None) -> Iterator[str]:
    """A line for each key, or several that YAML reads as one; below a mark as a comment, where the key has one."""
    before = " " * indent
    for key, value in values.items():
        if marks and key in marks:
            yield f"{before}# {marks[key]}"
        yield from wrapped(before + flow({key: value}), indent)


def wrapped(line: str, indent: int) -> list[str]:
    """`line` in lines that are not too long, broken between the parts of its mappings and lists alone."""
    # A comma in quotes has an odd number of them behind it.
    parts = [part.replace(" ", "\0") for part in re.split(r"(?<=,) (?=(?:[^']*'[^']*')*[^']*$)", line)]
    return [one.replace("\0", " ") for one in prose(" ".join(parts), "", " " * (indent + 4))]


def prose(text: str, first: str, further: str) -> list[str]:
    """`text` in lines that are not too long."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )


def read_numbers() -> list[Number]:
    """The published numbers, in their order."""
    with NUMBERS.open(encoding="utf-8", newline="") as lines:
        return [Number(**row) for row in csv.DictReader(lines, delimiter="\t")]


def placed(numbers: list[Number]) -> dict[str, dict[Keys, Number]]:
    """File -> keys -> the number there; ValueError unless every number stands in one place, alone, and in a row."""
    found: dict[str, dict[Keys, Number]] = {}
    for number in numbers:
        places = [
            (file, keys)
            for file in files()
            if file.table == (number.seed, number.table) and (keys := file.place(number))
        ]
        if len(places) != 1:
            raise ValueError(f"{number} stands in {len(places)} places: {[(file.name, keys) for file, keys in places]}")
        ((file, keys),) = places
        name = file.name
        if keys[0] == "expected" and not file.has_row(keys[1]):
            raise ValueError(f"{number} is expected of {keys[1]!r}, and {name} has no such row")
        if keys in found.setdefault(name, {}):
            raise ValueError(f"{number} and {found[name][keys]} stand in one place: {name}, {keys}")
        found[name][keys] = number
    return found


def text_of(file: File, numbers: Mapping[Keys, Number]) -> str:
    """The experiment file as text."""
    tree: dict[str, Any] = {}
    marks: dict[str, list[str]] = {}
    for keys, number in numbers.items():
        at = tree
        for key in keys[:-1]:
            at = at.setdefault(key, {})
        at[keys[-1]] = Printed(number.value)
        if number.note == SIGNIFICANT:
            marks.setdefault(keys[1], []).append(keys[-1])
    return "\n".join(_lines(file, tree, {name: f"{SIGNIFICANT}: {', '.join(of)}" for name, of in marks.items()})) + "\n"


def _lines(file: File, tree: Body, marks: Mapping[str, str]) -> Iterator[str]:
    yield "# Made by evaluations/papers/generate.py: change what it reads, then run it."
    body = dict(file.body)
    if "kind" in body:
        yield f"kind: {body.pop('kind')}"
    yield f"name: {body.pop('name', f'papers {file.name}'.replace('/', ' ').replace('_', ' '))}"
    yield "about: |"
    for paragraph in file.about.split("\n"):
        yield from prose(paragraph, "  ", "  ")
    if file.guess:
        yield from prose(f"Guessed: {file.guess}", "  ", "  ")
    for key, value in body.items():
        if key == "systems":
            yield "systems:"
            yield from lines_of(value, 2)
        elif value != {}:
            yield from lines_of({key: value}, 0)
    if expected := tree.get("expected"):
        yield "expected:"
        yield from lines_of(expected, 2, marks)
    if published := tree.get("published"):
        yield "published:"
        for why, values in published.items():
            yield "  - why: >-"
            yield from prose(why, " " * 6, " " * 6)
            yield "    values:"
            yield from lines_of(values, 6)


def small_text(name: str, body: Body, of: Sequence[str]) -> str:
    """A small experiment file as text; `of` are the tables that it is of."""
    differs = "; ".join(dict.fromkeys(smalls()[one].differs for one in of))
    about = (
        f"Shape only: smallest model. In small, of {', '.join(of)}: {differs}. `make papers` prepares what this needs, "
        "and runs it from the project's folder."
    )
    return "\n".join(_lines(File(f"small {name}", ("", ""), about, body, without_numbers), {}, {})) + "\n"


def numbers_in(text: str) -> dict[Keys, str]:
    """Keys -> the number there, as it is printed, of all that stand in a file."""

    def walk(keys: Keys, value: Any) -> Iterator[tuple[Keys, str]]:
        if isinstance(value, dict):
            for key, below in value.items():
                yield from walk((*keys, key), below)
        else:
            yield keys, value

    tree = yaml.load(text, Loader=yaml.BaseLoader)
    published = {block["why"]: block["values"] for block in tree.get("published", ())}
    return {**dict(walk(("expected",), tree.get("expected", {}))), **dict(walk(("published",), published))}


def made() -> dict[Path, str]:
    """Path -> text of all that this writes; of the files only where the numbers are there."""
    texts: dict[Path, str] = {}
    if NUMBERS.is_file():
        numbers = read_numbers()
        places = placed(numbers)
        for file in files():
            own = places.get(file.name, {})
            text = text_of(file, own)
            if numbers_in(text) != {keys: number.value for keys, number in own.items()}:
                raise ValueError(f"{file.name} does not hold its numbers, and no others")
            texts[_path(file)] = text
        count = f"{sum(map(len, places.values())):,} of {len(numbers):,} numbers in {len(places)} files"
        print(f"{count}; {len(files()) - len(places)} files of what prints none")
    else:
        print(f"{NUMBERS.name} is not there: the files stay as they are")
    small = {name: small_text(name, body, of) for name, (body, of) in twins().items()}
    texts |= {SMALL / f"{name}.yaml": text for name, text in small.items()}
    texts |= {_path(file): text_of(file, {}) for file in trainings()}
    paths = {file.name: _path(file) for file in files()}
    found = {name: numbers_in(texts.get(path) or path.read_text(encoding="utf-8")) for name, path in paths.items()}
    return {**texts, **dict(pages(found, small))}


def _path(file: File) -> Path:
    return HERE / f"{file.name}.yaml"


def differing(texts: Mapping[Path, str]) -> list[Path]:
    """The files that are not as they should be; a small file that is the twin of no table any more is one of them."""
    others = [path for path in SMALL.glob("*.yaml") if path not in texts]
    changed = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    return [*changed, *others]


def write() -> None:
    """Write what differs."""
    texts = made()
    for path in differing(texts):
        if path in texts:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
        else:
            path.unlink()


def main() -> int:
    """Write, or compare."""
    if sys.argv[1:] != ["--check"]:
        write()
        return 0
    paths = differing(made())
    for path in paths:
        print(f"{path.relative_to(HERE.parents[1])} is not what generate.py would write")
    return bool(paths)


if __name__ == "__main__":
    sys.exit(main())
