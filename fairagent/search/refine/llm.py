"""Refinement by a language model that names words for the under-exposed group, shown its own documents' or not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import Field

from fairagent.llm import Model
from fairagent.llm.prompts import STAND_IN
from fairagent.llm.request import Message
from fairagent.retrieve.base import TextSource
from fairagent.retrieve.bm25.part import prepare_words, words_at_hand, words_of
from fairagent.retrieve.site import Site
from fairagent.search.refine.asking import AskingConfig, AskingRefiner, template_variables
from fairagent.search.refine.feedback import FeedbackRefiner, RefineState
from fairagent.settings import Settings
from fairagent.settings.parts import Progress
from fairagent.types.clean import visible

MOST_TITLES = 10
LONGEST_TITLE = 120
"""Characters of a title that the model sees."""


@dataclass(frozen=True, slots=True)
class GroundedRefiner(AskingRefiner):
    """Asks `model` with the template `refine_query_grounded`, which shows what `feedback` reads.

    The model sees the words that set the group's documents apart, with how many documents hold them, and the titles of
    the first of these documents (where the engine keeps texts). It chooses among the words and may add its own.
    `AskingRefiner` says what becomes of them.
    """

    kind: ClassVar[str] = "grounded"
    template: ClassVar[str] = "refine_query_grounded"
    feedback: FeedbackRefiner = field(kw_only=True)

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """The prompt; with no words and titles where the list holds no document of the group."""
        read = self.feedback.read(state)
        words = [{"word": visible(one.text), "of_group": one.in_group, "of_all": one.in_list} for one in read.words]
        counts = {"of_group": len(read.documents), "of_list": len(state.ranking)}
        titles = self._titles(read.documents)
        return self.prompts.render(self.template, **template_variables(state), words=words, titles=titles, **counts)

    def _titles(self, ids: tuple[str, ...]) -> list[str]:
        texts = self.feedback.source
        if not isinstance(texts, TextSource):
            return []
        titles = (" ".join(visible(texts.document(id).title).split()) for id in ids[:MOST_TITLES])
        return [title[:LONGEST_TITLE] for title in titles if title]


class GroundedConfig(AskingConfig):
    """A language model proposes keywords, shown those that the group's documents have."""

    template: ClassVar[str] = GroundedRefiner.template
    kind: Literal["grounded"] = "grounded"
    documents: int = Field(50, ge=1)
    """How many of the group's documents are read."""
    terms: int = Field(20, ge=1)
    """How many of their words the model is shown."""

    def evidence(self, settings: Settings) -> Mapping[str, object]:
        """All words and titles."""
        words = [{"word": STAND_IN, "of_group": 10, "of_all": 100}] * self.terms
        titles = [f"{STAND_IN} {STAND_IN} {STAND_IN}"] * MOST_TITLES
        return {"words": words, "titles": titles, "of_group": self.documents, "of_list": settings.depth}

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index whose terms it reads, unless the engine is a guest with terms of its own."""
        prepare_words(site, progress)

    def asking(self, model: Model, site: Site) -> GroundedRefiner:
        """The refiner, asking `model`."""
        words, limits = words_of(site), (self.keyword_weight, self.drift, self.on_error)
        feedback = FeedbackRefiner(words, self.documents, self.terms)
        return GroundedRefiner(model, site.prompts, *limits, FeedbackRefiner(words), feedback=feedback)


@dataclass(frozen=True, slots=True)
class LlmRefiner(AskingRefiner):
    """Asks `model` for keywords with the template `refine_query`; `AskingRefiner` says what becomes of them."""

    kind: ClassVar[str] = "llm"
    template: ClassVar[str] = "refine_query"

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """The prompt."""
        return self.prompts.render(self.template, **template_variables(state))


class LlmConfig(AskingConfig):
    """A language model proposes keywords."""

    template: ClassVar[str] = LlmRefiner.template
    kind: Literal["llm"] = "llm"

    def asking(self, model: Model, site: Site) -> LlmRefiner:
        """The refiner, asking `model`."""
        words = words_at_hand(site)
        feedback = FeedbackRefiner(words) if words else None
        return LlmRefiner(model, site.prompts, self.keyword_weight, self.drift, self.on_error, feedback)


REFINERS: Mapping[str, type[LlmConfig] | type[GroundedConfig]] = {
    LlmConfig.template: LlmConfig,
    GroundedConfig.template: GroundedConfig,
}
"""Template's id -> the part that asks with it."""


def refining_part(template: str, settings: Settings) -> LlmConfig | GroundedConfig:
    """The part that asks with `template`: the settings' own, if it does."""
    part, chosen = REFINERS[template], settings.refine
    return chosen if isinstance(chosen, part) else part()
