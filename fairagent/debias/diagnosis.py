"""Building an avoid library by self-diagnosis: a language model says which passages are biased."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fairagent.debias.avoid import AvoidPassage
from fairagent.errors import BudgetExceeded, ModelError, ReplyError
from fairagent.filter.pages import Page, as_data, batches, call_ids, page_of
from fairagent.filter.verdicts import check_ids
from fairagent.llm import Model, Reply, ask
from fairagent.llm.ledger import ledger
from fairagent.llm.on_error import attempt
from fairagent.llm.reply import one_for_each, one_of
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
    """The passages that a model finds biased, how many it saw, and what that took.

    `failed` are the ids of those that it gave no usable diagnosis of, each with the reason.
    """

    passages: tuple[AvoidPassage, ...]
    seen: int
    usage: Usage
    failed: tuple[tuple[str, str], ...] = ()


def diagnose(
    model: Model,
    prompts: Prompts,
    passages: Sequence[Document],
    kinds: Sequence[str],
    batch: int = 10,
    on_error: Literal["drop", "fail"] = "drop",
) -> Diagnosed:
    """Those of the passages that the model itself finds biased, each with its class of `kinds` ("": none of them).

    `batch` passages are asked about at a time, and each alone where a reply cannot be used. One without a usable
    diagnosis all the same is left out and told of ("drop"), or ends the work ("fail"). Replies come from the cache of
    the model's door where they are repeated. Raises what else `ask` raises.
    """
    found: list[AvoidPassage] = []
    failed: list[tuple[str, str]] = []
    texts = {document.id: document.text for document in passages}

    def ask(pages: Sequence[Page]) -> None:
        def otherwise(error: ModelError | BudgetExceeded) -> None:
            if len(pages) > 1 and isinstance(error, ReplyError):
                for page in pages:
                    ask([page])
            elif on_error == "fail":
                raise error
            else:
                failed.extend((page.id, str(error)) for page in pages)

        def answered() -> None:
            for page, diagnosis in zip(pages, _diagnoses(model, prompts, pages, kinds), strict=True):
                if diagnosis.biased:
                    kind = diagnosis.kind if diagnosis.kind in kinds else ""
                    found.append(AvoidPassage(page.id, texts[page.id], kind))

        attempt(answered, "keep", otherwise)

    with ledger() as book:
        for pages in batches([page_of(document) for document in passages], batch):
            ask(pages)
    return Diagnosed(tuple(found), len(passages), book.usage, tuple(failed))


def _diagnoses(model: Model, prompts: Prompts, pages: Sequence[Page], kinds: Sequence[str]) -> list[Diagnosis]:
    """One call: a diagnosis of each page, in their order."""
    ids = call_ids(PROMPT, list(kinds), pages)

    def accept(reply: Diagnoses) -> None:
        check_ids(ids, [diagnosis.id for diagnosis in reply.diagnoses])

    variables = {"documents": as_data(ids, pages), "kinds": list(kinds)}
    narrowed = {"diagnoses": one_for_each(Diagnosis, "id", ids, kind=one_of(["", *kinds]))}
    request = prompts.request(PROMPT, variables, TEMPERATURE, accept, narrowed)
    reply, _ = ask(model, request, Diagnoses)
    return reply.diagnoses
