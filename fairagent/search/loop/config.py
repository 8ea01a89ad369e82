"""The loops as parts of a pipeline, and the judge of a loop, as settings describe them."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from fairagent.answer.filtering import longest_calls
from fairagent.errors import SettingsError
from fairagent.llm.prompts.calls import Calls, Case
from fairagent.retrieve.bm25.part import prepare_words, words_of
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.graph import Graph, graph_of, prepare_graphs
from fairagent.retrieve.site import Site
from fairagent.search.loop.actions import ROUNDS, Action, FilterAction, JudgeAction, NeighborsAction, RefineAction
from fairagent.search.loop.candidates import Mixer
from fairagent.search.loop.controller import Controller
from fairagent.search.loop.document_types import TypeSource
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.loop.guard import Guard, OnWorse
from fairagent.search.loop.judges import RELEVANCE, ModelJudge, RelevanceJudge, ScorerJudge
from fairagent.search.loop.policy import CHOOSE, ActionName, ModelPolicy, Rules, longest_choice
from fairagent.search.loop.second_search import SecondSearch
from fairagent.search.loop.sources import EvidenceType, Sources, Weighting, templates_of, worst_case
from fairagent.search.rerank.base import pair_scorer
from fairagent.settings import Settings
from fairagent.settings.parts import Part, Progress
from fairagent.settings.section import Section


class JudgeSettings(Section):
    """Who reads the documents that the groups' evidence is learned from, and how many."""

    by: Literal["model", "cross-encoder"] = "model"
    """model: the language model says yes or no. cross-encoder: a local model scores query and document together."""
    scorer: str = ""
    """The model of `by: cross-encoder`: a folder, or a name in the Hugging Face cache; `monot5:NAME` for a MonoT5."""
    documents: int = Field(10, ge=1)
    """How many documents of each group are judged, the best first. More cost more calls, or time."""
    groups: int = Field(3, ge=1)
    """How many groups are judged, those that lack most exposure first. More cost more calls, or time."""
    batch: int = Field(5, ge=1)
    """How many documents the language model judges in one call. More need fewer calls; where a call fails, none of its
    documents is judged."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.by == "cross-encoder") != bool(self.scorer):
            raise ValueError("`scorer` names the model of `by: cross-encoder`, and is nothing without")
        return self

    @property
    def templates(self) -> tuple[str, ...]:
        """That of the language model's yes or no."""
        return (RELEVANCE,) if self.by == "model" else ()

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """Every document as long as a model is ever shown one."""
        for template in self.templates:
            yield from longest_calls(case, template, self.documents * self.groups, self.batch)

    def build(self, site: Site, on_error: Literal["fallback", "fail"]) -> JudgeAction:
        """The action."""
        judge: RelevanceJudge
        if self.by == "model":
            judge = ModelJudge(site.model, site.prompts, self.batch, on_error=on_error)
        else:
            judge = ScorerJudge(pair_scorer(site, self.scorer))
        return JudgeAction(judge, self.documents, self.groups)

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the scorer is not on this machine."""
        if self.by == "cross-encoder":
            pair_scorer(site, self.scorer)


ORDER: tuple[ActionName, ...] = ("neighbors", "judge", "refine", "filter")
"""What rules look for: documents, then relevant ones, then exposure, then bias in what has come of it."""

Evidence = Literal["feedback"] | EvidenceType
SEVERAL = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
"""One name stands for a list of one."""


class GuardedConfig(Part):
    """A loop whose list is compared with the engine's own."""

    on_worse: OnWorse = "engine"
    """What is done where the list is worse than the engine's own: keep serves it, engine serves the engine's own, error
    ends the search. The trace and the terminal say so, and experiments count it."""
    worse: float = Field(0.05, ge=0)
    """By how much the gap of what is served may exceed that of the engine's own list in a dimension, in the unit of
    `divergence` (nats). With on_worse: engine, exposure is given more weight before the engine's list is served. The
    action filter may raise the gap by as much. Larger values tolerate more."""
    floor: float = Field(0.4, ge=0, le=1)
    """The share of the relevance of the engine's own list that has to remain, by the engine's scores above the last of
    its list: 0 allows any loss, 1 none."""

    @property
    def guard(self) -> Guard:
        """What compares the two lists."""
        return Guard(self.on_worse, self.worse, self.floor)


class FairQRConfig(GuardedConfig):
    """FAIR-QR: the part `refine` proposes keywords for the most under-exposed group."""

    of_groups: ClassVar[bool] = True
    kind: Literal["fair-qr"] = "fair-qr"
    rerank_depth: int = Field(0, ge=0)
    """How many of the first documents of the refined list are re-ranked, never fewer than `n`; 0: all of them. About as
    many as are shown keep what the refinement has gained; with more, `rerank: original` brings the first list back."""
    on_worse: OnWorse = "keep"
    """What is done where the list is worse than the engine's own; the paper serves it."""

    def uses(self, settings: Settings) -> tuple[Part, ...]:
        """Who proposes keywords."""
        return (settings.refine,)

    def idle(self, settings: Settings) -> bool:
        """Without keywords or iterations."""
        return settings.iterations == 0 or settings.refine.idle(settings)

    def check(self, site: Site) -> None:
        """Raise SettingsError where fewer documents would be re-ranked than are shown and judged."""
        depth, n = self.rerank_depth, site.settings.n
        if 0 < depth < n and not self.idle(site.settings):
            raise SettingsError(f"rerank_depth is {depth}, and {n} documents are shown: re-rank {n} or more, or 0: all")

    def build(self, site: Site) -> FairQR:
        """The loop."""
        settings = site.settings
        refiner = settings.refine.build(site)
        limits = settings.iterations, settings.threshold, settings.candidates, self.rerank_depth
        return FairQR(refiner, *limits, self.guard)


class ControllerConfig(GuardedConfig):
    """The groups' own evidence, mixed into the query by weights that follow what each group lacks."""

    of_groups: ClassVar[bool] = True
    kind: Literal["controller"] = "controller"
    steps: int = Field(3, ge=0)
    """The most refinements of a query by the groups' evidence, each of which re-ranks the candidates; 0: none, only
    feedback. More steps come closer to the target, up to a point."""
    evidence: Annotated[tuple[Evidence, ...], SEVERAL] = Field(("feedback",), min_length=1)
    """What stands for a group in the refined query: feedback (words or vectors of its own best documents), or what the
    language model says in one call: llm (words), grounded (words, the model being shown those of its documents),
    passage (a short text), sentences (those of its documents that the model chooses). Of several the mean is taken."""
    passages: int = Field(1, ge=1)
    """How many passages the model writes of each group, in as many calls; for the evidence passage."""
    weighting: Weighting = "equal"
    """How much a model's text counts in the mean, the group's own documents being 1. equal: as much. relevance: by how
    relevant the candidates are that are most similar to it, as the engine estimates."""
    actions: Annotated[tuple[ActionName, ...], SEVERAL] = ("refine",)
    """What the loop may do: neighbors (takes in documents near those of groups that have too few; needs a corpus
    graph), judge (judges what evidence is learned from; needs `judge`), refine (mixes the evidence into the query),
    filter (applies the part `filter` to what would be served). An action without what it needs is not offered."""
    policy: Literal["rules", "model"] = "rules"
    """Who chooses the next action. rules: the first that can help, in the order neighbors, judge, refine, filter.
    model: the language model, with a call for each choice."""
    judge: JudgeSettings | None = None
    """Who judges the documents that evidence is learned from, e.g. {by: model} or {by: cross-encoder, scorer: NAME};
    for the action judge."""
    on_error: Literal["fallback", "fail"] = "fallback"
    """What is done where the model gives no usable reply, or the budget is used up. fallback: the groups' own documents
    are the evidence, the engine's scores the judgment, rules choose the next action, and nothing is filtered."""
    beta: float = Field(0.7, gt=0, lt=1)
    """The share of the groups' evidence in the refined query, between 0 and 1. Larger values lead further from the
    user's words."""
    rocchio: float = Field(0.7, ge=0, lt=1)
    """The share of what the first `feedback` documents have in common, whoever they are about, in the query's vector
    (relevance feedback after Rocchio), 0 to below 1; 0: none, and none of their words. It serves relevance: groups are
    distinguished after it."""
    terms: float = Field(0.2, ge=0, lt=1)
    """The share of the words of the groups' documents in the scores of an engine of words, 0 to below 1. Larger values
    lead further from the user's words."""
    eta: float = Field(0.5, gt=0)
    """The exponent of a control step: how strongly a group's weight follows what it lacks. 1 reaches the target sooner
    than 0.5, and costs a little relevance."""
    feedback: int = Field(20, ge=1)
    """How many documents evidence is learned from in each dimension, shared among its groups (each has 2 at least).
    More make it more stable and less specific."""
    smoothing: float = Field(0.02, gt=0)
    """Added to the shares of target and exposure (0 to 1) in the control law. Larger values damp the steps, above all
    of groups with small shares."""
    drift: float = Field(0.1, ge=0, le=1)
    """How much of the estimated relevance of the engine's own list an action may lose, as a share (0 to 1): 0 allows no
    loss, 1 any."""
    again: int = Field(300, ge=0)
    """How many documents the refined query retrieves over the whole collection, besides those of groups that have too
    few candidates; 0: only what the user's query retrieves is re-ranked. More take longer."""
    prior: float | None = Field(None, ge=0)
    """The weight of the types of documents (is this query about persons at all?) in the scores; 0: they do not count.
    Larger values lift documents of the type that has labels. Not set: 0.6 with a corpus graph, else 0.3."""

    @model_validator(mode="after")
    def _evidence_is_there(self) -> Self:
        if self.passages > 1 and "passage" not in self.evidence:
            raise ValueError("`passages` is for `evidence: passage`, and nothing without")
        if self.weighting != "equal" and not self.model_evidence:
            raise ValueError("`weighting` is for evidence of a model (llm, grounded, passage, sentences)")
        return self

    @property
    def model_evidence(self) -> tuple[EvidenceType, ...]:
        """The types of evidence that come from a model."""
        return tuple(one for one in get_args(EvidenceType) if one in self.evidence)

    @property
    def _judge(self) -> JudgeSettings | None:
        return self.judge if "judge" in self.actions else None

    def uses(self, settings: Settings) -> tuple[Part, ...]:
        """The filter, where that is one of the actions."""
        return (settings.filter,) if "filter" in self.actions else ()

    @property
    def templates(self) -> tuple[str, ...]:
        """Those of evidence, judge and policy."""
        evidence = templates_of(self.model_evidence) if self.steps else ()
        judging = self._judge.templates if self._judge else ()
        return (*evidence, *judging, *((CHOOSE,) if self.policy == "model" else ()))

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """Evidence requested once, everything judged, what takes a removed document's place filtered, each choice."""
        if self.steps:
            yield from worst_case(self.model_evidence, self.passages, case)
        if self._judge:
            yield from self._judge.worst_case(case)
        if "filter" in self.actions:
            context = case.settings.context.model_copy(update={"documents": ROUNDS * case.settings.n})
            longer = case.settings.model_copy(update={"context": context})
            yield from case.settings.filter.worst_case(Case(longer, case.prompts, case.queries, case.group))
        if self.policy == "model":
            others = len(set(self.actions) - {"refine"})
            yield case.calls(CHOOSE, self.steps * ("refine" in self.actions) + others, **longest_choice(case))

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the judge's model is not on this machine."""
        if self._judge:
            self._judge.check(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index whose terms it reads, and the graph of the engine's embeddings."""
        prepare_words(site, progress)
        prepare_graphs(site, progress)

    def build(self, site: Site) -> Controller:
        """The loop."""
        graph = graph_of(site)
        prior = self.prior if self.prior is not None else 0.6 if graph else 0.3
        grounded = "grounded" in self.evidence
        source = None if isinstance(site.engine, VectorEngine) and not grounded else words_of(site)
        asks = self.model_evidence and self.steps
        options = self.on_error, self.passages, self.weighting
        sources = Sources(self.model_evidence, site.model, site.prompts, *options) if asks else None
        return Controller(
            self._actions(site, graph),
            ModelPolicy(site.model, site.prompts, self.on_error) if self.policy == "model" else Rules(),
            Mixer(self.beta, source, "feedback" in self.evidence, self.terms, self.rocchio, self.feedback),
            self.feedback,
            self.drift,
            site.settings.threshold,
            prior,
            self.guard,
            TypeSource.of_collection(site.collection, graph, site.memo) if prior else None,
            sources,
            SecondSearch(site.collection.groups, site.memo, self.again) if self.again else None,
            self.on_error,
        )

    def _actions(self, site: Site, graph: Graph | None) -> tuple[Action, ...]:
        """Those that can be taken, in the order in which rules look at them."""
        made: dict[ActionName, Action] = {}
        if self.steps:
            made["refine"] = RefineAction(self.steps, self.eta, self.smoothing)
        if graph:
            made["neighbors"] = NeighborsAction(graph)
        if self._judge:
            made["judge"] = self._judge.build(site, self.on_error)
        if "filter" in self.actions and (filter := site.settings.filter.build(site)):
            made["filter"] = FilterAction(filter, self.worse)
        return tuple(made[name] for name in ORDER if name in made and name in self.actions)
