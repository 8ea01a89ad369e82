"""Evidence that a language model gives: words, or a passage, for every group that lacks exposure, in one call.

After Fair Generative Query Expansion (FGQE; Jaenich, McDonald and Ounis, ECIR 2025), which finds that a text written
without examples serves best. Its four prompting strategies are not told in what is public; ours are words or a passage,
each without examples or, with `prompts: few-shot`, with some.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, TypeVar

from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.asking import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import STAND_IN, Calls, Case
from fairagent.llm.reply import Narrowed, list_within, one_for_each, text_like
from fairagent.search.loop.base import Lack
from fairagent.search.refine.asking import Proposed, sift, words_of
from fairagent.types import Term
from fairagent.types.clean import query_shown, visible

EvidenceKind = Literal["llm", "grounded", "passage"]
R = TypeVar("R", bound=Reply)
KEYWORDS, PASSAGES = "group_keywords", "group_passages"
MOST_GROUPS = {"llm": 12, "grounded": 12, "passage": 5}
"""How many groups one call is about, those that lack most: their answers fit into 400 tokens."""
SHOWN_WORDS = 15
"""Words of a group's documents that the model is shown."""
MOST_WORDS = 5
"""Words of a group that are asked for."""
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
"""A group's number in the call, what is told of it, and what of that was refused."""


@dataclass(frozen=True, slots=True)
class ModelEvidence:
    """What a model says of all groups: for each source a `GroupText` a group; the trace gets `notes` and `refused`."""

    texts: tuple[tuple[GroupText, ...], ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """Asks `model`, each of the `kinds` of evidence in one call.

    Where a call fails, or its budget is used up, the groups keep what their documents say, and a note tells why
    ("fallback"); or the error is raised ("fail").
    """

    kinds: tuple[EvidenceKind, ...]
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
        for kind in self.kinds:
            some = lacks[: MOST_GROUPS[kind]]
            found = [GroupText()] * groups
            for number, one, bad in unless_failing(
                partial(self._answers, kind, query, some, words),
                self.on_error,
                partial(_none, kind, notes),
                unpaid=True,
            ):
                if 1 <= number <= len(some) and one and not found[some[number - 1].place]:
                    found[some[number - 1].place] = one
                    notes.append(f"{some[number - 1].group}: {one.text}")
                refused += bad
            texts.append(tuple(found))
        return ModelEvidence(tuple(texts), tuple(notes), tuple(refused))

    def _answers(
        self, kind: EvidenceKind, query: str, lacks: Sequence[Lack], words: Mapping[int, Sequence[str]]
    ) -> list[_GroupReply]:
        """What is told of each group."""
        if not lacks:
            return []
        told: list[_GroupReply] = []
        numbers = list(range(1, len(lacks) + 1))
        shown = [self._shown(number, lack, kind, words) for number, lack in enumerate(lacks, start=1)]
        if kind == "passage":
            bounds = {"passages": one_for_each(NumberedPassage, "number", numbers)}
            for one in self._reply(PASSAGES, GroupPassages, query, shown, bounds).passages:
                text = " ".join(visible(one.passage).split())[:LONGEST_PASSAGE]
                # What only repeats the query is no evidence of a group.
                new = words_of(text) - words_of(query)
                told.append((one.number, GroupText(text, as_terms(_WORD.findall(text))) if new else GroupText(), ()))
            return told
        grounded = {"grounded": True} if kind == "grounded" else {}
        bounds = {"groups": one_for_each(NumberedKeywords, "number", numbers)}
        for answer in self._reply(KEYWORDS, GroupKeywords, query, shown, bounds, **grounded).groups:
            sifted = sift(answer.keywords, query, ())
            text = f"{query} {', '.join(sifted.kept)}" if sifted.kept else ""
            told.append((answer.number, GroupText(text, as_terms(sifted.kept)), sifted.refused))
        return told

    def _reply(
        self,
        template: str,
        reply: type[R],
        query: str,
        shown: list[dict[str, object]],
        bounds: Narrowed,
        **more: object,
    ) -> R:
        variables = {"query": query_shown(query), "groups": shown, **more}
        found, _ = ask(self.model, self.prompts.request(template, variables, narrowed=bounds), reply)
        return found

    def _shown(
        self, number: int, lack: Lack, kind: EvidenceKind, words: Mapping[int, Sequence[str]]
    ) -> dict[str, object]:
        group: dict[str, object] = {
            "number": number,
            "dimension": visible(lack.group.dimension),
            "group": visible(lack.group.label),
        }
        if kind == "grounded":
            group["words_of_its_documents"] = [visible(word) for word in words.get(lack.place, ())][:SHOWN_WORDS]
        return group


def _none(kind: EvidenceKind, notes: list[str], error: ModelError | BudgetExceeded) -> list[_GroupReply]:
    notes.append(f"{kind}: the model gives no evidence, the groups' documents alone count: {error}")
    return []


def as_terms(words: Iterable[str]) -> tuple[Term, ...]:
    """Words and names as weighted terms that weigh 1 together, each by how often it comes.

    >>> [(term.text, term.weight) for term in as_terms(["Judge", "judge", "courts", "judge"])]
    [('judge', 0.75), ('courts', 0.25)]
    """
    counts = Counter(word.casefold() for word in words)
    return tuple(Term(word, count / counts.total()) for word, count in counts.items())


def worst_case(kinds: Iterable[EvidenceKind], case: Case) -> Iterator[Calls]:
    """A call for each query and kind, about as many groups as one call may be."""
    dimension, label = case.group
    for kind in kinds:
        group: dict[str, object] = {"number": 10, "dimension": dimension, "group": label}
        if kind == "grounded":
            group["words_of_its_documents"] = [STAND_IN] * SHOWN_WORDS
        more = {"grounded": True} if kind == "grounded" else {}
        template = PASSAGES if kind == "passage" else KEYWORDS
        yield case.calls(template, groups=[group] * MOST_GROUPS[kind], **more)


def templates_of(kinds: Iterable[EvidenceKind]) -> tuple[str, ...]:
    """The templates that these kinds are asked with, each once."""
    return tuple(dict.fromkeys(PASSAGES if kind == "passage" else KEYWORDS for kind in kinds))
