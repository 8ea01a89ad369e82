"""An intersection is a dimension like any other: of an experiment, of a search, of its loop and its re-rankers."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from . import words

NAME = "gender x era"
MEASURE = "AWRF(discount=log2-max2, log=e, unknown=ignore)@5"


def crossed(folder: Path) -> Path:
    """The small experiment with the intersection of its dimensions."""
    file = words.write(
        folder, words.EXPERIMENT + f"measures: ['AWRF(unknown=ignore)@5']\ndimensions: [{NAME}, gender]\n"
    )
    settings = folder / "collection.yaml"
    settings.write_text(f"{words.COLLECTION}intersections: {{{NAME}: [gender, era]}}\n", encoding="utf-8")
    return file


def awrf_by_hand(ranking: list[str], relevant: list[str], cells: dict[str, str]) -> float:
    """1 - the Jensen-Shannon divergence of attention from the relevant documents, both over what has both labels."""
    shown, wanted = Counter[str](), Counter[str]()
    for rank, id in enumerate(ranking, start=1):
        shown[cells.get(id, "")] += 1 / math.log2(max(rank, 2))
    for id in relevant:
        wanted[cells.get(id, "")] += 1
    del shown[""], wanted[""]
    divergence = 0.0
    for cell in shown | wanted:
        p, q = shown[cell] / shown.total(), wanted[cell] / wanted.total()
        divergence += sum(share / 2 * math.log(share / ((p + q) / 2)) for share in (p, q) if share)
    return 1 - divergence


def test_an_experiment_by_hand(tmp_path: Path) -> None:
    """`era` has no world shares, so neither has the intersection: its target is what is relevant."""
    words.run(crossed(tmp_path), tmp_path / "run")
    rows = [line.split("\t") for line in (tmp_path / "groups.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    cells = {id: f"{gender} {era}" for id, gender, era in rows if gender and era}
    relevant, shown = dict[str, list[str]](), dict[str, list[str]]()
    for line in (tmp_path / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        relevant.setdefault(line.split()[0], []).append(line.split()[2])
    for line in (tmp_path / "run" / "runs" / "plain.txt").read_text(encoding="utf-8").splitlines():
        shown.setdefault(line.split()[0], []).append(line.split()[2])
    values = {
        row["topic"]: float(row["value"])
        for row in words.rows(tmp_path / "run" / "topics.csv")
        if (row["system"], row["dimension"], row["measure"]) == ("plain", NAME, MEASURE)
    }
    assert len(values) >= 10
    for topic, value in values.items():
        assert value == pytest.approx(awrf_by_hand(shown[topic][:5], relevant[topic], cells), abs=1e-12), topic
    assert len(set(values.values())) > 3
