"""What the groups' own documents have in common: the documents, vectors and words that evidence is made of.

None of it puts a group's words into the user's query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fairagent.measures.discounts import Log2Plus1
from fairagent.measures.exposure import min_max, on_scale_of, standard
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.relevance_model import Postings, TermSource, relevance_model, top_words
from fairagent.types import FloatArray, Query, Ranking, Term

F = TypeVar("F", np.float32, np.float64)

TERMS = 20
"""Words of a group's relevance model."""
MOST_COMMON = 0.2
"""A word in more than this share of all documents says nothing about a group."""
K1, B = 0.9, 0.4
NEAREST = 10
"""Documents that say how much a model's text counts."""


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceDocuments:
    """The documents that a group's evidence is learned from: their places among the candidates, and their weights."""

    places: NDArray[np.intp]
    weights: FloatArray

    def __bool__(self) -> bool:
        return len(self.places) > 0


@dataclass(frozen=True, slots=True, eq=False)
class Channel:
    """One engine's view of the candidates: `own` (n,) for the query, `evidence` (n, g) for each group.

    `now` (n,) is the engine's part of the candidates' scores. Refined scores keep its mean and standard deviation:
    evidence spreads otherwise than a query does, and an engine's weight among the others is not to change with it.
    With `gram` (g, g) own and evidence are products with vectors, of which a mixture has length 1; without it both are
    standardized before they are mixed. `mix` is the evidence's share.
    """

    now: FloatArray
    own: FloatArray
    evidence: FloatArray
    mix: float
    gram: FloatArray | None = None

    def scores(self, w: FloatArray, part: float = 1.0) -> FloatArray:
        """The refined scores (n,) under group weights `w` (g,), with a `part` of `mix` alone."""
        mix, pulled = part * self.mix, self.evidence @ w
        if self.gram is None:
            own, pulled = standard(self.own), standard(pulled)
        else:
            size = float(np.sqrt(max(float(w @ self.gram @ w), 0.0)))
            own, pulled = self.own, pulled / size if size > 0 else np.zeros(len(pulled))
        return on_scale_of((1 - mix) * own + mix * pulled, self.now) if pulled.any() else self.now


def learn_from(
    scores: FloatArray, memberships: Sequence[FloatArray], k: int, least: int = 2
) -> list[EvidenceDocuments]:
    """For every group of every dimension its best documents: `k` shared among a dimension's groups, `least` at least.

    `memberships` are (n, 1 + g) with column 0 unknown; a document counts by its membership.
    """
    order = np.argsort(-scores, kind="stable")
    learned = []
    for rows in memberships:
        each = max(least, -(-k // (rows.shape[1] - 1)))
        for column in rows[:, 1:].T:
            places = order[column[order] > 0][:each]
            weights = column[places]
            learned.append(EvidenceDocuments(places, weights / weights.sum() if len(places) else weights))
    return learned


def first_documents(scores: FloatArray, k: int) -> EvidenceDocuments:
    """The best `k` documents by these scores (n,), whoever they are about; each counts the same.

    >>> first_documents(np.array([2.0, 3.0]), 1).places.tolist(), first_documents(np.array([2.0]), 1).weights.tolist()
    ([1], [1.0])
    """
    places = np.argsort(-scores, kind="stable")[:k]
    return EvidenceDocuments(places, np.full(len(places), 1 / max(len(places), 1)))


def averaged(own: NDArray[F], from_model: Sequence[NDArray[F]], weights: FloatArray, keep: bool) -> NDArray[F]:
    """The evidence of each group, (g, m): the mean of what a model says of it, where rows of zeros say nothing.

    Each of the model's rows counts by its weight, `weights` (sources, g). A group's `own` evidence (g, m) counts as one
    more of weight 1 with `keep`, and alone where the model says nothing.

    >>> own, said = np.array([[4.0], [4.0]]), [np.array([[1.0], [0.0]])]
    >>> averaged(own, said, np.array([[0.5, 0.5]]), keep=False).ravel().tolist()
    [1.0, 4.0]
    >>> averaged(own, said, np.array([[0.5, 0.5]]), keep=True).ravel().tolist()
    [3.0, 4.0]
    """
    if not from_model:
        return own
    rows = np.array(from_model)
    says = weights * rows.any(axis=2)
    of_model = says.sum(axis=0)
    counts = own.any(axis=1) & (keep | (of_model == 0))
    total = (says[:, :, None] * rows).sum(axis=0) + own * counts[:, None]
    weight = of_model + counts
    return np.asarray(total / np.where(weight > 0, weight, 1.0)[:, None], dtype=own.dtype)


def grounding(similarity: FloatArray, relevance: FloatArray, k: int = NEAREST) -> float:
    """How relevant the `k` documents are that are most similar to a text, in [0, 1]; 1: no others are more relevant.

    Their discounted gain, 1 / log2(rank + 1), over that of the `k` most relevant; a document's gain is its relevance,
    min-max. `similarity` and `relevance` are (n,); 0 where no document has any similarity. After GRM (Mackie et al.,
    arXiv 2306.09938), which asks a neural re-ranker how relevant the neighbors of a generated text are.

    >>> round(grounding(np.array([0.9, 0.1, 0.8, 0.0]), np.array([3.0, 2.0, 1.0, 0.0]), k=2), 4)
    0.852
    """
    if not similarity.any():
        return 0.0
    gain, nearest = min_max(relevance), np.argsort(-similarity, kind="stable")[:k]
    discount = Log2Plus1()(len(nearest))
    return float(gain[nearest] @ discount / (np.sort(gain)[::-1][: len(nearest)] @ discount))


def centroids(vectors: Embeddings, learned: Sequence[EvidenceDocuments]) -> Embeddings:
    """What the documents of each group have in common, (g, d); `vectors` (n, d) are the candidates'."""
    rows = np.zeros((len(learned), vectors.shape[1]), dtype=np.float32)
    for row, one in enumerate(learned):
        if one:
            rows[row] = one.weights.astype(np.float32) @ vectors[one.places]
    return rows


def refined_vector(query: Embeddings, groups: Embeddings, w: FloatArray, mix: float) -> Embeddings:
    """The query's vector (d,) mixed with those of the groups (g, d) under their weights `w` (g,)."""
    pull = w.astype(np.float32) @ groups
    size = float(np.linalg.norm(pull))
    return query if size <= 0 else np.asarray((1 - mix) * query + mix * pull / size, dtype=np.float32)


def unit(vector: Embeddings) -> Embeddings:
    """The vector (d,) scaled to length 1; zeros stay zeros."""
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), dtype=np.float32)


def words(source: TermSource, postings: Postings, one: EvidenceDocuments) -> list[tuple[int, float]]:
    """A group's best words as places in the vocabulary, with their shares of its relevance model."""
    weights = np.zeros(len(postings.length))
    weights[one.places] = one.weights
    model = relevance_model(postings, weights)
    best = top_words(source, postings, model, TERMS, MOST_COMMON)
    total = sum(float(model[place]) for _, place in best)
    return [(place, float(model[place]) / total) for _, place in best]


def group_query(source: TermSource, postings: Postings, one: EvidenceDocuments, query: Query) -> Query | None:
    """The words of a group's documents as a query of their own; None where there are none."""
    chosen = words(source, postings, one)
    if not chosen:
        return None
    names = source.words(postings.vocabulary[[place for place, _ in chosen]])
    return Query("", query.id, tuple(Term(name, share) for name, (_, share) in zip(names, chosen, strict=True)))


def scores_of(ids: Sequence[str], ranking: Ranking) -> FloatArray:
    """The min-max scores of these documents in a ranking, (n,); 0 for one that it does not have."""
    scores = dict(zip(ranking.ids, min_max(ranking.scores).tolist(), strict=True))
    return np.array([scores.get(id, 0.0) for id in ids])


def bm25_weights(postings: Postings, documents: int) -> FloatArray:
    """What BM25 gives each entry of the postings, (e,); lengths are compared with the mean of these documents."""
    frequency = postings.document_share[postings.term] * documents
    idf = np.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))
    length = postings.length / max(float(postings.length.mean()), 1.0) if len(postings.length) else postings.length
    norm = K1 * (1 - B + B * length)[postings.row]
    return np.asarray(idf * postings.count / (postings.count + norm))
