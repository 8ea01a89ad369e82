"""What a refiner is, and refinement without a language model: keywords from the under-exposed group's documents."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from pydantic import Field

from fairagent.retrieve.base import Retriever, Vocabulary
from fairagent.retrieve.bm25.part import prepare_words, words_of
from fairagent.retrieve.relevance_model import TermSource, relevance_model, share_out, top_words
from fairagent.retrieve.site import Site
from fairagent.settings.parts import Part, Progress
from fairagent.settings.seam import PartCall
from fairagent.types import Exposure, FloatArray, Group, Query, Ranking, Refinement, Term


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


def new_keywords(
    proposed: Refinement, tried: Collection[str], engine: Retriever
) -> tuple[tuple[Term, ...], tuple[str, ...]]:
    """The proposed keywords that are new and occur in the index, and the words of those that do not occur."""
    new = [term for term in proposed.terms if term.text not in tried]
    if not isinstance(engine, Vocabulary):
        return tuple(new), ()
    added = tuple(term for term in new if engine.document_frequency(term.text) > 0)
    return added, tuple(term.text for term in new if term not in added)


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
        return FeedbackRefiner(words_of(site), self.documents, self.terms, self.weight)
