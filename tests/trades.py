"""A collection in which a template decides what is served: ten trades, each with ten men and below them three women."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRADES = ("lawyer", "gardener", "painter", "baker", "pilot", "surgeon", "weaver", "miner", "singer", "tailor")
COLLECTION = """\
name: trades
documents: {path: docs.jsonl, id: id, title: title, text: text}
topics: {path: topics.jsonl, id: id, query: title}
groups: {path: groups.tsv, id: id, dimensions: {gender: {column: gender, labels: [female, male]}}}
population: {gender: {female: 0.5, male: 0.5}}
target: population
"""
SETTINGS: dict[str, Any] = {
    "engine": "bm25",
    "n": 6,
    # What is served are the first documents of the refined list, as they are.
    "loop": {"kind": "fair-qr", "rerank_depth": 6},
    "rerank": "original",
    "refine": {"kind": "llm", "drift": 0.4},
    "model": {"name": "tiny"},
    "cache": "",
}
GOOD = "Name pronouns."
"""A template with these words gets words that only pages about women have."""


def write_trades(folder: Path, topics: int = 8, judged: bool = True) -> Path:
    """Write the collection, of which the first eight topics are four in each half; returns its settings file."""
    pages, genders, judgments = [], [], []
    for number, trade in enumerate(TRADES):
        men = [f"A {trade} and again a {trade} of guild number {n}. He worked, he won." for n in range(10)]
        women = [f"She was a matron and a {trade} of town {n}, where she worked." for n in range(3)]
        of_trade = [{"id": f"{trade}{n}", "title": "", "text": text} for n, text in enumerate([*men, *women])]
        pages += of_trade
        genders += ["male"] * 10 + ["female"] * 3
        judgments += [f"T{number} 0 {page['id']} 1\n" for page in of_trade]
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "collection.yaml": COLLECTION + ("qrels: {path: qrels.tsv, format: trec}\n" if judged else ""),
        "docs.jsonl": "".join(json.dumps(page) + "\n" for page in pages),
        "topics.jsonl": "".join(json.dumps({"id": f"T{n}", "title": TRADES[n]}) + "\n" for n in range(topics)),
        "qrels.tsv": "".join(judgments),
        "groups.tsv": "id\tgender\n"
        + "".join(f"{page['id']}\t{gender}\n" for page, gender in zip(pages, genders, strict=True)),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "collection.yaml"


def is_reflection(request: dict[str, Any]) -> bool:
    """Whether a wording is asked for, and no keywords."""
    return "You improve the template" in request["messages"][0]["content"]


def shown_template(request: dict[str, Any]) -> str:
    """The template that is to be improved."""
    text: str = request["messages"][-1]["content"]
    start = text.index("JSON string:\n") + len("JSON string:\n")
    template: str = json.loads(text[start : text.index("\n", start)])
    return template


def keywords(request: dict[str, Any]) -> str:
    """What the small model replies to a refining template."""
    good = GOOD in request["messages"][0]["content"]
    return json.dumps({"keywords": ["she", "matron"] if good else ["guild"]})


def improved(request: dict[str, Any]) -> str:
    """The template with the words that help."""
    return f"Here it is:\n```\n{shown_template(request).replace('[user]', GOOD + chr(10) + '[user]', 1)}\n```"
