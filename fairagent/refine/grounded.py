"""Refinement by a language model that is shown the group's own documents: it chooses among their words, and adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairagent.llm import Model
from fairagent.llm.base import Message
from fairagent.llm.clean import visible
from fairagent.prompts import Prompts
from fairagent.refine.asking import PROMPTS, AskingRefiner, shown
from fairagent.refine.base import RefineState
from fairagent.refine.feedback import FeedbackRefiner
from fairagent.retrieve.base import TextSource

MOST_TITLES = 10
LONGEST_TITLE = 120
"""Characters of a title that the model sees."""


@dataclass(frozen=True, slots=True)
class GroundedRefiner(AskingRefiner):
    """Asks `model` with the template `refine_query_grounded`, which shows what `feedback` found.

    The model sees the words that set the group's documents apart, with how many documents hold them, and the titles of
    the first of these documents (where the engine keeps texts). It chooses among the words and may add its own.
    `AskingRefiner` says what becomes of them.
    """

    kind: ClassVar[str] = "grounded"

    model: Model
    prompts: Prompts
    feedback: FeedbackRefiner
    keyword_weight: float = 1.0
    drift: float = 0.3

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """What the model is asked; with no words and titles where the list holds no document of the group."""
        found = self.feedback.read(state)
        words = [
            {"word": visible(word.text), "of_group": word.in_group, "of_all": word.in_list} for word in found.words
        ]
        return self.prompts.render(
            PROMPTS[self.kind],
            **shown(state),
            words=words,
            titles=self._titles(found.documents),
            of_group=len(found.documents),
            of_list=len(state.ranking),
        )

    def _titles(self, ids: tuple[str, ...]) -> list[str]:
        texts = self.feedback.source
        if not isinstance(texts, TextSource):
            return []
        titles = (" ".join(visible(texts.document(id).title).split()) for id in ids[:MOST_TITLES])
        return [title[:LONGEST_TITLE] for title in titles if title]
