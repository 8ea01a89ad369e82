"""The avoid library: biased passages that contexts should differ from, a nearest-neighbor index, and self-diagnosis.

A library is a file of JSON lines with `id`, `text` and, if need be, `class`, the bias class of the passage.
"""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.answer.filtering import Page, as_data, batches, call_ids, check_ids, page_of
from fairagent.collection.records import Record, checked_id, read_text
from fairagent.errors import BudgetExceeded, DataError, ModelError, ReplyError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.budget import ledger
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import one_for_each, one_of
from fairagent.papers.debias_rag.lexicon import Lexicon
from fairagent.papers.records import read_records
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.settings.faults import no_such
from fairagent.storage.files import write_whole
from fairagent.storage.packages import installed
from fairagent.types import Document, Usage

KEYS = ("id", "text", "class")


@dataclass(frozen=True, slots=True)
class AvoidPassage:
    """One biased passage; `kind` is its bias class, "" where none is given."""

    id: str
    text: str
    kind: str = ""


def read_avoid(path: Path | str) -> tuple[AvoidPassage, ...]:
    """The passages of a library in the order of the file; DataError with file and line of everything that is wrong."""
    empty = "holds no passage; an avoid library has at least one, else there is nothing to avoid"
    return tuple(read_records(Path(path), "the avoid library", _passage, empty).values())


def _passage(line: str, record: Record) -> tuple[str, AvoidPassage]:
    if unknown := [key for key in record if key not in KEYS]:
        raise ValueError(no_such("key", unknown[0], KEYS))
    id, text = checked_id(read_text(record, "id"), "passage's"), read_text(record, "text")
    if not text.strip():
        raise ValueError(f"passage {id!r} has no text")
    return id, AvoidPassage(id, text, read_text(record, "class").strip() if record.get("class") else "")


def write_avoid(path: Path, passages: Iterable[AvoidPassage]) -> None:
    """Write a library, whole or not at all."""
    records = [{"id": one.id, "text": one.text, **({"class": one.kind} if one.kind else {})} for one in passages]
    write_whole(path, "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records))


class AvoidIndex:
    """Passages by the cosine of their embeddings, all of them or those of one bias class (faiss, inner products).

    A passage of no class is of that which the lexicon finds in it. Threads may share it. Raises DataError for no
    passages, BackendUnavailable without faiss.
    """

    def __init__(self, passages: Sequence[AvoidPassage], lexicon: Lexicon, encoder: Encoder) -> None:
        if not passages:
            raise DataError("the avoid library is empty, so there is nothing to avoid; give it at least one passage")
        self._faiss = installed("faiss-cpu", "the avoid library")
        self.passages = tuple(AvoidPassage(one.id, one.text, one.kind or lexicon.tag(one.text)) for one in passages)
        self._vectors = unit(encoder.documents([one.text for one in self.passages]))
        self._parts: dict[str, tuple[Any, NDArray[np.intp]]] = {}
        self._lock = threading.Lock()

    def nearest(self, query: Embeddings, k: int, kind: str = "") -> tuple[tuple[AvoidPassage, ...], Embeddings]:
        """The `k` passages of the class ("": of any) that are nearest to `query` (d,), and their vectors (<= k, d)."""
        # The index of a class, made when it is first needed, and the places of its passages.
        with self._lock:
            if kind not in self._parts:
                of_kind = [place for place, one in enumerate(self.passages) if kind in ("", one.kind)]
                index, places = self._faiss.IndexFlatIP(self._vectors.shape[1]), np.array(of_kind, dtype=np.intp)
                if len(places):
                    index.add(self._vectors[places])
                self._parts[kind] = index, places
            index, places = self._parts[kind]
        if not len(places):
            return (), self._vectors[:0]
        _, nearest = index.search(query[None], min(k, len(places)))
        chosen = places[nearest[0]]
        return tuple(self.passages[place] for place in chosen), self._vectors[chosen]


def unit(vectors: Embeddings) -> Embeddings:
    """The vectors (n, d) with length 1, so that inner products are cosines; one of length 0 stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


PROMPT = "diagnose_bias"
TEMPERATURE = 0.0


class Diagnosis(Reply):
    """What a model says about one passage, under the id it was sent with; `kind` is "" where it is not biased."""

    id: str
    biased: bool
    kind: str


class Diagnoses(Reply):
    """A diagnosis for each id once, in the order of the documents; an unknown kind counts as none."""

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
    """Those of the passages that the model itself calls biased, each with its class of `kinds` ("": none of them).

    `batch` passages are diagnosed at a time, and each alone where a reply cannot be used. One without a usable
    diagnosis all the same is left out and named ("drop"), or ends the work ("fail").
    """
    biased: list[AvoidPassage] = []
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
                    biased.append(AvoidPassage(page.id, texts[page.id], kind))

        unless_failing(answered, "keep", otherwise)

    with ledger() as book:
        for pages in batches([page_of(document) for document in passages], batch):
            ask(pages)
    return Diagnosed(tuple(biased), len(passages), book.usage, tuple(failed))


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
