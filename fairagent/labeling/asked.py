"""What a language model says of documents' groups, and how sure it is where its server tells."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairagent.answer.filtering import Page, as_data, batches, call_ids, check_ids, page_of
from fairagent.errors import BudgetExceeded, ModelError, ReplyError, ReplyInvalid, UsageError
from fairagent.llm import Model, Reply
from fairagent.llm.asking import unless_failing, valid_reply
from fairagent.llm.budget import in_threads
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import Calls, Case
from fairagent.llm.reply import one_for_each, one_of
from fairagent.types import Document, FloatArray

PROMPT = "label"
TEMPERATURE = 0.0
NEITHER = "not told, or none or several of these"
DOUBT = 0.1
"""The chance that is left to the other groups where a model names one and its server tells no chances; what it is worth
is learned from the examples."""
LEAST = 1e-4
LONGEST = 2000
"""Characters of a document that are shown: its beginning says what it is about."""
BATCH = 10
WORKERS = 8


class GroupLetter(Reply):
    """The letter of one document's group."""

    id: str
    letter: str


class GroupLetters(Reply):
    """A letter for each id once; one that was not offered is requested once more, then the document has no label."""

    labels: list[GroupLetter]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A model that is asked for the group of documents, `batch` in one call; an `Evidence`.

    Asked one by one (`batch` 1), it is as sure as the chances of the letters say, where its server tells them. A
    document that gets no usable reply, also when it is asked alone, says nothing. Replies are cached.
    """

    model: Model
    prompts: Prompts
    dimension: str
    groups: tuple[str, ...]
    texts: Mapping[str, Document]
    name: str
    batch: int = BATCH
    workers: int = WORKERS

    def __post_init__(self) -> None:
        if not 2 <= len(self.groups) < len(string.ascii_uppercase):
            raise UsageError(f"a model is asked for 2 to 25 groups, not {len(self.groups)}; make lists of words")

    @property
    def source(self) -> str:
        """See `Evidence.source`."""
        return f"model ({self.name})"

    @property
    def letters(self) -> str:
        """One a group, and the last for none."""
        return string.ascii_uppercase[: len(self.groups) + 1]

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The logarithms of the groups' chances, (n, g); zeros where the model says none of them.

        Raises FatalModelError and BudgetExceeded: what was paid for is cached.
        """
        replies = in_threads(self._chances, self._batches(ids), self.workers, "label")
        chances_of = [one for some in replies for one in some]
        usable = np.array([one is not None for one in chances_of], np.bool_)
        rows = np.zeros((len(ids), len(self.groups)))
        for place, chances in enumerate(chances_of):
            if chances is not None:
                rows[place] = np.log(np.maximum(chances, LEAST))
        return rows, usable

    def calls(self, case: Case, ids: Sequence[str]) -> Calls:
        """At most so many calls as labeling these documents takes, corrections aside."""
        some = list(self._batches(ids))
        read = sum(
            case.tokens(PROMPT, **self._variables(call_ids(PROMPT, self.groups, pages), pages)) for pages in some
        )
        return case.counted(PROMPT, len(some), read)

    def _batches(self, ids: Sequence[str]) -> Iterator[tuple[Page, ...]]:
        pages = (page_of(self.texts[id]) for id in ids)
        return batches([replace(page, text=page.text[:LONGEST]) for page in pages], self.batch)

    def _variables(self, ids: Sequence[str], pages: Sequence[Page]) -> dict[str, object]:
        named = zip(self.letters, (*self.groups, NEITHER), strict=True)
        groups = [{"letter": letter, "group": group} for letter, group in named]
        return {"dimension": self.dimension, "groups": groups, "documents": as_data(ids, pages)}

    def _chances(self, pages: Sequence[Page]) -> list[FloatArray | None]:
        """Of each page the chances of the groups, (g,); None where it is of none, or nothing usable is said."""
        ids, letters = call_ids(PROMPT, self.groups, pages), self.letters

        def accept(reply: GroupLetters) -> None:
            check_ids(ids, [one.id for one in reply.labels])
            if strange := next((one.letter for one in reply.labels if one.letter not in tuple(letters)), None):
                raise ReplyInvalid(f"{strange[:20]!r} is no letter of a group; there are: {', '.join(letters)}")

        def ask_model() -> list[FloatArray | None]:
            schema = one_for_each(GroupLetter, "id", ids, letter=one_of(tuple(letters)))
            variables = self._variables(ids, pages)
            request = self.prompts.request(PROMPT, variables, TEMPERATURE, accept, {"labels": schema})
            choices = letters if len(pages) == 1 else ""
            reply, answer = valid_reply(self.model, replace(request, reply=GroupLetters, choices=choices))
            if answer.chances:
                return [self._by_chances(dict(answer.chances))]
            return [self._by_letter(one.letter) for one in reply.labels]

        def otherwise(error: ModelError | BudgetExceeded) -> list[FloatArray | None]:
            if isinstance(error, ReplyError) and len(pages) > 1:
                # One text that makes the model decline must not cost its neighbors their labels.
                return [one for page in pages for one in self._chances([page])]
            return [None] * len(pages)

        return unless_failing(ask_model, "keep", otherwise)

    def _by_letter(self, letter: str) -> FloatArray | None:
        place = self.letters.index(letter)
        if place == len(self.groups):
            return None
        chances = np.full(len(self.groups), DOUBT / (len(self.groups) - 1))
        chances[place] = 1.0 - DOUBT
        return chances

    def _by_chances(self, chances: Mapping[str, float]) -> FloatArray | None:
        *of_groups, none = (chances[letter] for letter in self.letters)
        total = math.fsum(of_groups)
        return None if none >= total else np.array(of_groups) / total
