"""Refinement by a language model: it names words for the under-exposed group; here they are checked as data."""

from __future__ import annotations

from dataclasses import dataclass

from fairagent.llm import Model
from fairagent.llm.base import Message
from fairagent.prompts import Prompts
from fairagent.refine.asking import PROMPTS, ask_keywords, shown
from fairagent.refine.base import RefineState
from fairagent.types import Refinement

PROMPT = PROMPTS["llm"]


@dataclass(frozen=True, slots=True)
class LlmRefiner:
    """Asks `model` for keywords with the template `refine_query`.

    Each accepted keyword weighs `keyword_weight`, a word of the user's query being 1; all together weigh at most
    `drift` times the user's query. Keywords are added to the query and never take the place of the user's words, so
    that a model cannot lead the search away from its topic.
    """

    model: Model
    prompts: Prompts
    keyword_weight: float = 1.0
    drift: float = 0.3

    def refine(self, state: RefineState) -> Refinement:
        """New keywords for `state.group`; none, and why, where the model declines or says nothing usable.

        Raises what else `Model.complete` raises: TransientModelError (given up), FatalModelError, BudgetExceeded.
        """
        messages = self.messages(state)
        return ask_keywords(
            self.model, self.prompts[PROMPT], messages, state, self.keyword_weight, self.drift, source="llm"
        )

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """What the model is asked."""
        return self.prompts.render(PROMPT, **shown(state))
