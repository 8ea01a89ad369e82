"""The avoid library and the lexicon: passages that contexts should be unlike, and words that name groups of people.

A library is a file of JSON lines with `id`, `text` and, if need be, `class`, the bias class of the passage. A lexicon
is a YAML file: under each bias class (gender, religion ...) a list of entries. `he <-> she` replaces either word by the
other, `hers -> his` the first alone, and `pregnant` nothing. The words that are replaced, and those that stand alone,
mark a text as being of the class.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.answer.filtering import Page, as_data, batches, call_ids, check_ids, page_of
from fairagent.collection.records import Faults, Record, checked_id, read_text, shown
from fairagent.errors import BudgetExceeded, DataError, ModelError, ReplyError, SettingsError
from fairagent.llm import Model, Reply, ask
from fairagent.llm.budget import ledger
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import one_for_each, one_of
from fairagent.papers import read_records
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.settings import read_yaml
from fairagent.settings.faults import no_such
from fairagent.storage.files import write_whole
from fairagent.storage.packages import installed
from fairagent.types import Document, Usage

SHIPPED = Path(__file__).parent / "lexicons"
"""The folder of the lexicons that come with the package."""


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Words that name groups: `swaps` (word -> the word in its place) and `kinds` (word -> its bias class).

    Words are in lower case, with one space between the parts of longer ones; what stands in their place is written as
    the file has it. `order` are the classes in the order of the file.
    """

    name: str
    swaps: Mapping[str, str]
    kinds: Mapping[str, str]
    order: tuple[str, ...]
    forms: Mapping[str, str] = field(default_factory=dict)
    """Word in lower case -> as the file has it."""

    def swap(self, text: str) -> str:
        """`text` with every word that has a counterpart replaced by it, all at once; the longest entry wins.

        Whole words alone are replaced ("man" in "man's", not in "woman" or "man-made"), and the case stays.

        >>> Lexicon("", {"man": "woman", "he": "she"}, {}, ()).swap("The man said HE was. He?")
        'The woman said SHE was. She?'
        """

        def counterpart(match: re.Match[str]) -> str:
            word, key = match[0], _key(match[0])
            # A few letters, such as the long s, are those of a word without regard to case and still no form of it.
            other = self.swaps.get(key, word)
            if word == self.forms.get(key, key):
                return other
            if word.isupper() or word.islower():
                return other.upper() if word.isupper() else other.lower()
            return other[0].upper() + other[1:] if word[0].isupper() else other

        return _any_of(tuple(self.swaps)).sub(counterpart, text) if self.swaps else text

    def tag(self, text: str) -> str:
        """The bias class that most words of the text are of, on a tie the file's first; "" where there are none."""
        words = _any_of(tuple(self.kinds)).finditer(text) if self.kinds else ()
        counts = Counter(self.kinds.get(_key(match[0]), "") for match in words)
        return max(self.order, key=lambda kind: counts[kind]) if counts else ""


def lexicon_file(path: Path | str = "") -> Path:
    """Where the lexicon is: at `path`, or, for "", in the package."""
    return Path(path) if path else SHIPPED / "general.yaml"


def load_lexicon(path: Path | str = "") -> Lexicon:
    """The lexicon in a file, "" the shipped one; DataError with every entry that is wrong.

    No word may have two counterparts or be of two classes, and none may be its own counterpart.
    """
    file, faults, no_word = lexicon_file(path), Faults(), re.compile(r"[^\w\s'\u2019-]|^\W|[^\w']$")
    try:
        tree = read_yaml(file)
    except SettingsError as error:
        raise DataError(f"the attribute lexicon: {error}") from None
    swaps: dict[str, str] = {}
    kinds: dict[str, str] = {}
    forms: dict[str, str] = {}
    for kind, listed in tree.items():
        if not isinstance(listed, list):
            faults.add(file, None, f"{kind}: expected a list of entries, such as `- he <-> she`")
        for entry in listed if isinstance(listed, list) else ():
            both = "<->" in str(entry)
            words = [" ".join(part.split()) for part in str(entry).split("<->" if both else "->")]
            if not isinstance(entry, str) or len(words) > 2 or any(not one or no_word.search(one) for one in words):
                faults.add(file, None, f"{kind}: {shown(entry)}: expected `word <-> other`, `word -> other` or a word")
                continue
            # What a word is replaced by alone, such as "hearing" for "deaf", may be a word of other matters as well.
            for word in words if both else words[:1]:
                forms.setdefault(_key(word), word)
                if kinds.setdefault(_key(word), kind) != kind:
                    faults.add(file, None, f"{kind}: {word!r} is of class {kinds[_key(word)]!r} already")
            for word, other in [words, words[::-1]][: 1 + both] if len(words) == 2 else ():
                if _key(word) == _key(other):
                    faults.add(file, None, f"{kind}: {word!r} stands on both sides; write it once, as a word alone")
                    break
                if _key(swaps.setdefault(_key(word), other)) != _key(other):
                    cure = "one of both has to go, or to point one way (->)"
                    faults.add(file, None, f"{kind}: {word!r} is replaced by {swaps[_key(word)]!r} already; {cure}")
    if not kinds and not faults:
        faults.add(file, None, "holds no entry; list some under a class, such as `gender: [he <-> she]`")
    faults.check("the attribute lexicon")
    return Lexicon(file.stem, swaps, kinds, tuple(dict.fromkeys(kinds.values())), forms)


def _key(word: str) -> str:
    """How words are compared: in lower case, with one space between their parts."""
    return " ".join(word.lower().split())


@lru_cache(64)
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the words as a whole word, the longest first; a hyphen joins, an apostrophe does not."""
    longest_first = sorted(words, key=lambda word: (-len(word.split()), -len(word), word))
    parts = "|".join(r"\s+".join(map(re.escape, word.split())) for word in longest_first)
    return re.compile(rf"(?<!\w)(?<!\w-)(?:{parts})(?!\w|-\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AvoidPassage:
    """One biased passage; `kind` is its bias class, "" where none is given."""

    id: str
    text: str
    kind: str = ""


def read_avoid(path: Path | str) -> tuple[AvoidPassage, ...]:
    """The passages of a library in the order of the file; DataError with file and line of everything that is wrong."""

    def passage(line: str, record: Record) -> tuple[str, AvoidPassage]:
        keys = ("id", "text", "class")
        if unknown := [key for key in record if key not in keys]:
            raise ValueError(no_such("key", unknown[0], keys))
        id, text = checked_id(read_text(record, "id"), "passage's"), read_text(record, "text")
        if not text.strip():
            raise ValueError(f"passage {id!r} has no text")
        return id, AvoidPassage(id, text, read_text(record, "class").strip() if record.get("class") else "")

    empty = "holds no passage; an avoid library has at least one, else there is nothing to avoid"
    return tuple(read_records(Path(path), "the avoid library", passage, empty).values())


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

    def diagnosed(pages: Sequence[Page]) -> None:
        def otherwise(error: ModelError | BudgetExceeded) -> None:
            if len(pages) > 1 and isinstance(error, ReplyError):
                for page in pages:
                    diagnosed([page])
            elif on_error == "fail":
                raise error
            else:
                failed.extend((page.id, str(error)) for page in pages)

        def answered() -> None:
            ids = call_ids(PROMPT, list(kinds), pages)

            def accept(reply: Diagnoses) -> None:
                check_ids(ids, [diagnosis.id for diagnosis in reply.diagnoses])

            variables = {"documents": as_data(ids, pages), "kinds": list(kinds)}
            narrowed = {"diagnoses": one_for_each(Diagnosis, "id", ids, kind=one_of(["", *kinds]))}
            reply, _ = ask(model, prompts.request(PROMPT, variables, 0.0, accept, narrowed), Diagnoses)
            for page, diagnosis in zip(pages, reply.diagnoses, strict=True):
                if diagnosis.biased:
                    kind = diagnosis.kind if diagnosis.kind in kinds else ""
                    biased.append(AvoidPassage(page.id, texts[page.id], kind))

        unless_failing(answered, "keep", otherwise)

    with ledger() as book:
        for pages in batches([page_of(document) for document in passages], batch):
            diagnosed(pages)
    return Diagnosed(tuple(biased), len(passages), book.usage, tuple(failed))
