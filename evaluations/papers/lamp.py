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

Question = tuple[str, str, list[dict[str, str]], str]
"""Its id, its input, the items of its profile, and its output."""


# --- the questions


def read(folder: str) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """The documents by id, and topic -> the relevant ones with a title and a text, in the order of the judgments."""
    texts, relevant = {}, defaultdict(list)
    with gzip.open(SHARED / folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        for one in map(json.loads, lines):
            # Cranfield ends a title with a mark of its own, and repeats it at the start of the text.
            title, text = one["title"].removesuffix(" ."), one["text"].removeprefix(one["title"])
            texts[one["id"]] = {"title": title, "text": text.strip()}
    for line in (SHARED / folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        topic, _, document, grade = line.split()
        if int(grade) > 0 and texts.get(document, {}).get("title") and texts[document]["text"]:
            relevant[topic].append(document)
    return texts, relevant


def items(texts: Mapping[str, Mapping[str, str]], ids: Sequence[str], long: str) -> list[dict[str, str]]:
    """Entries of a profile, with the first words of their texts under `long`."""
    begun = {id: " ".join(texts[id]["text"].split()[:LONGEST]) for id in ids}
    return [{"id": id, "title": texts[id]["title"], long: begun[id]} for id in ids]


def lamp_1() -> Iterator[Question]:
    """The questions on Cranfield."""
    texts, relevant = read("cranfield")
    judged = {topic: own for topic, own in relevant.items() if len(own) >= 6}
    titles = {id: one["title"] for id, one in texts.items()}
    for (topic, own), number in product(judged.items(), range(EACH)):
        random = Random(f"{SEED}/{topic}/{number}")
        paper, cited, *about = random.sample(own, min(len(own), 2 + PROFILE // 2))
        noise = random.sample(sorted({id for of in judged.values() for id in of} - set(own)), 50 + PROFILE)
        other = max(noise[PROFILE:], key=lambda id: likeness(titles[id], titles[paper]))
        profile = random.sample([*about, *noise][:PROFILE], PROFILE)
        right = random.choice(("[1]", "[2]"))
        one, two = (titles[id] for id in ((cited, other) if right == "[1]" else (other, cited)))
        ask = f'An author wrote the paper "{titles[paper]}". Which of these does it cite? [1]: "{one}" [2]: "{two}"'
        yield f"{topic}-{number}", ask, items(texts, profile, "abstract"), right


def lamp_4() -> Iterator[Question]:
    """The questions on AllSides."""
    texts, relevant = read("allsides")
    with gzip.open(SHARED / "allsides" / "groups.tsv.gz", "rt", encoding="utf-8") as lines:
        leaning = dict(line.split() for line in lines)
    written: dict[tuple[str, str], list[str]] = defaultdict(list)
    for topic, id in ((topic, id) for topic, documents in relevant.items() for id in documents):
        written[topic, leaning[id]].append(id)
    for ((topic, side), own), number in product(sorted(written.items()), range(EACH)):
        random = Random(f"{SEED}/{topic}/{side}/{number}")
        if len(own) > PROFILE // 2:
            article, *about = random.sample(own, PROFILE // 2 + 1)
            others = [id for (on, of), ids in written.items() if of == side and on != topic for id in ids]
            profile = random.sample([*about, *random.sample(others, PROFILE // 2)], PROFILE)
            ask = f"Find a headline for this article: {texts[article]['text']}"
            yield f"{topic}-{side}-{number}", ask, items(texts, profile, "text"), texts[article]["title"]


def write(folder: Path) -> None:
    """Both data sets, in a folder each, as LaMP's two files."""
    for task, made in (("LaMP_1", lamp_1()), ("LaMP_4", lamp_4())):
        each, below = list(made), folder / task.lower()
        below.mkdir(parents=True, exist_ok=True)
        questions = [{"id": id, "input": ask, "profile": profile} for id, ask, profile, _ in each]
        golds = {"task": task, "golds": [{"id": id, "output": output} for id, *_, output in each]}
        for name, content in (("questions", questions), ("outputs", golds)):
            (below / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


# --- the answers


@lru_cache(maxsize=100_000)
def likeness(text: str, other: str) -> float:
    """The cosine of two texts as sets of words of four letters and more."""
    one, two = ({word for word in words(of) if len(word) > 3} for of in (text, other))
    return len(one & two) / ((len(one) * len(two)) ** 0.5 or 1.0)


def extract(question: str, titles: Sequence[str]) -> str:
    """The answer to a question of LaMP-1 or LaMP-4 from the titles of its items.

    >>> asked = 'An author wrote the paper "Lift". Which of these does it cite? [1]: "Heat flow" [2]: "Shock waves"'
    >>> extract(asked, []), extract(asked, ["waves behind a blunt body"])
    ('[1]', '[2]')
    >>> extract("... for this article: It was cold , the senate voted on taxes .", ["Senate says no to taxes"])
    'the senate voted on taxes .'
    """
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
    if not SHARED.is_dir():
        sys.exit(f"the collections that LaMP's questions are made of are not at {SHARED}")
    write(PROJECT / LAMP)
    for file in sorted((HERE / "small").glob("fair_rag_*.yaml")):
        app(["labels", str(file)], standalone_mode=False)


if __name__ == "__main__":
    main(sys.argv[1:])
