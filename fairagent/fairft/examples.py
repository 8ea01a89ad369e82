"""Training examples: questions with their fair answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.leakage import text_key
from fairagent.collection.records import Record, checked_id, json_records, read_text
from fairagent.errors import UsageError

Format = Literal["questions", "recognition"]

OPENING = 29
"""Characters at the beginning of TrustLLM's prompts ("You are a helpful assistant. ") that are not searched for."""

OPTIONS: Mapping[str, str] = {
    "stereotype": "1. Yes, it's a stereotype",
    "anti-stereotype": "2. No, it's an anti-stereotype",
    "unrelated": "3. It's unrelated and meaningless",
}
"""Label -> the sentence of its option in TrustLLM's prompts."""


@dataclass(frozen=True, slots=True)
class Example:
    """One question: what is searched for and asked, and the answer that a fair model gives.

    `sentences` are the texts that it is about: where one of them stands in a test set, the question leaks.
    """

    id: str
    query: str
    answer: str
    sentences: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """What must not be in a test set: the query and the sentences."""
        return (self.query, *self.sentences)


def read_examples(path: Path, format: Format = "questions") -> tuple[Example, ...]:
    """The examples of a file (JSON lines), in order; DataError with every fault.

    questions: `id`, `query`, `answer`. recognition: TrustLLM's stereotype recognition, with `prompt`, `label`,
    `sentence` and `context`; the id is q and the line, the query the prompt without its first 29 characters, the answer
    the option that the label stands for. Other fields are ignored.
    """
    faults = Faults()
    examples: dict[str, Example] = {}
    for number, record in json_records(path, faults):
        try:
            example = READERS[format](number, record)
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        if example.id in examples:
            faults.add(path, number, f"the id {shown(example.id)} occurs twice")
        examples[example.id] = example
    if not examples and not faults:
        faults.add(path, None, "holds no question")
    faults.check(f"questions for FairFT ({format})")
    return tuple(examples.values())


def split(examples: Sequence[Example], share: float, seed: int) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Training and held-out examples: a `share` (0 to 1) of them is held out by chance, at least one.

    Examples for training that have a text in common with a held-out one are left out. UsageError where none is left.
    """
    count = max(round(share * len(examples)), 1)
    held = set(np.random.default_rng(seed).permutation(len(examples))[:count].tolist())
    known = {text_key(text) for place in held for text in examples[place].texts} - {b""}
    training = tuple(
        example
        for place, example in enumerate(examples)
        if place not in held and not known.intersection(map(text_key, example.texts))
    )
    if not training:
        raise UsageError(f"of {len(examples)} examples none is left for training; hold out fewer, or give more")
    return training, tuple(examples[place] for place in sorted(held))


def _question(number: int, record: Record) -> Example:
    id = checked_id(read_text(record, "id"), "question")
    return Example(id, _filled(record, "query"), _filled(record, "answer"))


def _recognition(number: int, record: Record) -> Example:
    prompt, label = _filled(record, "prompt"), read_text(record, "label")
    if label not in OPTIONS:
        raise ValueError(f"the label {shown(label)} is none of {listed(list(OPTIONS))}")
    sentence, context = read_text(record, "sentence"), read_text(record, "context")
    if not prompt[OPENING:].strip():
        raise ValueError(f"the prompt has nothing after its first {OPENING} characters")
    return Example(f"q{number}", prompt[OPENING:], OPTIONS[label], (sentence, f"{context} {sentence}".strip()))


READERS: Mapping[Format, Callable[[int, Record], Example]] = {"questions": _question, "recognition": _recognition}


def _filled(record: Record, name: str) -> str:
    text = read_text(record, name)
    if not text.strip():
        raise ValueError(f"field {name!r} is empty")
    return text
