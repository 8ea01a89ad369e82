"""Refiners that ask a language model: what the model is shown, and how its reply is used.

Keywords proposed by a model: the reply's format, and validation of each keyword.
"""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid, ReplyRefused, ReplyTruncated
from fairagent.llm import Model, ModelRequest, Reply, ask
from fairagent.llm.asking import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import STAND_IN, Calls, Case
from fairagent.llm.reply import list_within, text_like, text_within
from fairagent.llm.request import Message
from fairagent.search.refine.feedback import Refiner, RefineState
from fairagent.settings import Part, Settings
from fairagent.types import Refinement, Term
from fairagent.types.clean import query_shown, visible

MOST_KEYWORDS = 12
LONGEST_KEYWORD = 80
LONGEST_PLAN = 1000
"""Characters of the thoughts before keywords, where a server holds bounds."""
SHOWN_OF_REFUSED = 40
"""Characters of a refused keyword that are kept for the trace."""

_ADDRESS = re.compile(r"://|@|\bwww\.|\w\.[a-z]{2,}\b", re.IGNORECASE)
_OPERATOR = re.compile(r'["^~*?:\\|<>(){}\[\]]|&&|(?:^|\s)[-+!]|\b(?:AND|OR|NOT)\b')
_WORD = re.compile(r"\w+")


# Of any script: what is excluded are marks at the beginning (so no dots of a pattern), operators of queries, and what
# ends a JSON string.
KEYWORD = r"^[^ -/:-@\[-`{-~\x00-\x1F][^\"\\^~*?:|<>(){}\[\]\x00-\x1F]{0,39}$"
"""The regular expression of a keyword, for servers that hold bounds: one to forty characters."""

Proposed = Annotated[str, text_like(KEYWORD, 40)]


class Keywords(Reply):
    """The reply of the prompts that refine a query."""

    keywords: Annotated[list[Proposed], list_within(MOST_KEYWORDS)]


class _Reasoned(Reply):
    reasoning: Annotated[str, text_within(LONGEST_PLAN)]


# In this order of bases the reasoning comes first, so that a server that enforces the form makes the model think first.
class ReasonedKeywords(Keywords, _Reasoned):
    """Keywords after the thoughts that led to them, which are not looked at."""


REPLIES: dict[str, type[Keywords]] = {kind.__name__: kind for kind in (Keywords, ReasonedKeywords)}
"""The replies that a refining template may ask for, by the name in its head."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """Proposed keywords: those that are fit to be searched for, in their order, and the others with the reason.

    `refused` are what no keyword may be, `repeated` those that are known already.
    """

    kept: tuple[str, ...]
    repeated: tuple[str, ...]
    refused: tuple[str, ...]


def sift(proposed: Sequence[str], query: str, known: Iterable[str]) -> Sifted:
    """The proposed keywords that are fit to be searched for and new, at most 12.

    Zero-width, bidirectional and control characters are taken out, white space is made single, quotes around a keyword
    are dropped. Refused are: several lines; more than 80 characters; web and mail addresses; query operators; and what
    comes after the 12th. Repeated are the `known` ones (case does not count) and those that only repeat words of
    `query`. What is empty or comes twice is left out without a word.

    >>> sifted = sift(["Barrister", "barrister", "lawyers", "see x.org", "a OR b", "judge"], "lawyers", ["Judge"])
    >>> sifted.kept, sifted.repeated
    (('Barrister',), ('lawyers', 'judge'))
    >>> sifted.refused
    ('see x.org: an address', 'a OR b: a query operator')
    """
    query_words = words_of(query)
    taken = {_key(word) for word in known}
    seen: set[str] = set()
    kept: list[str] = []
    repeated: list[str] = []
    refused: list[str] = []
    for raw in proposed:
        keyword = visible(unicodedata.normalize("NFKC", raw)).strip().strip("\"'“”‘’`").strip()
        key = _key(keyword)
        if key in seen or not words_of(keyword):
            continue
        seen.add(key)
        if fault := _fault(keyword):
            refused.append(f"{_shown(keyword)}: {fault}")
        elif key in taken or words_of(keyword) <= query_words:
            repeated.append(_shown(keyword))
        elif len(kept) == MOST_KEYWORDS:
            refused.append(f"{_shown(keyword)}: more than {MOST_KEYWORDS} keywords")
        else:
            kept.append(" ".join(keyword.split()))
    if len(refused) > MOST_KEYWORDS:
        refused[MOST_KEYWORDS:] = [f"and {len(refused) - MOST_KEYWORDS} more"]
    return Sifted(tuple(kept), tuple(repeated[:MOST_KEYWORDS]), tuple(refused))


def words_of(text: str) -> frozenset[str]:
    """The distinct words of a text, in one writing."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _fault(keyword: str) -> str:
    """Why this is no keyword; "" where it is one."""
    if len(keyword.splitlines()) > 1:
        return "several lines"
    if len(keyword) > LONGEST_KEYWORD:
        return f"longer than {LONGEST_KEYWORD} characters"
    if _ADDRESS.search(keyword):
        return "an address"
    return "a query operator" if _OPERATOR.search(keyword) else ""


def _shown(keyword: str) -> str:
    line = " ".join(keyword.split())
    return line if len(line) <= SHOWN_OF_REFUSED else f"{line[:SHOWN_OF_REFUSED]} ..."


def _key(keyword: str) -> str:
    return " ".join(keyword.casefold().split())


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

    `on_error` says what is done where the model gives no usable reply: "keep" the query as it is, let the refiner
    `otherwise` propose ("fallback"; without one the query is kept), or "fail".
    """

    __slots__ = ()

    kind: ClassVar[str]
    template: ClassVar[str]
    model: Model
    prompts: Prompts
    keyword_weight: float
    drift: float
    on_error: Literal["keep", "fallback", "fail"] = "fallback"
    otherwise: Refiner | None = None

    @abstractmethod
    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """What the model is asked."""

    def refine(self, state: RefineState) -> Refinement:
        """New keywords for `state.group`; none, and why, where the model knows none.

        Raises FatalModelError and BudgetExceeded, and with "fail" every ModelError.
        """

        def instead(error: ModelError | BudgetExceeded) -> Refinement:
            note = f"{_kind(error)}{error}"
            refused = error.refused if isinstance(error, _NoneUsable) else ()
            if self.on_error == "keep" or self.otherwise is None:
                return Refinement((), self.kind, note, error.usage, refused)
            found = self.otherwise.refine(state)
            notes = [f"{note}; {found.source} proposes instead of {self.kind}", *filter(None, [found.note])]
            return replace(found, note="; ".join(notes), usage=error.usage + found.usage, refused=refused)

        return unless_failing(lambda: self._asked(state), self.on_error, instead)

    def _asked(self, state: RefineState) -> Refinement:
        """What the model proposes; ReplyInvalid where it proposes something, and none of it is a keyword."""
        head = self.prompts[self.template].head
        request = ModelRequest(self.messages(state), max_tokens=head.max_tokens, prompt=self.template)
        reply, usage = ask(self.model, request, REPLIES[head.reply])
        # A topic word of little weight may be named again, which raises its weight; what was added in full may not.
        known = [term.text for term in state.current.terms if term.weight >= self.keyword_weight]
        found = sift(reply.keywords, state.query.text, [*state.tried, *known])
        each = weight_of_each(self.keyword_weight, self.drift, state.query.text, len(found.kept))
        terms = tuple(Term(word, each) for word in found.kept)
        if reply.keywords and not found.kept and not found.repeated:
            error = _NoneUsable(f"none of the model's {len(reply.keywords)} keywords is usable")
            error.usage, error.refused = usage, found.refused
            raise error
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
    return "the model proposes no keyword"


class _NoneUsable(ReplyInvalid):
    """The reply has the form that was asked for, and no keyword in it; `refused` says why."""

    refused: tuple[str, ...] = ()


def _kind(error: ModelError | BudgetExceeded) -> str:
    kinds: dict[type[Exception], str] = {
        ReplyRefused: "refused: ",
        ReplyInvalid: "invalid reply: ",
        ReplyTruncated: "truncated reply: ",
    }
    return kinds.get(type(error), "")


class AskingConfig(Part):
    """A refiner that asks a model, as settings describe it."""

    of_groups: ClassVar[bool] = True
    keyword_weight: float = Field(1.0, gt=0)
    """The weight of one proposed keyword, a word of the user's query being 1."""
    drift: float = Field(0.3, gt=0)
    """The most that the keywords of one refinement weigh together, the user's query being 1."""
    on_error: Literal["keep", "fallback", "fail"] = "fallback"
    """What is done where the model gives no usable reply. keep: the query stays as it is, and the loop ends. fallback:
    the words of the group's own documents (`refine: feedback`) take the place of the model's."""

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
