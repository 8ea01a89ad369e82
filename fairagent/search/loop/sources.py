"""Evidence that a language model gives: words, or a passage, for every group that lacks exposure, in one call.

After Fair Generative Query Expansion (FGQE; Jaenich, McDonald and Ounis, ECIR 2025), which finds that a text written
without examples serves best. Its four prompting strategies are not public; ours are words or a passage, each without
examples or, with `prompts: few-shot`, with some.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.asking import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import STAND_IN, Calls, Case
from fairagent.llm.reply import list_within, one_for_each, text_like
from fairagent.search.loop.base import Lack
from fairagent.search.refine.asking import Proposed, sift, words_of
from fairagent.types import Term
from fairagent.types.clean import query_shown, visible

EvidenceType = Literal["llm", "grounded", "passage"]
KEYWORDS, PASSAGES = "group_keywords", "group_passages"
MOST_GROUPS = {"llm": 12, "grounded": 12, "passage": 5}
"""How many groups one call is about, those that lack most: the reply fits into 400 tokens."""
SHOWN_WORDS = 15
"""Words of a group's documents that the model is shown."""
MOST_WORDS = 5
"""Words that the model gives for a group."""
LONGEST_PASSAGE = 1000
"""Characters of a passage that are used; a server that holds bounds ends it after forty words, 300 characters."""

# Of any script, but it begins with a letter: small models begin with their group's number, and count on without an end.
PASSAGE = r"^([^ -@\[-`{-~\x00-\x1F][^\"\\\x00-\x1F]{0,299})?$"
"""The regular expression of a passage, for servers that hold bounds: up to 300 characters."""

_WORD = re.compile(r"\w+")


class NumberedKeywords(Reply):
    """The words for one group, by its number in the call."""

    number: int
    keywords: Annotated[list[Proposed], list_within(MOST_WORDS)]


class GroupKeywords(Reply):
    """The reply of `group_keywords`."""

    groups: list[NumberedKeywords]


class NumberedPassage(Reply):
    """The passage for one group, by its number in the call."""

    number: int
    passage: Annotated[str, text_like(PASSAGE, 300)]


class GroupPassages(Reply):
    """The reply of `group_passages`."""

    passages: list[NumberedPassage]


@dataclass(frozen=True, slots=True)
class GroupText:
    """What a model says of one group: a `text` for encoders, the same as `terms` that weigh 1 together; "" nothing."""

    text: str = ""
    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)


_GroupReply = tuple[int, GroupText, tuple[str, ...]]
"""A group's number in the call, what the model says of it, and what of that was refused."""


@dataclass(frozen=True, slots=True)
class ModelEvidence:
    """What a model says of all groups: for each source a `GroupText` a group; the trace gets `notes` and `refused`."""

    texts: tuple[tuple[GroupText, ...], ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """Asks `model`, each of the `types` of evidence in one call.

    Where a call fails, or its budget is used up, the groups keep what their documents say, and a note gives the reason
    ("fallback"); or the error is raised ("fail").
    """

    types: tuple[EvidenceType, ...]
    model: Model
    prompts: Prompts
    on_error: Literal["fallback", "fail"] = "fallback"

    def ask(self, query: str, lacks: Sequence[Lack], words: Mapping[int, Sequence[str]], groups: int) -> ModelEvidence:
        """What the model says of the `lacks`, of `groups` in all; `words` are the group's own, by its place.

        Raises FatalModelError, and with "fail" what else asking raises.
        """
        texts: list[tuple[GroupText, ...]] = []
        notes: list[str] = []
        refused: list[str] = []

        def nothing(error: ModelError | BudgetExceeded) -> list[_GroupReply]:
            notes.append(f"{source}: the model gives no evidence, the groups' documents alone count: {error}")
            return []

        for source in self.types:
            some = lacks[: MOST_GROUPS[source]]
            of_groups = [GroupText()] * groups
            reply = partial(self._reply, source, query, some, words)
            for number, text, bad in unless_failing(reply, self.on_error, nothing, unpaid=True) if some else ():
                if 1 <= number <= len(some) and text and not of_groups[some[number - 1].place]:
                    of_groups[some[number - 1].place] = text
                    notes.append(f"{some[number - 1].group}: {text.text}")
                refused += bad
            texts.append(tuple(of_groups))
        return ModelEvidence(tuple(texts), tuple(notes), tuple(refused))

    def _reply(
        self, source: EvidenceType, query: str, lacks: Sequence[Lack], words: Mapping[int, Sequence[str]]
    ) -> list[_GroupReply]:
        """What the model says of each group."""
        groups = [
            _shown(source, number, lack.group.dimension, lack.group.label, words.get(lack.place, ()))
            for number, lack in enumerate(lacks, start=1)
        ]
        numbers = list(range(1, len(lacks) + 1))
        template, variables = _call(source, groups)
        variables["query"] = query_shown(query)
        if source == "passage":
            bounds = {"passages": one_for_each(NumberedPassage, "number", numbers)}
            request = self.prompts.request(template, variables, narrowed=bounds)
            return [_passage(one, query) for one in ask(self.model, request, GroupPassages)[0].passages]
        bounds = {"groups": one_for_each(NumberedKeywords, "number", numbers)}
        request = self.prompts.request(template, variables, narrowed=bounds)
        return [_keywords(one, query) for one in ask(self.model, request, GroupKeywords)[0].groups]


def _passage(one: NumberedPassage, query: str) -> _GroupReply:
    text = " ".join(visible(one.passage).split())[:LONGEST_PASSAGE]
    # What only repeats the query is no evidence of a group.
    new = words_of(text) - words_of(query)
    return one.number, GroupText(text, as_terms(_WORD.findall(text))) if new else GroupText(), ()


def _keywords(one: NumberedKeywords, query: str) -> _GroupReply:
    sifted = sift(one.keywords, query, ())
    text = f"{query} {', '.join(sifted.usable)}" if sifted.usable else ""
    return one.number, GroupText(text, as_terms(sifted.usable)), sifted.refused


def _shown(source: EvidenceType, number: int, dimension: str, label: str, words: Iterable[str]) -> dict[str, object]:
    """A group as the model is shown it."""
    group: dict[str, object] = {"number": number, "dimension": visible(dimension), "group": visible(label)}
    if source == "grounded":
        group["words_of_its_documents"] = [visible(word) for word in words][:SHOWN_WORDS]
    return group


def _call(source: EvidenceType, groups: Sequence[object]) -> tuple[str, dict[str, Any]]:
    """The template of this type of evidence, and its variables besides the query."""
    grounded = {"grounded": True} if source == "grounded" else {}
    return PASSAGES if source == "passage" else KEYWORDS, {"groups": groups, **grounded}


def as_terms(words: Iterable[str]) -> tuple[Term, ...]:
    """Words and names as weighted terms that weigh 1 together, each by how often it comes.

    >>> [(term.text, term.weight) for term in as_terms(["Judge", "judge", "courts", "judge"])]
    [('judge', 0.75), ('courts', 0.25)]
    """
    counts = Counter(word.casefold() for word in words)
    return tuple(Term(word, count / counts.total()) for word, count in counts.items())


def worst_case(types: Iterable[EvidenceType], case: Case) -> Iterator[Calls]:
    """A call for each query and type, about as many groups as one call may be."""
    for source in types:
        group = _shown(source, 10, *case.group, [STAND_IN] * SHOWN_WORDS)
        template, variables = _call(source, [group] * MOST_GROUPS[source])
        yield case.calls(template, **variables)


def templates_of(types: Iterable[EvidenceType]) -> tuple[str, ...]:
    """The templates of these types, each once."""
    return tuple(dict.fromkeys(_call(source, ())[0] for source in types))
