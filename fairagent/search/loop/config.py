"""The loops as parts of a pipeline, and the judge of a loop, as settings describe them."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairagent.answer.filtering import longest_calls
from fairagent.errors import SettingsError
from fairagent.llm.prompts.calls import Calls, Case
from fairagent.retrieve.bm25.part import prepare_words, words_at_hand
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.graph import graph_of, prepare_graphs
from fairagent.retrieve.site import Site
from fairagent.search.loop.actions import (
    ROUNDS,
    AmongGroup,
    AskModel,
    FilterAction,
    JudgeAction,
    Neighbors,
    OfDocuments,
    Widening,
)
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.loop.judges import RELEVANCE, ModelJudge, RelevanceJudge, ScorerJudge
from fairagent.search.loop.policy import CHOOSE, ActionName, ModelPolicy, longest_choice
from fairagent.search.loop.sources import FORMS, Says, Sources, longest_asking
from fairagent.search.loop.widen import Action, Widen, by_rules
from fairagent.search.rerank.base import pair_scorer
from fairagent.settings import Settings
from fairagent.settings.parts import Part, Progress
from fairagent.settings.section import Section


class JudgeSettings(Section):
    """Who reads the best documents of groups that lack exposure, and how many."""

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


SEVERAL = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
"""One name stands for a list of one."""
SAYS: tuple[Says, ...] = ("keywords", "passages")


class FairQRConfig(Part):
    """FAIR-QR: the part `refine` proposes keywords for the most under-exposed group."""

    of_groups: ClassVar[bool] = True
    kind: Literal["fair-qr"] = "fair-qr"
    rerank_depth: int = Field(0, ge=0)
    """How many of the first documents of the refined list are re-ranked, never fewer than `n`; 0: all of them. About as
    many as are shown keep what the refinement has gained; with more, `rerank: original` brings the first list back."""

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
        return FairQR(refiner, *limits)


class WidenConfig(Part):
    """Candidates of the groups that lack them come in; the user's own query orders all of them."""

    of_groups: ClassVar[bool] = True
    kind: Literal["widen"] = "widen"
    actions: Annotated[tuple[ActionName, ...], SEVERAL] = Field(("group", "documents"), min_length=1)
    """What the loop may do, each once, in this order, as long as a group lacks candidates. group: the user's query
    among the group's own documents, where the engine can be kept to some; documents: a query by what the group's best
    documents have in common; neighbors: documents near them (needs a corpus graph); keywords, passages: by what the
    language model says of the groups, in one call; judge: judges candidates of groups that lack exposure (needs
    `judge`); filter: applies the part `filter` to what would be served."""
    policy: Literal["rules", "model"] = "rules"
    """Who chooses the next action. rules: the first that could help. model: the language model, a call a choice."""
    judge: JudgeSettings | None = None
    """Who judges, e.g. {by: model} or {by: cross-encoder, scorer: NAME}; for the action judge."""
    on_error: Literal["fallback", "fail"] = "fallback"
    """What is done where the model gives no usable reply, or the budget is used up. fallback: the loop goes on without
    it: the engine's scores are the judgment, rules choose the next action, and nothing is filtered."""

    @model_validator(mode="after")
    def _judge_is_there(self) -> Self:
        if self.judge and "judge" not in self.actions:
            raise ValueError("`judge` is for the action judge: name it among the `actions`")
        return self

    @property
    def _judge(self) -> JudgeSettings | None:
        return (self.judge or JudgeSettings()) if "judge" in self.actions else None

    def uses(self, settings: Settings) -> tuple[Part, ...]:
        """The filter, where that is one of the actions."""
        return (settings.filter,) if "filter" in self.actions else ()

    @property
    def templates(self) -> tuple[str, ...]:
        """Those of what a model says, of the judge and of the policy."""
        said = (FORMS[one].template for one in SAYS if one in self.actions)
        judging = self._judge.templates if self._judge else ()
        return (*said, *judging, *((CHOOSE,) if self.policy == "model" else ()))

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """Everything said and judged once, what takes a removed document's place filtered, each choice."""
        for one in SAYS:
            if one in self.actions:
                yield from longest_asking(one, case)
        if self._judge:
            yield from self._judge.worst_case(case)
        if "filter" in self.actions:
            context = case.settings.context.model_copy(update={"documents": ROUNDS * case.settings.n})
            longer = case.settings.model_copy(update={"context": context})
            yield from case.settings.filter.worst_case(Case(longer, case.prompts, case.queries, case.group))
        if self.policy == "model":
            yield case.calls(CHOOSE, len(set(self.actions)), **longest_choice(case))

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the judge's model is not on this machine."""
        if self._judge:
            self._judge.check(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index whose terms it reads, and the graph of the engine's embeddings."""
        if "documents" in self.actions:
            prepare_words(site, progress)
        prepare_graphs(site, progress)

    def build(self, site: Site) -> Widen:
        """The loop."""
        made = (self._action(name, site) for name in dict.fromkeys(self.actions))
        actions = tuple(one for one in made if one)
        choose = ModelPolicy(site.model, site.prompts, self.on_error) if self.policy == "model" else by_rules
        return Widen(actions, choose, self.on_error)

    def _action(self, name: ActionName, site: Site) -> Action | None:
        """The action, None without what it needs."""
        if name == "group":
            return Widening(name, AmongGroup(site.collection.groups, site.memo, site.engine), AmongGroup.able)
        if name == "documents":
            source = words_at_hand(site)
            able = source is not None or isinstance(site.engine, VectorEngine)
            return Widening(name, OfDocuments(source), lambda search: able)
        if name == "neighbors":
            return Widening(name, Neighbors(graph)) if (graph := graph_of(site)) else None
        if name == "judge":
            return self._judge.build(site, self.on_error) if self._judge else None
        if name == "filter":
            return FilterAction(filter) if (filter := site.settings.filter.build(site)) else None
        return AskModel(name, Sources(name, site.model, site.prompts, self.on_error))
