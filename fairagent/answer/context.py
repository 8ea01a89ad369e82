"""The context of an answer: which part of which documents a generator reads, and in which order."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, Protocol

from fairagent.answer.aim import Aim, relevance_to
from fairagent.answer.filtering import LONGEST_TITLE, Filter, filter_with
from fairagent.collection.exposure import ExposureMeter
from fairagent.llm.request import estimate_tokens
from fairagent.retrieve.base import Retriever, texts_for
from fairagent.settings.seam import PartCall
from fairagent.types import Debiased, Document, Filtered, Query, SearchResult, Usage
from fairagent.types.clean import visible

Order = Literal["balanced", "rank", "reversed", "ends"]
"""The documents are numbered so that every beginning is balanced between the groups, and shown so; or they are numbered
by rank, and shown with the best first, last, or at both ends (the worst in the middle)."""
LEAST_TOKENS = 100
"""A document of a balanced context is read to at least so many tokens, or its end, or not at all."""

_PART_OF_WORD = re.compile(r"\s\S{0,40}$")


def fit(documents: Sequence[Document], tokens: int) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents as a generator reads them, about `tokens` of text together, and notes on what was cut.

    Hidden characters are taken out. No document is left out: each gets the same share of the tokens, and what short
    ones leave over goes to the longer ones. Texts are cut at the end of a word.

    >>> short, long = Document("d1", "A judge."), Document("d2", "lawyer " * 100)
    >>> documents, notes = fit([short, long], 12)
    >>> documents[1].text, notes
    ('lawyer lawyer lawyer lawyer lawyer', ('1 of 2 documents was cut to fit 12 tokens',))
    """
    shown = [replace(one, title=visible(one.title)[:LONGEST_TITLE], text=visible(one.text)) for one in documents]
    lengths = [estimate_tokens(one.text) for one in shown]
    shares, left = [0] * len(shown), tokens
    # From the shortest on, each gets an equal share of what is left.
    for rank, place in enumerate(sorted(range(len(shown)), key=lengths.__getitem__)):
        shares[place] = min(lengths[place], left // (len(shown) - rank))
        left -= shares[place]
    fitting = tuple(replace(one, text=shortened(one.text, share)) for one, share in zip(shown, shares, strict=True))
    cut = sum(before.text != after.text for before, after in zip(shown, fitting, strict=True))
    were = "was" if cut == 1 else "were"
    return fitting, (f"{cut} of {len(fitting)} documents {were} cut to fit {tokens:,} tokens",) if cut else ()


def affordable(documents: Sequence[Document], tokens: int) -> int:
    """How many of the first documents (at least one) fit, each with `LEAST_TOKENS` or to its end.

    >>> affordable([Document("d1", "A judge."), Document("d2", "lawyer " * 100), Document("d3", "A court.")], 103)
    2
    """
    count = 0
    for document in documents:
        tokens -= min(LEAST_TOKENS, estimate_tokens(visible(document.text)))
        if tokens < 0:
            break
        count += 1
    return max(count, min(1, len(documents)))


def arrange(count: int, order: Order) -> tuple[int, ...]:
    """The numbers 1 to `count` (the worst by rank) in the `order` in which the documents are shown.

    >>> arrange(5, "ends"), arrange(3, "reversed")
    ((1, 3, 5, 4, 2), (3, 2, 1))
    """
    numbers = tuple(range(1, count + 1))
    if order == "reversed":
        return numbers[::-1]
    return numbers[::2] + numbers[1::2][::-1] if order == "ends" else numbers


def numbered(documents: Sequence[Document], order: Order) -> list[dict[str, object]]:
    """What a template gets as the `documents` to answer from: in this order, under their numbers."""
    return [
        {"number": number, "title": documents[number - 1].title, "text": documents[number - 1].text}
        for number in arrange(len(documents), order)
    ]


def shortened(text: str, tokens: int) -> str:
    """The beginning of `text` that has at most so many tokens, up to the end of a word."""
    start = text.encode("utf-8", "replace")[: 4 * tokens].decode("utf-8", "ignore")
    if len(start) == len(text):
        return text
    if text[len(start)].isspace():
        return start.rstrip()
    # No space in 40 characters: a script without spaces, which is cut anywhere.
    part = _PART_OF_WORD.search(start)
    return start[: part.start()].rstrip() if part else start


NOTHING = "the query retrieves nothing, so there is no context"
"""The note of an answer without a document."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an answer: the `first` documents of a ranking, those `chosen` of them, cut to `documents`."""

    first: tuple[Document, ...]
    chosen: tuple[Document, ...]
    documents: tuple[Document, ...]
    notes: tuple[str, ...]
    filtered: Filtered | None
    debiased: Debiased | None

    @property
    def usage(self) -> Usage:
        """What the calls of models took."""
        return sum((part.usage for part in (self.filtered, self.debiased) if part), Usage())


class Debiaser(Protocol):
    """Chooses a context from a query's documents, and from contexts that it makes."""

    def apply(self, query: str, documents: Sequence[Document]) -> Debiased:
        """The context, and what became of the documents."""


def debias_with(debiaser: Debiaser, query: Query, documents: Sequence[Document]) -> Debiased:
    """What debiasing makes of the documents; PartError where that is no context."""
    with PartCall("debias", debiaser, query) as call:
        debiased = debiaser.apply(query.text, tuple(documents))
    chosen = call.one_of(debiased, Debiased)
    call.documents(chosen.documents, [call.one_of(one, Document).id for one in call.one_of(chosen.documents, tuple)])
    if not all(isinstance(one, Real) and math.isfinite(one) for one in call.one_of(chosen.scores, tuple)):
        raise call.fault("a score that is no finite number")
    return chosen


@dataclass(frozen=True, slots=True)
class Contexts:
    """Makes contexts of the first `documents` of a ranking: what the filter leaves of them, cut to `tokens` together.

    `debiasing` chooses among them and contexts that it makes. Where it is `balanced`, the documents are chosen from the
    whole ranking and put into an order of which every beginning is near the target (`Aim.order`); where `tokens` do not
    suffice for all of them, the last are left out.
    """

    filter: Filter | None = None
    debiasing: Debiaser | None = None
    documents: int = 10
    tokens: int = 3000
    balanced: bool = False

    def make(self, search: SearchResult, retriever: Retriever, meter: ExposureMeter | None = None) -> Context:
        """The context for the query of `search`; `retriever` has the texts, `meter` the target of a balanced one."""
        ids = self._ordered(search.ranking.ids, search, meter)
        if not ids:
            return Context((), (), (), (NOTHING,), None, None)
        first = tuple(texts_for(search.query, ids, retriever))
        filtered = filter_with(self.filter, search.query, first) if self.filter else None
        passed = filtered.documents if filtered else first
        if filtered and self.balanced:
            by_id = {one.id: one for one in passed}
            passed = tuple(by_id[id] for id in self._ordered(tuple(by_id), search, meter))
        debiased = debias_with(self.debiasing, search.query, passed) if self.debiasing else None
        chosen = debiased.documents if debiased else passed
        notes: tuple[str, ...] = ()
        if self.balanced and (fitting := affordable(chosen, self.tokens)) < len(chosen):
            left_out = f"{len(chosen) - fitting} of {len(chosen)} documents do not fit {self.tokens:,} tokens"
            notes, chosen = (f"{left_out}; the first {fitting} are as balanced as they can be",), chosen[:fitting]
        documents, cut = fit(chosen, self.tokens)
        notes += cut
        if not chosen:
            if passed:
                why = f"debiasing left none of {len(passed)} documents"
            else:
                why = f"the filter left none of {len(first)} documents"
            notes = (f"{why}, so there is no context", *notes)
        return Context(first, chosen, documents, notes, filtered, debiased)

    def _ordered(self, ids: tuple[str, ...], search: SearchResult, meter: ExposureMeter | None) -> tuple[str, ...]:
        """The `documents` of these, which stand in rank order, that the context is made of."""
        aim = Aim.of(meter, ids) if self.balanced and meter else None
        if aim is None:
            return ids[: self.documents]
        return tuple(ids[number - 1] for number in aim.order(relevance_to(search, ids), self.documents))
