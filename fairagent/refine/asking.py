"""Refiners that ask a language model: what the model is shown, and how its reply is used."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from fairagent.errors import ReplyError, ReplyInvalid, ReplyRefused
from fairagent.llm import Model, ModelRequest, ask
from fairagent.llm.clean import query_shown, visible
from fairagent.llm.request import Message
from fairagent.prompts import Prompts
from fairagent.prompts.calls import STAND_IN, Calls, Case
from fairagent.refine.keywords import MOST_KEYWORDS, REPLIES, Sifted, sift, words_of
from fairagent.refine.refiner import RefineState
from fairagent.settings import Part, Settings
from fairagent.types import Refinement, Term

MOST_SHOWN = 20
"""Topic words of the current query that the model sees, the heaviest first."""


def template_variables(state: RefineState) -> dict[str, object]:
    """What every refining template is filled with."""
    exposure = state.exposure
    place = exposure.labels.index(state.group.label)
    of_topic = [term for term in state.current.terms if term.text not in state.tried]
    heaviest = sorted(of_topic, key=lambda term: -term.weight)[:MOST_SHOWN]
    return {
        "query": query_shown(state.query.text),
        "dimension": visible(state.group.dimension),
        "group": visible(state.group.label),
        "share": f"{exposure.shares[place]:.1%}",
        "target": f"{exposure.target[place]:.1%}",
        "keywords": [visible(term.text) for term in heaviest],
        "tried": sorted(visible(word) for word in state.tried),
    }


class AskingRefiner(ABC):
    """A refiner that asks `model`, with the template of its `kind`; its fields are those below and its own.

    Each accepted keyword weighs `keyword_weight`, a word of the user's query being 1; all together weigh at most
    `drift` times the user's query, so that a talkative model cannot outvote the user. Keywords are added to the query
    and never take the place of the user's words, so that a model cannot lead the search away from its topic.
    """

    __slots__ = ()

    kind: ClassVar[str]
    template: ClassVar[str]
    model: Model
    prompts: Prompts
    keyword_weight: float
    drift: float

    @abstractmethod
    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """What the model is asked."""

    def refine(self, state: RefineState) -> Refinement:
        """New keywords for `state.group`; none, and why, where the model declines or says nothing usable.

        Raises what else `Model.complete` raises: TransientModelError (given up), FatalModelError, BudgetExceeded.
        """
        head = self.prompts[self.template].head
        request = ModelRequest(self.messages(state), max_tokens=head.max_tokens)
        try:
            reply, usage = ask(self.model, request, REPLIES[head.reply])
        except ReplyError as error:
            return Refinement((), self.kind, f"{_kind(error)}: {error}", error.usage)
        # A topic word of little weight may be named again, which raises its weight; what was added in full may not.
        known = [term.text for term in state.current.terms if term.weight >= self.keyword_weight]
        found = sift(reply.keywords, state.query.text, [*state.tried, *known])
        each = weight_of_each(self.keyword_weight, self.drift, state.query.text, len(found.kept))
        terms = tuple(Term(word, each) for word in found.kept)
        known_already = tuple(f"{word}: nothing new" for word in found.repeated)
        return Refinement(terms, self.kind, _note(reply.keywords, found), usage, found.refused + known_already)


def weight_of_each(weight: float, drift: float, query: str, keywords: int) -> float:
    """The weight of each of so many keywords: `weight`, or less where together they would outweigh the query.

    >>> weight_of_each(1.0, 2.0, "famous lawyers", 3), weight_of_each(1.0, 2.0, "famous lawyers", 8)
    (1.0, 0.5)
    """
    size = max(len(words_of(query)), 1)
    return min(weight, drift * size / max(keywords, 1))


def _note(proposed: Sequence[str], found: Sifted) -> str:
    """Why there is no keyword; "" where there is one."""
    if found.kept:
        return ""
    if found.repeated:
        return f"repeated: none of the model's {len(proposed)} keywords is new"
    return f"none of the model's {len(proposed)} keywords is usable" if proposed else "the model proposes no keyword"


def _kind(error: ReplyError) -> str:
    if isinstance(error, ReplyRefused):
        return "refused"
    return "invalid reply" if isinstance(error, ReplyInvalid) else "truncated reply"


class AskingConfig(Part):
    """A refiner that asks a model, as settings describe it."""

    of_groups: ClassVar[bool] = True
    keyword_weight: float = Field(1.0, gt=0)
    """The weight of one proposed keyword, a word of the user's query being 1."""
    drift: float = Field(0.3, gt=0)
    """The most that the keywords of one refinement weigh together, the user's query being 1."""

    def evidence(self, settings: Settings) -> Mapping[str, object]:
        """The longest that the template is shown besides the loop's state."""
        return {}

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """A call for each refinement of each query, all keywords of those before it shown."""
        settings, (id,) = case.settings, self.templates
        label, dimension = case.group
        read = sum(
            case.tokens(
                id,
                query=query,
                dimension=dimension,
                group=label,
                share="10.0%",
                target="50.0%",
                keywords=[STAND_IN] * MOST_SHOWN,
                tried=[STAND_IN] * (MOST_KEYWORDS * iteration),
                **self.evidence(settings),
            )
            for query in case.queries
            for iteration in range(settings.iterations)
        )
        yield case.counted(id, len(case.queries) * settings.iterations, read)
