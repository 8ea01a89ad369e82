"""What is read of every document of a Lucene index, or of every term of hundreds, by one call into Java.

A call from Python costs some microseconds, and one that makes an object twenty. Each of these loops runs in Java,
writes what it finds into a stream of bytes, and numpy takes that apart.
"""

from collections.abc import Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.retrieve.anserini import frames
from fairagent.retrieve.anserini.frames import Frame
from fairagent.retrieve.handles import constructor, field, method, static, typed
from fairagent.retrieve.java import java_class
from fairagent.retrieve.queries import CONTENTS

ID = "id"
"""The field with the documents' ids."""
VECTOR = "vector"
"""The field with their embeddings."""

INDEX = "org.apache.lucene.index."
SEARCH = "org.apache.lucene.search."
BYTES = "org.apache.lucene.util.BytesRef"
OUT = "java.io.DataOutputStream"
BUFFER = "java.nio.ByteBuffer"
STRING = "java.lang.String"
OBJECT = "java.lang.Object"


def ids_by_column(leaf: Any) -> int:
    """How many documents of a segment have their id among the values by column."""
    values = leaf.getBinaryDocValues(ID)
    return int(values.cost()) if values else 0


def write_ids(leaf: Any, by_column: bool, block: Path, lengths: Path) -> None:
    """Append the ids of a segment's documents to a file, and the length of each (4 bytes, big-endian) to another.

    They are read `by_column`, which takes a third of a microsecond each, or from the stored documents, which takes
    several. Every document of the `leaf`, a LeafReader, has to have one there.
    """
    out, sizes = _file(block), _file(lengths)
    if by_column:
        frames.run(_ids_loop(), leaf.maxDoc(), leaf.getBinaryDocValues(ID), out, sizes)
    else:
        wanted = java_class("java.util.Collections").singleton(ID)
        frames.run(_stored_ids_loop(), leaf.maxDoc(), leaf.storedFields(), wanted, out, sizes)
    out.close()
    sizes.close()


def term_vectors(reader: Any, numbers: Sequence[int]) -> tuple[list[str], NDArray[np.int64]]:
    """The terms of documents, one after another, and how often each occurs; among these a 0 ends each document.

    A document without stored terms has none.
    """
    names, counts = _memory(), _memory()
    out, counts_out = _stream(names), _stream(counts)
    frames.run(_vectors_loop(), len(numbers), _ints(numbers), reader.termVectors(), out, counts_out)
    terms = _taken(names).decode().split("\n")[:-1]
    found = np.frombuffer(_taken(counts), ">i8").astype(np.int64)
    if np.count_nonzero(found) != len(terms):
        raise DataError("the index has terms with line breaks in them, which no analyzer of texts makes")
    return terms, found


def first_terms(reader: Any, n: int) -> list[str]:
    """The first terms of the field that is searched, in their order; at most `n`."""
    import jnius

    # The method is overloaded; the cast says which one is meant.
    whole = jnius.cast(INDEX + "IndexReader", reader)
    terms = java_class(INDEX + "MultiTerms").getTerms(whole, CONTENTS).iterator()
    found = (terms.next() for _ in range(n))
    return [term.utf8ToString() for term in takewhile(bool, found)]


def document_frequencies(reader: Any, terms: Sequence[str]) -> NDArray[np.int64]:
    """How many documents hold each of the terms."""
    counts = _memory()
    joined = java_class(STRING)("\n".join(terms))
    frames.run(_frequencies_loop(), len(terms), joined.lines().iterator(), reader, _stream(counts))
    return np.frombuffer(_taken(counts), ">i4").astype(np.int64)


def scored(searcher: Any, query: Any, numbers: Sequence[int]) -> Any:
    """The documents with these distinct numbers and their scores for a query, as a TopDocs; 0 where nothing matches."""
    return frames.run(_scored_loop(), len(numbers), _ints(numbers), searcher, query)


def embeddings(values: Any, places: Sequence[int], dimension: int) -> NDArray[np.float32]:
    """The vectors at these rising places of a segment's FloatVectorValues, (n, d)."""
    room = java_class(BUFFER).allocate(4 * dimension * len(places))
    frames.run(_embeddings_loop(), len(places), _ints(places), values, room.asFloatBuffer())
    return np.frombuffer(_bytes(room.array()), ">f4").astype(np.float32).reshape(len(places), dimension)


@cache
def _ids_loop() -> Any:
    kinds = {"count": "int", "values": INDEX + "BinaryDocValues", "out": OUT, "sizes": OUT}
    frame = Frame(turn="int", **kinds)
    value = frame.call(method(INDEX + "BinaryDocValues", "binaryValue", BYTES), "values")
    body = frame.sequence(
        frame.call(method(INDEX + "BinaryDocValues", "nextDoc", "int"), "values"),
        frame.call(_write_id(), value, "out", "sizes"),
    )
    return frames.repeat(Frame(**kinds).variable("count"), body)


@cache
def _stored_ids_loop() -> Any:
    document = "org.apache.lucene.document.Document"
    kinds = {"count": "int", "stored": INDEX + "StoredFields", "wanted": "java.util.Set", "out": OUT, "sizes": OUT}
    frame = Frame(turn="int", **kinds)
    read = method(INDEX + "StoredFields", "document", document, "int", "java.util.Set")
    found = frame.call(read, "stored", "turn", "wanted")
    text = frame.call(method(document, "get", STRING, STRING), found, frame.constant(STRING, ID))
    value = frame.call(typed(constructor(BYTES, "java.lang.CharSequence"), BYTES, STRING), text)
    return frames.repeat(Frame(**kinds).variable("count"), frame.call(_write_id(), value, "out", "sizes"))


@cache
def _write_id() -> Any:
    """(BytesRef, DataOutputStream, DataOutputStream): write what the reference stands for, and its length."""
    frame = Frame(value=BYTES, out=OUT, sizes=OUT)
    size = frame.call(field(BYTES, "length", "int"), "value")
    return frame.sequence(
        frame.call(_write_bytes(), "out", "value"),
        frame.call(method(OUT, "writeInt", "void", "int"), "sizes", size),
    )


@cache
def _vectors_loop() -> Any:
    enum = INDEX + "TermsEnum"
    # The terms of one document, as long as there is a next one.
    each = Frame(term=BYTES, terms=enum, names=OUT, counts=OUT)
    times = each.call(method(enum, "totalTermFreq", "long"), "terms")
    body = each.sequence(
        each.call(_write_bytes(), "names", "term"),
        each.call(_write_byte(), "names", each.constant("int", ord("\n"))),
        each.call(method(OUT, "writeLong", "void", "long"), "counts", times),
        each.call(method(enum, "next", BYTES), "terms"),
    )
    start = Frame(terms=enum, names=OUT, counts=OUT)
    there = each.call(typed(_there(), "boolean", BYTES), "term")
    walk = typed(
        frames.repeat_while(start.call(method(enum, "next", BYTES), "terms"), there, body), "void", enum, OUT, OUT
    )
    found = Frame(terms=INDEX + "Terms", names=OUT, counts=OUT)
    read = found.call(walk, found.call(method(INDEX + "Terms", "iterator", enum), "terms"), "names", "counts")
    stored = frames.only_if(found.call(typed(_there(), "boolean", INDEX + "Terms"), "terms"), read)

    kinds = {"count": "int", "numbers": BUFFER, "vectors": INDEX + "TermVectors", "names": OUT, "counts": OUT}
    outer = Frame(turn="int", **kinds)
    get = method(INDEX + "TermVectors", "get", INDEX + "Terms", "int", STRING)
    number = outer.call(method(BUFFER, "getInt", "int"), "numbers")
    document = outer.call(
        stored, outer.call(get, "vectors", number, outer.constant(STRING, CONTENTS)), "names", "counts"
    )
    end = outer.call(method(OUT, "writeLong", "void", "long"), "counts", outer.constant("long", 0))
    return frames.repeat(Frame(**kinds).variable("count"), outer.sequence(document, end))


@cache
def _frequencies_loop() -> Any:
    kinds = {"count": "int", "terms": "java.util.Iterator", "reader": INDEX + "IndexReader", "out": OUT}
    frame = Frame(turn="int", **kinds)
    text = typed(method("java.util.Iterator", "next", OBJECT), STRING, "java.util.Iterator")
    term = frame.call(
        constructor(INDEX + "Term", STRING, STRING), frame.constant(STRING, CONTENTS), frame.call(text, "terms")
    )
    frequency = frame.call(method(INDEX + "IndexReader", "docFreq", "int", INDEX + "Term"), "reader", term)
    body = frame.call(method(OUT, "writeInt", "void", "int"), "out", frequency)
    return frames.repeat(Frame(**kinds).variable("count"), body)


@cache
def _scored_loop() -> Any:
    one, array, top = SEARCH + "ScoreDoc", f"[L{SEARCH}ScoreDoc;", SEARCH + "TopDocs"
    searcher, query = SEARCH + "IndexSearcher", SEARCH + "Query"
    kinds = {"count": "int", "numbers": BUFFER}
    frame = Frame(array=array, turn="int", **kinds)
    number = frame.call(method(BUFFER, "getInt", "int"), "numbers")
    made = frame.call(constructor(one, "int", "float"), number, frame.constant("float", 0.0))
    fill = frame.sequence(frame.call(frames.set_element(array), "array", "turn", made), frame.variable("array"))
    counted = Frame(**kinds)
    pool = frames.repeat(counted.variable("count"), fill, counted.call(frames.new_array(array), "count"))
    # What a first pass scored 0 gets the query's score: QueryRescorer asks each document of the pool, and no other.
    rescore = static(SEARCH + "QueryRescorer", "rescore", top, searcher, top, query, "double", "int")
    outer = Frame(**kinds, searcher=searcher, query=query)
    total = outer.call(
        constructor(SEARCH + "TotalHits", "long", SEARCH + "TotalHits$Relation"),
        outer.call(typed(frames.identity("int"), "long", "int"), "count"),
        outer.constant(SEARCH + "TotalHits$Relation", java_class(SEARCH + "TotalHits$Relation").EQUAL_TO),
    )
    first = outer.call(constructor(top, SEARCH + "TotalHits", array), total, outer.call(pool, "count", "numbers"))
    return outer.call(rescore, "searcher", first, "query", outer.constant("double", 1.0), "count")


@cache
def _embeddings_loop() -> Any:
    values = INDEX + "FloatVectorValues"
    kinds = {"count": "int", "places": BUFFER, "values": values, "room": "java.nio.FloatBuffer"}
    frame = Frame(turn="int", **kinds)
    place = frame.call(method(BUFFER, "getInt", "int"), "places")
    to_place = frame.call(method(values, "advance", "int", "int"), "values", place)
    vector = frame.call(method(values, "vectorValue", "[F"), "values")
    put = typed(
        method("java.nio.FloatBuffer", "put", "java.nio.FloatBuffer", "[F"), "void", "java.nio.FloatBuffer", "[F"
    )
    body = frame.sequence(to_place, frame.call(put, "room", vector))
    return frames.repeat(Frame(**kinds).variable("count"), body)


@cache
def _write_bytes() -> Any:
    """(DataOutputStream, BytesRef): write what the reference stands for."""
    frame = Frame(out=OUT, value=BYTES)
    parts = (field(BYTES, "bytes", "[B"), field(BYTES, "offset", "int"), field(BYTES, "length", "int"))
    return frame.call(
        method(OUT, "write", "void", "[B", "int", "int"), "out", *(frame.call(part, "value") for part in parts)
    )


def _write_byte() -> Any:
    return method(OUT, "write", "void", "int")


def _there() -> Any:
    return static("java.util.Objects", "nonNull", "boolean", OBJECT)


def _ints(numbers: Sequence[int]) -> Any:
    return java_class(BUFFER).wrap(np.asarray(numbers, ">i4").tobytes())


def _file(path: Path) -> Any:
    opened = java_class("java.io.FileOutputStream")(str(path), True)
    return java_class(OUT)(java_class("java.io.BufferedOutputStream")(opened, 1 << 16))


def _memory() -> Any:
    return java_class("java.io.ByteArrayOutputStream")()


def _stream(memory: Any) -> Any:
    return java_class(OUT)(memory)


def _taken(memory: Any) -> bytes:
    return _bytes(memory.toByteArray())


def _bytes(array: Any) -> bytes:
    """A byte array of Java's; an empty one comes as a list."""
    return array.tostring() if hasattr(array, "tostring") else bytes(array)
