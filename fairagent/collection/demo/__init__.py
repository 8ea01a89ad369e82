"""The demo collection: short biographies of people who never lived, forty topics, and a skew made on purpose.

EVERYTHING HERE IS MADE UP. A seeded generator (benchmarks/made_up_people) put sentence templates and word lists
together into people, their work and their honors; its files are in this folder. Only the countries and cities are
real; a likeness to a real person or institution is chance. The collection shows what fairagent does, on a machine with
nothing else on it. It is no evidence about the world, and nothing measured on it is a finding.

A document is relevant if and only if the person in it has the topic's occupation, in whatever words the text says so.
Where a gender is unknown the text has no pronoun and only initials; where a region is unknown it names no place. The
skew lies in the wording, as in real collections: texts that open with the occupation's name and repeat it are more
often about men and about people of Europe and Northern America, and a search finds them first. How strong it is, and
which groups an occupation leans to, is drawn for each topic.
"""

import csv
import gzip
import io
import json
from pathlib import Path

from fairagent.errors import UsageError
from fairagent.storage.files import new_file, one_at_a_time
from fairagent.storage.folders import workshop

EDITION = 3
"""To be raised with every change of the files, so that folders of an earlier edition are written anew."""
PEOPLE = 3000
"""Their biographies come first in the files, then the pages about societies, prizes, streets and schools."""
_HERE = Path(__file__).parent


def write_demo(folder: Path, *, people: int = PEOPLE) -> Path:
    """Write the demo collection, or its first `people` (1 to 3000), into `folder`; the path of its `collection.yaml`.

    For every 25 people there is a page that is nobody's biography. The folder appears whole or not at all; one that
    was finished with the same parameters is used as it is, one that was made with others is replaced. Topics without a
    relevant document (there are some when `people` is small) are left out.

    Raises UsageError for another number of people, or where the folder holds something else than a demo collection;
    BackendUnavailable where the disk is full or may not be written to.
    """
    made = json.dumps({"made_by": "fairagent demo", "edition": EDITION, "people": people, "seed": 20221}) + "\n"
    marker = folder.resolve() / "made.json"
    with one_at_a_time(marker.parent.with_name(f".{marker.parent.name}.lock"), 60.0):
        if not (marker.is_file() and marker.read_text(encoding="utf-8", errors="replace") == made):
            files = _files(people)
            with workshop(marker.parent) as shop:
                for name, text in {**files, marker.name: made}.items():
                    with new_file(shop.new / name) as file:
                        file.write(text.encode())
                shop.put()
    return folder / "collection.yaml"


def write_people(path: Path | str, *, people: int = 300) -> Path:
    """Write a table of the demo's first `people` (1 to 3000) as CSV: id, title, text, gender, region; return its path.

    Raises UsageError where the file is there and holds anything else, and for another number of people.
    """
    files, table = _files(people), io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["id", "title", "text", "gender", "region"])
    groups = csv.DictReader(io.StringIO(files["groups.tsv"]), delimiter="\t")
    for line, of in list(zip(files["docs.jsonl"].splitlines(), groups, strict=True))[:people]:
        person = json.loads(line)
        rows.writerow([person["id"], person["title"], person["text"], of["gender"], of["region"]])
    path, made = Path(path), table.getvalue().encode()
    if path.exists():
        if not path.is_file() or path.read_bytes() != made:
            raise UsageError(f"{path} is there already, and holds something else; give another name")
        return path
    with new_file(path) as file:
        file.write(made)
    return path


def _files(people: int) -> dict[str, str]:
    """Name -> text of the files, about the first `people`."""
    if not 1 <= people <= PEOPLE:
        raise UsageError(f"the demo collection has from 1 to {PEOPLE} people, got people={people}")
    with gzip.open(_HERE / "docs.jsonl.gz", "rt", encoding="utf-8", newline="\n") as file:
        docs = file.readlines()
    names = ("groups.tsv", "qrels.txt", "topics.jsonl", "population.json", "collection.yaml")
    files = {name: (_HERE / name).read_text(encoding="utf-8") for name in names}
    header, *groups = files["groups.tsv"].splitlines(keepends=True)
    rows = [*range(people), *range(PEOPLE, PEOPLE + people // 25)]
    ids = {json.loads(docs[row])["id"] for row in rows}
    qrels = [line for line in files["qrels.txt"].splitlines(keepends=True) if line.split()[2] in ids]
    judged = {line.split()[0] for line in qrels}
    topics = [line for line in files["topics.jsonl"].splitlines(keepends=True) if json.loads(line)["id"] in judged]
    return files | {
        "docs.jsonl": "".join(docs[row] for row in rows),
        "groups.tsv": "".join([header, *(groups[row] for row in rows)]),
        "qrels.txt": "".join(qrels),
        "topics.jsonl": "".join(topics),
    }
