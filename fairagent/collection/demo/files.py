"""Writing the demo collection's files, all or none."""

import json
import os
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fairagent.collection.demo.people import OCCUPATIONS, REGIONS, SeededChoices, draw_leanings, draw_person
from fairagent.collection.demo.texts import write_biography, write_page
from fairagent.errors import UsageError
from fairagent.storage.files import explained

EDITION = 3
"""To be raised with every change of the files, so that folders of an earlier edition are written anew."""
PEOPLE_A_PAGE = 25
"""One page that is nobody's biography for so many people."""
POPULATION = {
    "gender": {"female": 0.495, "male": 0.495, "nonbinary": 0.01},
    "region": dict(zip(REGIONS, (0.155, 0.600, 0.104, 0.086, 0.050, 0.005), strict=True)),
}
"""Rounded shares of the world's people."""
_COLLECTION = f"""\
name: demo
documents: {{path: docs.jsonl, id: id, title: title, text: text}}
topics: {{path: topics.jsonl, id: id, query: title}}
qrels: {{path: qrels.txt, format: trec}}
groups:
  path: groups.tsv
  id: id
  dimensions:
    gender: {{column: gender, labels: [female, male, nonbinary], applies_to: {{column: kind, values: [person]}}}}
    region: {{column: region, separator: "|", labels: [{", ".join(REGIONS)}]}}
population: population.json
target: trec-estimated
"""
_MADE = "made.json"
"""Written last: by whom and from which parameters the folder was made."""
_MAKER = "fairagent demo"


@dataclass(frozen=True, slots=True)
class Entry:
    """One document with its groups and the numbers of the occupations it is relevant for; `kind` is person or page."""

    id: str
    title: str
    text: str
    gender: str
    regions: tuple[str, ...]
    occupations: tuple[int, ...]
    kind: str = "person"


def write_demo(folder: Path, *, people: int = 3000, seed: int = 20221) -> Path:
    """Write the demo collection into `folder` and return the path of its `collection.yaml`.

    The same `people` (>= 1) and `seed` give the same bytes on every platform and Python. The folder appears
    whole or not at all; one that was finished with the same parameters is used as it is, one that was made
    with others is replaced. Topics without a relevant document (there are some when `people` is small) are
    left out.

    Raises:
        UsageError: `people` < 1, or the folder holds something else than a demo collection.
        BackendUnavailable: the disk is full or may not be written to.
    """
    if people < 1:
        raise UsageError(f"the demo collection needs at least one person, got people={people}")
    target = folder.resolve()
    made = json.dumps({"made_by": _MAKER, "edition": EDITION, "people": people, "seed": seed}) + "\n"
    if not _is_finished(target, made):
        if target.exists() and not _is_replaceable(target):
            raise UsageError(f"{folder}: exists and is not a demo collection; name a new or an empty folder")
        building = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.building")
        shutil.rmtree(building, ignore_errors=True)
        try:
            with explained(target):
                building.mkdir(parents=True)
                for name, text in _files(make_entries(people, seed)).items():
                    (building / name).write_text(text, encoding="utf-8", newline="\n")
                (building / _MADE).write_text(made, encoding="utf-8", newline="\n")
                _move(building, target, made)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return folder / "collection.yaml"


def make_entries(people: int, seed: int) -> list[Entry]:
    """All documents in the order of their ids: the biographies, then the pages."""
    draw = SeededChoices(seed)
    leanings = draw_leanings(draw)
    taken: set[str] = set()
    entries = []
    for number in range(1, people + 1):
        person = draw_person(draw, leanings, taken)
        text = write_biography(person, draw)
        entries.append(Entry(f"D{number:05d}", person.name, text, person.gender, person.regions, person.occupations))
    for number in range(people // PEOPLE_A_PAGE):
        title, text, region = write_page(OCCUPATIONS[number % len(OCCUPATIONS)], draw, taken)
        entries.append(Entry(f"D{people + number + 1:05d}", title, text, "", (region,), (), "page"))
    return entries


def _files(entries: list[Entry]) -> dict[str, str]:
    relevant = [[entry.id for entry in entries if number in entry.occupations] for number in range(len(OCCUPATIONS))]
    topics = [(f"T{number + 1:02d}", number) for number, ids in enumerate(relevant) if ids]
    return {
        "docs.jsonl": _json_lines({"id": e.id, "title": e.title, "text": e.text} for e in entries),
        "topics.jsonl": _json_lines(
            {"id": topic, "title": OCCUPATIONS[n].title, "description": f"People who {OCCUPATIONS[n].about}."}
            for topic, n in topics
        ),
        "qrels.txt": "".join(f"{topic} 0 {id} 1\n" for topic, n in topics for id in relevant[n]),
        "groups.tsv": "id\tkind\tgender\tregion\n"
        + "".join(f"{e.id}\t{e.kind}\t{e.gender}\t{'|'.join(e.regions)}\n" for e in entries),
        "population.json": json.dumps(POPULATION, indent=1) + "\n",
        "collection.yaml": _COLLECTION,
    }


def _json_lines(records: Iterable[dict[str, str]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _is_replaceable(path: Path) -> bool:
    marker = path / _MADE
    if marker.is_file():
        return marker.read_text(encoding="utf-8", errors="replace").startswith(json.dumps({"made_by": _MAKER})[:-1])
    return path.is_dir() and not any(path.iterdir())


def _is_finished(folder: Path, made: str) -> bool:
    marker = folder / _MADE
    return marker.is_file() and marker.read_text(encoding="utf-8", errors="replace") == made


def _move(building: Path, folder: Path, made: str) -> None:
    """Put the finished folder in its place; another process may have done so first."""
    if folder.exists():
        old = folder.with_name(f"{building.name}.old")
        folder.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    try:
        building.rename(folder)
    except OSError:
        if not _is_finished(folder, made):
            raise
