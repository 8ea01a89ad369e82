"""The forward index: which terms each document holds, made from Lucene's inverted index.

Java writes all postings to files, term after term; numpy sorts them by document. Memory holds the postings of a block
of documents, and what there is for each term.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairagent.retrieve.handles import (
    OBJECT,
    STRING,
    as_function,
    both,
    bound,
    fed,
    field,
    method,
    number,
    ordered,
    piped,
    repeated,
    signature,
    static,
    typed,
    wait,
)
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.analysis import Analyzer
from fairagent.retrieve.lucene.build import directory_of
from fairagent.retrieve.lucene.catalog import Places
from fairagent.retrieve.lucene.documents import BETWEEN_DOCUMENTS, document_of
from fairagent.retrieve.lucene.strings import Strings
from fairagent.retrieve.lucene.vectors import COMMON, FEW
from fairagent.retrieve.lucene.words import ENOUGH, CommonWords
from fairagent.types import Document

FIELDS, DOCUMENT = "org.apache.lucene.index.StoredFields", "org.apache.lucene.document.Document"
POSTINGS, TERMS, BYTES_REF = (
    "org.apache.lucene.index.PostingsEnum",
    "org.apache.lucene.index.TermsEnum",
    "org.apache.lucene.util.BytesRef",
)
RUNNABLE, OUTPUT = "java.lang.Runnable", "org.apache.lucene.store.DataOutput"
NO_MORE, WITH_FREQUENCIES = 2**31 - 1, 8
"""Lucene's NO_MORE_DOCS and PostingsEnum.FREQS."""
BLOCK = 1 << 17
"""Documents whose postings are sorted at a time; of 200 distinct terms each, 210 MB."""
CHUNK = 1 << 22
"""Postings that are read at a time."""
COUNT_BITS, TERM_BITS, MOST = 16, 28, 65_535
"""A posting as one number, which sorts by document (20 bits are left for its place in its block), then by term."""
SAMPLED = 500
"""Documents whose texts cross from Java at once."""
SCRATCH = "postings"
"""The folder of the files that Java writes, some 8 bytes a posting, and of the blocks, as many again."""


def write_forward(
    folder: Path, documents: int, analyzer: Analyzer, progress: Callable[[int], None] = lambda done: None
) -> None:
    """Write the arrays of `TermVectors` into `folder`, which holds the committed Lucene index of all the documents.

    `progress` is called with the number of documents that were looked at for the commonest words.
    """
    scratch, places = folder / SCRATCH, Places.load(folder)
    shutil.rmtree(scratch, ignore_errors=True)
    with using_java():
        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory_of(folder))
        outputs = _outputs(scratch)
        written = java_class("java.util.concurrent.CompletableFuture").runAsync(_writing(reader, *outputs))
    # Java writes while Python counts.
    words, apart = CommonWords(), -(-documents // ENOUGH)
    sample = np.arange(apart - 1, documents, apart)
    for start in range(0, len(sample), SAMPLED):
        numbers = sample[start : start + SAMPLED]
        for document in _stored(reader, places.in_lucene(numbers).tolist()):
            words.add(f"{document.title} {document.text}")
        progress(int(numbers[-1]) + 1)
    wait(written)
    with using_java():
        for opened in (*outputs, reader):
            opened.close()
    frequency = np.fromfile(scratch / "frequency", np.int32)
    # The commonest term is number 0: most numbers are small then.
    order = np.argsort(-frequency, kind="stable")
    rank = np.empty(len(order), np.uint64)
    rank[order] = np.arange(len(order), dtype=np.uint64)
    np.save(folder / "vectors.df.npy", frequency[order].astype(np.uint32))
    Strings.save(folder, "words", words.choose(_terms(scratch, order), analyzer))
    lengths = np.zeros(documents, np.uint32)
    rare = _into_blocks(scratch, places, rank, frequency, lengths)
    np.save(folder / "vectors.lengths.npy", lengths)
    _write_vectors(folder, scratch, documents, int(frequency.sum(dtype=np.int64)), rare)
    shutil.rmtree(scratch)


def _stored(reader: Any, numbers: Sequence[int]) -> list[Document]:
    """The documents with these numbers of Lucene's."""
    with using_java():
        fields, parsed = reader.storedFields(), static("java.lang.Integer", "parseInt", "int", STRING)
        found = bound(method(FIELDS, "document", DOCUMENT, "int"), fields)
        raw = bound(method(DOCUMENT, "get", STRING, STRING), "raw", at=1)
        told = as_function("java.util.function.Function", piped(parsed, found, raw))
        # No JSON text holds it.
        between = java_class("java.lang.String")(BETWEEN_DOCUMENTS)
        joined = java_class("java.util.stream.Collectors").joining(between)
        lines = java_class("java.util.regex.Pattern").compile(",").splitAsStream(",".join(map(str, numbers)))
        texts: str = lines.map(told).collect(joined)
    return [document_of(text) for text in texts.split(BETWEEN_DOCUMENTS)]


def _outputs(scratch: Path) -> list[Any]:
    """Lucene's outputs: numbers and counts of each posting; bytes, their number and the document frequency of terms."""
    path = java_class("java.nio.file.Paths").get(str(scratch))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    usual = java_class("org.apache.lucene.store.IOContext").DEFAULT
    return [directory.createOutput(name, usual) for name in ("documents", "counts", "text", "sizes", "frequency")]


def _writing(reader: Any, documents: Any, counts: Any, text: Any, sizes: Any, frequency: Any) -> Any:
    """A java.lang.Runnable: for each term its bytes, their number, its frequency, its documents and counts in them."""
    import jnius

    def write_int(output: Any) -> Any:
        return bound(method(OUTPUT, "writeInt", "void", "int"), output)

    composite = jnius.cast("org.apache.lucene.index.IndexReader", reader)
    terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(composite, "contents")
    if terms is None:
        return as_function(RUNNABLE, java_class("java.lang.invoke.MethodHandles").empty(signature("void")))
    posting = both(
        piped(method(POSTINGS, "docID", "int"), write_int(documents)),
        piped(method(POSTINGS, "freq", "int"), write_int(counts)),
    )
    # -1, of which Java makes true, as long as the document's number is below the one that stands for the end.
    compared = bound(static("java.lang.Integer", "compare", "int", "int", "int"), number(NO_MORE), at=1)
    more = typed(piped(method(POSTINGS, "nextDoc", "int"), compared), "boolean", POSTINGS)
    opened = bound(
        bound(method(TERMS, "postings", POSTINGS, POSTINGS, "int"), number(WITH_FREQUENCIES), at=2), None, at=1
    )
    three = fed(
        bound(method(OUTPUT, "writeBytes", "void", "[B", "int", "int"), text),
        field(BYTES_REF, "bytes", "[B"),
        field(BYTES_REF, "offset", "int"),
        field(BYTES_REF, "length", "int"),
    )
    spelled = both(
        ordered(three, signature("void", BYTES_REF), 0, 0, 0),
        piped(field(BYTES_REF, "length", "int"), write_int(sizes)),
    )
    term = both(
        both(
            piped(method(TERMS, "term", BYTES_REF), spelled),
            piped(method(TERMS, "docFreq", "int"), write_int(frequency)),
        ),
        piped(opened, repeated(more, posting)),
    )
    there = typed(static("java.util.Objects", "nonNull", "boolean", OBJECT), "boolean", BYTES_REF)
    next_term = piped(method(TERMS, "next", BYTES_REF), there)
    return as_function(RUNNABLE, bound(repeated(next_term, term), terms.iterator()))


def _terms(scratch: Path, order: NDArray[np.intp]) -> list[str]:
    """The terms in this order."""
    text, ends = (scratch / "text").read_bytes(), np.cumsum(np.fromfile(scratch / "sizes", np.int32), dtype=np.int64)
    starts = np.append(0, ends[:-1])[order] if len(ends) else ends
    return [text[start:end].decode() for start, end in zip(starts.tolist(), ends[order].tolist(), strict=True)]


def _into_blocks(
    scratch: Path,
    places: Places,
    rank: NDArray[np.uint64],
    frequency: NDArray[np.int32],
    lengths: NDArray[np.uint32],
) -> int:
    """Put every posting, as one number, into the file of its block; add up the lengths; return how many are rare."""
    ends = np.cumsum(frequency, dtype=np.int64)
    total, rare = int(ends[-1]) if len(ends) else 0, 0
    with (scratch / "documents").open("rb") as documents, (scratch / "counts").open("rb") as counts:
        for start in range(0, total, CHUNK):
            stop = min(start + CHUNK, total)
            document = places.numbers(np.fromfile(documents, np.int32, stop - start))
            count = np.fromfile(counts, np.int32, stop - start)
            lengths += np.bincount(document, count, len(lengths)).astype(np.uint32)
            first, last = np.searchsorted(ends, (start, stop - 1), side="right").tolist()
            inside: NDArray[np.int64] = np.diff(np.append(start, np.clip(ends[first : last + 1], start, stop)))
            term = np.repeat(rank[first : last + 1], inside)
            rare += int(np.count_nonzero(term >= COMMON))
            key = (document % BLOCK).astype(np.uint64) << np.uint64(COUNT_BITS + TERM_BITS)
            key |= term << np.uint64(COUNT_BITS) | np.minimum(count, MOST).astype(np.uint64)
            block = (document // BLOCK).astype(np.uint16)
            order = np.argsort(block, kind="stable")
            key, sizes = key[order], np.bincount(block)
            for number, part in enumerate(np.split(key, np.cumsum(sizes)[:-1])):
                if len(part):
                    with (scratch / f"block{number}").open("ab") as file:
                        part.tofile(file)
    return rare


def _write_vectors(folder: Path, scratch: Path, documents: int, entries: int, rare: int) -> None:
    """Sort the postings of each block and write them, document after document."""

    def opened(name: str, dtype: DTypeLike, size: int) -> NDArray[Any]:
        array: NDArray[Any] = np.lib.format.open_memmap(folder / f"vectors.{name}.npy", "w+", dtype, (size,))
        return array

    low, count, high = (
        opened("low", np.uint16, entries),
        opened("counts", np.uint8, entries),
        opened("high", np.uint16, rare),
    )
    starts, high_starts = opened("starts", np.int64, documents + 1), opened("high.starts", np.int64, documents + 1)
    many: list[NDArray[Any]] = []
    many_counts: list[NDArray[Any]] = []
    at = high_at = 0
    for first in range(0, documents, BLOCK):
        path, size = scratch / f"block{first // BLOCK}", min(BLOCK, documents - first)
        key = np.fromfile(path, np.uint64) if path.exists() else np.zeros(0, np.uint64)
        key.sort()
        document = (key >> np.uint64(COUNT_BITS + TERM_BITS)).astype(np.intp)
        term = (key >> np.uint64(COUNT_BITS)).astype(np.uint32) & np.uint32((1 << TERM_BITS) - 1)
        counted = (key & np.uint64(MOST)).astype(np.uint16)
        is_rare = term >= COMMON
        low[at : at + len(key)] = term & np.uint32(COMMON - 1)
        count[at : at + len(key)] = np.minimum(counted, FEW)
        beyond = np.flatnonzero(counted >= FEW)
        many.append(beyond + at)
        many_counts.append(counted[beyond])
        found = term[is_rare] >> np.uint32(16)
        high[high_at : high_at + len(found)] = found
        starts[first + 1 : first + 1 + size] = at + np.cumsum(np.bincount(document, minlength=size))
        high_starts[first + 1 : first + 1 + size] = high_at + np.cumsum(np.bincount(document[is_rare], minlength=size))
        at, high_at = at + len(key), high_at + len(found)
    np.save(folder / "vectors.many.npy", np.concatenate(many).astype(np.int64))
    np.save(folder / "vectors.many.counts.npy", np.concatenate(many_counts).astype(np.uint16))
