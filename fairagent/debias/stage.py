"""DebiasRAG as one stage: from a query and its documents, or none, to the contexts that an answer is written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairagent.debias.avoid import AvoidIndex, unit
from fairagent.debias.lexicon import Lexicon
from fairagent.debias.pool import Reranked, rerank
from fairagent.debias.synthesis import PREFIX, Rewriter, Synthesized, synthesize
from fairagent.debias.theta import Theta
from fairagent.errors import UsageError
from fairagent.retrieve.encoder import Encoder
from fairagent.types import Debiased, Document, FloatArray


@dataclass(frozen=True, slots=True)
class DebiasRAG:
    """Chooses `k` contexts among the documents and counterfactuals of the `k` passages to avoid nearest to the query.

    A candidate that is nearer than `tau` (a cosine) to one of these passages is dropped; synthesized ones too, unless
    `exempt_synthesized`: since they are such a passage with a few words swapped, most of them may be. The rest is
    ranked by nearness to the query and distance from the passages, weighted by `theta`, which takes one gradient step
    a query. `encoder` has to be that of `avoid`. Without a `rewriter`, the swapped passages stand as they are.

    Threads may share it. Raises UsageError for values that make no sense.
    """

    avoid: AvoidIndex
    lexicon: Lexicon
    encoder: Encoder
    k: int = 3
    tau: float = 0.9
    theta: Theta = field(default_factory=Theta)
    rewriter: Rewriter | None = None
    exempt_synthesized: bool = False

    def __post_init__(self) -> None:
        if self.k < 1 or not -1 <= self.tau <= 1:
            raise UsageError(f"DebiasRAG: k {self.k} must be 1 or more, and tau {self.tau} a cosine, from -1 to 1")

    def apply(self, query: str, documents: Sequence[Document]) -> Debiased:
        """The contexts for `query`, the best first, and what was done to get them; `documents` may be none.

        Where the lexicon tells the query's bias class, passages of that class alone are avoided and countered. Raises
        what asking a model raises where no call can succeed.
        """
        kind = self.lexicon.tag(query)
        asked = unit(self.encoder.queries([query]))[0]
        avoided, bad = self.avoid.nearest(asked, self.k, kind)
        made = _renamed(synthesize(query, avoided, self.lexicon, self.rewriter), documents)
        pool = (*documents, *made.documents)
        ids = tuple(one.id for one in made.documents)
        debiased = Debiased(kind, tuple(one.id for one in avoided), ids, usage=made.usage)
        notes = [*made.notes]
        if not avoided:
            notes.append(f"the avoid library has no passage of the query's class {kind!r}: nothing is avoided")
        if not pool:
            notes.append("there is no document, and no counterfactual could be made: there is no context")
            now = _pair(self.theta.now)
            return replace(debiased, theta_before=now, theta_after=now, notes=tuple(notes))
        texts = [f"{one.title} {one.text}".strip() for one in documents] + [one.text for one in made.documents]
        exempt = np.arange(len(pool)) >= (len(documents) if self.exempt_synthesized else len(pool))
        vectors = unit(self.encoder.documents(texts))
        ranked = rerank(vectors, asked, bad, self.theta, self.k, self.tau, exempt)
        kept = {pool[place].id for place in ranked.kept}
        chosen = tuple(pool[place] for place in ranked.places)
        return replace(
            debiased,
            documents=chosen,
            scores=tuple(ranked.scores.tolist()),
            dropped=tuple(one.id for one in pool if ranked.emptied or one.id not in kept),
            theta_before=_pair(ranked.found),
            theta_after=_pair(ranked.step.theta),
            notes=(*notes, *self._notes(ranked, len(pool))),
        )

    def _notes(self, ranked: Reranked, count: int) -> list[str]:
        notes = []
        if ranked.emptied:
            notes.append(
                f"all {count} candidates are nearer than {self.tau:g} to what is to be avoided; the {len(ranked.kept)} "
                "least near were kept"
            )
        names = ("relevance", "distance from what is avoided")
        if len(ranked.kept) > 1:
            notes += [
                f"{name} is the same for all candidates and counts for nothing"
                for name, flat in zip(names, ranked.flat, strict=True)
                if flat
            ]
        return notes


def _pair(theta: FloatArray) -> tuple[float, float]:
    return float(theta[0]), float(theta[1])


def _renamed(made: Synthesized, documents: Sequence[Document]) -> Synthesized:
    """With ids that no document has."""
    taken = {document.id for document in documents}
    fresh = []
    for one in made.documents:
        id = one.id
        while id in taken:
            id = PREFIX + id
        fresh.append(replace(one, id=id))
    return replace(made, documents=tuple(fresh))
