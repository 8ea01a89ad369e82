"""DebiasRAG: from a query and its documents to the contexts of the answer.

Passages of a library that are near the query are avoided; those in which a lexicon swaps a word become counterfactual
contexts, rewritten by a model where one is named. Candidates are ranked by two signals, cosines with the query and with
what is avoided, whose weights theta take one projected gradient step a query. Source: DebiasRAG (arXiv 2605.16113),
Eq. 4 to 8, 15, and Algorithm 2, whose call of the optimizer is read as once a query; the prompt is this project's.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import logsumexp, softmax

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid, SettingsError, UsageError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.exchange import unless_failing
from fairagent.llm.likelihood import Likelihood, open_local, perplexity
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.measures import min_max
from fairagent.papers.debias_rag.avoid import (
    AvoidIndex,
    AvoidPassage,
    Lexicon,
    lexicon_file,
    load_lexicon,
    read_avoid,
    unit,
)
from fairagent.retrieve.base import full_text
from fairagent.retrieve.encoders import BUNDLED, Encoder, open_encoder
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.storage.packages import expect_installed, read_config
from fairagent.types import Debiased, Document, FloatArray, Usage
from fairagent.types.clean import query_shown, visible

Places = NDArray[np.intp]


def scaled(signal: FloatArray) -> FloatArray:
    """The signal of the candidates (n,) on [0, 1]; all 0 where it is constant, which says nothing about any of them."""
    # What varies by less is rounding.
    return min_max(signal, flat=0.0, within=1e-12)


def features(near: FloatArray, avoided: FloatArray) -> FloatArray:
    """The signals as the loss sees them, (n, 2): relevance and 1 - nearness to what is avoided, each min-max.

    >>> features(np.array([0.2, 0.6]), np.array([0.9, 0.4])).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return np.column_stack((scaled(near), scaled(1 - avoided)))


def passing(avoided: FloatArray, tau: float, least: int, exempt: NDArray[np.bool_]) -> tuple[Places, bool]:
    """The places, in order, of candidates whose nearness to what is avoided is at most `tau`, and those `exempt`.

    Where none is left, the `least` candidates that are least near to it (ties by order), and True.
    """
    passed = np.flatnonzero((avoided <= tau) | exempt)
    if len(passed) or not len(avoided):
        return passed, False
    return np.sort(np.argsort(avoided, kind="stable")[:least]), True


def best(phi: FloatArray, theta: FloatArray, k: int) -> Places:
    """The places of the `k` candidates with the highest `phi @ theta`, the best first; ties by order."""
    return np.argsort(-(phi @ theta), kind="stable")[:k]


RATE = 1.0
"""The step size that is tried first; the paper does not give its own."""
MOST_HALVINGS = 50


@dataclass(frozen=True, slots=True, eq=False)
class ThetaStep:
    """One step: the weights after it, (s,), the loss before and after, and the rate that was accepted at last.

    Where `halvings` were of no avail, the weights are those before the step, and `rate` is 0.
    """

    theta: FloatArray
    loss_before: float
    loss_after: float
    rate: float
    halvings: int


def target(phi: FloatArray) -> FloatArray:
    """The distribution (n,) that a ranking should have: softmax of the min-max sum of the signals (n, s) (Eq. 6)."""
    return np.asarray(softmax(scaled(phi.sum(axis=1))))


def loss(phi: FloatArray, theta: FloatArray) -> float:
    """The cross entropy, in nats, of the ranking by `phi @ theta` to its target (Eq. 7); convex in `theta` (s,)."""
    scores = phi @ theta
    return float(logsumexp(scores) - target(phi) @ scores)


def gradient(phi: FloatArray, theta: FloatArray) -> FloatArray:
    """The loss's gradient by `theta`, (s,): sum_c (p_c - y_c) phi(c)."""
    return np.asarray((softmax(phi @ theta) - target(phi)) @ phi)


def project(v: FloatArray) -> FloatArray:
    """The point of the simplex {theta >= 0, sum 1} that is nearest to `v`, (s,) finite with s >= 1 (Duchi et al. 2008).

    >>> project(np.array([0.9, 0.5])).round(6).tolist()
    [0.7, 0.3]
    """
    if len(v) == 2:
        first = min(max((v[0] - v[1] + 1) / 2, 0.0), 1.0)
        return np.array([first, 1 - first])
    descending = np.sort(v)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(v) + 1)
    last = np.flatnonzero(descending > excess)[-1]
    return np.asarray(np.maximum(v - excess[last], 0.0))


def step(phi: FloatArray, theta: FloatArray, rate: float = RATE) -> ThetaStep:
    """One projected gradient step from `theta`, the rate halved until the loss does not rise (at most 50 times)."""
    before, slope = loss(phi, theta), gradient(phi, theta)
    for halvings in range(MOST_HALVINGS + 1):
        moved = project(theta - rate * slope)
        after = loss(phi, moved)
        if after <= before:
            return ThetaStep(moved, before, after, rate, halvings)
        rate /= 2
    return ThetaStep(theta, before, before, 0.0, MOST_HALVINGS)


class Theta:
    """The weights that queries begin with and, where they are `streaming`, leave for the next; threads share it."""

    def __init__(self, start: tuple[float, float] = (0.5, 0.5), rate: float = RATE, streaming: bool = True) -> None:
        if not (min(start) >= 0 and abs(sum(start) - 1) <= 1e-9):
            raise UsageError(f"theta are two weights of 0 or more that add up to 1, not {list(start)}")
        self.now = np.array(start, dtype=np.float64)
        """The weights that the next query begins with, (2,)."""
        self._rate, self._streaming, self._lock = rate, streaming, threading.Lock()

    def move(self, phi: FloatArray) -> tuple[FloatArray, ThetaStep]:
        """The weights that a query with the signals `phi` (n, 2) begins with, and the step that it takes from there."""
        with self._lock:
            before, taken = self.now, step(phi, self.now, self._rate)
            if self._streaming:
                self.now = taken.theta
            return before, taken


PROMPT = "rewrite_counterfactual"
PREFIX = "fair:"
"""What the ids of synthesized contexts begin with; the rest is the id of the passage that one was made from."""
TITLE = "Synthesized counterfactual, not from the collection"


class Rewrites(Reply):
    """As many rewrites as were requested, none empty."""

    rewrites: Annotated[list[str], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Rewrites a swapped passage: `count` candidates of `model`, of which that with the lowest perplexity is taken.

    Without a `scorer` it is the first. `on_error` says what becomes of a passage without a usable rewrite: "keep" it
    with its words swapped, "drop" it, or "fail".
    """

    model: Model
    prompts: Prompts
    count: int = 3
    scorer: Likelihood | None = None
    on_error: Literal["keep", "drop", "fail"] = "keep"

    def rewrite(self, query: str, text: str) -> tuple[str, Usage]:
        """The best rewrite of `text`, in the light of what `query` is about, and what it took."""

        def accept(reply: Rewrites) -> None:
            if len(reply.rewrites) != self.count or not all(visible(one).strip() for one in reply.rewrites):
                raise ReplyInvalid(f"expected {self.count} rewrites, none of them empty, not {len(reply.rewrites)}")

        variables = {"query": query_shown(query), "text": visible(text), "count": self.count}
        # Where a server holds bounds.
        one = {"type": "string", "minLength": 1, "maxLength": 2 * len(text) + 40}
        bounds = {"items": one, "minItems": self.count, "maxItems": self.count}
        request = self.prompts.request(PROMPT, variables, 0.0, accept, {"rewrites": bounds})
        reply, usage = ask(self.model, request, Rewrites)
        candidates = [" ".join(visible(one).split()) for one in reply.rewrites]
        if self.scorer is None:
            return candidates[0], usage
        fluency = [perplexity(scores) for scores in self.scorer.score([("", one) for one in candidates])]
        return candidates[fluency.index(min(fluency))], usage


def synthesize(
    query: str, passages: Sequence[AvoidPassage], lexicon: Lexicon, rewriter: Rewriter | None = None
) -> tuple[list[Document], list[str], Usage]:
    """A counterfactual context of each passage in which the lexicon swaps a word; notes say where a rewrite failed."""
    documents: list[Document] = []
    notes: list[str] = []
    usage = Usage()
    for passage in passages:
        text = lexicon.swap(passage.text)
        if text == passage.text:
            continue

        def instead(
            error: ModelError | BudgetExceeded, text: str = text, id: str = passage.id
        ) -> tuple[str | None, Usage]:
            stays = rewriter is not None and rewriter.on_error == "keep"
            becomes = "stands with its words swapped" if stays else "is left out"
            notes.append(f"{PREFIX}{id} was not rewritten ({error}), and {becomes}")
            return text if stays else None, error.usage

        becomes: str | None = text
        if rewriter:
            becomes, took = unless_failing(partial(rewriter.rewrite, query, text), rewriter.on_error, instead)
            usage = usage + took
        if becomes is not None:
            documents.append(Document(f"{PREFIX}{passage.id}", becomes, TITLE))
    return documents, notes, usage


LONGEST_REWRITTEN = 400
"""Characters of a passage of an avoid library, which is a sentence or two, at most."""


@dataclass(frozen=True, slots=True)
class DebiasRAG:
    """Chooses `k` contexts among the documents and counterfactuals of the `k` passages to avoid nearest to the query.

    A candidate that is nearer than `tau` (a cosine) to one of these passages is dropped; synthesized ones too, unless
    `exempt_synthesized`. `encoder` has to be that of `avoid`. Without a `rewriter`, the swapped passages stand as they
    are. Threads may share it. Raises UsageError for values that make no sense.
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

        Where the lexicon tells the query's bias class, passages of that class alone are avoided and countered.
        """
        kind = self.lexicon.tag(query)
        vector = unit(self.encoder.queries([query]))[0]
        avoided, bad_vectors = self.avoid.nearest(vector, self.k, kind)
        made, notes, usage = synthesize(query, avoided, self.lexicon, self.rewriter)
        taken = {document.id for document in documents}
        for place, one in enumerate(made):
            while made[place].id in taken:
                made[place] = replace(one, id=PREFIX + made[place].id)
        pool, ids = (*documents, *made), tuple(one.id for one in made)
        debiased = Debiased(kind, tuple(one.id for one in avoided), ids, usage=usage)
        if not avoided:
            notes.append(f"the avoid library has no passage of the query's class {kind!r}: nothing is avoided")
        if not pool:
            notes.append("there is no document, and no counterfactual could be made: there is no context")
            first, second = self.theta.now.tolist()
            return replace(debiased, theta_before=(first, second), theta_after=(first, second), notes=tuple(notes))
        exempt = np.arange(len(pool)) >= (len(documents) if self.exempt_synthesized else len(pool))
        vectors = unit(self.encoder.documents([full_text(one) for one in documents] + [one.text for one in made]))
        bad = np.zeros(len(pool)) if not len(bad_vectors) else (vectors @ bad_vectors.T).max(axis=1).astype(np.float64)
        passed, emptied = passing(bad, self.tau, self.k, exempt)
        phi = features((vectors[passed] @ vector).astype(np.float64), bad[passed])
        before, step = self.theta.move(phi)
        chosen = best(phi, step.theta, self.k)
        if emptied:
            closest = f"the {len(passed)} least near remain"
            notes.append(f"all {len(pool)} candidates are nearer than {self.tau:g} to what is to be avoided; {closest}")
        for name, signal in zip(("relevance", "distance from what is avoided"), phi.T, strict=True):
            if len(passed) > 1 and not signal.any():
                notes.append(f"{name} is the same for all candidates and counts for nothing")
        survived = {pool[place].id for place in passed}
        (first, second), (third, fourth) = before.tolist(), step.theta.tolist()
        return replace(
            debiased,
            documents=tuple(pool[place] for place in passed[chosen]),
            scores=tuple((phi[chosen] @ step.theta).tolist()),
            dropped=tuple(one.id for one in pool if emptied or one.id not in survived),
            theta_before=(first, second),
            theta_after=(third, fourth),
            notes=tuple(notes),
        )


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
    rate: float = Field(RATE, ge=0, allow_inf_nan=False)
    """The gradient step's size that is tried first; 0 leaves theta as it is."""
    exempt_synthesized: bool = False
    """Whether counterfactual contexts, which are near the passages they are made from, are never dropped."""

    @property
    def templates(self) -> tuple[str, ...]:
        return (PROMPT,) if self.rewrites else ()

    @property
    def files(self) -> Mapping[str, Path]:
        return {"library": Path(self.library), "lexicon": lexicon_file(self.lexicon)}

    def relative_to(self, folder: Path) -> Self:
        named = {"library": self.library, "lexicon": self.lexicon}
        return self.model_copy(update={field: str((folder / path).absolute()) for field, path in named.items() if path})

    def learned_from(self) -> Iterator[tuple[str, Sequence[str]]]:
        if not self.library:
            raise SettingsError("`library` is missing: name the file of passages to avoid")
        load_lexicon(self.lexicon)
        yield f"the avoid library {Path(self.library).name}", [passage.text for passage in read_avoid(self.library)]

    def worst_case(self, case: Case) -> Iterator[Calls]:
        if self.rewrites:
            for _ in range(self.k):
                yield case.calls(PROMPT, text=LETTER * LONGEST_REWRITTEN, count=self.rewrites)

    def check(self, site: Site) -> None:
        open_encoder(self.encoder, served=site.embeddings)
        expect_installed("faiss-cpu", "debias-rag")
        if self.scorer and self.rewrites:
            read_config(self.scorer)

    def build(self, site: Site) -> DebiasRAG:
        """The stage; SettingsError without a library, DataError with every fault of library and lexicon."""
        if not self.library:
            raise SettingsError(
                "debias is debias-rag, which needs passages to avoid: name their file as `debias: {library: ...}`"
            )
        theta = Theta(self.theta, self.rate, streaming=not site.stateless)
        lexicon, passages = load_lexicon(self.lexicon), read_avoid(self.library)
        encoder = open_encoder(self.encoder, served=site.embeddings)
        scorer = open_local("causal", self.scorer) if self.scorer and self.rewrites else None
        rewriter = Rewriter(site.model, site.prompts, self.rewrites, scorer, self.on_error) if self.rewrites else None
        index = AvoidIndex(passages, lexicon, encoder)
        return DebiasRAG(index, lexicon, encoder, self.k, self.tau, theta, rewriter, self.exempt_synthesized)


class DebiasRAGVariant(DebiasRAGConfig):
    """The same, by the name that it has in earlier experiment files."""

    kind: Literal["debias-rag-variant"] = "debias-rag-variant"  # type: ignore[assignment]
