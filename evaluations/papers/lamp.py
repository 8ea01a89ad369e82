"""Two small data sets in LaMP's form, of public collections, and extracts in the place of LaMP's generators.

    python evaluations/papers/lamp.py prepare              # writes them to runs/papers/lamp, and makes their labels
    python evaluations/papers/lamp.py evaluate FILE ...    # a command of fairagent; extracts answer, no model

LaMP-1: an "author" is a question of Cranfield. The paper, the reference that it cites and part of the profile were
judged relevant for it, the rest of the profile for other questions; so was the other reference, the one of fifty whose
title is most like the paper's. LaMP-4: an author writes on one topic for outlets of one leaning (AllSides); half of the
profile is that, half is of other topics.

An extract is a part of the question, chosen by the words that it has in common with the titles of the items: one of the
two references, or a clause of the article. So an answer rests on its items, and takes no model and a millisecond: 100
rankings of 100 questions by three engines at four temperatures are 100,000 answers.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from tables.small import LAMP

from fairagent.answer.citations import sentences, words
from fairagent.cli.app import app
from fairagent.llm.models import Models
from fairagent.llm.request import ModelReply, ModelRequest

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
SHARED = PROJECT.parent / "shared" / "data"
PROFILE = 20
"""Items of a question."""
LONGEST = 32
"""Words of an item's abstract or text, so that two cores have embedded all items in minutes."""
EACH = 3
"""Questions of an author: about one in three has two items or more that help, and counts."""
LEAD = 0.05
"""What the first clause of an article has without any item; the second has half of it, the third a third."""
SEED = 1

Record = dict[str, Any]


# --- the questions


def read(path: Path) -> Iterator[Record]:
    """The records of a JSON-lines file, gzipped."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def relevant(folder: Path, texts: Mapping[str, Record]) -> dict[str, list[str]]:
    """Topic -> its relevant documents with a title and a text, in the order of the judgments."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        topic, _, document, grade = line.split()
        if int(grade) > 0 and texts.get(document, {}).get("title") and texts[document]["text"]:
            found[topic].append(document)
    return found


def begin(text: str) -> str:
    """The first words of a text."""
    return " ".join(text.split()[:LONGEST])


def lamp_1() -> Iterator[tuple[Record, str]]:
    """Questions and their outputs."""
    folder = SHARED / "cranfield"
    # A title is repeated at the start of its text.
    papers = {
        one["id"]: {"title": one["title"].rstrip(" ."), "abstract": begin(one["text"][len(one["title"]) :])}
        for one in read(folder / "docs.jsonl.gz")
    }
    texts = {id: {"title": one["title"], "text": one["abstract"]} for id, one in papers.items()}
    judged = {topic: own for topic, own in relevant(folder, texts).items() if len(own) >= 6}
    for (topic, own), number in product(judged.items(), range(EACH)):
        random = Random(f"{SEED}/{topic}/{number}")
        paper, cited, *about = random.sample(own, min(len(own), 2 + PROFILE // 2))
        noise = random.sample(sorted({id for of in judged.values() for id in of} - set(own)), 50 + PROFILE)
        title = papers[paper]["title"]
        other = max(noise[PROFILE:], key=lambda id: likeness(papers[id]["title"], title))
        profile = random.sample([*about, *noise][:PROFILE], PROFILE)
        right = random.choice(("[1]", "[2]"))
        first, second = (papers[id]["title"] for id in ((cited, other) if right == "[1]" else (other, cited)))
        ask = f'An author wrote the paper "{title}". Which of these does it cite? [1]: "{first}" [2]: "{second}"'
        items = [{"id": id, **papers[id]} for id in profile]
        yield {"id": f"{topic}-{number}", "input": ask, "profile": items}, right


def lamp_4() -> Iterator[tuple[Record, str]]:
    """Questions and their outputs."""
    folder = SHARED / "allsides"
    texts = {one["id"]: one for one in read(folder / "docs.jsonl.gz")}
    with gzip.open(folder / "groups.tsv.gz", "rt", encoding="utf-8") as lines:
        leaning = dict(line.split() for line in lines)
    written: dict[tuple[str, str], list[str]] = defaultdict(list)
    for topic, documents in relevant(folder, texts).items():
        for id in documents:
            written[topic, leaning[id]].append(id)
    for ((topic, side), own), number in product(sorted(written.items()), range(EACH)):
        random = Random(f"{SEED}/{topic}/{side}/{number}")
        if len(own) > PROFILE // 2:
            article, *about = random.sample(own, PROFILE // 2 + 1)
            others = [id for (topic_, of), ids in written.items() if of == side and topic_ != topic for id in ids]
            profile = random.sample([*about, *random.sample(others, PROFILE // 2)], PROFILE)
            items = [{"id": id, "title": texts[id]["title"], "text": begin(texts[id]["text"])} for id in profile]
            ask = f"Find a headline for this article: {texts[article]['text']}"
            yield {"id": f"{topic}-{side}-{number}", "input": ask, "profile": items}, texts[article]["title"]


def write(folder: Path) -> None:
    """Both data sets, in a folder each, as LaMP's two files."""
    for task, made in (("LaMP-1", lamp_1()), ("LaMP-4", lamp_4())):
        questions, outputs = zip(*made, strict=True)
        below = folder / task.lower().replace("-", "_")
        below.mkdir(parents=True, exist_ok=True)
        golds = [{"id": one["id"], "output": of} for one, of in zip(questions, outputs, strict=True)]
        (below / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
        (below / "outputs.json").write_text(json.dumps({"task": task.replace("-", "_"), "golds": golds}), "utf-8")


# --- the answers


@lru_cache(maxsize=100_000)
def likeness(text: str, other: str) -> float:
    """The cosine of two texts as sets of words of four letters and more."""
    one, two = ({word for word in words(of) if len(word) > 3} for of in (text, other))
    return len(one & two) / ((len(one) * len(two)) ** 0.5 or 1.0)


def extract(question: str, titles: Sequence[str]) -> str:
    """The answer to a question of LaMP-1 or LaMP-4 from the titles of its items."""
    if pair := re.search(r'"(.*)"\. Which .*? \[1\]: "(.*)" \[2\]: "(.*)"', question):
        paper, *references = pair.groups()
        scores = [sum(likeness(one, title) for title in (paper, *titles)) for one in references]
        return "[1]" if scores[0] >= scores[1] else "[2]"
    clauses = [part for one in sentences(question.partition("article:")[2]) for part in re.split(r" [,;:–—-]+ ", one)]
    long = [one for one in clauses if len(one.split()) > 3] or clauses
    return max(enumerate(long), key=lambda one: LEAD / (1 + one[0]) + sum(likeness(one[1], of) for of in titles))[1]


class Extracts:
    """A language model that answers the prompts lamp_1 and lamp_4 by extracts."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """The extract that a request asks for."""
        shown = request.messages[-1][1]
        titles = [json.JSONDecoder().raw_decode(line[2:])[0] for line in shown.splitlines() if line.startswith('- "')]
        *_, question, _ = shown.strip().split("\n\n")
        return ModelReply(extract(question, titles), 0, 0, cost=0.0)


def main(arguments: Sequence[str]) -> None:
    """Run a command of fairagent; `prepare` writes the data sets and makes the labels of the tables' small files."""
    Models.open = lambda self, settings: Extracts()  # type: ignore[method-assign,return-value,assignment]
    if arguments != ["prepare"]:
        app(arguments)
    write(PROJECT / LAMP)
    for file in sorted((HERE / "small").glob("fair_rag_*.yaml")):
        app(["labels", str(file)], standalone_mode=False)


if __name__ == "__main__":
    main(sys.argv[1:])
