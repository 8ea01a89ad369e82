"""The measured part of each paper's page, and the papers' table of evaluations/README.md, from small/results.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from tables import files, smalls, twins
from tables.file import Keys
from tables.small import LEAST, TIME, Small

HERE = Path(__file__).resolve().parent
SMALL = HERE / "small"
RESULTS = SMALL / "results.json"
README = HERE.parent / "README.md"
PAPERS = {
    "fair_rag": "Towards Fair RAG",
    "utility": "Is Relevance Propagated from Retriever to Generator in RAG?",
    "fairft": "The Other Side of the Coin (FairFT, FairFilter)",
    "fair_qr": "FAIR-QR",
    "debias_rag": "DebiasRAG",
}
"""Folder of a paper -> its name, in the order of the overview."""
START, STOP = "<!-- measured: made by papers/generate.py -->\n", "<!-- /measured -->"

Results = Mapping[str, Mapping[str, Any]]
Numbers = Mapping[str, Mapping[Keys, str]]


def run_of(name: str, text: str) -> str:
    """What the run of a small file is called: another one when its text changes."""
    return f"{name}-{sha256(text.encode()).hexdigest()[:8]}"


def twins_of(paper: str) -> list[str]:
    """The small files of a paper."""
    return [name for name, (_, of) in twins().items() if of[0].startswith(f"{paper}/")]


def read_results() -> Results:
    """What has been measured: small file -> its run, how long it took, and system -> measure -> value."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}


def pages(numbers: Numbers, texts: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Each page and the overview as they should be; `numbers` are the printed ones by file, `texts` the small files."""
    results = read_results()
    rows = []
    for paper, title in PAPERS.items():
        names = twins_of(paper)
        tables = [line for name in names for line in table(name, numbers, results.get(name), texts[name])]
        yield with_part(HERE / paper / "README.md", "\n".join(tables))
        whole = [name for name in names if name in results and not results[name]["partial"]]
        filled = [value for name in whole for of in results[name]["values"].values() for value in of.values()]
        printed = sum(len(of) for file, of in numbers.items() if file.startswith(f"{paper}/"))
        tables_of = sum(file.name.startswith(f"{paper}/") for file in files())
        here = f"{len(whole)} of {len(names)} small files; {sum(n >= LEAST for *_, n in filled)} values"
        rows.append(f"| [{title}](papers/{paper}/README.md) | {printed} in {tables_of} files | {here} |")
    head = f"| paper | numbers that it prints | measured here, on {LEAST} questions or more |\n|---|---|---|\n"
    yield with_part(README, head + "\n".join(rows) + "\n")


def with_part(page: Path, part: str) -> tuple[Path, str]:
    """A page with `part` between its marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    return page, f"{before}{START}\n{part}\n{STOP}{rest.partition(STOP)[2]}"


def table(name: str, numbers: Numbers, result: Mapping[str, Any] | None, text: str) -> Iterator[str]:
    """The lines of a small file's table: every row's shown measures, as the paper prints them and as they are here.

    Rows that only the paper has are joined by threes.
    """
    of = twins()[name][1]
    twin = smalls()[of[0]]
    titles = ", ".join(f"[{one.partition('/')[2]}]({one.partition('/')[2]}.yaml)" for one in of)
    differs = "; ".join(dict.fromkeys(smalls()[one].differs for one in of))
    yield f"**{titles}**, in small [{name}](../small/{name}.yaml): {counts(name, result, text)}. Differs: {differs}.\n"
    if result is None or result["topics"] < twin.least:
        return
    printed = printed_in(of, twin, numbers)
    values = {
        row: {plain(measure): value for measure, value in of_row.items()} for row, of_row in result["values"].items()
    }
    if TIME in twin.shown:
        first, *_ = values["Original"]["seconds"]
        for of_row in values.values():
            seconds, *_, n = of_row["seconds"]
            of_row[TIME] = [seconds / first, None, None, n]
    rows = [row for row in dict.fromkeys([*values, *(row for row, _ in printed)]) if any_of(row, twin, printed, values)]
    # Rows of several tables that are one system here are one line, by the shortest of their names.
    medians, alike = twin.body.get("fair_rag", {}).get("medians", {}), dict[str, list[str]]()
    for row in rows:
        alike.setdefault(medians.get(row, [row])[0], []).append(row)
    # A bar would end the cell.
    yield f"| row | {' | '.join(f'{one}: paper | here'.replace('|d|', 'd') for one in twin.shown)} |"
    yield "|---" + "|--:|---" * len(twin.shown) + "|"
    only_printed: list[str] = []
    for of_system in alike.values():
        name = min(of_system, key=len)
        if name not in values:
            only_printed.append(name)
            continue
        theirs = [next((printed[row, one] for row in of_system if (row, one) in printed), "") for one in twin.shown]
        ours = [cell(values[name].get(one), twin, result) for one in twin.shown]
        yield f"| {name} | {' | '.join(f'{paper} | {here}' for paper, here in zip(theirs, ours, strict=True))} |"
    for first in range(0, len(only_printed), 3):
        three = only_printed[first : first + 3]
        cells = ([printed.get((row, one), "-") for row in three] for one in twin.shown)
        texts = ("; ".join(of) if set(of) != {"-"} else "" for of in cells)
        yield f"| {'; '.join(three)} | {' |  | '.join(texts)} |  |"
    yield ""


def counts(name: str, result: Mapping[str, Any] | None, text: str) -> str:
    """How many questions a run has, of what, and what it took."""
    if result is None:
        return f"not measured yet (`python evaluations/papers/run.py {name}`)"
    twin = smalls()[twins()[name][1][0]]
    said = [
        f"{result['topics']} {'tests' if twin.body.get('kind') == 'seat' else 'questions'}",
        f"{result['seconds']} s" + (f", {result['cpu']} s of CPU" if result["cpu"] else ""),
    ]
    said += [f"a cell takes {LEAST}, so none is here"] * (result["topics"] < twin.least)
    said += ["not finished"] * result["partial"]
    said += [f"{result['excluded']} left out or failed, which count for no row"] * bool(result["excluded"])
    said += ["measured on an earlier version of its file: run it again"] * (result["run"] != run_of(name, text))
    return "; ".join(said)


def printed_in(of: tuple[str, ...], twin: Small, numbers: Numbers) -> dict[tuple[str, str], str]:
    """Row and measure here -> the paper's number, of the first of the tables that has it; published ones too."""
    found: dict[tuple[str, str], str] = {}
    for file in of:
        for keys, number in numbers[file].items():
            row, *measure = keys[1:] if keys[0] == "expected" else keys[2:]
            if TIME in twin.shown and row == "Llama3-8b":
                row, measure = measure[0], [TIME]
            key = (
                smalls()[file].row(row),
                plain(" ".join(smalls()[file].row(one) for one in measure).removeprefix("overall ")),
            )
            if key[1] in twin.shown:
                found.setdefault(key, number)
    return found


def any_of(row: str, twin: Small, printed: Mapping[tuple[str, str], str], values: Mapping[str, Any]) -> bool:
    """Whether a row has a place: one of ours that is shown in a column, or one that only the paper has."""
    mine = any(one in values.get(row, {}) for one in twin.shown)
    return mine or any(keys[0] == row for keys in printed)


def cell(value: list[float] | None, twin: Small, result: Mapping[str, Any]) -> str:
    """A value with its 95 % interval; of fewer questions than a cell takes only how many they are.

    `value` is the value, low and high (None where there is no interval) and how many questions it rests on, which is
    said where the table's are more.
    """
    if value is None:
        return ""
    mean, low, high, n = value
    if n < twin.least:
        return f"({n} of {LEAST})"
    interval = "" if low is None else f" [{low:.3f}, {high:.3f}]"
    return f"{mean:.3f}{interval}{f', n {n}' if n != result['topics'] else ''}"


def plain(measure: str) -> str:
    """A measure's name without its options, by which papers' and ours are the same.

    >>> plain("U[not comparable](similarity=MiniLM tokens)@2")
    'U@2'
    """
    return re.sub(r"\[not comparable\]|\([^)]*\)", "", measure)
