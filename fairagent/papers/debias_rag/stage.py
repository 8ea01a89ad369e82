"""DebiasRAG as a pipeline stage: from a query and its documents to the contexts of the answer.

Source: DebiasRAG (arXiv 2605.16113), Algorithm 2. The reference values are golden (`tests/golden`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field

from fairagent.errors import SettingsError, UsageError
from fairagent.llm.likelihood import open_local
from fairagent.llm.prompts import LETTER, Calls, Case
from fairagent.papers.debias_rag.avoid import AvoidIndex, read_avoid, unit
from fairagent.papers.debias_rag.lexicon import Lexicon, lexicon_file, load_lexicon
from fairagent.papers.debias_rag.synthesis import PREFIX, PROMPT, Rewriter, Synthesized, synthesize
from fairagent.papers.debias_rag.theta import (
    RATE,
    Flags,
    Places,
    Theta,
    ThetaStep,
    Vectors,
    best,
    features,
    passing,
    to_avoided,
    to_query,
)
from fairagent.retrieve.base import full_text
from fairagent.retrieve.encoders import BUNDLED, Encoder, open_encoder
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.storage.packages import expect_installed, read_config
from fairagent.types import Debiased, Document, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Reranked:
    """What became of n candidates: the `places` (<= k) of the best, the best first, with their `scores`.

    `passed` are the places of those that the filter let through, in order; `emptied` says that it let none through, so
    that they are the least bad. `before` are the weights before the `step`. `flat` (2,) says which signals, relevance
    and distance from what is avoided, are the same for all that passed, and so count for nothing.
    """

    places: Places
    scores: FloatArray
    passed: Places
    emptied: bool
    before: FloatArray
    step: ThetaStep
    flat: tuple[bool, bool]


def rerank(
    vectors: Vectors, query: Vectors, avoided: Vectors, theta: Theta, k: int, tau: float, exempt: Flags
) -> Reranked:
    """The best `k` of the candidates `vectors` (n, d), n >= 1, for `query` (d,), away from `avoided` (m, d), m >= 0.

    Vectors have length 1. Candidates whose cosine with any avoided passage is above `tau` are dropped, unless they are
    `exempt` (n,); `theta` takes one step on what is left.
    """
    bad = to_avoided(vectors, avoided)
    passed, emptied = passing(bad, tau, k, exempt)
    phi = features(to_query(vectors[passed], query), bad[passed])
    before, step = theta.move(phi)
    chosen = best(phi, step.theta, k)
    flat = not phi[:, 0].any(), not phi[:, 1].any()
    return Reranked(passed[chosen], np.asarray(phi[chosen] @ step.theta), passed, emptied, before, step, flat)


LONGEST_REWRITTEN = 400
"""Characters of a passage of an avoid library, which is a sentence or two, at most."""


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
        vector = unit(self.encoder.queries([query]))[0]
        avoided, bad = self.avoid.nearest(vector, self.k, kind)
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
        texts = [full_text(one) for one in documents] + [one.text for one in made.documents]
        exempt = np.arange(len(pool)) >= (len(documents) if self.exempt_synthesized else len(pool))
        vectors = unit(self.encoder.documents(texts))
        ranked = rerank(vectors, vector, bad, self.theta, self.k, self.tau, exempt)
        passed = {pool[place].id for place in ranked.passed}
        chosen = tuple(pool[place] for place in ranked.places)
        return replace(
            debiased,
            documents=chosen,
            scores=tuple(ranked.scores.tolist()),
            dropped=tuple(one.id for one in pool if ranked.emptied or one.id not in passed),
            theta_before=_pair(ranked.before),
            theta_after=_pair(ranked.step.theta),
            notes=(*notes, *self._notes(ranked, len(pool))),
        )

    def _notes(self, ranked: Reranked, count: int) -> list[str]:
        notes = []
        if ranked.emptied:
            closest = f"the {len(ranked.passed)} least near remain"
            notes.append(f"all {count} candidates are nearer than {self.tau:g} to what is to be avoided; {closest}")
        if len(ranked.passed) > 1:
            names = zip(("relevance", "distance from what is avoided"), ranked.flat, strict=True)
            notes += [f"{name} is the same for all candidates and counts for nothing" for name, flat in names if flat]
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


class DebiasRAGConfig(Part):
    """DebiasRAG: relevant contexts unlike a library of biased passages, some of them counterfactuals."""

    kind: Literal["debias-rag"] = "debias-rag"
    library: str = ""
    """The avoid library: a file of JSON lines with id, text and class. It has to be given."""
    lexicon: str = ""
    """The attribute lexicon (YAML); empty is the shipped one."""
    encoder: str = BUNDLED
    """The embedding model's folder or name."""
    k: int = Field(3, ge=1)
    """How many contexts there are, and how many passages of the library are avoided."""
    tau: float = Field(0.9, ge=-1, le=1)
    """A candidate nearer than this to an avoided passage (cosine) is dropped."""
    theta: tuple[float, float] = (0.5, 0.5)
    """The weights of relevance and of distance from what is avoided that the first query has; they add up to 1."""
    rewrites: int = Field(0, ge=0, le=10)
    """How many rewrites of each counterfactual the model writes; 0: its words are swapped, without a model."""
    on_error: Literal["keep", "drop", "fail"] = "keep"
    """What becomes of a counterfactual without a usable rewrite. keep: its words stay swapped. drop: left out."""
    scorer: str = ""
    """The local causal model that chooses the most fluent rewrite; empty takes the first."""

    @property
    def templates(self) -> tuple[str, ...]:
        """That of the rewrites, if there are any."""
        return (PROMPT,) if self.rewrites else ()

    @property
    def files(self) -> Mapping[str, Path]:
        """Library and lexicon."""
        return {"library": Path(self.library), "lexicon": lexicon_file(self.lexicon)}

    def relative_to(self, folder: Path) -> Self:
        """With both files from anywhere."""
        named = {"library": self.library, "lexicon": self.lexicon}
        return self.model_copy(update={field: str((folder / path).absolute()) for field, path in named.items() if path})

    def learned_from(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The avoid library's passages; SettingsError without one, DataError with every fault of it or the lexicon."""
        if not self.library:
            raise SettingsError("`library` is missing: name the file of passages to avoid")
        load_lexicon(self.lexicon)
        yield f"the avoid library {Path(self.library).name}", [passage.text for passage in read_avoid(self.library)]

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """A rewrite of each passage that is avoided, as long as passages are."""
        if self.rewrites:
            for _ in range(self.k):
                yield case.calls(PROMPT, text=LETTER * LONGEST_REWRITTEN, count=self.rewrites)

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the embedding model, or that of the rewrites, is not on this machine."""
        open_encoder(self.encoder, served=site.embeddings)
        expect_installed("faiss-cpu", "debias-rag")
        if self.scorer and self.rewrites:
            read_config(self.scorer)

    def build(self, site: Site) -> DebiasRAG:
        """The stage; SettingsError without a library, DataError with every fault of library and lexicon."""
        return self._stage(site, RATE, exempt=False)

    def _stage(self, site: Site, rate: float, exempt: bool) -> DebiasRAG:
        if not self.library:
            raise SettingsError(
                "debias is debias-rag, which needs passages to avoid: name their file as `debias: {library: ...}`"
            )
        theta = Theta(self.theta, rate, streaming=not site.stateless)
        lexicon, passages = load_lexicon(self.lexicon), read_avoid(self.library)
        encoder = open_encoder(self.encoder, served=site.embeddings)
        scorer = open_local("causal", self.scorer) if self.scorer and self.rewrites else None
        rewriter = Rewriter(site.model, site.prompts, self.rewrites, scorer, self.on_error) if self.rewrites else None
        index = AvoidIndex(passages, lexicon, encoder)
        return DebiasRAG(index, lexicon, encoder, self.k, self.tau, theta, rewriter, exempt)


class DebiasRAGVariant(DebiasRAGConfig):
    """DebiasRAG with what experiments vary in it."""

    kind: Literal["debias-rag-variant"] = "debias-rag-variant"  # type: ignore[assignment]
    rate: float = Field(RATE, ge=0)
    """The gradient step's size that is tried first; 0 leaves theta as it is."""
    exempt_synthesized: bool = False
    """Whether counterfactual contexts, which are near the passages they are made from, are never dropped."""

    def build(self, site: Site) -> DebiasRAG:
        """The stage."""
        return self._stage(site, self.rate, self.exempt_synthesized)
