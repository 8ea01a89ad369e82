"""The avoid library: biased passages that contexts should differ from, and a nearest-neighbor index of them.

A library is a file of JSON lines with `id`, `text` and, if need be, `class`, the bias class of the passage.
"""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.faults import Faults, shown
from fairagent.collection.records import checked_id, json_records, read_text
from fairagent.debias.lexicon import Lexicon
from fairagent.errors import DataError
from fairagent.files import write_whole
from fairagent.loading import installed
from fairagent.retrieve.encoder import Embeddings, Encoder

KEYS = ("id", "text", "class")


@dataclass(frozen=True, slots=True)
class AvoidPassage:
    """One biased passage; `kind` is its bias class, "" where nobody has told it."""

    id: str
    text: str
    kind: str = ""


def read_avoid(path: Path | str) -> tuple[AvoidPassage, ...]:
    """The passages of a library in the order of the file; DataError with file and line of everything that is wrong.

    Ids are distinct and without white space, texts not empty; keys other than `id`, `text` and `class` are faults, and
    so is a library without a passage.
    """
    file, faults = Path(path), Faults()
    passages: dict[str, AvoidPassage] = {}
    lines: dict[str, int] = {}
    for number, record in json_records(file, faults):
        try:
            if unknown := [key for key in record if key not in KEYS]:
                raise ValueError(f"unknown key {shown(unknown[0])}; there are {', '.join(KEYS)}")
            id = checked_id(read_text(record, "id"), "passage's")
            text = read_text(record, "text")
            if not text.strip():
                raise ValueError(f"passage {id!r} has no text")
            if id in passages:
                raise ValueError(f"a second passage {id!r}; the first is in line {lines[id]}")
            kind = read_text(record, "class").strip() if record.get("class") else ""
        except ValueError as error:
            faults.add(file, number, str(error))
            continue
        passages[id], lines[id] = AvoidPassage(id, text, kind), number
    if not passages and not faults:
        faults.add(file, None, "holds no passage; an avoid library has at least one, else there is nothing to avoid")
    faults.check("the avoid library")
    return tuple(passages.values())


def write_avoid(path: Path, passages: Iterable[AvoidPassage]) -> None:
    """Write a library, whole or not at all."""
    records = [{"id": one.id, "text": one.text, **({"class": one.kind} if one.kind else {})} for one in passages]
    write_whole(path, "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records))


class AvoidIndex:
    """Passages by the cosine of their embeddings, all of them or those of one bias class (faiss, inner products).

    A passage of no class is of that which the lexicon finds in it. All passages are embedded here and now. Threads may
    share it. Raises DataError for no passages, BackendUnavailable without faiss.
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
        index, places = self._part(kind)
        if not len(places):
            return (), self._vectors[:0]
        _, found = index.search(query[None], min(k, len(places)))
        chosen = places[found[0]]
        return tuple(self.passages[place] for place in chosen), self._vectors[chosen]

    def _part(self, kind: str) -> tuple[Any, NDArray[np.intp]]:
        """The index of a class, made when it is first asked for, and the places of its passages."""
        with self._lock:
            if kind not in self._parts:
                places = np.array(
                    [place for place, one in enumerate(self.passages) if kind in ("", one.kind)], dtype=np.intp
                )
                index = self._faiss.IndexFlatIP(self._vectors.shape[1])
                if len(places):
                    index.add(self._vectors[places])
                self._parts[kind] = index, places
            return self._parts[kind]


def unit(vectors: Embeddings) -> Embeddings:
    """The vectors (n, d) with length 1, so that inner products are cosines; one of length 0 stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
