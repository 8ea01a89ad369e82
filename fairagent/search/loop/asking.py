"""What the loop asks a model: words or a passage for each group that lacks candidates, and whether texts are relevant.

After Fair Generative Query Expansion (FGQE; Jaenich, McDonald and Ounis, ECIR 2025), which finds that a text written
without examples serves best. Its prompting strategies are not public; ours are words or a passage, without examples or,
with `prompts: few-shot`, with some. Each becomes a query of its own; the user's query orders what it finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from fairagent.answer.filtering import Page, ask_verdicts, batches, page_of
from fairagent.llm import Model, Reply, ask
from fairagent.llm.budget import in_threads
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import list_within, one_for_each, text_like
from fairagent.retrieve.bm25.analysis import STOP_WORDS
from fairagent.search.loop.base import Lack
from fairagent.search.refine.asking import Proposed, prompt_keys, sift, words_of
from fairagent.types import Document, Proposals, Query
from fairagent.types.clean import query_shown, visible

RELEVANCE = "judge_relevance"
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
    """The query for each group, None where the model's words make none; the rest is for the trace."""

    queries: tuple[Query | None, ...]
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()


@dataclass(frozen=True, slots=True)
class Sources:
    """Asks `model` for what `says` names; if that fails, there is a note and no query ("fallback"), or an error."""

    says: Says
    model: Model
    prompts: Prompts
    on_error: Literal["fallback", "fail"] = "fallback"

    def ask(self, query: Query, lacks: Sequence[Lack]) -> GroupQueries:
        """The queries for these groups; raises FatalModelError, and with "fail" what else asking raises."""
        return unless_failing(
            lambda: self._reply(query, lacks),
            self.on_error,
            lambda error: GroupQueries((None,) * len(lacks), (f"the model says nothing of the groups: {error}",)),
            unpaid=True,
        )

    def _reply(self, query: Query, lacks: Sequence[Lack]) -> GroupQueries:
        form = FORMS[self.says]
        groups = [one.group for one in lacks[: form.most]]
        numbers = list(range(1, len(groups) + 1))
        shown = [group_shown(number, one.dimension, one.label) for number, one in zip(numbers, groups, strict=True)]
        variables = {"query": query_shown(query.text), "groups": shown}
        narrowed = {form.items: one_for_each(form.item, "number", numbers)}
        request = self.prompts.request(form.template, variables, narrowed=narrowed)
        reply, _ = ask(self.model, request, form.reply)
        words = words_of(" ".join(text for _, text in request.messages))
        keys = prompt_keys(request) | words_of(" ".join(group.dimension for group in groups))
        queries: list[Query | None] = [None] * len(lacks)
        notes, refused, proposals = list[str](), list[str](), Proposals()
        for one in getattr(reply, form.items):
            text, usable, bad = "", 0, list[str]()
            if self.says == "keywords":
                sifted = sift(one.keywords, query.text, (), keys)
                usable = len(sifted.usable)
                bad = [*sifted.refused, *(f"{word}: the query's own words" for word in sifted.repeated)]
                text = f"{query.text} {' '.join(sifted.usable)}" if usable else ""
            elif passage := " ".join(visible(one.passage).split())[:1000]:
                # A passage that only repeats words of the prompt says nothing about the group.
                if words_of(passage) <= words | STOP_WORDS:
                    bad = [f"{passage}: an echo of the prompt"]
                else:
                    text, usable = passage, 1
            # An item is ignored if its number is no group's, or if that group has a query already.
            known = 1 <= one.number <= len(groups) and queries[one.number - 1] is None
            proposals += Proposals(usable + len(bad), usable if known else 0)
            refused += bad
            if known and text:
                queries[one.number - 1] = Query(text, query.id)
                notes.append(f"{groups[one.number - 1]}: {text}")
        return GroupQueries(tuple(queries), tuple(notes), tuple(refused), proposals)


def group_shown(number: int, dimension: str, label: str) -> dict[str, object]:
    """A group as the model is shown it."""
    return {"number": number, "dimension": visible(dimension), "group": visible(label)}


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A language model's yes or no with the template `judge_relevance`, `batch` documents a call, eight at a time.

    Where a call fails, its documents are not judged ("fallback"), or the error is raised ("fail").
    """

    model: Model
    prompts: Prompts
    batch: int = 5
    on_error: Literal["fallback", "fail"] = "fallback"

    def judge(self, query: str, documents: Sequence[Document]) -> tuple[list[float | None], tuple[str, ...]]:
        """The chance in [0, 1] that each document is relevant, None where it was not judged, and notes that say why.

        Raises FatalModelError, and with "fail" what else asking raises.
        """

        def reply(pages: Sequence[Page]) -> tuple[list[float | None], str]:
            def judged() -> tuple[list[float | None], str]:
                verdicts, _ = ask_verdicts(self.model, self.prompts, RELEVANCE, pages, query=query_shown(query))
                return [float(verdict.passed) for verdict in verdicts], ""

            unjudged: list[float | None] = [None] * len(pages)
            return unless_failing(judged, self.on_error, lambda error: (unjudged, str(error)), unpaid=True)

        replies = in_threads(reply, batches(list(map(page_of, documents)), self.batch), 8, "judge")
        chances = [chance for some, _ in replies for chance in some]
        failures = dict.fromkeys(failure for _, failure in replies if failure)
        missing = sum(chance is None for chance in chances)
        notes = (f"{missing} of {len(chances)} documents were not judged: {failure}" for failure in failures)
        return chances, tuple(notes)
