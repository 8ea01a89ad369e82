"""Trying out a prompt template on a real search: the request, the model's reply, and its effect."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairagent.answer.filtering import Page, Verdicts, as_data, ask_verdicts, call_ids, page_of, reason_text
from fairagent.collection import Collection
from fairagent.collection.exposure import dimensions_of, total_gap
from fairagent.errors import BudgetExceeded, ModelError, ReplyError, UsageError
from fairagent.llm import Message, Model, ModelReply, ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.retrieve.base import Retriever, Vocabulary, texts_for
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.pipeline import build, check_groups, engine_alone, resolve, with_settings
from fairagent.search.refine import REFINERS, AskingRefiner, GroundedConfig, LlmConfig, RefineState, refining_part
from fairagent.settings import Settings
from fairagent.settings.faults import no_such
from fairagent.types import Group, Query, Refinement, SearchResult, Usage
from fairagent.types.clean import name_of, query_shown

READERS = ("answer", "ask", "attribute", "fairness_filter", "utility_filter")
"""Templates that are given what a search finds; the others are tried with examples."""

ANSWER = "Nothing is known about this."
"""The answer that `attribute` is tried with where none is given."""


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """A filled template; `about` says what it was filled with.

    Without messages the model would not be called, and `about` says why.
    """

    messages: tuple[Message, ...]
    about: str


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
    """A model that records its replies, usable or not, and why the last call came to none."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.texts: list[str] = []
        self.failed: ModelError | BudgetExceeded | None = None

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer."""
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


class _NoModel:
    def complete(self, request: ModelRequest) -> ModelReply:
        raise UsageError("a template that is only shown asks no model")


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


@dataclass(frozen=True, slots=True, eq=False)
class RefiningTryout:
    """One turn of the loop, with the refiner of `part` and its template among `prompts`.

    `agent` is one without a loop, `site` what it is built from, its engine included.
    """

    prompts: Prompts
    agent: FairAgent
    part: LlmConfig | GroundedConfig
    site: Site
    query: Query
    group: Group | None

    def show(self) -> FilledTemplate:
        """The first refinement's messages."""
        refiner = _RecordingRefiner(self.group)
        stopped = replace(self.agent, loop=FairQR(refiner, 1)).search(self.query).trace.stopped
        state = refiner.state
        if state is None:
            return FilledTemplate((), f"the loop would not ask: {stopped}")
        place = state.exposure.labels.index(state.group.label)
        share, target = state.exposure.shares[place], state.exposure.target[place]
        about = f"{self.query.text!r} aims at {state.group}: {share:.1%} of the exposure, target {target:.1%}"
        return FilledTemplate(self._asking(self.part, _NoModel()).messages(state), about)

    def send(self, model: RecordingModel) -> TryoutReply:
        """What the model proposes, and what the index and the loop do with it."""
        # What the template's own reply comes to, and nothing in its place.
        part = self.part.model_copy(update={"on_error": "keep"})
        refiner = _RecordingRefiner(self.group, self._asking(part, model))
        result = replace(self.agent, loop=FairQR(refiner, 1)).search(self.query)
        step, state, refinement = result.trace.steps[-1], refiner.state, refiner.refinement
        assert state is not None
        engine = self.agent.retriever
        rows = [
            EffectRow(
                term.text,
                f"{engine.document_frequency(term.text):,}" if isinstance(engine, Vocabulary) else "",
                f"added, weight {term.weight:.3g}",
            )
            for term in step.added
        ]
        rows += [EffectRow(word, "0", "dropped: not in the index") for word in step.dropped]
        for refused in refinement.refused:
            word, _, reason = refused.rpartition(": ")
            rows.append(EffectRow(word, "", f"refused: {reason}"))
        end = f"the loop stops: {result.trace.stopped}"
        if step.added:
            verdict = "accepted" if step.accepted else "discarded"
            end = f"the gap is {step.gap:.4f}, was {total_gap(state.exposures):.4f}: {verdict}"
        return TryoutReply(tuple(model.texts), refinement.usage, tuple(rows), end, result)

    def _asking(self, part: LlmConfig | GroundedConfig, model: Model) -> AskingRefiner:
        return replace(part.asking(model, self.site), prompts=self.prompts)


@dataclass(frozen=True, slots=True, eq=False)
class FillingTryout:
    """A template that no loop asks with: filled with the first `count` documents of `retriever`, or with examples."""

    prompts: Prompts
    id: str
    query: Query
    retriever: Retriever
    count: int
    answer: str

    def show(self) -> FilledTemplate:
        """The messages with these documents; with examples where no search gives the values."""
        if self.id not in READERS:
            # Here and not above: it reads a file.
            from fairagent.llm.prompts.template import specimens

            values = dict(specimens()[self.id])
            if "query" in values:
                values["query"] = query_shown(self.query.text)
            return FilledTemplate(
                self.prompts.render(self.id, **values), f"{self.id} with examples: no search fills it"
            )
        pages = self._pages()
        if not pages:
            return FilledTemplate((), f"{self.query.text!r} finds no document")
        shown: Sequence[object]
        if self.id == "answer":
            shown = [{"number": n, "title": page.title, "text": page.text} for n, page in enumerate(pages, start=1)]
        else:
            shown = as_data(call_ids(self.id, tuple(self._values().values()), pages), pages)
        about = f"{self.query.text!r} and the first documents: {', '.join(page.id for page in pages)}"
        return FilledTemplate(self.prompts.render(self.id, documents=shown, **self._values()), about)

    def send(self, model: RecordingModel) -> TryoutReply:
        """The model's reply as it is, or its verdicts; raises ReplyInvalid where these are none."""
        head = self.prompts[self.id].head
        if self.id not in READERS or head.reply != Verdicts.__name__:
            reply = model.complete(ModelRequest(self.show().messages, max_tokens=head.max_tokens))
            return TryoutReply(tuple(model.texts), reply.usage)
        pages = self._pages()
        verdicts, usage = ask_verdicts(model, self.prompts, self.id, pages, **self._values())
        rows = (
            EffectRow(
                name_of(page.title, page.text, page.id),
                "pass" if verdict.passed else "fail",
                reason_text(verdict.reason),
            )
            for page, verdict in zip(pages, verdicts, strict=True)
        )
        return TryoutReply(tuple(model.texts), usage, tuple(rows))

    def _pages(self) -> list[Page]:
        ids = self.retriever.search(self.query, self.count).ids
        return [page_of(document) for document in texts_for(self.query, ids, self.retriever)]

    def _values(self) -> dict[str, str]:
        values = {"query": query_shown(self.query.text)}
        return values | {"answer": self.answer or ANSWER} if self.id == "attribute" else values


Tryout = RefiningTryout | FillingTryout


def tryout_of(
    id: str, prompts: Prompts, site: Site, query: Query, group: str = "", documents: int = 3, answer: str = ""
) -> Tryout:
    """Template `id` of `prompts`, to be tried with a query."""
    aim = _group_named(group, site.collection, site.settings) if group else None
    if id not in REFINERS:
        return FillingTryout(prompts, id, query, engine_alone(site).retriever, documents, answer)
    part = refining_part(id, site.settings)
    check_groups(with_settings(site, resolve(site.settings, {"loop": "fair-qr", "refine": part})))
    # The tryout puts a refiner of its own into the loop.
    agent = build(with_settings(site, resolve(site.settings, {"loop": "none", "sampling": {"alpha": None}})))
    return RefiningTryout(prompts, agent, part, replace(site, engine=agent.retriever), query, aim)


def _group_named(label: str, collection: Collection, settings: Settings) -> Group:
    """The group of this label, in the first of the settings' dimensions that has it; UsageError where none has."""
    dimensions = dimensions_of(collection, settings)
    for dimension in dimensions:
        if label in collection.groups.labels(dimension):
            return Group(dimension, label)
    known = [one for name in dimensions for one in collection.groups.labels(name)]
    raise UsageError(no_such("group", label, known))
