"""The group table at the size of TREC Fair Ranking: 6.5 million documents, 4 dimensions, made-up labels.

    python benchmarks/group_table.py [--documents 6500000] [--rows 200000]

Prints the bytes on disk, the peak memory and the seconds of building, saving and mapping, the microseconds
of a look-up, the rate of `GroupTable.from_rows`, and the same for plain dictionaries on 200,000 documents
(memory and loading scaled up, look-ups at equal size). Then what the first and the later commands pay for a
collection's groups.tsv of 200,000 and of all rows: read as text, and mapped from where it is kept. Each part runs in a
process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fairagent.collection import GroupTable, load_collection
from fairagent.collection.table import LabelColumn

LABELS = {
    "gender": ("female", "male", "NB"),
    "occupation": tuple(f"occupation {number}" for number in range(32)),
    "subject": tuple(f"region {number}" for number in range(20)),
    "source": tuple(f"region {number}" for number in range(20)),
}
SAMPLE = int(os.environ.get("SAMPLE", "200000"))
"""Documents that are compared with dictionaries; each part is a process, which the environment reaches."""
COLLECTION = """\
name: made-up
documents: {path: docs.jsonl}
groups:
  path: groups.tsv
  dimensions:
    gender: {}
    occupation: {separator: "|"}
    subject: {}
    source: {separator: "|"}
"""


def page_ids(rng: np.random.Generator, count: int) -> np.ndarray:
    """Distinct ids of up to 8 digits, like those of Wikipedia pages, unsorted."""
    return rng.permutation(np.arange(1_000_000, 1_000_000 + 10 * count, 10)) % 100_000_000


def several(rng: np.random.Generator, count: int, groups: int, weighted: bool, labels: tuple[str, ...]) -> LabelColumn:
    """A column of documents with one to three labels or none, with counts as weights or without."""
    counts = rng.choice([1, 2, 3], count, p=[0.8, 0.15, 0.05])
    indptr = np.zeros(count + 2, np.uint32)
    np.cumsum(np.append(counts, 1), out=indptr[1:])
    first = rng.integers(0, groups, count)
    place = np.arange(indptr[-2]) - np.repeat(indptr[:-2].astype(np.int64), counts)
    codes = (np.repeat(first, counts) + place * 7) % groups + 1
    codes[indptr[:-2][(counts == 1) & (rng.random(count) < 0.4)]] = 0
    weights = rng.integers(1, 30, codes.size + 1).astype(np.float32) if weighted else None
    return LabelColumn(labels, np.append(codes, 0).astype(np.uint8), indptr, weights)


def build(documents: int, folder: str) -> dict[str, float]:
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    ids = page_ids(rng, documents).astype("S8")
    ids = ids[np.argsort(ids.view("<u8"))]
    gender = np.append(rng.choice(4, documents, p=[0.7, 0.06, 0.23, 0.01]), 0).astype(np.uint8)
    columns = {
        "gender": LabelColumn(LABELS["gender"], gender),
        "occupation": several(rng, documents, 32, False, LABELS["occupation"]),
        "subject": several(rng, documents, 20, False, LABELS["subject"]),
        "source": several(rng, documents, 20, True, LABELS["source"]),
    }
    table = GroupTable(ids, columns)
    made = time.perf_counter()
    table.save(folder)
    saved = time.perf_counter()
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return {"seconds to make up": made - start, "seconds to save": saved - made, "MB on disk": size / 1e6}


def look_up(documents: int, folder: str) -> dict[str, float]:
    before = peak()
    start = time.perf_counter()
    table = GroupTable.load(folder)
    figures = {"seconds to map": time.perf_counter() - start}
    ids = [str(id) for id in page_ids(np.random.default_rng(1), documents)[:200_000]]
    start = time.perf_counter()
    for dimension in LABELS:
        table.memberships(dimension, ids[:500])
    figures["first look-up of 500 in 4 dimensions, ms"] = 1000 * (time.perf_counter() - start)
    for size in (500, 20):
        for dimension in LABELS:
            figures[f"look-up of {size} ids, {dimension}, us"] = look_up_time(table.memberships, dimension, ids, size)
    start = time.perf_counter()
    for dimension in LABELS:
        table.shares(dimension)
    figures["seconds of shares(), 4 dimensions"] = time.perf_counter() - start
    return figures | {"peak MB before": before, "peak MB": peak()}


def look_up_time(memberships: Callable[[str, list[str]], object], dimension: str, ids: list[str], size: int) -> float:
    """Median microseconds over 200 different lists of ids."""
    times = []
    for number in range(200):
        asked = ids[number * size : (number + 1) * size]
        start = time.perf_counter()
        memberships(dimension, asked)
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times))


def made_up_rows(count: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Rows as a reader would hand them over: a label, lists of labels, counts of labels."""
    rng = np.random.default_rng(2)
    for start in range(0, count, 50_000):
        size = min(50_000, count - start)
        ids = (np.arange(start, start + size) * 7919 % (10 * count)).tolist()
        draws = rng.integers(0, 1000, (size, 4)).tolist()
        for id, (a, b, c, d) in zip(ids, draws, strict=True):
            occupation, subject, source = LABELS["occupation"], LABELS["subject"], LABELS["source"]
            yield (
                str(id),
                {
                    "gender": LABELS["gender"][a % 3] if a < 300 else None,
                    "occupation": [occupation[b % 32]] if b < 800 else [occupation[b % 32], occupation[(b + 5) % 32]],
                    "subject": subject[c % 20] if c < 600 else None,
                    "source": {source[d % 20]: d % 9 + 1, source[(d + 3) % 20]: d % 4 + 1},
                },
            )


def from_rows(count: int) -> dict[str, float]:
    before = peak()
    start = time.perf_counter()
    for _ in made_up_rows(count):
        pass
    made = time.perf_counter()
    table = GroupTable.from_rows(made_up_rows(count), LABELS)
    seconds = time.perf_counter() - made - (made - start)
    figures = {"rows": count, "rows a second": count / seconds, "seconds": seconds}
    figures["peak MB over start"] = peak() - before
    ids = shuffled_ids(count)
    for name in LABELS:
        figures[f"look-up of 500 ids, {name}, us"] = look_up_time(table.memberships, name, ids, 500)
    return figures


def write_text(count: int, folder: str) -> dict[str, float]:
    """A collection with `count` rows of groups, and one document, which nobody reads."""
    (Path(folder) / "collection.yaml").write_text(COLLECTION)
    (Path(folder) / "docs.jsonl").write_text('{"id": "0", "text": "a"}\n')
    with (Path(folder) / "groups.tsv").open("w") as file:
        file.write("\t".join(["id", *LABELS]) + "\n")
        for id, labels in made_up_rows(count):
            cells = [labels[name] or "" for name in LABELS]
            file.write("\t".join([id, *(cell if isinstance(cell, str) else "|".join(cell) for cell in cells)]) + "\n")
    return {"MB of text": (Path(folder) / "groups.tsv").stat().st_size / 1e6}


def load(folder: str) -> dict[str, float]:
    """The collection as a command loads it, and look-ups in it."""
    start = time.perf_counter()
    groups = load_collection(Path(folder) / "collection.yaml", Path(folder) / "index").groups
    figures = {"seconds to load": time.perf_counter() - start}
    ids = shuffled_ids(SAMPLE)
    for name in LABELS:
        figures[f"look-up of 500 ids, {name}, us"] = look_up_time(groups.memberships, name, ids, 500)
    return figures


def text_against_mapped(rows: int) -> str:
    """The figures of a collection whose groups are loaded four times, and the line that sums them up."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        part("write_text", rows, folder)
        times = []
        for _ in range(4):
            # What has just been written is not remembered (see fairagent.storage.digests).
            time.sleep(3)
            times.append(part("load", folder)["seconds to load"])
    first, *later = times
    return (
        f"  {rows:9,} rows: as text {first:.2f} s; kept, hashed once {later[0]:.3f} s, mapped {later[-1]:.3f} s: "
        f"x {first / later[-1]:,.0f}"
    )


def shuffled_ids(count: int) -> list[str]:
    """Ids of the made-up rows in random order."""
    numbers = np.random.default_rng(3).permutation(min(count, SAMPLE))
    return [str(number) for number in (numbers * 7919 % (10 * count)).tolist()]


def dictionaries() -> dict[str, float]:
    """The plain way: id -> dimension -> label -> share, and a loop over it."""
    before = peak()
    table = {}
    for id, labels in made_up_rows(SAMPLE):
        table[id] = {
            name: value
            if isinstance(value, dict)
            else dict.fromkeys([value] if isinstance(value, str) else value or [], 1)
            for name, value in labels.items()
        }
    memory = peak() - before
    columns = {name: {label: place for place, label in enumerate(labels, 1)} for name, labels in LABELS.items()}

    def memberships(dimension: str, asked: list[str]) -> np.ndarray:
        matrix = np.zeros((len(asked), 1 + len(columns[dimension])))
        for row, id in zip(matrix, asked, strict=True):
            weights = table.get(id, {}).get(dimension)
            if not weights:
                row[0] = 1.0
                continue
            total = sum(weights.values())
            for label, weight in weights.items():
                row[columns[dimension][label]] = weight / total
        return matrix

    ids = shuffled_ids(SAMPLE)
    figures = {f"look-up of 500 ids, {name}, us": look_up_time(memberships, name, ids, 500) for name in LABELS}
    with tempfile.NamedTemporaryFile("w+", suffix=".json") as file:
        json.dump(table, file)
        file.seek(0)
        del table
        start = time.perf_counter()
        table = json.load(file)
        figures["seconds to load JSON"] = time.perf_counter() - start
    return figures | {"MB in memory": memory}


def peak() -> float:
    """The largest resident memory so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def part(*arguments: object) -> dict[str, float]:
    """Run one part in a process of its own and print its figures."""
    command = [sys.executable, __file__, "--part", *map(str, arguments)]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"\n{' '.join(map(str, arguments[:2]))}")
    for name, figure in figures.items():
        print(f"  {name:45} {figure:14,.3f}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=6_500_000)
    parser.add_argument("--rows", type=int, default=SAMPLE)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        name, *rest = options.part
        run: dict[str, Callable[[], dict[str, float]]] = {
            "build": lambda: build(int(rest[0]), rest[1]),
            "look_up": lambda: look_up(int(rest[0]), rest[1]),
            "from_rows": lambda: from_rows(int(rest[0])),
            "write_text": lambda: write_text(int(rest[0]), rest[1]),
            "load": lambda: load(rest[0]),
            "dictionaries": dictionaries,
        }
        figures = run[name]()
        print(json.dumps(figures | {"peak MB of the process": peak()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        disk = part("build", options.documents, folder)["MB on disk"]
        mapping = part("look_up", options.documents, folder)["seconds to map"]
    if options.rows != SAMPLE:
        part("from_rows", options.rows)
    table, plain = part("from_rows", SAMPLE), part("dictionaries")
    scale = options.documents / SAMPLE
    memory, loading = plain["MB in memory"] * scale, plain["seconds to load JSON"] * scale
    print(f"\nDictionaries for {options.documents:,} documents (scaled from {SAMPLE:,}) against the table:")
    print(f"  memory {memory:,.0f} MB, table {disk:,.0f} MB: x {memory / disk:.0f}")
    print(f"  loading {loading:,.1f} s, table {mapping:.4f} s: x {loading / mapping:,.0f}")
    print(f"Look-up of 500 ids among {SAMPLE:,} documents:")
    for name in LABELS:
        key = f"look-up of 500 ids, {name}, us"
        print(f"  {name:10} {plain[key]:,.0f} us, table {table[key]:,.0f} us: x {plain[key] / table[key]:.1f}")
    lines = [text_against_mapped(rows) for rows in dict.fromkeys((SAMPLE, options.documents))]
    print("\nLoading a collection with so many rows of groups:", *lines, sep="\n")


if __name__ == "__main__":
    main()
