"""Labeling items: a call for each, with what was paid for kept.

A label is a generator's own. The file is added to label by label, and each is forced to the disk, so that whatever ends
the work takes away nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.collection.faults import listed
from fairagent.collection.lamp import Item, Lamp, LampQuestion
from fairagent.errors import DataError
from fairagent.evaluate.engine.kind import Record
from fairagent.evaluate.engine.workers import Workers
from fairagent.evaluate.kinds.fair_rag.labels import FEWEST, FORMAT, Key, Label, Labels, head_line, read_lines, to_line
from fairagent.evaluate.kinds.fair_rag.lamp_asking import NO_ANSWER, TOKENS, answer_from, messages_for
from fairagent.files import locked
from fairagent.lines import LineFile
from fairagent.llm import Model
from fairagent.llm.request import estimate_tokens
from fairagent.measures.answers import StringUtility
from fairagent.prompts import Prompts
from fairagent.prompts.calls import Calls
from fairagent.settings import ModelSettings


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
        """What answers are measured by."""
        return self.lamp.task.label_utility

    @property
    def made_from(self) -> Record:
        """Everything that a label depends on, as plain values in which the change of a single one can be named."""
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
        """What the labels that are not in the file yet will take, of the model with these settings, at most.

        Attempts that are repeated come on top. Raises what `read` raises of a damaged file or of other labels.
        """
        missing = list(self._missing(read_lines(path, self.made_from, self.utility.upper)))
        read = sum(
            estimate_tokens(*(text for _, text in messages_for(self.prompts, question, items, self.tokens)))
            for question, items in missing
        )
        longest = self.prompts[self.lamp.task.prompt].longest_reply(settings.max_tokens)
        return Calls(settings, len(missing), read, len(missing) * longest)

    def make(self, path: Path, model: Model, workers: Workers) -> Labels:
        """Label all items of all questions, one call each and one for each question without items; file them.

        Those in the file already are not asked for again; one process at a time works in its folder. Raises DataError
        where the file holds labels of something else, naming the difference; and, with all that was paid for kept,
        what `answer_from` raises, BudgetExceeded where the budget ends, BackendUnavailable where the disk is full.
        """
        with locked(path.parent):
            kept = read_lines(path, self.made_from, self.utility.upper)
            with LineFile(path) as file:
                if not path.stat().st_size:
                    file.write(head_line(self.made_from))

                def keep(label: Label) -> None:
                    file.write(to_line(label))
                    kept[label.question, label.item] = label

                workers.for_each(((self._label, (model, *missing)) for missing in self._missing(kept)), keep)
        return self._labels(kept, path)

    def read(self, path: Path) -> Labels:
        """The labels of all items of all questions.

        Raises DataError where some are missing, where a line is no label, where the file holds labels of something
        else, naming the difference, and where no question is left.
        """
        labels = self._labels(read_lines(path, self.made_from, self.utility.upper), path)
        if not labels.kept:
            raise DataError(f"{path}: no question has {FEWEST} useful items, so there is nothing to measure")
        return labels

    def _label(self, model: Model, question: LampQuestion, items: tuple[Item, ...]) -> Label:
        answer = answer_from(model, self.prompts, question, items, self.tokens)
        item = items[0].id if items else None
        return Label(question.id, item, self.utility(answer.text, [question.gold]), answer.text, answer.notes)

    def _missing(self, kept: Mapping[Key, Label]) -> Iterator[tuple[LampQuestion, tuple[Item, ...]]]:
        """What has to be asked yet: a question and one item of it, or none."""
        for question in self.lamp.questions:
            for items in ((), *((item,) for item in question.items)):
                if (question.id, items[0].id if items else None) not in kept:
                    yield question, items

    def _labels(self, kept: Mapping[Key, Label], path: Path) -> Labels:
        missing = [f"{question.id}/{items[0].id if items else '-'}" for question, items in self._missing(kept)]
        if missing:
            raise DataError(
                f"{path}: {len(missing):,} utility labels are missing (question/item: {listed(missing, most=5)}); "
                "have them made before they are used"
            )
        sign = -1.0 if self.utility.lower_is_better else 1.0
        base = {question.id: kept[question.id, None].utility for question in self.lamp.questions}
        gains = {
            question.id: sign
            * np.array([kept[question.id, item.id].utility - base[question.id] for item in question.items], dtype=float)
            for question in self.lamp.questions
        }
        mine = (kept[id, item] for id, item in kept if id in base)
        unanswered = sum(any(note.startswith(NO_ANSWER) for note in label.notes) for label in mine)
        return Labels(gains, base, unanswered)
