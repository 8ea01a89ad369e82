"""The re-ranker `listwise`: a language model reads a window of documents and writes their numbers, the best first.

After RankGPT (Sun et al., Is ChatGPT Good at Search?, EMNLP 2023): the window slides from the end of the list to its
beginning, so that a good document is carried upwards. Documents change places, and the scores stay where they are: in
`rerank: [listwise, exposure]` the frontier is made from the model's order, on the engine's scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.budget import spent
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.llm.request import list_within, one_of
from fairagent.retrieve.base import Retriever, full_text, texts_for
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool
from fairagent.settings import Part
from fairagent.types import Query, Ranking, Usage
from fairagent.types.clean import query_shown, visible

TEMPLATE = "rank_documents"
REMEMBERED, ROOM = 256, 40_000
"""Orders that are kept, for a loop that re-ranks again or a dial that is moved; bytes of all documents of a call."""


class Permutation(Reply):
    """The documents' numbers, the best first."""

    order: Annotated[list[int], list_within(100)]


@dataclass(frozen=True, slots=True)
class ListwiseReranker:
    """The best `depth` of the engine's own list in the order of `model`; all others keep their places.

    `window` documents are read in one call, of each the first `length` bytes; the next call begins `step` above.
    Numbers that a reply repeats or makes up are dropped, those that it leaves out follow in their old order; a note
    counts them. What a loop brings in is not read, and stays where the engine's score puts it: so nothing is asked
    twice in a search, and no step changes the relevance of other documents. `on_error`: where a call fails, "keep" the
    order so far, or "fail".
    """

    retriever: Retriever
    model: Model
    prompts: Prompts
    window: int = 20
    step: int = 10
    depth: int = 100
    length: int = 1000
    on_error: Literal["keep", "fail"] = "keep"
    known: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` of the candidates; raises FatalModelError, and what `on_error` says."""
        ids, of_engine = pool.ranking.ids, pool.engine_list if len(pool.engine_list) else pool.ranking
        place = {id: number for number, id in enumerate(self._order(pool.query, of_engine.ids[: self.depth]))}
        read = iter(sorted((id for id in ids if id in place), key=place.__getitem__))
        return Ranking(tuple(next(read) if id in place else id for id in ids), pool.ranking.scores).top(pool.n)

    def _order(self, query: Query, ids: tuple[str, ...]) -> tuple[str, ...]:
        """These documents in the model's order."""
        if (key := (query.text, *ids)) in self.known:
            return self.known[key]
        texts, most = texts_for(query, ids, self.retriever), min(self.length, ROOM // self.window)
        shown = [visible(full_text(one)).encode("utf-8", "replace")[:most].decode("utf-8", "ignore") for one in texts]
        order, counts, notes = list(range(len(ids))), [0, 0, 0], list[str]()
        try:
            for start, end in windows(len(ids), self.window, self.step) if len(ids) > 1 else ():
                some = order[start:end]
                places, faults = permutation(self._ask(query, [shown[place] for place in some]), len(some))
                order[start:end] = [some[place] for place in places]
                counts = [one + more for one, more in zip(counts, faults, strict=True)]
        except (ModelError, BudgetExceeded) as error:
            if self.on_error == "fail" or isinstance(error, FatalModelError):
                raise
            notes.append(f"listwise: the order stays as far as it was made: {error}")
        else:
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            self.known[key] = tuple(ids[place] for place in order)
        if any(counts):
            notes.append("listwise: the model left out {} numbers, repeated {} and made up {}".format(*counts))
        spent(Usage(notes=tuple(notes)))
        return tuple(ids[place] for place in order)

    def _ask(self, query: Query, texts: Sequence[str]) -> Sequence[int]:
        """What the model writes of one window; the texts are numbered from 1."""
        numbers = range(1, len(texts) + 1)
        documents = [{"number": number, "text": text} for number, text in zip(numbers, texts, strict=True)]
        narrowed = {"order": {"items": one_of(numbers), "minItems": len(texts), "maxItems": len(texts)}}
        variables = {"query": query_shown(query.text), "documents": documents}
        return ask(self.model, self.prompts.request(TEMPLATE, variables, 0.0, narrowed=narrowed), Permutation)[0].order


def windows(n: int, window: int, step: int) -> Iterator[tuple[int, int]]:
    """The windows of a list of `n`, from its end to its beginning, each as (first place, place after the last).

    >>> list(windows(25, 20, 10))
    [(5, 25), (0, 15)]
    """
    end = n
    while end > window:
        yield end - window, end
        end -= min(step, window)
    yield 0, end


def permutation(numbers: Sequence[int], n: int) -> tuple[list[int], tuple[int, int, int]]:
    """Numbers from 1 to `n` as places from 0, each once, and how many were (missing, repeated, unknown).

    >>> permutation([3, 1, 3, 9], 4)
    ([2, 0, 1, 3], (2, 1, 1))
    """
    good = [number - 1 for number in numbers if 1 <= number <= n]
    once = list(dict.fromkeys(good))
    rest = [place for place in range(n) if place not in once]
    return once + rest, (len(rest), len(good) - len(once), len(numbers) - len(good))


class ListwiseConfig(Part):
    """The best documents in the order of a language model that reads many at a time (RankGPT)."""

    template: ClassVar[str] = TEMPLATE
    kind: Literal["listwise"] = "listwise"
    window: int = Field(20, ge=2, le=100)
    """How many documents the model reads in one call."""
    step: int = Field(10, ge=1)
    """By how many the window slides up from call to call; by `window` at most."""
    depth: int = Field(100, ge=2)
    """How many of the engine's first documents are ordered: 100 with the other defaults take 9 calls, 20 take one."""
    length: int = Field(1000, ge=1)
    """How much of a document's title and text the model reads, in bytes; all of a call together have 40,000 at most."""
    on_error: Literal["keep", "fail"] = "keep"
    """What is done where the model gives no usable reply. keep: the order stays as far as it was made."""

    def worst_case(self, case: Case) -> Iterator[Calls]:
        text = LETTER * min(self.length, ROOM // self.window)
        for start, end in windows(self.depth, self.window, self.step):
            yield case.calls(TEMPLATE, documents=[{"number": end, "text": text}] * (end - start))

    def build(self, site: Site) -> ListwiseReranker:
        chosen = (self.window, self.step, self.depth, self.length, self.on_error)
        return ListwiseReranker(site.engine, site.model, site.prompts, *chosen)
