"""Answers from documents, with citations: by a language model, or of the context's most relevant sentences."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

from pydantic import Field

from fairagent.answer.aim import Aim, revised
from fairagent.answer.citations import CitationReader, OnText, sentences, without_citations, words
from fairagent.answer.context import Order, numbered
from fairagent.answer.filtering import LONGEST_TITLE
from fairagent.errors import BudgetExceeded, ModelError, PromptError, ReplyInvalid, ReplyTruncated
from fairagent.llm import Model, stream
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.retrieve.base import as_query
from fairagent.retrieve.bm25.analysis import one_form
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.settings.seam import PartCall
from fairagent.types import Answer, Document, Query, Usage
from fairagent.types.clean import name_of, query_shown, visible


class Generator(Protocol):
    """Writes answers: any object with this method will do. Several threads may call it.

    One that looks at groups has a method `aimed(query, documents, aim, on_text)` too, whose citations come as near to
    the search's target as support allows; `aim` has what the documents give the groups, and what these should get.
    """

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """An answer from `documents`, the context in rank order, that cites them by number from 1; there may be none.

        What `on_text` raises ends the answer. Raises ModelError where a model gave no usable answer.
        """


def answer_with(
    generator: Generator,
    query: Query,
    documents: Sequence[Document],
    on_text: OnText | None = None,
    aim: Aim | None = None,
) -> Answer:
    """The generator's answer; PartError where that is none, or cites what is not in its context."""
    with PartCall("generate", generator, query) as call:
        if aim and (aimed := getattr(generator, "aimed", None)):
            written = aimed(query, tuple(documents), aim, call.passing(on_text))
        else:
            written = generator.answer(query, tuple(documents), call.passing(on_text))
    answer = call.one_of(written, Answer)
    call.one_of(answer.text, str)
    for number in call.one_of(answer.cited, tuple):
        if not 1 <= call.one_of(number, int) <= len(documents):
            raise call.fault(f"an answer that cites [{number}] of {len(documents):,} documents")
    return answer


LENGTH_PENALTY = 0.75
"""BM25's b: how much long sentences are held back."""
MOST_ALIKE = 0.5
"""A sentence that shares more than this part of its terms (Jaccard) with a chosen one adds nothing new."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One sentence: its document's number, its place there, its text and its terms."""

    number: int
    place: int
    text: str
    terms: frozenset[str]

    def cited(self, title: str) -> str:
        """The sentence with its citation before its last mark, after the title where it has no word of that."""
        subject = f"{title}: " if title and not set(words(title)) & set(words(self.text)) else ""
        text = self.text.rstrip(".!?")
        return f"{subject}{text} [{self.number}]{self.text[len(text) :] or '.'}"


@dataclass(frozen=True, slots=True)
class ExtractiveGenerator:
    """Takes the best sentence of each document, the `most` best in all, or those nearest to the target (`aimed`).

    A sentence counts by the weights of the query's words and keywords that it holds, each by how rare it is among the
    context's sentences, as in BM25. Sentences that repeat one another are taken once. The answer has them in rank
    order, the document's title before one that does not name its subject. `analyze` gives a text's terms.
    """

    most: int = 10
    analyze: Callable[[str], list[str]] = words

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """See `Generator.answer`; empty, with a note, where no sentence holds a word of the query.

        >>> context = [Document("d1", "A town. It has roses."), Document("d2", "She grew roses.", "Ada Roe")]
        >>> answer = ExtractiveGenerator().answer("roses", context)
        >>> answer.text, answer.cited
        ('It has roses [1]. Ada Roe: She grew roses [2].', (1, 2))
        """
        best = self._best(query, documents)
        return self._written({number: one for number, (one, _) in [*best.items()][: self.most]}, documents, on_text)

    def aimed(
        self, query: str | Query, documents: Sequence[Document], aim: Aim, on_text: OnText | None = None
    ) -> Answer:
        """As `answer`; the sentences are those that `Aim.choose` takes, which no others beat."""
        best = self._best(query, documents)
        chosen, exact = aim.choose({number: score for number, (_, score) in best.items()}, self.most)
        answer = self._written({number: best[number][0] for number in chosen}, documents, on_text)
        note = "too many sentences and groups to compare all choices; single exchanges gain nothing"
        return answer if exact else replace(answer, notes=(*answer.notes, note))

    def _best(self, query: str | Query, documents: Sequence[Document]) -> dict[int, tuple[_Sentence, float]]:
        """Document number -> its best sentence that repeats none before it, and its score, the best first."""
        pool = [
            _Sentence(number, place, text, frozenset(self.analyze(one_form(text))))
            for number, document in enumerate(documents, start=1)
            for place, text in enumerate(sentences(without_citations(document.text)))
        ]
        weights: dict[str, float] = defaultdict(float)
        for text, weight in as_query(query).weighted:
            for term in self.analyze(one_form(text)):
                weights[term] += weight
        holding = Counter(term for one in pool for term in one.terms & weights.keys())
        rarity = {term: math.log1p((len(pool) - count + 0.5) / (count + 0.5)) for term, count in holding.items()}
        mean = sum(len(one.terms) for one in pool) / max(len(pool), 1) or 1.0
        every = {
            one: math.fsum(weights[term] * rarity[term] for term in one.terms & weights.keys())
            / (1 - LENGTH_PENALTY + LENGTH_PENALTY * len(one.terms) / mean)
            for one in pool
        }
        scores = {one: score for one, score in every.items() if score > 0}
        best: dict[int, tuple[_Sentence, float]] = {}
        for one in sorted(scores, key=lambda one: (-scores[one], one.number, one.place)):
            repeats = any(len(one.terms & b.terms) > MOST_ALIKE * len(one.terms | b.terms) for b, _ in best.values())
            if one.number not in best and not repeats:
                best[one.number] = one, scores[one]
        return best

    def _written(
        self, chosen: Mapping[int, _Sentence], documents: Sequence[Document], on_text: OnText | None
    ) -> Answer:
        numbers = tuple(sorted(chosen))
        text = " ".join(chosen[number].cited(name_of(documents[number - 1].title, "", "")) for number in numbers)
        if on_text and text:
            on_text(text)
        notes = () if chosen or not documents else ("no sentence of the context holds a word of the query",)
        return Answer(text, numbers, notes, source="extractive")


class ExtractiveConfig(Part):
    """The best sentences of the documents as they stand."""

    kind: Literal["extractive"] = "extractive"
    sentences: int = Field(10, ge=1)
    """How many at most, one a document."""

    def build(self, site: Site) -> ExtractiveGenerator:
        return ExtractiveGenerator(
            self.sentences, site.engine.analyze if isinstance(site.engine, TermSource) else words
        )


PROMPT = "answer"
TEMPERATURE = 0.0
"""FairFilter's: the same question is to have the same answer."""
SHOWN_OF_UNCITED = 200
"""Characters that are shown of an answer whose place others take."""


@dataclass(frozen=True, slots=True)
class LlmGenerator:
    """Asks `model` with the template `answer`, which is given the query and the documents with their numbers.

    `order` is that in which the documents are shown, under their numbers by rank. Citations of no document are taken
    out, and the notes say so. `length` is the most words, 0 leaves it open; `language` is the answer's, "" the
    question's.

    Where the answer is cut off or none comes, `on_error` keeps what has come of it, marked as truncated ("keep"; an
    error where nothing has), takes sentences of the documents ("fallback"; not for one that was streamed), or fails.
    Where the answer cites none of its documents, `on_uncited` puts the best sentences of these in its place
    ("extract"), keeps it with a note ("keep"; so does "extract" where no sentence holds a word of the query), or fails.
    One that says that they do not hold the answer, which the template wants marked as [0], stays, and `abstains`.
    """

    model: Model
    prompts: Prompts
    order: Order = "rank"
    length: int = 0
    language: str = ""
    on_error: Literal["keep", "fallback", "fail"] = "keep"
    on_uncited: Literal["extract", "keep", "fail"] = "extract"

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """See `Generator.answer`; without documents the model gets empty references, as in FairFilter.

        `on_text` does not hear what takes the place of an answer that cites nothing. Raises FatalModelError and
        BudgetExceeded, as `on_error` says what else `Model.complete` raises, and ReplyInvalid where nothing is left of
        the answer.
        """
        return self._citing(self._asked(query, documents, on_text, self.on_error), query, documents)

    def aimed(
        self, query: str | Query, documents: Sequence[Document], aim: Aim, on_text: OnText | None = None
    ) -> Answer:
        """As `answer`; the model may write once more (`revised`), which `on_text` does not hear."""
        first = self._asked(query, documents, on_text, self.on_error)

        def again(unused: Sequence[int]) -> Answer:
            template = self.prompts[PROMPT]
            if not {"draft", "unused"} <= template.variables:
                raise PromptError(f"{template.path} does not use `draft` and `unused`; take them from the shipped one")
            return self._asked(query, documents, None, "fail", draft=first.text, unused=list(unused))

        return self._citing(revised(first, query, documents, aim, again), query, documents, aim)

    def _citing(
        self, answer: Answer, query: str | Query, documents: Sequence[Document], aim: Aim | None = None
    ) -> Answer:
        """The model's answer, or what `on_uncited` makes of one that cites no document."""
        if answer.cited or answer.abstains or not documents or answer.source != "llm" or self.on_uncited == "keep":
            return answer
        count = f"none of its {len(documents)} documents" if len(documents) > 1 else "not its document"
        if self.on_uncited == "fail":
            error = ReplyInvalid(
                f"the answer cites {count}; name another model, change the template {PROMPT}, or take sentences of the "
                "documents in its place (generate.on_uncited: extract)",
                raw=answer.text,
            )
            error.usage = answer.usage
            raise error
        extractive = ExtractiveGenerator()
        instead = extractive.aimed(query, documents, aim) if aim else extractive.answer(query, documents)
        if not instead.text:
            return answer
        start = answer.text[:SHOWN_OF_UNCITED] + " ..." * (len(answer.text) > SHOWN_OF_UNCITED)
        note = f"the model's answer cites {count}, so sentences of these take its place; it began: {start}"
        return replace(instead, notes=(note, *instead.notes), usage=answer.usage)

    def _asked(
        self,
        query: str | Query,
        documents: Sequence[Document],
        on_text: OnText | None,
        on_error: Literal["keep", "fallback", "fail"],
        **second: object,
    ) -> Answer:
        """The model's answer; a `second` one is told its draft, and what that has not used."""
        variables = {
            "query": query_shown(as_query(query).text),
            "documents": numbered(documents, self.order),
            "length": self.length or None,
            "language": self.language or None,
            **second,
        }
        request = self.prompts.request(PROMPT, variables, TEMPERATURE)
        reader = CitationReader(len(documents), on_text)

        def read(piece: str) -> None:
            reader.read(visible(piece))

        def whole() -> Answer:
            if on_text:
                reply = stream(self.model, request, read)
            else:
                reply = self.model.complete(request)
                read(reply.text)
            reader.close()
            notes = self._notes(reader, reply.text, reply.usage)
            return Answer(reader.text, tuple(reader.cited), notes, reply.usage, "llm", abstains=_abstains(reader))

        def instead(error: ModelError | BudgetExceeded) -> Answer:
            streamed = bool(on_text and reader.text)
            if on_error == "fallback" and not streamed:
                extract = ExtractiveGenerator().answer(query, documents, on_text)
                notes = (f"sentences of the documents: {error}", *extract.notes)
                return replace(extract, notes=notes, usage=error.usage)
            if isinstance(error, ReplyTruncated) and not streamed:
                read(error.text)
                reader.close()
            if not reader.text or isinstance(error, ReplyInvalid):
                raise error
            notes = (f"the answer is cut off: {error}", *self._notes(reader, reader.text, error.usage))
            return Answer(reader.text, tuple(reader.cited), notes, error.usage, "llm", truncated=True)

        return unless_failing(whole, on_error, instead)

    def _notes(self, reader: CitationReader, raw: str, usage: Usage) -> tuple[str, ...]:
        abstains = _abstains(reader)
        invented = ", ".join(
            f"[{number}]" for number in dict.fromkeys(reader.invented) if number != "0" or not abstains
        )
        if not reader.text:
            error = ReplyInvalid(
                f"the answer is empty; ask again, with another model, or change the template {PROMPT}", raw=raw
            )
            error.usage = usage
            raise error
        if invented:
            return (f"citations of no document were taken out: {invented}",)
        if abstains:
            return ("it says that the documents do not hold the answer",)
        return () if reader.cited or not reader.documents else ("it cites no document",)


_ABSTENTION = re.compile(
    r"(?:i |we )(?:do not|don['’]t|cannot|can['’]t) (?:know|say|tell|answer)\b"
    r"|(?:none|neither) of the\b|(?:the|these) (?:\w+ )?(?:documents?|sources?|texts?)\b.{0,30}\b(?:not|no|nothing)\b",
    re.IGNORECASE,
)


def _abstains(reader: CitationReader) -> bool:
    """Whether a short answer says that the documents do not hold it: by [0], in any language, or in plain English."""
    if reader.cited or not reader.documents or len(sentences(reader.text)) > 2:
        return False
    return "0" in reader.invented or bool(_ABSTENTION.match(reader.text))


class LlmGeneratorConfig(Part):
    """The language model writes the answer."""

    template: ClassVar[str] = PROMPT
    kind: Literal["llm"] = "llm"
    length: int = Field(0, ge=0)
    """How many words at most; 0 is as many as the question needs."""
    language: str = ""
    """The answer's language; empty is that of the question."""
    on_error: Literal["keep", "fallback", "fail"] = "keep"
    """What is done where the answer is cut off or none comes. keep: what has come of it is the answer, marked as
    truncated. fallback: sentences of the documents."""
    on_uncited: Literal["extract", "keep", "fail"] = "extract"
    """What is done with an answer that cites none of its documents. extract: the best sentences of these take its
    place, and a note says so; keep: it stays, with a note; fail: an error."""

    def worst_case(self, case: Case) -> Iterator[Calls]:
        context = case.settings.context
        text = LETTER * 4 * math.ceil(context.tokens / context.documents)
        shown = [{"number": context.documents, "title": LETTER * LONGEST_TITLE, "text": text}] * context.documents
        wishes: dict[str, Any] = {"documents": shown, "length": self.length or None, "language": self.language or None}
        yield case.calls(PROMPT, **wishes)
        if case.settings.citations.aim:
            draft = LETTER * 4 * case.prompts[PROMPT].longest_reply(case.settings.model.max_tokens)
            yield case.calls(PROMPT, **wishes, draft=draft, unused=list(range(1, context.documents + 1)))
            # The plain answer, which it is compared with.
            yield case.calls(PROMPT, **wishes)

    def build(self, site: Site) -> LlmGenerator:
        order = site.settings.context.order
        return LlmGenerator(site.model, site.prompts, order, self.length, self.language, self.on_error, self.on_uncited)
