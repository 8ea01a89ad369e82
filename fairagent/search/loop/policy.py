"""The policy `model`: a language model, or another agent, calls what the loop does next, and sees what each call did.

First come the actions that ask no model, in their order; then, where a group still lacks a place, the calls: a step of
the trace each, undone where it does not make what would be served better; last what must be done, such as a filter. So
nothing that is called can harm (see `fairagent.search.loop.widen`). The schemas of the tools are those of the models
that read what they are given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import Field, WithJsonSchema

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid, UsageError
from fairagent.llm import Model, ModelRequest, Reply, ask
from fairagent.llm.prompts import Prompts
from fairagent.llm.replies import read_object
from fairagent.llm.request import (
    BOUNDS,
    Tool,
    ToolCall,
    ToolCalls,
    any_of,
    calls_of,
    one_of,
    schema_of,
    text_within,
    without,
)
from fairagent.search.loop.base import Loop, Search, lacking
from fairagent.search.loop.group_words import GroupKeywords, NumberedKeywords, group_shown, read_groups
from fairagent.search.loop.widen import Action, LoopRun, Policy, State, Tried, among_words, lacks_exposure
from fairagent.search.refine import Proposed
from fairagent.settings.faults import no_such
from fairagent.types import Step, Usage
from fairagent.types.clean import query_shown, visible
from fairagent.types.common import counted

TEMPLATE = "steer_search"
MOST_GROUPS = 12
"""Groups that are shown, those that lack most first."""
SHORT = 200
"""Characters of what a call is given, as the trace has it."""
LONGEST_RESULT = 2000


class SearchForGroup(Reply):
    """Search with the user's words and one to five more that documents of a group have; what comes in competes."""

    number: int
    # A small model that may leave them out does.
    keywords: Annotated[list[Proposed], Field(json_schema_extra={"minItems": 1, "maxItems": 5})]


class JudgeGroup(Reply):
    """Have the best candidates of a group read; those that do not answer the query lose their places."""

    number: int


class FilterServed(Reply):
    """Have what would be served read; what is biased is taken out."""


class Stop(Reply):
    """End the search where nothing more would help; call it alone, and say why in a few words."""

    reason: Annotated[str, text_within(200)]


TOOLS: Mapping[str, type[Reply]] = {
    "search_for_group": SearchForGroup,
    "judge": JudgeGroup,
    "filter": FilterServed,
    "stop": Stop,
}


def tools_of(names: Iterable[str], groups: Sequence[Mapping[str, Any]] = ()) -> tuple[Tool, ...]:
    """These tools, for the numbers of these groups, if any."""
    number = {"number": one_of([one["number"] for one in groups])} if groups else {}
    forms = [(name, TOOLS[name]) for name in names]
    return tuple(
        Tool(name, form.__doc__ or "", schema_of(form, number if "number" in form.model_fields else None))
        for name, form in forms
    )


def tools_shown(tools: Iterable[Tool]) -> list[dict[str, object]]:
    """The tools as a prompt shows them."""
    return [{"name": one.name, "does": one.does, "arguments": without(BOUNDS, one.arguments)} for one in tools]


def groups_lacking(state: State) -> list[dict[str, object]]:
    """The groups that lack exposure, as a model is shown them; each keeps its number throughout a search."""
    return [
        group_shown(lack.place + 1, lack.group.dimension, lack.group.label)
        | {"share": f"{lack.share:.1%}", "target": f"{lack.target:.1%}"}
        | {"candidates": int((state.members(lack) > 0).sum())}
        for lack in lacking(state.reranked.exposures)[:MOST_GROUPS]
    ]


def _refused(tool: str, reason: str) -> Action:
    """What a call does that is not carried out, for this reason."""
    return Action(tool if tool in TOOLS else "no tool", lambda search, state: Tried(state.candidates, reason))


def _failed(error: Exception) -> Action:
    """A model that calls nothing, since it fails."""

    def act(search: Search, state: State) -> Tried:
        raise error

    return Action("model", act)


@dataclass(slots=True, eq=False)
class Toolbox:
    """Carries out calls on a loop, at most `left` more; `actions` are those that the search has, by name.

    `stopped` is why no more calls are carried out, "" as long as they are.
    """

    running: LoopRun
    actions: Mapping[str, Action]
    left: int
    stopped: str = ""
    done: list[Reply] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The tools that this search can use."""
        return [name for name in TOOLS if name in self.actions or name in ("search_for_group", "stop")]

    def carry_out(self, calls: Sequence[ToolCall], request: ModelRequest, chosen: Usage) -> list[str]:
        """What each of these calls came to, as the caller reads it; `request` is the model's, which took `chosen`."""
        results = list[str]()
        for place, call in enumerate(calls):
            if self.stopped:
                break
            if self.left:
                action = self._action(call, request)
            else:
                self.stopped = "the limit of calls is reached"
                action = _refused(call.name, f"{self.stopped}: {counted(len(calls) - place, 'call')} not carried out")
            self.left -= 1
            step, chosen = self.running.take(action, f"called with {visible(call.text)[:SHORT]}", chosen), Usage()
            self.stopped = self.stopped or self.running.failed
            results.append(_result(step, self.running.state))
        if not self.left:
            self.stopped = self.stopped or "the limit of calls is reached"
        return results

    def _action(self, call: ToolCall, request: ModelRequest) -> Action:
        """What a call does."""
        name = call.name
        if name not in self.names:
            return _refused(name, no_such("tool", visible(name), self.names))
        try:
            given: Any = read_object(call.text, TOOLS[name])[0]
        except ReplyInvalid as error:
            return _refused(name, str(error))
        if isinstance(given, FilterServed):
            could, why = self.actions[name].offer(self.running.search, self.running.state)
            return self.actions[name] if could else _refused(name, why)
        if given in self.done:
            return _refused(name, "it was called before, with the same")
        self.done.append(given)
        if isinstance(given, Stop):
            self.stopped = f"stopped: {visible(given.reason)[:SHORT]}"
            return _refused(name, self.stopped)
        # All others are about one group.
        exposures = self.running.state.reranked.exposures
        lack = next((lack for lack in lacking(exposures) if lack.place + 1 == given.number), None)
        if lack is None:
            there = 1 <= given.number <= sum(len(one.labels) for one in exposures)
            return _refused(name, f"group {given.number} {'lacks no exposure' if there else 'is not there'}")
        if of_group := self.actions[name].of_group if isinstance(given, JudgeGroup) else None:
            return Action(name, lambda search, state: of_group(search, state, lack))

        def act(search: Search, state: State) -> Tried:
            words = GroupKeywords(groups=[NumberedKeywords(number=1, keywords=given.keywords)])
            reply = read_groups("keywords", words, search.query, [lack.group], request, search.engine)
            return among_words(search, state, [(lack, max(1, round(lack.target * search.n)))], reply)

        return Action(name, act)


def _result(step: Step, state: State) -> str:
    """What a call came to, as JSON, at most `LONGEST_RESULT` characters of it."""
    before, after = step.objectives
    result = {
        "result": "accepted" if step.accepted else f"undone: {step.reason}",
        "J": {"before": round(before, 4), "after": round(after, 4)},
        "gap": {"before": round(step.was or 0.0, 4), "after": round(step.gap, 4)},
        "came_in": step.entered,
        "notes": step.notes,
        "in_no_document": step.dropped,
        "refused": step.refused,
        "groups": groups_lacking(state) if step.accepted else (),
    }
    full = {name: value for name, value in result.items() if value != ()}
    return json.dumps(full, ensure_ascii=False)[:LONGEST_RESULT]


Chooser = Callable[[Toolbox], str]
"""Calls tools, and says why it ended."""


def calling(choose: Chooser, most: int) -> Policy:
    """The policy that carries out what `choose` calls, at most so many calls."""

    def policy(running: LoopRun, actions: Sequence[Action]) -> str:
        running.in_order([one for one in actions if not one.must and one.of_group is None])
        stopped = running.failed or choose(Toolbox(running, {one.name: one for one in actions}, most))
        running.in_order([one for one in actions if one.must])
        return running.failed or stopped

    return policy


MOST_GIVEN = 20
"""Calls that another agent may have carried out in one search."""
GivenCalls = Annotated[
    tuple[ToolCall, ...],
    Field(max_length=MOST_GIVEN),
    WithJsonSchema({"type": "array", "maxItems": MOST_GIVEN, "items": any_of(tools_of(TOOLS))}),
]
"""Calls of another agent, whose schemas are those that a model gets."""


@runtime_checkable
class Steerable(Protocol):
    """A loop whose actions may be chosen by another policy."""

    def under(self, policy: Policy) -> Loop:
        """The loop under this policy."""
        ...


def steered(loop: object, calls: Sequence[ToolCall]) -> Loop:
    """The `loop` with these calls in place of what its settings choose; UsageError for a loop that takes none."""
    if not isinstance(loop, Steerable):
        raise UsageError("calls are carried out by loop: widen, and these settings have another loop or none")
    return loop.under(calling(these(calls), MOST_GIVEN))


def these(calls: Sequence[ToolCall]) -> Chooser:
    """Those calls, of whoever made them."""

    def choose(box: Toolbox) -> str:
        box.carry_out(calls, ModelRequest(()), Usage())
        return box.stopped or "all calls are carried out"

    return choose


@dataclass(frozen=True, slots=True)
class ModelChooser:
    """A language model calls tools, in at most so many `turns`, as long as a group lacks a place."""

    model: Model
    prompts: Prompts
    turns: int = 4

    def __call__(self, box: Toolbox) -> str:
        running = box.running
        lacks, why = lacks_exposure(running.search, running.state)
        if not lacks:
            return why
        groups, now = groups_lacking(running.state), running.state.reranked
        tools = tools_of(box.names, groups)
        variables = {
            "query": query_shown(running.search.query.text),
            "groups": groups,
            "objective": round(now.objective, 4),
            "gap": round(now.gap, 4),
            "tried": [f"{step.source}: {step.reason or 'accepted'}" for step in running.steps if step.objectives],
            "tools": tools_shown(tools),
        }
        request = self.prompts.request(TEMPLATE, variables)
        # Its examples, if any, are answers to other questions.
        shown = replace(request, messages=tuple(one for one in request.messages if one[0] != "assistant"))
        for _ in range(self.turns):
            request = replace(request, tools=tools, narrowed=calls_of(tools, box.left))
            try:
                reply, usage = ask(self.model, request, ToolCalls)
            except (ModelError, BudgetExceeded) as error:
                running.take(_failed(error), why, error.usage)
                return running.failed
            calls = reply.calls or [ToolCall(name="stop", arguments={"reason": "no tool is called"})]
            results = box.carry_out(calls, shown, usage)
            lacks, why = lacks_exposure(running.search, running.state)
            if box.stopped or not lacks:
                return box.stopped or why
            turn = ("assistant", ToolCalls(calls=calls).model_dump_json())
            request = replace(request, messages=(*request.messages, turn, *(("tool", one) for one in results)))
        return f"the model did not stop in {counted(self.turns, 'turn')}"
