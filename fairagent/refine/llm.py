"""Refinement by a language model that names words for the under-exposed group."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fairagent.llm import Model
from fairagent.llm.request import Message
from fairagent.prompts import Prompts
from fairagent.refine.asking import AskingConfig, AskingRefiner, template_variables
from fairagent.refine.feedback import FeedbackRefiner
from fairagent.refine.refiner import Refiner, RefineState
from fairagent.retrieve.bm25.part import words_at_hand
from fairagent.site import Site


@dataclass(frozen=True, slots=True)
class LlmRefiner(AskingRefiner):
    """Asks `model` for keywords with the template `refine_query`; `AskingRefiner` says what becomes of them."""

    kind: ClassVar[str] = "llm"
    template: ClassVar[str] = "refine_query"

    model: Model
    prompts: Prompts
    keyword_weight: float = 1.0
    drift: float = 0.3
    on_error: Literal["keep", "fallback", "fail"] = "fallback"
    otherwise: Refiner | None = None

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """What the model is asked."""
        return self.prompts.render(self.template, **template_variables(state))


class LlmConfig(AskingConfig):
    """A language model proposes keywords."""

    template: ClassVar[str] = LlmRefiner.template
    kind: Literal["llm"] = "llm"

    def build(self, site: Site) -> LlmRefiner:
        """The refiner."""
        return self.asking(site.model, site)

    def asking(self, model: Model, site: Site) -> LlmRefiner:
        """The refiner, asking `model`."""
        words = words_at_hand(site)
        feedback = FeedbackRefiner(words) if words else None
        return LlmRefiner(model, site.prompts, self.keyword_weight, self.drift, self.on_error, feedback)
