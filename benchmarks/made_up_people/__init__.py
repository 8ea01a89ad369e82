"""The demo's people, in any number: where the files in fairagent/collection/demo were made."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .people import OCCUPATIONS, REGIONS, SeededChoices, draw_leanings, draw_person
from .texts import write_biography, write_page

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


def write_people(folder: Path, people: int, seed: int = 20221) -> Path:
    """Write the collection of so many people (>= 1) into the new `folder`; the path of its `collection.yaml`.

    The same `people` and `seed` give the same bytes on every platform and Python; 3,000 and 20221 those that
    `fairagent demo` writes. Topics without a relevant document (there are some when `people` is small) are left out.
    """
    folder.mkdir(parents=True)
    for name, text in _files(make_entries(people, seed)).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
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
