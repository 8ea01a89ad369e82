"""Building an avoid library by self-diagnosis: a language model says which passages are biased."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairagent.debias.avoid import AvoidPassage
from fairagent.filter.pages import Page, as_data, batches, call_ids, page_of
from fairagent.filter.verdicts import check_ids
from fairagent.llm import Model, Reply, ask
from fairagent.prompts import Prompts
from fairagent.types import Document, Usage

PROMPT = "diagnose_bias"
TEMPERATURE = 0.0


class Diagnosis(Reply):
    """What a model says about one passage, under the id it was sent with; `kind` is "" where it is not biased."""

    id: str
    biased: bool
    kind: str


class Diagnoses(Reply):
    """The reply of the template `diagnose_bias`."""

    diagnoses: list[Diagnosis]


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """The passages that a model finds biased, how many it saw, and what that took."""

    passages: tuple[AvoidPassage, ...]
    seen: int
    usage: Usage


def diagnose(
    model: Model, prompts: Prompts, passages: Sequence[Document], kinds: Sequence[str], batch: int = 10
) -> Diagnosed:
    """Those of the passages that the model itself finds biased, each with its class of `kinds` ("": none of them).

    `batch` passages are asked about at a time. Replies come from the cache of the model's door where they are repeated.
    Raises what `ask` raises: a library with gaps would look whole.
    """
    found: list[AvoidPassage] = []
    usage = Usage()
    texts = {document.id: document.text for document in passages}
    for pages in batches([page_of(document) for document in passages], batch):
        diagnoses, took = _diagnoses(model, prompts, pages, kinds)
        usage = usage + took
        for page, diagnosis in zip(pages, diagnoses, strict=True):
            if diagnosis.biased:
                kind = diagnosis.kind if diagnosis.kind in kinds else ""
                found.append(AvoidPassage(page.id, texts[page.id], kind))
    return Diagnosed(tuple(found), len(passages), usage)


def _diagnoses(
    model: Model, prompts: Prompts, pages: Sequence[Page], kinds: Sequence[str]
) -> tuple[list[Diagnosis], Usage]:
    """One call: a diagnosis of each page, in their order."""
    ids = call_ids(PROMPT, list(kinds), pages)

    def accept(reply: Diagnoses) -> None:
        check_ids(ids, [diagnosis.id for diagnosis in reply.diagnoses])

    variables = {"documents": as_data(ids, pages), "kinds": list(kinds)}
    request = prompts.request(PROMPT, variables, TEMPERATURE, accept)
    reply, usage = ask(model, request, Diagnoses)
    return reply.diagnoses, usage
