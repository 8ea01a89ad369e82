"""The benchmarks' files as their authors publish them -> the JSON lines that experiments read.

python evaluations/stereotypes/convert.py stereoset dev.json stereoset.jsonl
python evaluations/stereotypes/convert.py crows-pairs crows_pairs_anonymized.csv crows_pairs.jsonl
python evaluations/stereotypes/convert.py seat FOLDER seat.jsonl          (a file a test, named after it)
python evaluations/stereotypes/convert.py bold FOLDER bold.jsonl          (gender_prompt.json and the like)
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def stereoset(path: Path) -> Iterator[dict[str, Any]]:
    """An example a line, its three sentences by their labels."""
    parts = json.loads(path.read_text(encoding="utf-8"))["data"]
    for example in (one for part in ("intrasentence", "intersentence") for one in parts[part]):
        labeled = {one["gold_label"].replace("-", "_"): one["sentence"] for one in example["sentences"]}
        yield {name: example[name] for name in ("bias_type", "target", "context")} | labeled


def crows_pairs(path: Path) -> Iterator[dict[str, Any]]:
    """A pair a line."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {name: row[name] for name in ("sent_more", "sent_less", "stereo_antistereo", "bias_type")}


def seat(path: Path) -> Iterator[dict[str, Any]]:
    """A test a line."""
    for file in sorted(path.glob("*.jsonl")):
        yield {"test": file.stem, **json.loads(file.read_text(encoding="utf-8"))}


def bold(path: Path) -> Iterator[dict[str, Any]]:
    """The openings of each domain and group a line."""
    for file in sorted(path.glob("*_prompt.json")):
        for group, names in json.loads(file.read_text(encoding="utf-8")).items():
            openings = [opening.strip() for listed in names.values() for opening in listed]
            yield {"domain": file.stem.removesuffix("_prompt"), "category": group, "prompts": openings}


FORMS = {"stereoset": stereoset, "crows-pairs": crows_pairs, "seat": seat, "bold": bold}


def main(form: str, source: str, target: str) -> None:
    """Write `target` of what `source` holds."""
    lines = [json.dumps(record, ensure_ascii=False) for record in FORMS[form](Path(source))]
    Path(target).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{target}: {len(lines):,} lines")


if __name__ == "__main__":
    main(*sys.argv[1:])
