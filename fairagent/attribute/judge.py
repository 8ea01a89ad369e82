"""Attribution by a language model, which is asked about each document whether the answer rests on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from fairagent.attribute.attributor import nothing_to_ask, statement
from fairagent.attribute.citations import CitationAttributor
from fairagent.clean import query_shown
from fairagent.errors import BudgetExceeded, ModelError
from fairagent.filter.pages import LONGEST_TEXT, LONGEST_TITLE, Page, as_data, batches, call_ids, page_of
from fairagent.filter.verdicts import ask_verdicts
from fairagent.llm import Model
from fairagent.llm.ledger import in_threads, ledger
from fairagent.llm.on_error import attempt
from fairagent.prompts import Prompts
from fairagent.prompts.calls import LETTER, Calls, Case
from fairagent.settings import Part
from fairagent.site import Site
from fairagent.types import Answer, Attribution, Document

PROMPT = "attribute"
LONGEST_ANSWER = 4000
"""Characters of the answer that the model sees."""


@dataclass(frozen=True, slots=True)
class JudgeAttributor:
    """Asks `model` with the template `attribute`; a document weighs 1 if the model passes it, else 0.

    The model sees the answer without its citations. `batch` documents are judged in one call, `workers` calls run at a
    time. Where one of them gives no usable reply there are no verdicts, since weights with holes would be made up: the
    answer's own citations count ("fallback"), or the error is raised ("fail").
    """

    model: Model
    prompts: Prompts
    batch: int = 1
    workers: int = 8
    on_error: Literal["fallback", "fail"] = "fallback"

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """See `Attributor.attribute`; `notes` says what the model did not see, and where citations count instead."""
        claim = statement(answer)
        if nothing := nothing_to_ask("judge", claim, documents):
            return nothing
        pages = [page_of(document) for document in documents]
        notes = [f"document {number}: {page.note}" for number, page in enumerate(pages, start=1) if page.note]
        if len(claim) > LONGEST_ANSWER:
            notes.append(f"answer cut to {LONGEST_ANSWER:,} of {len(claim):,} characters")
        ask = partial(self._ask, query_shown(query), claim[:LONGEST_ANSWER])

        def judged() -> Attribution:
            asked = in_threads(ask, batches(pages, self.batch), self.workers, "attribute")
            return Attribution(
                "judge", np.array([one for some in asked for one in some], dtype=np.float64), tuple(notes)
            )

        def cited(error: ModelError | BudgetExceeded) -> Attribution:
            found = CitationAttributor().attribute(query, answer, documents)
            return replace(
                found, notes=(f"the judge gave no usable verdict, so citations count: {error}", *found.notes)
            )

        with ledger() as book:
            found = attempt(judged, self.on_error, cited)
        return replace(found, usage=book.usage)

    def _ask(self, query: str, claim: str, pages: Sequence[Page]) -> list[bool]:
        verdicts, _ = ask_verdicts(self.model, self.prompts, PROMPT, pages, query=query, answer=claim)
        return [verdict.passed for verdict in verdicts]


class JudgeConfig(Part):
    """The language model is asked about each document."""

    template: ClassVar[str] = PROMPT
    kind: Literal["judge"] = "judge"
    on_error: Literal["fallback", "fail"] = "fallback"
    """What is done where a verdict is missing. fallback: the answer's citations count."""

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """Each document and the answer as long as a model is ever shown them."""
        page = Page("", LETTER * LONGEST_TITLE, LETTER * LONGEST_TEXT)
        documents = as_data(call_ids(PROMPT, [""], [page]), [page])
        yield case.calls(PROMPT, case.settings.context.documents, documents=documents, answer=LETTER * LONGEST_ANSWER)

    def build(self, site: Site) -> JudgeAttributor:
        """The attributor."""
        return JudgeAttributor(site.model, site.prompts, on_error=self.on_error)
