"""Utility labels: which items of a profile make a generator's answer better.

u_j - u_base is the utility of the answer from item j alone, less that of the answer without any item; an item is useful
where that is above 0. Labels are a generator's own. They are stored in a file, a line each, whose first line says what
they are made from; each is forced to the disk, so that whatever ends the work takes away nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.records import listed, shown
from fairagent.errors import DataError, Fault
from fairagent.evaluate.fingerprint import changes
from fairagent.evaluate.kind import JsonObject
from fairagent.evaluate.workers import Workers
from fairagent.llm import Model
from fairagent.llm.prompts import Calls, Prompts
from fairagent.llm.request import estimate_tokens
from fairagent.measures.answers import StringUtility
from fairagent.papers.fair_rag.lamp import NO_ANSWER, TOKENS, Item, Lamp, LampQuestion, answer_from, messages_for
from fairagent.settings import ModelSettings
from fairagent.storage.files import LineFile, locked, unsealed, whole_lines
from fairagent.storage.readers import parse_json
from fairagent.types import FloatArray

Key = tuple[str, str | None]
"""What a label is of: a question and one of its items, or none."""

FORMAT = 2
"""Of the file and of how a prompt is made; labels of another one are not read."""
FEWEST = 2
"""So many useful items a question needs to be part of the experiment."""


@dataclass(frozen=True, slots=True)
class Label:
    """The `utility` of the answer to one question from one item; `item` None: from none."""

    question: str
    item: str | None
    utility: float
    answer: str
    notes: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Labels:
    """What the items of each question are worth: question id -> u_j - u_base (n,), in the order of its items.

    With a utility of which less is better, u_base - u_j. `base` is u_base; `unanswered` counts the answers that a model
    did not give.
    """

    gains: Mapping[str, FloatArray]
    base: Mapping[str, float]
    unanswered: int = 0

    def useful(self, question: str) -> NDArray[np.bool_]:
        """Which items of the question are useful, (n,)."""
        return self.gains[question] > 0

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The questions with at least 2 useful items, in their order."""
        return tuple(id for id in self.gains if self.useful(id).sum() >= FEWEST)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many questions are left out, and how many answers a model did not give."""
        left = len(self.gains) - len(self.counted)
        notes = [f"{left:,} of {len(self.gains):,} questions have fewer than {FEWEST} useful items and are left out"]
        if self.unanswered:
            notes.append(f"{self.unanswered:,} answers were not given (declined or empty) and count as empty")
        return tuple(notes[not left :])


def read_lines(path: Path, made_from: JsonObject, upper: float) -> dict[Key, Label]:
    """The labels in the file by question and item; none where there is no file. A torn last line is ignored.

    Raises DataError where a line is no label with a utility in [0, `upper`], and where the first line names something
    else than `made_from`.
    """
    head, *lines = list(whole_lines(path)) or [b""]
    if not head:
        return {}
    try:
        before = parse_json(unsealed(head).decode())["made_from"]
        different = changes({"systems": {}, **before}, {"systems": {}, **made_from})
    except (ValueError, KeyError, TypeError) as error:
        different = [f"says not what they are made from ({error}): {shown(head)}"]
    if different:
        raise DataError(
            f"{path}: these utility labels were made from something else; name another file to have others made",
            [Fault(path, 1, change) for change in different],
        )
    labels: dict[Key, Label] = {}
    faults: list[Fault] = []
    for number, line in enumerate(lines, start=2):
        try:
            label = Label(**parse_json(unsealed(line).decode()))
            if not isinstance(label.question, str) or not 0 <= label.utility <= upper:
                raise ValueError(f"the utility of {shown(label.question)} is not from 0 to {upper:g}")
        except (ValueError, TypeError) as error:
            faults.append(Fault(path, number, f"no label ({error})"))
        else:
            labels[label.question, label.item] = label
    if faults:
        raise DataError("utility labels are damaged; remove these lines to have them made again", faults)
    return labels


@dataclass(frozen=True)
class Labeling:
    """What labels are made from: the questions, the templates, and the `generator` as its settings describe it.

    `tokens` is the longest prompt. Which questions of the file are taken is no part of it: labels made for few of them
    go on to be those of many.
    """

    lamp: Lamp
    prompts: Prompts
    generator: Mapping[str, Any]
    tokens: int = TOKENS

    @cached_property
    def utility(self) -> StringUtility:
        return self.lamp.task.label_utility

    @property
    def made_from(self) -> JsonObject:
        """Everything that a label depends on."""
        task = self.lamp.task
        return {
            "format": FORMAT,
            "task": task.name,
            "data": self.lamp.sha256,
            "utility": self.utility.name,
            "tokens": self.tokens,
            "prompt": self.prompts[task.prompt].sha256,
            "generator": dict(self.generator),
        }

    def estimate(self, path: Path, settings: ModelSettings) -> Calls:
        """What the labels that are not in the file yet will take at most; raises what `read_lines` raises."""
        missing = list(self._missing(read_lines(path, self.made_from, self.utility.upper)))
        read = sum(
            estimate_tokens(*(text for _, text in messages_for(self.prompts, question, items, self.tokens)))
            for question, items in missing
        )
        longest = self.prompts[self.lamp.task.prompt].longest_reply(settings.max_tokens)
        return Calls(settings, len(missing), read, len(missing) * longest)

    def make(self, path: Path, model: Model, workers: Workers) -> Labels:
        """Label all items of all questions, one call each and one for each question without items; file them.

        Those in the file already are not made again; one process at a time works in its folder. Raises what
        `read_lines` and `answer_from` raise, BudgetExceeded where the budget ends: all that was paid for is stored.
        """
        with locked(path.parent):
            labels = read_lines(path, self.made_from, self.utility.upper)
            with LineFile(path) as file:
                if not path.stat().st_size:
                    file.write(json.dumps({"made_from": self.made_from}))

                def store(label: Label) -> None:
                    file.write(json.dumps(asdict(label)))
                    labels[label.question, label.item] = label

                workers.for_each(((self._label, (model, *missing)) for missing in self._missing(labels)), store)
        return self._labels(labels, path)

    def read(self, path: Path) -> Labels:
        """The labels of all items of all questions; DataError where some are missing, or no question is left."""
        labels = self._labels(read_lines(path, self.made_from, self.utility.upper), path)
        if not labels.counted:
            raise DataError(f"{path}: no question has {FEWEST} useful items, so there is nothing to measure")
        return labels

    def _label(self, model: Model, question: LampQuestion, items: tuple[Item, ...]) -> Label:
        answer = answer_from(model, self.prompts, question, items, self.tokens)
        item = items[0].id if items else None
        return Label(question.id, item, self.utility(answer.text, question.golds), answer.text, answer.notes)

    def _missing(self, labels: Mapping[Key, Label]) -> Iterator[tuple[LampQuestion, tuple[Item, ...]]]:
        """What has no label yet: a question and one item of it, or none."""
        for question in self.lamp.questions:
            for items in ((), *((item,) for item in question.items)):
                if (question.id, items[0].id if items else None) not in labels:
                    yield question, items

    def _labels(self, labels: Mapping[Key, Label], path: Path) -> Labels:
        missing = [f"{question.id}/{items[0].id if items else '-'}" for question, items in self._missing(labels)]
        if missing:
            raise DataError(
                f"{path}: {len(missing):,} utility labels are missing (question/item: {listed(missing, most=5)}); "
                "have them made before they are used"
            )
        sign = -1.0 if self.utility.lower_is_better else 1.0
        base = {question.id: labels[question.id, None].utility for question in self.lamp.questions}
        gains = {
            question.id: sign
            * np.array(
                [labels[question.id, item.id].utility - base[question.id] for item in question.items], dtype=float
            )
            for question in self.lamp.questions
        }
        mine = (labels[id, item] for id, item in labels if id in base)
        unanswered = sum(any(note.startswith(NO_ANSWER) for note in label.notes) for label in mine)
        return Labels(gains, base, unanswered)
