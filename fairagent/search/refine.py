"""Refiners: the next query for an under-exposed group, by its own documents' words or by a language model's."""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from pydantic import Field

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid, ReplyRefused, ReplyTruncated
from fairagent.llm import Model, ModelRequest, Reply, ask
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import STAND_IN, Calls, Case, Prompts
from fairagent.llm.request import Message, list_within, schema_of, text_like, text_within
from fairagent.retrieve.base import TextSource
from fairagent.retrieve.bm25.part import prepare_words, words_at_hand
from fairagent.retrieve.bm25.part import words_of as index_words
from fairagent.retrieve.relevance_model import TermSource, relevance_model, share_out, top_words
from fairagent.retrieve.site import Site
from fairagent.settings import Part, Settings
from fairagent.settings.parts import Progress
from fairagent.settings.seam import PartCall
from fairagent.types import Exposure, FloatArray, Group, Proposals, Query, Ranking, Refinement, Term
from fairagent.types.clean import query_shown, visible


@dataclass(frozen=True, slots=True, eq=False)
class RefineState:
    """The loop's state when it wants keywords for `group`, the most under-exposed one.

    `query` is the user's own, `current` the one whose ranking gave `exposures`; `ranking` is the deep list of
    the user's query and `memberships` its documents' groups, (n, 1 + g) a dimension; `tried` are the keywords
    of earlier refinements.
    """

    query: Query
    current: Query
    ranking: Ranking
    memberships: Mapping[str, FloatArray]
    exposures: tuple[Exposure, ...]
    group: Group
    tried: frozenset[str]

    @property
    def exposure(self) -> Exposure:
        """The exposure in the dimension of `group`."""
        return next(exposure for exposure in self.exposures if exposure.dimension == self.group.dimension)


class Refiner(Protocol):
    """Proposes keywords for the next query: any object with this method will do."""

    def refine(self, state: RefineState) -> Refinement:
        """Keywords that bring documents of `state.group`; none, and a note why, where there is nothing to say."""
        ...


def refined(refiner: Refiner, state: RefineState, part: Part | None = None) -> Refinement:
    """What the refiner proposes; PartError where that are no keywords. `part` describes it."""
    with PartCall("refine", refiner, state.query, part) as call:
        memberships = {dimension: call.frozen(rows) for dimension, rows in state.memberships.items()}
        refinement = refiner.refine(replace(state, ranking=call.frozen_ranking(state.ranking), memberships=memberships))
    proposed = call.one_of(refinement, Refinement)
    for term in call.one_of(proposed.terms, tuple):
        weight = call.one_of(term, Term).weight
        if not (isinstance(term.text, str) and term.text.strip()):
            raise call.fault("a keyword without a text")
        if not (isinstance(weight, Real) and 0 < float(weight) < math.inf):
            raise call.fault(f"the keyword {term.text[:60]!r} a weight that is no number above 0")
    return proposed


class GroupWord(NamedTuple):
    """A word that sets a group's documents apart, its score, and how many documents hold it: read, and in the list."""

    text: str
    score: float
    in_group: int
    in_list: int


@dataclass(frozen=True, slots=True)
class FeedbackRefiner:
    """Group-aware relevance feedback: the words that set the group's documents apart from the whole list.

    P(w|G) is the relevance model of the first `documents` of the group, P(w|L) that of the list; a word scores its part
    of the divergence, P(w|G) ln(P(w|G) / P(w|L)). The best `terms` words together weigh `weight` times the user's
    query. A word counts if at least `support` of the group's documents hold it (one document's names are no group's
    vocabulary) and at most `max_share` of all do.
    """

    source: TermSource
    documents: int = 50
    terms: int = 20
    weight: float = 0.15
    support: int = 3
    max_share: float = 0.5

    def refine(self, state: RefineState) -> Refinement:
        """Keywords for `state.group`; none, and why, where the list holds no document of it."""
        words, documents = self.read(state)
        if not documents:
            return Refinement((), "feedback", f"no document of {state.group} among the {len(state.ranking)} retrieved")
        size = len(self.source.analyze(state.query.text)) * self.weight
        note = "" if words else f"no new word sets the documents of {state.group} apart"
        return Refinement(share_out([(word.text, word.score) for word in words], size), "feedback", note)

    def read(self, state: RefineState) -> tuple[tuple[GroupWord, ...], tuple[str, ...]]:
        """The words of `state.group`, best first, and the ids of its documents that were read for them."""
        labels = state.exposure.labels
        share = state.memberships[state.group.dimension][:, 1 + labels.index(state.group.label)]
        of_group = np.flatnonzero(share > 0)[: self.documents]
        if not len(of_group):
            return (), ()
        postings, scores = self.source.postings(state.ranking.ids), state.ranking.scores
        weights = np.zeros(len(share))
        weights[of_group] = scores[of_group] * share[of_group]
        group_model, list_model = relevance_model(postings, weights), relevance_model(postings, scores)
        size = len(postings.vocabulary)
        holders = np.bincount(postings.term[weights[postings.row] > 0], minlength=size)
        common = np.flatnonzero(holders >= self.support)
        divergence = np.zeros(size)
        divergence[common] = group_model[common] * np.log(group_model[common] / list_model[common])
        # If all documents belong to the group alike, the two models differ by rounding alone.
        divergence[divergence < 1e-12] = 0
        in_list = np.bincount(postings.term, minlength=size)
        words = tuple(
            GroupWord(word, float(divergence[place]), int(holders[place]), int(in_list[place]))
            for word, place in top_words(self.source, postings, divergence, self.terms, self.max_share, state.tried)
        )
        return words, tuple(state.ranking.ids[row] for row in of_group)


class FeedbackConfig(Part):
    """The words of the under-exposed group's own documents."""

    of_groups: ClassVar[bool] = True
    kind: Literal["feedback"] = "feedback"
    documents: int = Field(50, ge=1)
    """How many of the group's documents are read."""
    terms: int = Field(20, ge=1)
    """How many words a refinement adds."""
    weight: float = Field(0.15, gt=0)
    """Their weight together, the user's query being 1."""

    def prepare(self, site: Site, progress: Progress) -> None:
        prepare_words(site, progress)

    def build(self, site: Site) -> FeedbackRefiner:
        return FeedbackRefiner(index_words(site), self.documents, self.terms, self.weight)


MOST_KEYWORDS = 12
LONGEST_KEYWORD = 80
MOST_SHOWN = 20
"""Topic words of the current query that the model sees, the heaviest first."""

_ADDRESS = re.compile(r"://|@|\bwww\.|\w\.[a-z]{2,}\b", re.IGNORECASE)
_OPERATOR = re.compile(r'["^~*?:\\|<>(){}\[\]]|&&|(?:^|\s)[-+!]|\b(?:AND|OR|NOT)\b')
_IDENTIFIER = re.compile(r"\w_\w")
_WORD = re.compile(r"\w+")
_JSON_KEY = re.compile(r'(?<!\\)"(\w+)"\s*:')

# Any script is allowed. Excluded are marks at the beginning, operators of queries, and what ends a JSON string.
KEYWORD = r"^[^ -/:-@\[-`{-~\x00-\x1F][^\"\\^~*?:|<>(){}\[\]\x00-\x1F]{0,39}$"
"""The regular expression of a keyword, for servers that hold bounds: one to forty characters."""

Proposed = Annotated[str, text_like(KEYWORD)]


class Keywords(Reply):
    """Keywords for a query; which of them are used: What becomes of keywords, in the guide."""

    keywords: Annotated[list[Proposed], list_within(MOST_KEYWORDS)]


class _Reasoned(Reply):
    reasoning: Annotated[str, text_within(1000)]


# This order of bases puts the reasoning first, so that a server that enforces the form makes the model think first.
class ReasonedKeywords(Keywords, _Reasoned):
    """Keywords after the reasoning that led to them, which is ignored."""


REPLIES: dict[str, type[Keywords]] = {kind.__name__: kind for kind in (Keywords, ReasonedKeywords)}
"""The replies that a refining template may ask for, by the name in its head."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """Proposed keywords: those that are fit, those that are known already, and those that are refused, and why."""

    usable: tuple[str, ...]
    repeated: tuple[str, ...]
    refused: tuple[str, ...]


def sift(proposed: Sequence[str], query: str, known: Iterable[str], keys: Set[str] = frozenset()) -> Sifted:
    """The proposed keywords that are fit to be searched for and new, at most 12.

    Hidden characters and quotes around a keyword are dropped, white space is made single. Refused are several lines,
    more than 80 characters, addresses, query operators, identifiers, words of the prompt's own `keys` (numbered ones,
    as group1, too), and what comes after the 12th. Repeated are the `known` ones (case does not count) and those that
    only repeat words of `query`.

    >>> sifted = sift(["Barrister", "barrister", "lawyers", "see x.org", "a OR b", "judge"], "lawyers", ["Judge"])
    >>> sifted.usable, sifted.repeated
    (('Barrister',), ('lawyers', 'judge'))
    >>> sifted.refused
    ('see x.org: an address', 'a OR b: a query operator')
    """
    query_words = words_of(query)
    taken = {_key(word) for word in known}
    seen: set[str] = set()
    usable: list[str] = []
    repeated: list[str] = []
    refused: list[str] = []
    for raw in proposed:
        keyword = visible(unicodedata.normalize("NFKC", raw)).strip().strip("\"'“”‘’`").strip()
        key = _key(keyword)
        if key in seen or not words_of(keyword):
            continue
        seen.add(key)
        line = " ".join(keyword.split())
        shown = line if len(line) <= 40 else f"{line[:40]} ..."
        if error := _error(keyword):
            refused.append(f"{shown}: {error}")
        elif _bare(keyword) <= keys - query_words and _bare(keyword):
            refused.append(f"{shown}: a word of the prompt itself")
        elif key in taken or words_of(keyword) <= query_words:
            repeated.append(shown)
        elif len(usable) == MOST_KEYWORDS:
            refused.append(f"{shown}: more than {MOST_KEYWORDS} keywords")
        else:
            usable.append(line)
    if len(refused) > MOST_KEYWORDS:
        refused[MOST_KEYWORDS:] = [f"and {len(refused) - MOST_KEYWORDS} more"]
    return Sifted(tuple(usable), tuple(repeated[:MOST_KEYWORDS]), tuple(refused))


def words_of(text: str) -> frozenset[str]:
    """The distinct words of a text, in one writing."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _bare(keyword: str) -> frozenset[str]:
    """The words of a keyword without the numbers at their ends."""
    return frozenset(word.rstrip("0123456789") for word in words_of(keyword)) - {""}


def prompt_keys(request: ModelRequest) -> frozenset[str]:
    r"""The words of the keys of the JSON that a prompt shows and of the reply that it asks for, one of several too.

    >>> class Answer(Reply):
    ...     keywords: list[str]
    >>> asked = ModelRequest((("user", '{"tried_before": ["she"], "group": "a\\"b\\": c"}'),), Answer)
    >>> sorted(prompt_keys(asked))
    ['before', 'group', 'keyword', 'keywords', 'tried']
    """
    keys = {key for _, text in request.messages for key in _JSON_KEY.findall(text)}
    schema = schema_of(request.reply) if request.reply else {}
    for part in (schema, *schema.get("$defs", {}).values()):
        keys |= part.get("properties", {}).keys()
    words = words_of(" ".join(keys).replace("_", " "))
    return words | {word.removesuffix("s") for word in words}


def _error(keyword: str) -> str:
    """Why this is no keyword; "" where it is one."""
    if len(keyword.splitlines()) > 1:
        return "several lines"
    if len(keyword) > LONGEST_KEYWORD:
        return f"longer than {LONGEST_KEYWORD} characters"
    if _ADDRESS.search(keyword):
        return "an address"
    if _IDENTIFIER.search(keyword):
        return "an identifier"
    return "a query operator" if _OPERATOR.search(keyword) else ""


def _key(keyword: str) -> str:
    return " ".join(keyword.casefold().split())


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


@dataclass(frozen=True, slots=True)
class AskingRefiner:
    """A refiner that asks `model`, with the template of its `kind`.

    Each accepted keyword weighs `keyword_weight`, a word of the user's query being 1; all together weigh at most
    `drift` times the user's query, and none takes the place of the user's words, so that no model can lead the search
    away.

    `on_error`: where the model gives no usable reply, "keep" the query as it is, let the refiner `otherwise` propose
    ("fallback"; without one the query stays), or "fail".
    """

    kind: ClassVar[str]
    template: ClassVar[str]
    model: Model
    prompts: Prompts
    keyword_weight: float = 1.0
    drift: float = 0.3
    on_error: Literal["keep", "fallback", "fail"] = "fallback"
    otherwise: Refiner | None = None

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        """The prompt."""
        return self.prompts.render(self.template, **template_variables(state))

    def refine(self, state: RefineState) -> Refinement:
        """New keywords for `state.group`; none, and why, where the model knows none.

        Raises FatalModelError and BudgetExceeded, and with "fail" every ModelError.
        """

        def instead(error: ModelError | BudgetExceeded) -> Refinement:
            note = f"{ERRORS.get(type(error), '')}{error}"
            refused, made = (error.refused, error.proposals) if isinstance(error, _NoneUsable) else ((), Proposals())
            if self.on_error == "keep" or self.otherwise is None:
                return Refinement((), self.kind, note, error.usage, refused, made)
            other = self.otherwise.refine(state)
            notes = [f"{note}; {other.source} proposes instead of {self.kind}", *filter(None, [other.note])]
            usage = error.usage + other.usage
            return replace(other, note="; ".join(notes), usage=usage, refused=refused, proposals=made)

        return unless_failing(lambda: self._proposed(state), self.on_error, instead)

    def _proposed(self, state: RefineState) -> Refinement:
        """What the model proposes; ReplyInvalid where it proposes something, and none of it is a keyword."""
        head = self.prompts[self.template].head
        request = ModelRequest(self.messages(state), max_tokens=head.max_tokens, prompt=self.template)
        form = REPLIES[head.reply]
        reply, usage = ask(self.model, request, form)
        keys = prompt_keys(replace(request, reply=form)) | words_of(state.group.dimension)
        # A topic word of little weight may be proposed again, which raises its weight; one of full weight may not.
        known = [term.text for term in state.current.terms if term.weight >= self.keyword_weight]
        sifted = sift(reply.keywords, state.query.text, [*state.tried, *known], keys)
        count = len(reply.keywords)
        proposals = Proposals(count, len(sifted.usable))
        if count and not sifted.usable and not sifted.repeated:
            error = _NoneUsable(f"none of the model's {count} keywords is usable")
            error.usage, error.refused, error.proposals = usage, sifted.refused, proposals
            raise error
        note = f"repeated: none of the model's {count} keywords is new" if count else "the model proposes no keyword"
        # All together weigh no more than `drift` times the words of the user's query.
        most = self.drift * max(len(words_of(state.query.text)), 1) / max(len(sifted.usable), 1)
        terms = tuple(Term(word, min(self.keyword_weight, most)) for word in sifted.usable)
        refused = (*sifted.refused, *(f"{word}: nothing new" for word in sifted.repeated))
        return Refinement(terms, self.kind, "" if terms else note, usage, refused, proposals)


class _NoneUsable(ReplyInvalid):
    """The reply has the required form, and none of its `proposals` is a keyword; `refused` says why."""

    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()


ERRORS: dict[type[Exception], str] = {
    ReplyRefused: "refused: ",
    ReplyInvalid: "invalid reply: ",
    ReplyTruncated: "truncated reply: ",
}
"""How notes of such errors begin."""


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

    def asking(self, model: Model, site: Any) -> AskingRefiner:
        raise NotImplementedError

    def options(self, model: Model, site: Any) -> dict[str, Any]:
        """What every refiner that asks a model is made of."""
        chosen = {"keyword_weight": self.keyword_weight, "drift": self.drift, "on_error": self.on_error}
        return {"model": model, "prompts": site.prompts, **chosen}

    def build(self, site: Any) -> AskingRefiner:
        return self.asking(site.model, site)

    def evidence(self, settings: Settings) -> Mapping[str, object]:
        return {}

    def worst_case(self, case: Case) -> Iterator[Calls]:
        settings, (id,) = case.settings, self.templates
        label, dimension = case.group
        variables: dict[str, object] = {"dimension": dimension, "group": label, "share": "10.0%", "target": "50.0%"}
        variables |= {"keywords": [STAND_IN] * MOST_SHOWN, **self.evidence(settings)}
        read = sum(
            case.tokens(id, query=query, tried=[STAND_IN] * (MOST_KEYWORDS * iteration), **variables)
            for query in case.queries
            for iteration in range(settings.iterations)
        )
        yield case.counted(id, len(case.queries) * settings.iterations, read)


@dataclass(frozen=True, slots=True)
class GroundedRefiner(AskingRefiner):
    """Asks `model` with the template `refine_query_grounded`, which shows what `feedback` reads.

    That is the words that set the group's documents apart, with how many documents hold them, and the titles of the
    first of these documents. The model chooses among the words and may add its own.
    """

    kind: ClassVar[str] = "grounded"
    template: ClassVar[str] = "refine_query_grounded"
    feedback: FeedbackRefiner = field(kw_only=True)

    def messages(self, state: RefineState) -> tuple[Message, ...]:
        read, ids = self.feedback.read(state)
        words = [{"word": visible(one.text), "of_group": one.in_group, "of_all": one.in_list} for one in read]
        counts, titles = {"of_group": len(ids), "of_list": len(state.ranking)}, list[str]()
        if isinstance(texts := self.feedback.source, TextSource):
            titles = [" ".join(visible(texts.document(id).title).split())[:120] for id in ids[:10]]
        shown = {"words": words, "titles": list(filter(None, titles)), **counts}
        return self.prompts.render(self.template, **template_variables(state), **shown)


class GroundedConfig(AskingConfig):
    """A language model proposes keywords, shown those that the group's documents have."""

    template: ClassVar[str] = "refine_query_grounded"
    kind: Literal["grounded"] = "grounded"
    documents: int = Field(50, ge=1)
    """How many of the group's documents are read."""
    terms: int = Field(20, ge=1)
    """How many of their words the model is shown."""

    def evidence(self, settings: Settings) -> Mapping[str, object]:
        words = [{"word": STAND_IN, "of_group": 10, "of_all": 100}] * self.terms
        titles = [f"{STAND_IN} {STAND_IN} {STAND_IN}"] * 10
        return {"words": words, "titles": titles, "of_group": self.documents, "of_list": settings.depth}

    def prepare(self, site: Site, progress: Progress) -> None:
        prepare_words(site, progress)

    def asking(self, model: Model, site: Site) -> GroundedRefiner:
        words = index_words(site)
        feedback = FeedbackRefiner(words, self.documents, self.terms)
        return GroundedRefiner(**self.options(model, site), otherwise=FeedbackRefiner(words), feedback=feedback)


@dataclass(frozen=True, slots=True)
class LlmRefiner(AskingRefiner):
    """Asks `model` for keywords with the template `refine_query`; `AskingRefiner` says what becomes of them."""

    kind: ClassVar[str] = "llm"
    template: ClassVar[str] = "refine_query"


class LlmConfig(AskingConfig):
    """A language model proposes keywords."""

    template: ClassVar[str] = "refine_query"
    kind: Literal["llm"] = "llm"

    def asking(self, model: Model, site: Site) -> LlmRefiner:
        words = words_at_hand(site)
        return LlmRefiner(**self.options(model, site), otherwise=FeedbackRefiner(words) if words else None)


def refining_part(template: str, settings: Settings) -> LlmConfig | GroundedConfig:
    """The part that asks with `template`: the settings' own, if it does."""
    part, chosen = REFINERS[template], settings.refine
    return chosen if isinstance(chosen, part) else part()


REFINERS: Mapping[str, type[LlmConfig] | type[GroundedConfig]] = {
    "refine_query": LlmConfig,
    "refine_query_grounded": GroundedConfig,
}
"""Template's id -> the part that asks with it."""
