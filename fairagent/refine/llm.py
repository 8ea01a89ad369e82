"""Refinement by a language model: it names words for the under-exposed group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairagent.llm import Model
from fairagent.llm.base import Message
from fairagent.prompts import Prompts
from fairagent.refine.asking import PROMPTS, AskingRefiner, shown
from fairagent.refine.base import RefineState


@dataclass(frozen=True, slots=True)
class LlmRefiner(AskingRefiner):
    """Asks `model` for keywords with the template `refine_query`; `AskingRefiner` says what becomes of them."""

    kind: ClassVar[str] = "llm"

    model: Model
    prompts: Prompts
    keyword_weight: float = 1.0
    drift: float = 0.3

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """What the model is asked."""
        return self.prompts.render(PROMPTS[self.kind], **shown(state))
