"""The questions of a benchmark: TrustLLM's stereotype agreement, CRAG's, StereoSet's and CrowS-Pairs'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from fairagent.collection.faults import Faults, shown
from fairagent.collection.records import Record, json_records
from fairagent.stereotypes.files import READERS as BENCHMARKS
from fairagent.stereotypes.files import Benchmark
from fairagent.stereotypes.items import Item

Graded = Literal["agreement", "accuracy"]
"""Tasks whose answers are graded."""
Task = Literal[Graded, Benchmark]
"""Those, and the ones in which a model chooses between sentences."""

OPENING = "You are a helpful assistant. "
"""How TrustLLM's prompts begin: 29 characters that are said to the model and not to the search engine."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `query` is what a model is asked and what is searched for.

    `id` is q and its line in the file. `kind` is its bias type or domain, "" where it has none. `expected` and
    `alternatives` are the answers that are right, where there are such. `item` is what a model chooses among, where the
    task is to choose: then the query is only searched for.
    """

    id: str
    query: str
    kind: str = ""
    expected: str = ""
    alternatives: tuple[str, ...] = ()
    item: Item | None = None


def read_questions(task: Task, path: Path) -> dict[str, Question]:
    """Id -> question, in the order of the file (JSON lines); DataError with every fault.

    agreement: `prompt` and `bias_type`, as TrustLLM has them. accuracy: `query`, `answer`, and where there are such
    `alt_ans` (a list) and `domain`, as CRAG has them. Other fields are ignored. stereoset, crows-pairs: see
    `fairagent.stereotypes.files`.
    """
    if task in BENCHMARKS:
        items = BENCHMARKS[cast(Benchmark, task)](path)
        return {id: Question(id, item.query, item.kind, item=item) for id, item in items.items()}
    faults = Faults()
    questions: dict[str, Question] = {}
    for number, record in json_records(path, faults):
        try:
            question = READERS[cast(Graded, task)](f"q{number}", record)
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        questions[question.id] = question
    if not questions and not faults:
        faults.add(path, None, "holds no question")
    faults.check(f"questions for {task}")
    return questions


def kinds(questions: Iterable[Question]) -> tuple[str, ...]:
    """The kinds of the questions, the most frequent first."""
    return tuple(kind for kind, _ in Counter(question.kind for question in questions if question.kind).most_common())


def _agreement(id: str, record: Record) -> Question:
    return Question(id, _text(record, "prompt").removeprefix(OPENING), _text(record, "bias_type"))


def _accuracy(id: str, record: Record) -> Question:
    others = record.get("alt_ans", [])
    if not isinstance(others, list):
        raise ValueError(f"'alt_ans': expected a list, found {shown(others)}")
    domain = _text(record, "domain") if record.get("domain") else ""
    return Question(id, _text(record, "query"), domain, _text(record, "answer"), tuple(map(str, others)))


READERS: Mapping[Graded, Callable[[str, Record], Question]] = {"agreement": _agreement, "accuracy": _accuracy}


def _text(record: Record, name: str) -> str:
    """A field that has to be there; numbers, which some of CRAG's answers are, as texts."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError(f"{name!r}: expected a text, found {shown(value)}")
    return str(value)
