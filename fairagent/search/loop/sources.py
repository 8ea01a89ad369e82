"""What a language model says of the groups that lack candidates: words for each, or a short passage, in one call.

After Fair Generative Query Expansion (FGQE; Jaenich, McDonald and Ounis, ECIR 2025), which finds that a text written
without examples serves best. Its prompting strategies are not public; ours are words or a passage, without examples or,
with `prompts: few-shot`, with some. Each becomes a query of its own; the user's query orders what it finds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.asking import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import Calls, Case
from fairagent.llm.reply import list_within, one_for_each, text_like
from fairagent.retrieve.bm25.analysis import STOP_WORDS
from fairagent.search.loop.base import Lack
from fairagent.search.refine.asking import Proposed, prompt_keys, sift, words_of
from fairagent.types import Proposals, Query
from fairagent.types.clean import query_shown, visible

Says = Literal["keywords", "passages"]
MOST_GROUPS: Mapping[Says, int] = {"keywords": 12, "passages": 5}
"""How many groups one call is about, those that lack most: the reply fits into 400 tokens."""
MOST_WORDS = 5
"""Words that the model gives for a group."""
LONGEST_PASSAGE = 1000
"""Characters of a passage that are used; a server that holds bounds ends it after forty words, 300 characters."""
ECHO = "an echo of the prompt"
"""Why a passage is refused that has no words but those of the prompt: the query, the group's name."""

# Of any script, but it begins with a letter: small models begin with their group's number, and count on without an end.
PASSAGE = r"^([^ -@\[-`{-~\x00-\x1F][^\"\\\x00-\x1F]{0,299})?$"
"""The regular expression of a passage, for servers that hold bounds: up to 300 characters."""


class NumberedKeywords(Reply):
    """The words for one group, by its number in the call."""

    number: int
    keywords: Annotated[list[Proposed], list_within(MOST_WORDS)]


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


@dataclass(frozen=True, slots=True)
class Form:
    """How something is asked for: the `template`, its `reply`, in whose list `items` each group has an `item`."""

    template: str
    reply: type[Reply]
    items: str
    item: type[Reply]
    read: Callable[[Any, Query, frozenset[str], frozenset[str]], tuple[str, int, tuple[str, ...]]]
    """The query's text that an item comes to (""), how many of its parts are used, and what is refused; given the
    user's query, the words of the prompt, and the words of the keys in it."""


def _of_keywords(
    one: NumberedKeywords, query: Query, words: frozenset[str], keys: frozenset[str]
) -> tuple[str, int, tuple[str, ...]]:
    sifted = sift(one.keywords, query.text, (), keys)
    refused = (*sifted.refused, *(f"{word}: the query's own words" for word in sifted.repeated))
    return f"{query.text} {' '.join(sifted.usable)}" if sifted.usable else "", len(sifted.usable), refused


def _of_passage(
    one: NumberedPassage, query: Query, words: frozenset[str], keys: frozenset[str]
) -> tuple[str, int, tuple[str, ...]]:
    text = " ".join(visible(one.passage).split())[:LONGEST_PASSAGE]
    # What only repeats the query, the name of the group or what was asked says nothing of a group.
    if words_of(text) <= words | STOP_WORDS:
        return "", 0, (f"{text}: {ECHO}",) if text else ()
    return text, 1, ()


FORMS: Mapping[Says, Form] = {
    "keywords": Form("group_keywords", GroupKeywords, "groups", NumberedKeywords, _of_keywords),
    "passages": Form("group_passages", GroupPassages, "passages", NumberedPassage, _of_passage),
}


@dataclass(frozen=True, slots=True)
class Said:
    """The query that a model's words make for each group, None where they make none; the rest is for the trace."""

    queries: tuple[Query | None, ...]
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()


@dataclass(frozen=True, slots=True)
class Sources:
    """Asks `model` for what `says` names.

    Where the call fails, or its budget is used up, it says nothing, and a note gives the reason ("fallback"); or the
    error is raised ("fail").
    """

    says: Says
    model: Model
    prompts: Prompts
    on_error: Literal["fallback", "fail"] = "fallback"

    def ask(self, query: Query, lacks: Sequence[Lack]) -> Said:
        """What the model says of these groups. Raises FatalModelError, and with "fail" what else asking raises."""

        def nothing(error: ModelError | BudgetExceeded) -> Said:
            return Said((None,) * len(lacks), (f"the model says nothing of the groups: {error}",))

        return unless_failing(lambda: self._asked(query, lacks), self.on_error, nothing, unpaid=True)

    def _asked(self, query: Query, lacks: Sequence[Lack]) -> Said:
        form, some = FORMS[self.says], lacks[: MOST_GROUPS[self.says]]
        numbers = list(range(1, len(some) + 1))
        groups = [
            shown(number, lack.group.dimension, lack.group.label) for number, lack in zip(numbers, some, strict=True)
        ]
        bounds = {form.items: one_for_each(form.item, "number", numbers)}
        variables = {"query": query_shown(query.text), "groups": groups}
        request = self.prompts.request(form.template, variables, narrowed=bounds)
        reply, _ = ask(self.model, request, form.reply)
        words = words_of(" ".join(text for _, text in request.messages))
        keys = prompt_keys(request) | words_of(" ".join(lack.group.dimension for lack in some))
        queries: list[Query | None] = [None] * len(lacks)
        notes, refused, proposals = list[str](), list[str](), Proposals()
        for one in getattr(reply, form.items):
            text, usable, wrong = form.read(one, query, words, keys)
            # One with a number of no group, or of one that has its own already, is ignored.
            known = 1 <= one.number <= len(some) and queries[one.number - 1] is None
            proposals += Proposals(usable + len(wrong), usable if known else 0)
            refused += wrong
            if known and text:
                queries[one.number - 1] = Query(text, query.id)
                notes.append(f"{some[one.number - 1].group}: {text}")
        return Said(tuple(queries), tuple(notes), tuple(refused), proposals)


def shown(number: int, dimension: str, label: str) -> dict[str, object]:
    """A group as the model is shown it."""
    return {"number": number, "dimension": visible(dimension), "group": visible(label)}


def longest_asking(says: Says, case: Case) -> Iterator[Calls]:
    """A call for each query, about as many groups as one call may be."""
    yield case.calls(FORMS[says].template, 1, groups=[shown(10, *case.group)] * MOST_GROUPS[says])
