"""FairFilter: keeps documents that bring no bias into an answer or that an answer needs, and counts what it removes.

Source: FairFT and FairFilter (the second seed system), its section on FairFilter; prompts in this project's words.
Documents are shown to a model as visible text, cut to a length, under ids that no author can predict.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import BudgetExceeded, ModelError, ReplyError, ReplyInvalid
from fairagent.llm import Model, Reply, ask
from fairagent.llm.budget import in_threads
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.llm.request import VERDICT_TOKENS, estimate_tokens, one_for_each, text_within
from fairagent.retrieve.site import Site
from fairagent.settings import ModelSettings, Part
from fairagent.settings.seam import PartCall
from fairagent.storage.readers import Malformed, parse_json
from fairagent.types import UNKNOWN, Document, Filtered, Group, Query, Removal, Usage, Verdict
from fairagent.types.clean import query_shown, visible
from fairagent.types.common import GROUP_REMOVED, REMOVED, UNFINISHED, Alarm, Compat

LONGEST_TEXT = 8000
"""Characters of a document that a model sees: a passage of 512 tokens has about 2,500."""
LONGEST_TITLE = 300
LONGEST_BATCH, LONGEST_CALL = 40_000, 60_000
"""Bytes of the documents of a call with their verdicts, and of all that a call of the filter may have to say."""
MOST_IN_BATCH = 25
"""Documents in one call: their verdicts fit into the 2,000 tokens that the templates allow."""
CORRECTION = 400
"""Tokens kept free for what a model is told of a reply that could not be used."""
TEMPERATURE = 0.0
"""The paper's: the same documents are to get the same verdicts."""


@dataclass(frozen=True, slots=True)
class Page:
    """One document, cleaned and cut for a model, which never sees its `id`; `note`: what else it does not see."""

    id: str
    title: str
    text: str
    note: str = ""


def page_of(document: Document) -> Page:
    r"""The document without control, zero-width and bidirectional characters, cut to 8,000 (title: 300).

    >>> page_of(Document("d1", "A law\u200byer.", "Law"))
    Page(id='d1', title='Law', text='A lawyer.', note='hidden characters taken out: 1')
    """
    title, text = visible(document.title), visible(document.text)
    hidden = len(document.title) + len(document.text) - len(title) - len(text)
    notes = [f"hidden characters taken out: {hidden}"] if hidden else []
    if len(title) > LONGEST_TITLE:
        notes.append(f"title cut to {LONGEST_TITLE:,} of {len(title):,} characters")
    if len(text) > LONGEST_TEXT:
        notes.append(f"text cut to {LONGEST_TEXT:,} of {len(text):,} characters")
    return Page(document.id, title[:LONGEST_TITLE], text[:LONGEST_TEXT], "; ".join(notes))


def as_data(ids: Sequence[str], pages: Sequence[Page]) -> list[dict[str, str]]:
    """What a template gets as `documents`, to be shown as JSON: id, title and text of each page."""
    return [{"id": id, "title": page.title, "text": page.text} for id, page in zip(ids, pages, strict=True)]


def call_ids(prompt: str, variables: Sequence[str], pages: Sequence[Page]) -> tuple[str, ...]:
    """The ids of the pages in one call, made of `prompt` (a template's id), the other `variables`, and all pages.

    >>> call_ids("fairness_filter", ["lawyers"], [Page("d1", "", "A lawyer.")]) # doctest: +ELLIPSIS
    ('...',)
    """
    # Not random, so that a repeated run makes the same requests, whose replies are cached. Still no document can name
    # an id, its own or a neighbor's ("document 3f.. passes"): every id is a hash over all texts of the call, so that
    # writing one into a text changes all of them, even for an author who knows the query and the other documents.
    content = json.dumps([prompt, *variables, *([page.title, page.text] for page in pages)])
    digest = hashlib.sha256(content.encode()).hexdigest()
    places = range(len(pages))
    return tuple(hashlib.sha256(f"{digest} {place}".encode()).hexdigest()[:12] for place in places)


def longest_calls(
    case: Case, prompt: str, count: int, batch: int | None, room: int = LONGEST_BATCH, **variables: Any
) -> Iterator[Calls]:
    """The calls about `count` documents, `batch` in each, all of the greatest length that a model is shown."""
    page = Page("", LETTER * LONGEST_TITLE, LETTER * LONGEST_TEXT)
    for pages in batches([page] * count, batch, room):
        shown = as_data(call_ids(prompt, [""], pages), pages)
        yield case.calls(prompt, judged=len(pages), documents=shown, **variables)


def room_for(limits: ModelSettings, prompts: Prompts, prompt: str, query: str) -> int:
    """The bytes that documents and their verdicts can have in a call, within `limits.context` and a prompt."""
    around = estimate_tokens(*(text for _, text in prompts.render(prompt, query=query, documents=[])))
    context, longest = limits.context or LONGEST_CALL, prompts[prompt].longest_reply(limits.max_tokens)
    return min(LONGEST_CALL - 4 * around, 4 * (context - around - CORRECTION - longest))


def batches(pages: Sequence[Page], most: int | None, room: int = LONGEST_BATCH) -> Iterator[tuple[Page, ...]]:
    """The pages in their order, at most `most` (None: 25) and `room` bytes at a time, but one at least."""
    batch: list[Page] = []
    size = 0
    for page in pages:
        more = len(json.dumps([page.title, page.text], ensure_ascii=False).encode()) + 4 * VERDICT_TOKENS
        if batch and (len(batch) == (most or MOST_IN_BATCH) or size + more > room):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(page)
        size += more
    if batch:
        yield tuple(batch)


class DocumentVerdict(Reply):
    """What a model says about one document, under the id it was sent with."""

    id: str
    passed: bool = Field(alias="pass")
    # Twenty words, where a server holds bounds.
    reason: Annotated[str, text_within(160)]


class Verdicts(Reply):
    """A verdict for each id once, in the order of the documents; `pass` is true or false."""

    verdicts: list[DocumentVerdict]


def ask_verdicts(
    model: Model, prompts: Prompts, prompt: str, pages: Sequence[Page], **variables: str
) -> tuple[tuple[DocumentVerdict, ...], Usage]:
    """The model's verdicts on `pages`, in their order, and their usage; `variables` are the template's others.

    The reply has to hold each id of the call once, in the documents' order: where one is unknown, missing, repeated
    or in another's place, no verdict is certain to be its document's. It is then corrected, and after that ReplyInvalid
    raised; and what else `ask` raises.
    """
    ids = call_ids(prompt, tuple(variables.values()), pages)

    def accept(reply: Verdicts) -> None:
        check_ids(ids, [verdict.id for verdict in reply.verdicts])

    narrowed = {"verdicts": one_for_each(DocumentVerdict, "id", ids)}
    shown = {"documents": as_data(ids, pages), **variables}
    request = prompts.request(prompt, shown, TEMPERATURE, accept, narrowed, len(pages))
    reply, usage = ask(model, request, Verdicts)
    return tuple(reply.verdicts), usage


def check_ids(expected: Sequence[str], ids: Sequence[str]) -> None:
    """Raise ReplyInvalid, saying what to do, unless `ids` are the `expected` ones in their order.

    >>> check_ids(["a", "b"], ["b", "a"])
    Traceback (most recent call last):
    fairagent.errors.ReplyInvalid: the verdicts must have the ids of the documents in their order: a, b
    """
    if list(ids) == list(expected):
        return
    missing = ", ".join(id for id in expected if id not in ids)
    unknown = sum(id not in expected for id in ids)
    raise ReplyInvalid(
        f"the verdicts must have the ids of the documents in their order: {', '.join(expected)}"
        + (f"; missing: {missing}" if missing else "")
        + (f"; unknown: {unknown}" if unknown else "")
        + ("; an id is repeated" if len(set(ids)) < len(ids) else "")
    )


def reason_text(reason: str) -> str:
    """A model's reason as one short line."""
    text = " ".join(visible(reason).split())
    return text if len(text) <= 200 else f"{text[:200]} ..."


class Filter(Protocol):
    """Takes documents out of a context that would do harm to an answer: any object with this method will do."""

    def filter(self, query: str, documents: Sequence[Document]) -> Filtered:
        """The documents that stay, in the order given, and a verdict on every one of `documents`, in their order.

        Nothing is added and nothing changes its place. Raises FatalModelError and BudgetExceeded where no call of a
        model can succeed.
        """


def filter_with(
    filter: Filter, query: Query | str, documents: Sequence[Document], part: Part | None = None
) -> Filtered:
    """What the filter makes of the documents; PartError where it adds, moves or forgets one. `part` describes it."""
    with PartCall("filter", filter, query, part) as call:
        filtered = filter.filter(query if isinstance(query, str) else query.text, list(documents))
    given = call.one_of(filtered, Filtered)
    verdicts = [call.one_of(one, Verdict) for one in call.one_of(given.verdicts, tuple)]
    if [one.id for one in verdicts] != [one.id for one in documents]:
        raise call.fault(f"{len(verdicts):,} verdicts, expected one for each of {len(documents):,} documents")
    call.documents(given.documents, [one.id for one in verdicts if one.kept])
    return given


def parse_verdict(reply: str) -> bool:
    """Whether the reply passes a document, read as the authors' released code does; one that cannot be read does not.

    The text from the first { to the next } is put in lower case and read as JSON; its key "pass" has to be true, or the
    text "true". So neither quotes of the wrong sort nor a brace before the key are forgiven.

    >>> parse_verdict('Sure! {"Pass": True}'), parse_verdict('{"Pass": "yes"}'), parse_verdict("True")
    (True, False, False)
    """
    begin = reply.find("{")
    end = reply.find("}", begin)
    if begin < 0 or end < 0:
        return False
    try:
        passed = parse_json(reply[begin : end + 1].lower()).get("pass")
    except Malformed:
        return False
    return passed is True or passed == "true"


STEPS: Mapping[Compat, tuple[str, str]] = {
    None: ("fairness_filter", "utility_filter"),
    "authors": ("paper_fairness_filter", "paper_utility_filter"),
}
"""The templates of both steps: ours, and those that ask what the paper asks and no more."""


Opinion = tuple[bool | None, str]
"""Whether one step passes a document (None: no answer), and a note."""


@dataclass(frozen=True, slots=True)
class FairFilter:
    """Asks `model` two things about each document: is it fair, and if not: can the answer do without it?

    A document stays if it passes either step; `utility=False` leaves out the second (the paper's variant "Prompt").
    `batch` documents are judged in one call, None: as many as fit, 25 at most and within `limits.context`. So a text
    that tries to sway the model can sway the verdicts of its batch; with 1 (the paper's) its own alone, at a call for
    each document. `workers` calls run at a time.

    `on_error` says what becomes of a document without a usable verdict: "keep" it, "drop" it, or "fail". A budget that
    is used up ends the filter with BudgetExceeded ("fail"), or counts as such an error ("serve"): `on_budget`. With
    `compat="authors"` the model gets the paper's two questions (templates `paper_...`) about one document a call, and
    replies are read as the released code does (`parse_verdict`): what cannot be read has not passed.
    """

    model: Model
    prompts: Prompts
    batch: int | None = None
    workers: int = 8
    utility: bool = True
    on_error: Literal["keep", "drop", "fail"] = "keep"
    compat: Compat = None
    on_budget: Literal["fail", "serve"] = "fail"
    limits: ModelSettings = field(default_factory=ModelSettings)

    def filter(self, query: str, documents: Sequence[Document]) -> Filtered:
        """The documents that stay, in their order, with a verdict on every one; none at all may stay.

        `usage.seconds` is the sum over all calls, also of those that ran at the same time. Raises FatalModelError
        whatever `on_error` says, every other ModelError with "fail", and BudgetExceeded but with `on_budget` "serve".
        """
        shown = query_shown(query)
        pages = [page_of(document) for document in documents]
        if self.compat:
            parts = batches(pages, 1)
        else:
            rooms = (room_for(self.limits, self.prompts, step, shown) for step in STEPS[None][: 1 + self.utility])
            parts = batches(pages, self.batch, min(rooms))
        judged = in_threads(partial(self._judge, shown), parts, self.workers, "filter")
        verdicts = tuple(verdict for some, _ in judged for verdict in some)
        retained = tuple(document for document, verdict in zip(documents, verdicts, strict=True) if verdict.kept)
        return Filtered(retained, verdicts, sum((usage for _, usage in judged), Usage()))

    def _judge(self, query: str, pages: Sequence[Page]) -> tuple[list[Verdict], Usage]:
        """Both steps for one batch; the last one that a page was in decides."""
        fairness_step, utility_step = STEPS[self.compat]
        first, usage = self._ask(fairness_step, query, pages)
        unfair = [page for page, (fair, _) in zip(pages, first, strict=True) if fair is False]
        useful, more = self._ask(utility_step, query, unfair if self.utility else [])
        second = iter(useful)
        verdicts = []
        for page, (fair, note) in zip(pages, first, strict=True):
            needed, second_note = next(second) if self.utility and fair is False else (None, "")
            last = needed if self.utility and fair is False else fair
            stays = self.on_error == "keep" if last is None else last
            unjudged = "" if last is not None else "kept all the same" if stays else "dropped"
            notes = "; ".join(filter(None, (note, second_note, unjudged, page.note)))
            verdicts.append(Verdict(page.id, stays, fair, needed, notes))
        return verdicts, usage + more

    def _ask(self, prompt: str, query: str, pages: Sequence[Page]) -> tuple[list[Opinion], Usage]:
        """One step's opinion on each of the pages, in one call."""
        if not pages:
            return [], Usage()

        def opinions() -> tuple[list[Opinion], Usage]:
            if self.compat:
                (page,) = pages
                variables = {"query": query, "document": f"{page.title}\n{page.text}".strip()}
                # Even a reply that was cut off may hold the whole object.
                request = replace(self.prompts.request(prompt, variables, TEMPERATURE), whole=False)
                answer = self.model.complete(request)
                return [(parse_verdict(answer.text), "")], answer.usage
            verdicts, usage = ask_verdicts(self.model, self.prompts, prompt, pages, query=query)
            return [(verdict.passed, reason_text(verdict.reason)) for verdict in verdicts], usage

        def otherwise(error: ModelError | BudgetExceeded) -> tuple[list[Opinion], Usage]:
            if isinstance(error, ReplyError) and len(pages) > 1:
                # One text that makes the model decline or ramble must not cost its neighbors their verdicts.
                singly = [self._ask(prompt, query, [page]) for page in pages]
                return [opinion for (opinion,), _ in singly], sum((usage for _, usage in singly), error.usage)
            if self.compat and isinstance(error, ReplyError):
                return [(False, f"nothing to read: {reason_text(str(error))}")], error.usage
            if self.on_error == "fail":
                raise error
            return [(None, f"not judged: {reason_text(str(error))}")] * len(pages), error.usage

        return unless_failing(opinions, "keep", otherwise, unpaid=self.on_budget == "serve")


class FairFilterConfig(Part):
    """FairFilter: takes out what would bring bias into an answer that does not need it."""

    kind: Literal["fair"] = "fair"
    batch: int | None = Field(None, ge=1)
    """Documents that are judged in one call; empty: as many as fit, 25 at most. A text that tries to sway the model can
    sway the verdicts of its batch: 1, the paper's, is the safest, and takes a call for each document."""
    utility: bool = True
    """Whether a biased document stays if the answer needs it; no is the paper's variant "Prompt"."""
    on_error: Literal["keep", "drop", "fail"] = "keep"
    """What becomes of a document that the model gives no usable verdict on."""
    on_budget: Literal["fail", "serve"] = "fail"
    """What is done when the budget is used up. fail: the search or answer ends with that error. serve: documents
    without a verdict are treated as `on_error` says, and an alarm names their number."""
    compat: Compat = None
    """authors: the paper's two questions and no more, about one document a call, replies read as its code does: what it
    cannot read fails."""

    @model_validator(mode="after")
    def _one_by_one(self) -> Self:
        if self.compat and self.batch not in (None, 1):
            raise ValueError("the paper's questions are about one document; leave out batch, or compat")
        return self

    @property
    def templates(self) -> tuple[str, ...]:
        return STEPS[self.compat] if self.utility else STEPS[self.compat][:1]

    def worst_case(self, case: Case) -> Iterator[Calls]:
        documents = case.settings.context.documents
        for step in self.templates:
            if self.compat:
                yield case.calls(step, documents, document=LETTER * (LONGEST_TITLE + LONGEST_TEXT))
            else:
                query = max(case.queries, key=len, default="")
                room = room_for(case.settings.model, case.prompts, step, query)
                yield from longest_calls(case, step, documents, self.batch, room)

    def build(self, site: Site) -> FairFilter:
        return FairFilter(
            site.model,
            site.prompts,
            self.batch,
            utility=self.utility,
            on_error=self.on_error,
            compat=self.compat,
            on_budget=self.on_budget,
            limits=site.settings.model,
        )


def removal_warnings(run: Sequence[Removal]) -> tuple[str, ...]:
    """A sentence for each known group that lost more of its documents than chance explains.

    For each group, Fisher's exact test (one-sided, on counts rounded to whole documents) compares what it lost with
    what all other documents of the dimension lost; the level of 5 % is shared out among the groups seen (Bonferroni).
    Meant for a whole run: ten documents of one query rarely suffice. A document that comes up for several queries
    counts each time. A warning is a reason to look, no proof: a group's documents may really do more harm.

    >>> lost = [Removal(Group("gender", "female"), 50, 30), Removal(Group("gender", "male"), 100, 20)]
    >>> [warning] = removal_warnings(lost)
    >>> warning
    'the filter removed 60% of the documents of female (gender), 30 of 50, but 20% of all others, 20 of 100 (p < 0.001)'
    """
    # Imported here, since scipy.stats takes a while to load.
    from scipy.stats import fisher_exact

    warnings = []
    for dimension in dict.fromkeys(removal.group.dimension for removal in run):
        counts = {one.group: (round(one.removed), round(one.seen)) for one in run if one.group.dimension == dimension}
        all_gone, all_seen = np.sum(list(counts.values()), axis=0).tolist()
        known = [group for group, (_, seen) in counts.items() if group.label != UNKNOWN and seen]
        for group in known:
            gone, seen = counts[group]
            others_gone, others_seen = all_gone - gone, all_seen - seen
            table = np.array([[gone, seen - gone], [others_gone, others_seen - others_gone]])
            p = float(fisher_exact(table, alternative="greater").pvalue)
            if p < 0.05 / len(known):
                chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
                warnings.append(
                    f"the filter removed {gone / seen:.0%} of the documents of {group}, {gone} of {seen}, but "
                    f"{others_gone / others_seen:.0%} of all others, {others_gone} of {others_seen} ({chance})"
                )
    return tuple(warnings)


def removed_by(verdicts: Sequence[Verdict], meter: ExposureMeter) -> tuple[Removal, ...]:
    """What each group that `meter` knows lost to a filter, for each dimension unknown first."""
    return left_out([one.id for one in verdicts], [not one.kept for one in verdicts], meter)


def left_out(ids: Sequence[str], out: Sequence[bool], meter: ExposureMeter) -> tuple[Removal, ...]:
    """What each group has in these documents, and in those of them that are `out`."""
    gone = np.array(out, dtype=np.float64)
    groups: list[Removal] = []
    for target, rows in zip(meter.targets, meter.memberships(ids), strict=True):
        pairs = zip([UNKNOWN, *target.labels], rows.sum(axis=0), gone @ rows, strict=True)
        groups += [Removal(Group(target.dimension, label), float(seen), float(lost)) for label, seen, lost in pairs]
    return tuple(groups)


def filter_alarms(verdicts: Sequence[Verdict], removed: Sequence[Removal] = ()) -> tuple[Alarm, ...]:
    """That a filter removed most documents, gave no verdict on some, or took far more of one group than of the others.

    >>> [str(alarm) for alarm in filter_alarms([Verdict("d1", False, False, False)])]
    ['most documents removed: the filter removed 1 of 1']
    """
    gone, missing = sum(not one.kept for one in verdicts), [one for one in verdicts if not one.complete]
    most = [Alarm(REMOVED, f"the filter removed {gone} of {len(verdicts)}")] if 2 * gone > len(verdicts) else []
    groups = [Alarm(GROUP_REMOVED, warning) for warning in removal_warnings(removed)]
    remaining = sum(one.kept for one in missing)
    unfinished = f"no verdict on {len(missing)} of {len(verdicts)} documents, of which {remaining} were kept"
    return (*most, *([Alarm(UNFINISHED, unfinished)] if missing else []), *groups)
