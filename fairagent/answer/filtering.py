"""FairFilter: keeps documents that bring no bias into an answer, and those that an answer needs.

Source: FairFT and FairFilter (the second seed system), its section on FairFilter; prompts in this project's words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import Field

from fairagent.clean import query_shown
from fairagent.errors import BudgetExceeded, ModelError, ReplyError, UsageError
from fairagent.filter.authors import ask_as_authors
from fairagent.filter.pages import Page, batches, longest_calls, page_of
from fairagent.filter.verdicts import ask_verdicts, reason_text
from fairagent.llm import Model
from fairagent.llm.ledger import in_threads
from fairagent.llm.on_error import attempt
from fairagent.prompts import Prompts
from fairagent.prompts.calls import Calls, Case
from fairagent.settings import Part
from fairagent.site import Site
from fairagent.types import Document, Filtered, Usage, Verdict

FAIRNESS = "fairness_filter"
UTILITY = "utility_filter"


def steps(utility: bool) -> tuple[str, ...]:
    """The templates that a document may be asked about with, in order."""
    return (FAIRNESS, UTILITY) if utility else (FAIRNESS,)


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What one step says about one document; None where it was not answered."""

    passed: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class FairFilter:
    """Asks `model` two things about each document: is it fair, and if not: can the answer do without it?

    A document stays if it passes either step; `utility=False` leaves out the second (the paper's variant "Prompt").
    `batch` is how many documents are judged in one call. 1 (the paper's) is the safest: a text that tries to sway the
    model can sway its own verdict alone. `workers` calls run at a time, so 10 documents take at most 20 calls and, with
    10 workers, the time of two.

    `on_error` says what becomes of a document that no usable verdict came for (an invalid reply, also when asked again;
    a refusal; an overloaded server): "keep" it, its verdict saying so, "drop" it, or "fail" with the model's error.
    `compat="authors"` reads replies as the released code does (`parse_verdict`), with templates of your own that ask
    for {"Pass": true}; it needs `batch=1`.

    Raises UsageError for values that make no sense.
    """

    model: Model
    prompts: Prompts
    batch: int = 1
    workers: int = 8
    utility: bool = True
    on_error: Literal["keep", "drop", "fail"] = "keep"
    compat: Literal["", "authors"] = ""

    def __post_init__(self) -> None:
        if self.batch < 1 or self.workers < 1:
            raise UsageError(f"FairFilter: batch {self.batch} and workers {self.workers} must be 1 or more")
        if self.compat and self.batch != 1:
            raise UsageError(f"FairFilter: compat={self.compat!r} judges documents one by one; set batch to 1")

    def filter(self, query: str, documents: Sequence[Document]) -> Filtered:
        """The documents that stay, in their order, with a verdict on every one; none at all may stay.

        A model sees the first 8,000 visible characters of a text; a verdict's note says what it did not see.
        `usage.seconds` is the sum over all calls, also of those that ran at the same time.

        Raises FatalModelError and BudgetExceeded, whatever `on_error` says, and every other ModelError with "fail".
        """
        judge = partial(self._judge, query_shown(query))
        pages = [page_of(document) for document in documents]
        judged = in_threads(judge, batches(pages, self.batch), self.workers, "filter")
        verdicts = tuple(verdict for some, _ in judged for verdict in some)
        kept = tuple(document for document, verdict in zip(documents, verdicts, strict=True) if verdict.kept)
        return Filtered(kept, verdicts, sum((usage for _, usage in judged), Usage()))

    def _judge(self, query: str, pages: Sequence[Page]) -> tuple[list[Verdict], Usage]:
        """Both steps for one batch."""
        fair, usage = self._ask(FAIRNESS, query, pages)
        unfair = [page for page, opinion in zip(pages, fair, strict=True) if opinion.passed is False]
        useful, more = self._ask(UTILITY, query, unfair if self.utility else [])
        second = iter(useful)
        verdicts = []
        for page, first in zip(pages, fair, strict=True):
            asked = [first, next(second)] if first.passed is False and self.utility else [first]
            verdicts.append(self._verdict(page, asked))
        return verdicts, usage + more

    def _verdict(self, page: Page, asked: Sequence[_Opinion]) -> Verdict:
        """What becomes of a page after the one or two steps it was `asked` about: the last one decides."""
        last = asked[-1]
        kept = self.on_error == "keep" if last.passed is None else last.passed
        notes = [opinion.note for opinion in asked]
        if last.passed is None:
            notes.append("kept all the same" if kept else "dropped")
        useful = last.passed if len(asked) > 1 else None
        return Verdict(page.id, kept, asked[0].passed, useful, "; ".join(filter(None, [*notes, page.note])))

    def _ask(self, prompt: str, query: str, pages: Sequence[Page]) -> tuple[list[_Opinion], Usage]:
        """One step's opinion on each of the pages."""
        if not pages:
            return [], Usage()

        def otherwise(error: ModelError | BudgetExceeded) -> tuple[list[_Opinion], Usage]:
            if isinstance(error, ReplyError) and len(pages) > 1:
                # One text that makes the model decline or ramble must not cost its neighbors their verdicts.
                return self._ask_singly(prompt, query, pages, error.usage)
            if self.on_error == "fail":
                raise error
            return [_Opinion(None, f"not judged: {reason_text(str(error))}")] * len(pages), error.usage

        return attempt(lambda: self._opinions(prompt, query, pages), "keep", otherwise)

    def _opinions(self, prompt: str, query: str, pages: Sequence[Page]) -> tuple[list[_Opinion], Usage]:
        """The model's, in one call."""
        if self.compat:
            passed, usage = ask_as_authors(self.model, self.prompts, prompt, query, pages[0])
            return [_Opinion(passed)], usage
        verdicts, usage = ask_verdicts(self.model, self.prompts, prompt, pages, query=query)
        return [_Opinion(verdict.passed, reason_text(verdict.reason)) for verdict in verdicts], usage

    def _ask_singly(self, prompt: str, query: str, pages: Sequence[Page], spent: Usage) -> tuple[list[_Opinion], Usage]:
        opinions = []
        for page in pages:
            (opinion,), usage = self._ask(prompt, query, [page])
            opinions.append(opinion)
            spent = spent + usage
        return opinions, spent


class FairFilterConfig(Part):
    """FairFilter: takes out what would bring bias into an answer that does not need it."""

    kind: Literal["fair"] = "fair"
    batch: int = Field(1, ge=1)
    """Documents that are judged in one call; 1, the paper's, is the safest."""
    utility: bool = True
    """Whether a biased document stays if the answer needs it; no is the paper's variant "Prompt"."""
    on_error: Literal["keep", "drop", "fail"] = "keep"
    """What becomes of a document that the model gives no usable verdict on."""

    @property
    def templates(self) -> tuple[str, ...]:
        """Those of its steps."""
        return steps(self.utility)

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """Every document as long as a model is ever shown one, and asked about twice."""
        for step in self.templates:
            yield from longest_calls(case, step, case.settings.context.documents, self.batch)

    def build(self, site: Site) -> FairFilter:
        """The filter."""
        return FairFilter(site.model, site.prompts, self.batch, utility=self.utility, on_error=self.on_error)
