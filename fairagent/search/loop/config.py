"""The loops as parts of a pipeline, and the judge of a loop, as settings describe them."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairagent.answer.filtering import longest_calls
from fairagent.errors import SettingsError
from fairagent.llm.prompts import LETTER, Calls, Case
from fairagent.retrieve.bm25.part import prepare_words, words_at_hand
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.graph import graph_of, prepare_graphs
from fairagent.retrieve.site import Site
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.loop.group_words import FORMS, Says, Sources, group_shown
from fairagent.search.loop.policy import (
    LONGEST_RESULT,
    MOST_GROUPS,
    TEMPLATE,
    TOOLS,
    ModelChooser,
    calling,
    tools_of,
    tools_shown,
)
from fairagent.search.loop.widen import (
    RELEVANCE,
    ROUNDS,
    Action,
    ModelJudge,
    Widen,
    among_group,
    by_model,
    filtering,
    judging,
    near_in,
    of_documents,
)
from fairagent.settings import Settings
from fairagent.settings.parts import Part, Progress
from fairagent.settings.section import Section


class JudgeSettings(Section):
    """How many of the best documents of groups that lack exposure the language model judges."""

    documents: int = Field(10, ge=1)
    """How many documents of each group are judged, the best first. More cost more calls, or time."""
    groups: int = Field(3, ge=1)
    """How many groups are judged, those that lack most exposure first. More cost more calls, or time."""
    batch: int = Field(5, ge=1)
    """How many documents the language model judges in one call. More need fewer calls; where a call fails, none of its
    documents is judged."""


SEVERAL = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
"""One name stands for a list of one."""
SAYS: tuple[Says, ...] = ("keywords", "passages")
ActionName = Literal["group", "documents", "neighbors", "keywords", "passages", "judge", "filter"]


class FairQRConfig(Part):
    """FAIR-QR: the part `refine` proposes keywords for the most under-exposed group."""

    of_groups: ClassVar[bool] = True
    kind: Literal["fair-qr"] = "fair-qr"
    rerank_depth: int = Field(0, ge=0)
    """How many of the first documents of the refined list are re-ranked, never fewer than `n`; 0: all of them. About as
    many as are shown keep what the refinement has gained; with more, `rerank: original` brings the first list back."""

    def uses(self, settings: Settings) -> tuple[Part, ...]:
        return (settings.refine,)

    def idle(self, settings: Settings) -> bool:
        return settings.iterations == 0 or settings.refine.idle(settings)

    def check(self, site: Site) -> None:
        """Raise SettingsError where fewer documents would be re-ranked than are shown and judged."""
        depth, n = self.rerank_depth, site.settings.n
        if 0 < depth < n and not self.idle(site.settings):
            raise SettingsError(f"rerank_depth is {depth}, and {n} documents are shown: re-rank {n} or more, or 0: all")

    def build(self, site: Site) -> FairQR:
        settings = site.settings
        return FairQR(
            refiner=settings.refine.build(site),
            iterations=settings.iterations,
            threshold=settings.threshold,
            candidates=settings.candidates,
            depth=self.rerank_depth,
        )


class WidenConfig(Part):
    """Candidates of the groups that lack them come in; the user's own query orders all of them."""

    of_groups: ClassVar[bool] = True
    kind: Literal["widen"] = "widen"
    actions: Annotated[tuple[ActionName, ...], SEVERAL] = Field(("group", "documents"), min_length=1)
    """What the loop may do, each once, in this order, as long as a group lacks candidates. group: the user's query
    among the group's own documents, where the engine can be kept to some; documents: a query by what the group's best
    documents have in common; neighbors: documents near them (needs a corpus graph); keywords, passages: by what the
    language model says of all groups that lack a place, in one call (`refine: llm` adds keywords); judge: judges
    candidates of groups that lack exposure (needs `judge`); filter: applies the part `filter` to what is served, and
    to what comes in later."""
    policy: Literal["order", "model"] = "order"
    """Who chooses. order: the actions are taken in their order. model: those that ask no model are; then, where a group
    still lacks a place, the language model calls tools, and sees what each call came to, undone unless the list is
    better for it: search_for_group (in place of keywords and passages), stop, and judge and filter where they are among
    the actions. A filter is applied in any case, at the end."""
    turns: int = Field(4, ge=1, le=20)
    """How many turns the model has under `policy: model`; in each it may call several tools."""
    calls: int = Field(8, ge=1, le=50)
    """How many calls of tools are carried out for one query."""
    judge: JudgeSettings | None = None
    """How many are judged, e.g. {documents: 20}; for the action judge."""
    on_error: Literal["fallback", "fail"] = "fallback"
    """What is done where the model gives no usable reply, or the budget is used up. fallback: the loop goes on without
    it: the engine's scores are the judgment. A filter has settings of its own for this."""

    @model_validator(mode="after")
    def _judge_is_there(self) -> Self:
        if self.judge and "judge" not in self.actions:
            raise ValueError("`judge` is for the action judge: name it among the `actions`")
        return self

    @property
    def _judge(self) -> JudgeSettings | None:
        return (self.judge or JudgeSettings()) if "judge" in self.actions else None

    def actions_under(self, settings: Settings) -> tuple[ActionName, ...]:
        """The actions, with keywords where `refine` names a model's and none of them asks for words.

        With `policy: model` a tool takes the place of these.
        """
        if self.policy == "model":
            return tuple(one for one in dict.fromkeys(self.actions) if one not in SAYS)
        asks = bool(settings.refine.templates and settings.model.name) and not {*SAYS} & {*self.actions}
        return (*dict.fromkeys(self.actions), *(("keywords",) if asks else ()))

    def asks_with(self, settings: Settings) -> tuple[str, ...]:
        added = {*self.actions_under(settings)} - {*self.actions}
        return (*(FORMS["keywords"].template for _ in added), *super().asks_with(settings))

    def uses(self, settings: Settings) -> tuple[Part, ...]:
        return (settings.filter,) if "filter" in self.actions else ()

    @property
    def templates(self) -> tuple[str, ...]:
        proposing = [FORMS[one].template for one in SAYS if one in self.actions]
        return (*([TEMPLATE] if self.policy == "model" else proposing), *((RELEVANCE,) if self._judge else ()))

    def worst_case(self, case: Case) -> Iterator[Calls]:
        for one in SAYS:
            if one in self.actions_under(case.settings):
                form = FORMS[one]
                yield case.calls(form.template, 1, groups=[group_shown(10, *case.group)] * form.most)
        if self.policy == "model":
            groups = [group_shown(10, *case.group) | dict.fromkeys(("share", "target", "candidates"), "10.0%")]
            tools, results = tools_shown(tools_of(TOOLS, groups)), [LETTER * LONGEST_RESULT] * self.calls
            shown: dict[str, Any] = {"groups": groups * MOST_GROUPS, "tools": tools, "objective": 0.1234, "gap": 0.1234}
            yield case.calls(TEMPLATE, self.turns, tried=results, **shown)
        if judge := self._judge:
            times, groups_judged = (self.calls, 1) if self.policy == "model" else (1, judge.groups)
            for _ in range(times):
                yield from longest_calls(case, RELEVANCE, judge.documents * groups_judged, judge.batch)
        if "filter" in self.actions:
            context = case.settings.context.model_copy(update={"documents": case.settings.n})
            served = Case(case.settings.model_copy(update={"context": context}), case.prompts, case.queries, case.group)
            for _ in range(ROUNDS):
                yield from case.settings.filter.worst_case(served)

    def prepare(self, site: Site, progress: Progress) -> None:
        if "documents" in self.actions:
            prepare_words(site, progress)
        prepare_graphs(site, progress)

    def build(self, site: Site) -> Widen:
        actions = (self._action(name, site) for name in self.actions_under(site.settings))
        policy = None
        if self.policy == "model":
            policy = calling(ModelChooser(site.model, site.prompts, self.turns), self.calls)
        return Widen(tuple(one for one in actions if one), self.on_error, policy)

    def _action(self, name: ActionName, site: Site) -> Action | None:
        """The action, None without what it needs."""
        if name == "group":
            return among_group(site.collection.groups, site.memo, site.engine)
        if name == "documents":
            source = words_at_hand(site)
            return of_documents(source, source is not None or isinstance(site.engine, VectorEngine))
        if name == "neighbors":
            return near_in(graph) if (graph := graph_of(site)) else None
        if name == "judge":
            chosen = self.judge or JudgeSettings()
            judge = ModelJudge(site.model, site.prompts, chosen.batch, self.on_error)
            return judging(judge, chosen.documents, chosen.groups)
        if name == "filter":
            return filtering(filter) if (filter := site.settings.filter.build(site)) else None
        return by_model(name, Sources(name, site.model, site.prompts, self.on_error))
