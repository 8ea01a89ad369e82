"""What a language model is asked about groups that lack exposure: words or a passage for each, sifted and checked.

What a model is asked for follows Fair Generative Query Expansion (FGQE; Jaenich, McDonald and Ounis, ECIR 2025), which
finds that a text written without examples serves best. Its prompts are not public; ours ask for words or a passage,
without examples or, with `prompts: few-shot`, with some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

from fairagent.errors import ReplyInvalid
from fairagent.llm import Model, ModelRequest, Reply, ask
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.replies import parse_reply
from fairagent.llm.request import list_within, one_for_each, text_like
from fairagent.retrieve.base import Vocabulary
from fairagent.retrieve.bm25.analysis import STOP_WORDS
from fairagent.search.loop.base import Lack
from fairagent.search.refine import Proposed, prompt_keys, sift, words_of
from fairagent.types import Group, Proposals, Query
from fairagent.types.clean import query_shown, visible

Says = Literal["keywords", "passages"]
# Any script is allowed, but it begins with a letter: small models start with a number, and count on without end.
PASSAGE = r"^([^ -@\[-`{-~\x00-\x1F][^\"\\\x00-\x1F]{0,299})?$"
"""The regular expression of a passage, for servers that hold bounds: up to 300 characters."""


class NumberedKeywords(Reply):
    """The words for one group, by its number in the call."""

    number: int
    keywords: Annotated[list[Proposed], list_within(5)]


class GroupKeywords(Reply):
    """Keywords for each group; those with a number of no group are ignored."""

    groups: list[NumberedKeywords]


class NumberedPassage(Reply):
    """The passage for one group, by its number in the call."""

    number: int
    passage: Annotated[str, text_like(PASSAGE)]


class GroupPassages(Reply):
    """A passage for each group, of which 1,000 characters are used; one with a number of no group is ignored.

    A passage without a word that the prompt lacks (an echo of the query, or of the group's name) is refused.
    """

    passages: list[NumberedPassage]


class Form(NamedTuple):
    """How something is asked for: the `template`, and its `reply`, in whose list `items` each group has an `item`.

    One call is about the `most` groups that lack most.
    """

    template: str
    reply: type[Reply]
    items: str
    item: type[Reply]
    most: int


FORMS: Mapping[Says, Form] = {
    "keywords": Form("group_keywords", GroupKeywords, "groups", NumberedKeywords, 12),
    "passages": Form("group_passages", GroupPassages, "passages", NumberedPassage, 5),
}


@dataclass(frozen=True, slots=True)
class GroupQueries:
    """The query for each group, None where the model's words make none; the rest is for the trace.

    `words` are the keywords of each group, none where it has a passage; `dropped` are those that no document holds.
    """

    queries: tuple[Query | None, ...]
    words: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()

    @property
    def useless(self) -> bool:
        """Whether something is refused, and nothing was worth looking for."""
        return bool(self.refused) and not self.dropped and not any(self.queries)


@dataclass(frozen=True, slots=True)
class Sources:
    """Asks `model` for what `says` names; if that fails, there is a note and no query ("fallback"), or an error.

    A reply all of which is refused is requested once more, without the examples of the prompt.
    """

    says: Says
    model: Model
    prompts: Prompts
    on_error: Literal["fallback", "fail"] = "fallback"

    def ask(self, query: Query, lacks: Sequence[Lack], engine: object = None) -> GroupQueries:
        """The queries for these groups, without words that no document of the `engine` holds.

        Raises FatalModelError, and with "fail" what else asking raises.
        """
        reads: list[GroupQueries] = []

        def silent(error: Exception) -> GroupQueries:
            return GroupQueries((None,) * len(lacks), notes=(f"the model says nothing of the groups: {error}",))

        last = unless_failing(lambda: self._reply(query, lacks, engine, reads), self.on_error, silent, unpaid=True)
        useless = [one for one in reads if one.useless]
        refused = dict.fromkeys(word for one in (*useless, last) for word in one.refused)
        proposals = sum((one.proposals for one in useless), last.proposals)
        return replace(last, refused=tuple(refused), proposals=proposals)

    def _reply(self, query: Query, lacks: Sequence[Lack], engine: object, reads: list[GroupQueries]) -> GroupQueries:
        """What the model's reply comes to; every reply that is read, the useless ones too, is added to `reads`."""
        form = FORMS[self.says]
        groups = [one.group for one in lacks[: form.most]]
        numbers = list(range(1, len(groups) + 1))
        shown = [group_shown(number, one.dimension, one.label) for number, one in zip(numbers, groups, strict=True)]
        variables = {"query": query_shown(query.text), "groups": shown}
        narrowed = {form.items: one_for_each(form.item, "number", numbers)}

        def accept(reply: Reply) -> None:
            reads.append(read := read_groups(self.says, reply, query, groups, request, engine))
            if read.useless:
                error = ReplyInvalid(f"nothing in it is of use: {'; '.join(read.refused[:3])}")
                error.echo = True
                raise error

        request = self.prompts.request(form.template, variables, narrowed=narrowed, accept=accept)
        ask(self.model, request, form.reply)
        read = reads[-1]
        rest = (None,) * (len(lacks) - len(groups))
        return replace(read, queries=(*read.queries, *rest), words=(*read.words, *((),) * len(rest)))


def read_groups(
    says: Says, reply: Reply, query: Query, groups: Sequence[Group], request: ModelRequest, engine: object
) -> GroupQueries:
    """The queries that a reply to `request` makes for the `groups`."""
    form = FORMS[says]
    seen = words_of(" ".join(text for _, text in request.messages))
    keys = prompt_keys(replace(request, reply=form.reply)) | words_of(" ".join(group.dimension for group in groups))
    examples = [parse_reply(text, form.reply) for role, text in request.messages if role == "assistant"]
    answers = [_said(item) for example in examples for item in getattr(example, form.items)]
    queries: list[Query | None] = [None] * len(groups)
    words: list[tuple[str, ...]] = [()] * len(groups)
    notes, dropped, refused, proposals = list[str](), list[str](), list[str](), Proposals()
    for one in getattr(reply, form.items):
        usable, bad, absent, text = list[str](), list[str](), list[str](), ""
        if _said(one) and _said(one) in answers:
            bad = [f"{', '.join(sorted(_said(one)))}: the answer of an example"]
        elif says == "keywords":
            sifted = sift(one.keywords, query.text, (), keys)
            bad = [*sifted.refused, *(f"{word}: the query's own words" for word in sifted.repeated)]
            usable = list(sifted.usable)
            if isinstance(engine, Vocabulary):
                absent = [word for word in usable if not engine.document_frequency(word)]
                usable = [word for word in usable if word not in absent]
            text = f"{query.text} {' '.join(usable)}" if usable else ""
        elif passage := " ".join(visible(one.passage).split())[:1000]:
            # A passage that only repeats words of the prompt says nothing about the group.
            if words_of(passage) <= seen | STOP_WORDS:
                bad = [f"{passage}: an echo of the prompt"]
            else:
                text, usable = passage, [passage]
        # An item is ignored if its number is no group's, or if that group has a query already.
        known = 1 <= one.number <= len(groups) and queries[one.number - 1] is None
        proposals += Proposals(len(usable) + len(bad) + len(absent), len(usable) if known else 0)
        refused += bad
        dropped += absent
        if known and text:
            queries[one.number - 1] = Query(text, query.id)
            if says == "keywords":
                words[one.number - 1] = tuple(usable)
            else:
                notes.append(f"{groups[one.number - 1]}: {text}")
    return GroupQueries(tuple(queries), tuple(words), tuple(notes), tuple(dropped), tuple(refused), proposals)


def _said(item: Any) -> frozenset[str]:
    """The keywords of a reply about one group, or its passage, in one writing."""
    texts = getattr(item, "keywords", None) or [getattr(item, "passage", "")]
    return frozenset(filter(None, (" ".join(text.casefold().split()) for text in texts)))


def group_shown(number: int, dimension: str, label: str) -> dict[str, object]:
    """A group as the model is shown it."""
    return {"number": number, "dimension": visible(dimension), "group": visible(label)}
