"""Trying out a prompt template on a real search: the request, the model's reply, and its effect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairagent.answer.filtering import Verdicts, as_data, ask_verdicts, call_ids, page_of, reason_text
from fairagent.collection.exposure import dimensions_of, total_gap
from fairagent.errors import BudgetExceeded, ModelError, ReplyError, UsageError
from fairagent.llm import Message, Model, ModelReply, ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.template import specimens
from fairagent.retrieve.base import Vocabulary, texts_for
from fairagent.retrieve.site import Site
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.pipeline import build, check_groups, engine_alone, resolve, with_settings
from fairagent.search.refine import REFINERS, AskingRefiner, RefineState, refining_part
from fairagent.settings.faults import no_such
from fairagent.types import Group, Query, Refinement, SearchResult, Usage
from fairagent.types.clean import name_of, query_shown

READERS = ("answer", "ask", "attribute", "fairness_filter", "utility_filter")
"""Templates that are given what a search finds; the others are tried with examples."""

ANSWER = "Nothing is known about this."
"""The answer that `attribute` is tried with where none is given."""


class EffectRow(NamedTuple):
    """What became of a keyword or a document: `value` is a count or a verdict."""

    what: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class TryoutReply:
    """The outcome of sending it: the model's texts, what became of each item, and how it ended.

    `result` is the search in which a refining template was tried.
    """

    texts: tuple[str, ...]
    usage: Usage
    rows: tuple[EffectRow, ...] = ()
    end: str = ""
    result: SearchResult | None = None


class RecordingModel:
    """A model that records its replies, usable or not, and why the last call came to none; None: nobody asks it."""

    def __init__(self, model: Model | None) -> None:
        self.model = model
        self.texts: list[str] = []
        self.failed: ModelError | BudgetExceeded | None = None

    def complete(self, request: ModelRequest) -> ModelReply:
        assert self.model is not None
        try:
            reply = self.model.complete(request)
        except ReplyError as error:
            self.texts += filter(None, [error.raw])
            raise
        except (ModelError, BudgetExceeded) as error:
            self.failed = error
            raise
        self.texts.append(reply.text)
        return reply


@dataclass(frozen=True, slots=True)
class Tryout:
    """A filled template; `about` says what it was filled with, and `send` has a model reply to it.

    Without messages the model would not be called, and `about` says why.
    """

    messages: tuple[Message, ...]
    about: str
    send: Callable[[RecordingModel], TryoutReply]


def tryout_of(
    id: str, prompts: Prompts, site: Site, query: Query, group: str = "", documents: int = 3, answer: str = ""
) -> Tryout:
    """Template `id` of `prompts`, tried with a query; UsageError for a group that there is not.

    One that refines is shown, and sent, in a turn of the loop; another with the first `documents` of a search.
    """
    aim = None
    if group:
        names = dimensions_of(site.collection, site.settings)
        dimensions = {name: site.collection.groups.labels(name) for name in names}
        aim = next((Group(name, group) for name, labels in dimensions.items() if group in labels), None)
        if aim is None:
            known = [label for labels in dimensions.values() for label in labels]
            raise UsageError(no_such("group", group, known))
    if id in REFINERS:
        return _refining(id, prompts, site, query, aim)
    return _filling(id, prompts, site, query, documents, answer)


class _RecordingRefiner:
    """A refiner that records the loop's state, and asks `refiner` about `group` rather than the loop's."""

    def __init__(self, group: Group | None, refiner: AskingRefiner | None = None) -> None:
        self.group, self.refiner = group, refiner
        self.state: RefineState | None = None
        self.refinement = Refinement((), "none")

    def refine(self, state: RefineState) -> Refinement:
        self.state = replace(state, group=self.group or state.group)
        if self.refiner:
            self.refinement = self.refiner.refine(self.state)
        return self.refinement


def _refining(id: str, prompts: Prompts, site: Site, query: Query, group: Group | None) -> Tryout:
    part = refining_part(id, site.settings)
    check_groups(with_settings(site, resolve(site.settings, {"loop": "fair-qr", "refine": part})))
    # The tryout puts a refiner of its own into the loop.
    agent = build(with_settings(site, resolve(site.settings, {"loop": "none", "sampling": {"alpha": None}})))
    own = replace(site, engine=agent.retriever)

    def send(model: RecordingModel) -> TryoutReply:
        """What the model proposes, and what the index and the loop do with it."""
        # What the template's own reply comes to, and nothing in its place.
        asking = part.model_copy(update={"on_error": "keep"}).asking(model, own)
        refiner = _RecordingRefiner(group, replace(asking, prompts=prompts))
        result = replace(agent, loop=FairQR(refiner, 1)).search(query)
        step, state, refinement = result.trace.steps[-1], refiner.state, refiner.refinement
        assert state is not None
        engine, rows = agent.retriever, list[EffectRow]()
        for term in step.added:
            count = f"{engine.document_frequency(term.text):,}" if isinstance(engine, Vocabulary) else ""
            rows.append(EffectRow(term.text, count, f"added, weight {term.weight:.3g}"))
        rows += [EffectRow(word, "0", "dropped: not in the index") for word in step.dropped]
        for refused in refinement.refused:
            word, _, reason = refused.rpartition(": ")
            rows.append(EffectRow(word, "", f"refused: {reason}"))
        end = f"the loop stops: {result.trace.stopped}"
        if step.added:
            verdict = "accepted" if step.accepted else "discarded"
            end = f"the gap is {step.gap:.4f}, was {total_gap(state.exposures):.4f}: {verdict}"
        return TryoutReply(tuple(model.texts), refinement.usage, tuple(rows), end, result)

    shown = _RecordingRefiner(group)
    stopped = replace(agent, loop=FairQR(shown, 1)).search(query).trace.stopped
    if (state := shown.state) is None:
        return Tryout((), f"the loop would not ask: {stopped}", send)
    place = state.exposure.labels.index(state.group.label)
    share, target = state.exposure.shares[place], state.exposure.target[place]
    about = f"{query.text!r} aims at {state.group}: {share:.1%} of the exposure, target {target:.1%}"
    asking = part.asking(RecordingModel(None), own)
    return Tryout(replace(asking, prompts=prompts).messages(state), about, send)


def _filling(id: str, prompts: Prompts, site: Site, query: Query, count: int, answer: str) -> Tryout:
    values = {"query": query_shown(query.text)} | ({"answer": answer or ANSWER} if id == "attribute" else {})
    head = prompts[id].head

    def send(model: RecordingModel) -> TryoutReply:
        """The model's reply as it is, or its verdicts; raises ReplyInvalid where these are none."""
        if id not in READERS or head.reply != Verdicts.__name__:
            reply = model.complete(ModelRequest(messages, max_tokens=head.max_tokens))
            return TryoutReply(tuple(model.texts), reply.usage)
        verdicts, usage = ask_verdicts(model, prompts, id, pages, **values)
        rows = (
            EffectRow(
                name_of(page.title, page.text, page.id), "pass" if one.passed else "fail", reason_text(one.reason)
            )
            for page, one in zip(pages, verdicts, strict=True)
        )
        return TryoutReply(tuple(model.texts), usage, tuple(rows))

    if id not in READERS:
        examples = dict(specimens()[id])
        messages = prompts.render(id, **(examples | ({"query": values["query"]} if "query" in examples else {})))
        return Tryout(messages, f"{id} with examples: no search fills it", send)
    engine = engine_alone(site).retriever
    pages = [page_of(one) for one in texts_for(query, engine.search(query, count).ids, engine)]
    if not pages:
        return Tryout((), f"{query.text!r} finds no document", send)
    shown: Sequence[object]
    if id == "answer":
        shown = [{"number": n, "title": page.title, "text": page.text} for n, page in enumerate(pages, start=1)]
    else:
        shown = as_data(call_ids(id, tuple(values.values()), pages), pages)
    messages = prompts.render(id, documents=shown, **values)
    return Tryout(messages, f"{query.text!r} and the first documents: {', '.join(page.id for page in pages)}", send)
