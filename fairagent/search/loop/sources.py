"""Evidence that a language model gives of all groups that lack exposure: words, a passage, or their own sentences.

Words and passages are after Fair Generative Query Expansion (FGQE; Jaenich, McDonald and Ounis, ECIR 2025), which finds
that a text written without examples serves best. Its four prompting strategies are not public; ours are words or a
passage, each without examples or, with `prompts: few-shot`, with some. Sentences are after Corpus-Steered Query
Expansion (CSQE, arXiv 2402.18031): the model chooses among those that a group's documents have, and can invent none.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.asking import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import LETTER, STAND_IN, Calls, Case
from fairagent.llm.reply import list_within, one_for_each, one_of, text_like
from fairagent.retrieve.bm25.analysis import STOP_WORDS
from fairagent.search.loop.base import Lack
from fairagent.search.refine.asking import Proposed, prompt_keys, sift, words_of
from fairagent.types import Proposals, Term
from fairagent.types.clean import query_shown, visible

EvidenceType = Literal["llm", "grounded", "passage", "sentences"]
Weighting = Literal["equal", "relevance"]
Material = Mapping[EvidenceType, Mapping[int, Sequence[str]]]
"""What a model is shown of the groups' own documents: by the type of evidence, then by the group's place."""
KEYWORDS, PASSAGES, SENTENCES = "group_keywords", "group_passages", "group_sentences"
MOST_GROUPS = {"llm": 12, "grounded": 12, "passage": 5, "sentences": 5}
"""How many groups one call is about, those that lack most: the reply fits into 400 tokens."""
SHOWN_WORDS = 15
"""Words of a group's documents that the model is shown."""
SHOWN_SENTENCES = 6
"""Sentences of a group's documents that the model may choose among."""
LONGEST_SENTENCE = 240
"""Characters of such a sentence."""
MOST_SENTENCES = 3
"""Sentences that the model chooses for a group."""
MOST_WORDS = 5
"""Words that the model gives for a group."""
LONGEST_PASSAGE = 1000
"""Characters of a passage that are used; a server that holds bounds ends it after forty words, 300 characters."""
ECHO = "an echo of the prompt"
"""Why a passage is refused that has no words but those of the prompt: the query, the group's name."""
SAMPLED = 0.8
"""The temperature of a group's further passages: at 0 they would all be the first."""

# Of any script, but it begins with a letter: small models begin with their group's number, and count on without an end.
PASSAGE = r"^([^ -@\[-`{-~\x00-\x1F][^\"\\\x00-\x1F]{0,299})?$"
"""The regular expression of a passage, for servers that hold bounds: up to 300 characters."""

_WORD = re.compile(r"\w+")


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
    passage: Annotated[str, text_like(PASSAGE, 300)]


class GroupPassages(Reply):
    """A passage for each group, of which 1,000 characters are used; one with a number of no group is ignored.

    A passage without a word that the prompt lacks (an echo of the query, or of the group's name) is refused.
    """

    passages: list[NumberedPassage]


class NumberedSentences(Reply):
    """The sentences chosen for one group, by its number in the call and theirs."""

    number: int
    sentences: Annotated[list[int], list_within(MOST_SENTENCES)]


class GroupSentences(Reply):
    """Numbers of sentences for each group; one that was not shown is refused, one of no group ignored."""

    groups: list[NumberedSentences]


@dataclass(frozen=True, slots=True)
class GroupText:
    """What a model says of one group: a `text` for encoders, the same as `terms` that weigh 1 together; "" nothing.

    `weight` is how much it counts, the group's own documents being 1.
    """

    text: str = ""
    terms: tuple[Term, ...] = ()
    weight: float = 1.0

    def __bool__(self) -> bool:
        return bool(self.text) and self.weight > 0


@dataclass(frozen=True, slots=True)
class _GroupReply:
    """What a model says of the group with this number in the call, of `made` proposals, and what was refused."""

    number: int
    text: GroupText
    made: int
    usable: int
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelEvidence:
    """What a model says of all groups: for each source a `GroupText` a group; the rest is for the trace."""

    texts: tuple[tuple[GroupText, ...], ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()


@dataclass(frozen=True, slots=True)
class _Call:
    """What one call asks: about `lacks`, of whose documents it shows `shown`.

    `prompt_words` are the words of the prompt, `keys` those of the keys in it.
    """

    query: str
    lacks: Sequence[Lack]
    shown: Sequence[Sequence[str]]
    prompt_words: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sources:
    """Asks `model`, each of the `types` of evidence in one call, and for passages in `passages` calls.

    Where a call fails, or its budget is used up, the groups keep what their documents say, and a note gives the reason
    ("fallback"); or the error is raised ("fail"). `weighting` is whether a text counts as much as the group's documents
    ("equal") or by the relevance of the documents near it.
    """

    types: tuple[EvidenceType, ...]
    model: Model
    prompts: Prompts
    on_error: Literal["fallback", "fail"] = "fallback"
    passages: int = 1
    weighting: Weighting = "equal"

    def ask(self, query: str, lacks: Sequence[Lack], material: Material, groups: int) -> ModelEvidence:
        """What the model says of the `lacks`, of `groups` in all, shown the `material`.

        Raises FatalModelError, and with "fail" what else asking raises.
        """
        texts: list[tuple[GroupText, ...]] = []
        notes: list[str] = []
        refused: list[str] = []
        proposals = Proposals()

        def nothing(error: ModelError | BudgetExceeded) -> list[_GroupReply]:
            notes.append(f"{source}: the model gives no evidence, the groups' documents alone count: {error}")
            return []

        for source, sample in self._calls():
            shown = material.get(source, {})
            # Of a group without documents there is no sentence to choose.
            some = [lack for lack in lacks if source != "sentences" or shown.get(lack.place)][: MOST_GROUPS[source]]
            of_groups = [GroupText()] * groups
            call = _Call(query, some, [shown.get(lack.place, ()) for lack in some])
            reply = partial(self._replies, source, sample, call)
            for one in unless_failing(reply, self.on_error, nothing, unpaid=True) if some else ():
                known = 1 <= one.number <= len(some) and not of_groups[some[one.number - 1].place]
                proposals += Proposals(one.made, one.usable if known else 0)
                refused += one.refused
                if known and one.text:
                    of_groups[some[one.number - 1].place] = one.text
                    notes.append(f"{some[one.number - 1].group}: {one.text.text}")
            texts.append(tuple(of_groups))
        return ModelEvidence(tuple(texts), tuple(notes), tuple(refused), proposals)

    def _calls(self) -> Iterator[tuple[EvidenceType, int]]:
        """Each call's type, and the number of the passage that it asks for, from 0."""
        for source in self.types:
            yield from ((source, sample) for sample in range(self.passages if source == "passage" else 1))

    def _replies(self, source: EvidenceType, sample: int, call: _Call) -> list[_GroupReply]:
        """What the model says of each group."""
        form = FORMS[source]
        numbers = list(range(1, len(call.lacks) + 1))
        groups = [
            form.shown(number, lack.group.dimension, lack.group.label, texts)
            for number, lack, texts in zip(numbers, call.lacks, call.shown, strict=True)
        ]
        bounds = {form.items: one_for_each(form.item, "number", numbers, **form.bounds(call))}
        variables = {"query": query_shown(call.query), "groups": groups, **form.variables}
        request = self.prompts.request(form.template, variables, narrowed=bounds)
        if sample:
            request = replace(request, temperature=SAMPLED, seed=sample)
        reply, _ = ask(self.model, request, form.reply)
        prompt_words = words_of(" ".join(text for _, text in request.messages))
        call = replace(call, prompt_words=prompt_words, keys=prompt_keys(replace(request, reply=form.reply)))
        return [form.read(one, call) for one in getattr(reply, form.items)]


# --- what becomes of a reply ----------------------------------------------------------------------------------------


def _keywords(one: NumberedKeywords, call: _Call) -> _GroupReply:
    names = [lack.group.dimension for lack in call.lacks]
    sifted = sift(one.keywords, call.query, (), call.keys | words_of(" ".join(names)))
    text = f"{call.query} {', '.join(sifted.usable)}" if sifted.usable else ""
    refused = (*sifted.refused, *(f"{word}: the query's own words" for word in sifted.repeated))
    evidence = GroupText(text, as_terms(sifted.usable))
    return _GroupReply(one.number, evidence, len(one.keywords), len(sifted.usable), refused)


def _passage(one: NumberedPassage, call: _Call) -> _GroupReply:
    text = " ".join(visible(one.passage).split())[:LONGEST_PASSAGE]
    words = words_of(text)
    if not words:
        return _GroupReply(one.number, GroupText(), 0, 0)
    # What only repeats the query, the name of the group or what was asked is no evidence of a group.
    if words <= call.prompt_words | STOP_WORDS:
        return _GroupReply(one.number, GroupText(), 1, 0, (f"{text}: {ECHO}",))
    return _GroupReply(one.number, _of_text(text), 1, 1)


def _sentences(one: NumberedSentences, call: _Call) -> _GroupReply:
    texts = call.shown[one.number - 1] if 1 <= one.number <= len(call.shown) else ()
    chosen = [number for number in dict.fromkeys(one.sentences) if 1 <= number <= len(texts)][:MOST_SENTENCES]
    evidence = _of_text(" ".join(texts[number - 1] for number in chosen))
    refused = tuple(f"{number}: no sentence that was shown" for number in one.sentences if number not in chosen)
    return _GroupReply(one.number, evidence, len(one.sentences), len(chosen), refused)


def _of_text(text: str) -> GroupText:
    return GroupText(text, as_terms(_WORD.findall(text)))


# --- what is asked --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Form:
    """How a type of evidence is asked for: the `template`, its `reply`, in whose list `items` each group has an `item`.

    `key` is what the group's own texts are called in the prompt, "" where none are shown; `read` says what becomes of
    an item; `variables` are the template's besides query and groups.
    """

    template: str
    reply: type[Reply]
    items: str
    item: type[Reply]
    read: Callable[[Any, _Call], _GroupReply]
    key: str = ""
    variables: Mapping[str, object] = field(default_factory=dict)

    def shown(self, number: int, dimension: str, label: str, texts: Sequence[str]) -> dict[str, object]:
        """A group as the model is shown it."""
        group: dict[str, object] = {"number": number, "dimension": visible(dimension), "group": visible(label)}
        if self.item is NumberedSentences:
            group[self.key] = [{"sentence": place, "text": visible(text)} for place, text in enumerate(texts, start=1)]
        elif self.key:
            group[self.key] = [visible(word) for word in texts][:SHOWN_WORDS]
        return group

    def bounds(self, call: _Call) -> dict[str, Any]:
        """The schemas of an item's fields that depend on what is shown."""
        if self.item is not NumberedSentences:
            return {}
        of_each = one_of(list(range(1, max(map(len, call.shown)) + 1)))
        return {"sentences": {"type": "array", "items": of_each, "maxItems": MOST_SENTENCES}}


_WORDS = (KEYWORDS, GroupKeywords, "groups", NumberedKeywords, _keywords)
FORMS: Mapping[EvidenceType, Form] = {
    "llm": Form(*_WORDS),
    "grounded": Form(*_WORDS, key="words_of_its_documents", variables={"grounded": True}),
    "passage": Form(PASSAGES, GroupPassages, "passages", NumberedPassage, _passage),
    "sentences": Form(SENTENCES, GroupSentences, "groups", NumberedSentences, _sentences, key="sentences"),
}


def as_terms(words: Iterable[str]) -> tuple[Term, ...]:
    """Words and names as weighted terms that weigh 1 together, each by how often it comes.

    >>> [(term.text, term.weight) for term in as_terms(["Judge", "judge", "courts", "judge"])]
    [('judge', 0.75), ('courts', 0.25)]
    """
    counts = Counter(word.casefold() for word in words)
    return tuple(Term(word, count / counts.total()) for word, count in counts.items())


def worst_case(types: Iterable[EvidenceType], passages: int, case: Case) -> Iterator[Calls]:
    """A call for each query and type, and for each of its `passages`, about as many groups as one call may be."""
    for source in types:
        form = FORMS[source]
        longest = [LETTER * LONGEST_SENTENCE] * SHOWN_SENTENCES if source == "sentences" else [STAND_IN] * SHOWN_WORDS
        groups = [form.shown(10, *case.group, longest)] * MOST_GROUPS[source]
        times = passages if source == "passage" else 1
        yield case.calls(form.template, times, groups=groups, **form.variables)


def templates_of(types: Iterable[EvidenceType]) -> tuple[str, ...]:
    """The templates of these types, each once."""
    return tuple(dict.fromkeys(FORMS[source].template for source in types))
