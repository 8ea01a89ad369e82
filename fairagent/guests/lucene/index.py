"""A Lucene index that Anserini has built, opened: what it holds, lists, pools, and the faults that keep it shut.

Hits cross from Java as one JSON text, which Jackson writes, and the ids of a pool the other way: a call from Python
costs some microseconds, and one that makes an object twenty.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection
from fairagent.collection.known import KnownIds, notes_of_groups, warn_once
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.guests.lucene.java import java_class, start_java, using_java
from fairagent.retrieve.base import MAX_TERMS, check_length, engine_time
from fairagent.retrieve.manifest import MANIFEST
from fairagent.types import FloatArray, Query, Ranking

ID, CONTENTS, RAW, VECTOR = "id", "contents", "raw", "vector"
"""Anserini's fields: ids (as terms and in docvalues), what is searched, the document as it was, its embedding."""
LUCENE, SEARCH = "org.apache.lucene.index.", "org.apache.lucene.search."
NAMED = 5
"""Documents that a message names."""
BM25, IMPACT, VECTORS = "lucene", "lucene-impact", "lucene-hnsw"
"""The engines, by what an index holds."""
MADE_FOR = {BM25: "words of texts (BM25)", IMPACT: "impacts (weights of terms, as of SPLADE)", VECTORS: "embeddings"}


class Hits(NamedTuple):
    """Documents that a Lucene query has, best first: ids as UTF-8 bytes, Lucene's numbers and 32-bit scores."""

    names: list[bytes]
    numbers: NDArray[np.intp]
    scores: FloatArray


class AnseriniIndex:
    """An open index of Anserini's. One reader serves all threads, one call at a time (see `java`)."""

    def __init__(self, folder: Path, kind: str, similarity: str = "", *settings: float) -> None:
        """Open the index in `folder`, for the engine `kind`, which scores by the Java class `similarity`."""
        start_java()
        # Java resolves relative paths against the folder in which it was started.
        self.folder = folder.absolute()
        commit_file(self.folder)
        with self.java():
            self.utils = java_class("io.anserini.index.IndexReaderUtils")
            self.reader = self.utils.getReader(str(self.folder))
        try:
            with self.java():
                listed = self.reader.leaves()
                contexts = [_cast("LeafReaderContext", listed.get(place)) for place in range(listed.size())]
                self.segments = [(context, _cast("LeafReader", context.reader())) for context in contexts]
                self.starts = np.cumsum([0, *(leaf.maxDoc() for _, leaf in self.segments)])
                self._check(kind)
                stored = self.reader.storedFields().document(0)
                self.stored = next((field for field in (RAW, CONTENTS) if stored.get(field) is not None), "")
                searchers = java_class(SEARCH + "IndexSearcher")
                searchers.setMaxClauseCount(MAX_TERMS + 1)
                self._searcher = searchers(_cast("IndexReader", self.reader))
                if similarity:
                    scoring = java_class(similarity)(*settings)
                    self._searcher.setSimilarity(scoring)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return int(self.starts[-1])

    def close(self) -> None:
        """Release the files."""
        with using_java():
            self.reader.close()

    @contextmanager
    def java(self) -> Iterator[None]:
        """Java in use, whose errors are those of an index of another Lucene or a damaged one: IndexMismatch."""
        import jnius

        with using_java():
            try:
                yield
            except jnius.JavaException as error:
                reason = str(error).partition("\n")[0]
                here = java_class("org.apache.lucene.util.Version").LATEST.toString()
                if "IndexFormatTooOld" in reason:
                    fault = (
                        f"was built by a Lucene that is too old for this one ({here}); take a newer prebuilt index, or "
                        "build it again with the Anserini of this pyserini"
                    )
                elif any(sign in reason for sign in ("IndexFormatTooNew", "Could not load codec", "does not exist")):
                    fault = (
                        f"was built by a Lucene that is newer than this one ({here}) or by one with another codec; "
                        "update pyserini, or build the index with this one"
                    )
                else:
                    fault = "is damaged; copy, download or build it again"
                cause = reason.rpartition("Exception: ")[2][:200]
                raise IndexMismatch(f"the index at {self.folder} {fault} ({cause})") from None

    def hits(self, query: Any, n: int) -> Hits:
        """The best `n` documents for a Lucene query, those that match; ties by id, at the cut as well."""
        with self.java():
            top = self._searcher.search(query, min(index(n), len(self)), _by_score_and_id())
            text = write_json(top)
        found = json.loads(text)["scoreDocs"]
        fields = [hit["fields"] for hit in found]
        try:
            names = [a2b_base64(id["bytes"])[id["offset"] : id["offset"] + id["length"]] for _, id in fields]
        except TypeError:
            raise IndexMismatch(f"documents of the index at {self.folder} have no id") from None
        scores = np.array([score for score, _ in fields], np.float32)
        return Hits(names, np.array([hit["doc"] for hit in found], np.intp), scores.astype(np.float64))

    def search(self, weights: Mapping[str, float], n: int) -> Ranking:
        """The best `n` documents for weighted terms."""
        with using_java():
            query = _weighted(weights)
        hits = self.hits(query, n)
        return Ranking(tuple(name.decode() for name in hits.names), hits.scores)

    def pool(self, ids: Sequence[str], weights: Mapping[str, float] | None = None, some: bool = False) -> Hits:
        """These documents, once each, scored by weighted terms.

        Raises DataError naming ids that are not there, unless `some` may be missing.
        """
        import jnius

        # Half of a surrogate pair becomes bytes that no id holds.
        names = {id.encode("utf-8", "surrogatepass"): id for id in ids}
        if not names:
            return Hits([], np.zeros(0, np.intp), np.zeros(0))
        texts = ((b2a_base64(name, newline=False).decode(), len(name)) for name in names)
        listed = ",".join(f'{{"bytes":"{text}","length":{length}}}' for text, length in texts)
        with self.java():
            references = jnius.cast("java.util.Collection", _references().readValue(f"[{listed}]"))
            wanted = java_class(SEARCH + "TermInSetQuery")(ID, references)
            query, occur = _weighted(weights or {}), java_class(SEARCH + "BooleanClause$Occur")
            builder = java_class(SEARCH + "BooleanQuery$Builder")()
            # SHOULD, not MUST: documents of the pool without any query term stay in the result, with score 0.
            builder.add(query, occur.SHOULD)
            builder.add(wanted, occur.FILTER)
            both = builder.build()
        hits = self.hits(both, len(names))
        if not some and (missing := [names[name] for name in names.keys() - set(hits.names)]):
            listed = ", ".join(f"{id[:60]!r}" for id in sorted(missing)[:NAMED])
            raise DataError(f"{len(missing)} document id(s) are not in the index: {listed}")
        return hits

    def name(self, number: int) -> str:
        """The id of the document with this number of Lucene's."""
        with self.java():
            return str(self.utils.convertLuceneDocidToDocid(self.reader, number))

    def field(self, name: str) -> Any:
        """What Lucene keeps in a field (FieldInfo); None where there is none."""
        return java_class(LUCENE + "FieldInfos").getMergedFieldInfos(self.reader).fieldInfo(name)

    def check_groups(self, collection: Collection) -> None:
        """Warn of documents in the collection's tables of groups that are not in the index, by some of each."""

        def there(ids: Sequence[str]) -> list[bool]:
            present = set(self.pool(ids, some=True).names)
            return [id.encode("utf-8", "surrogatepass") in present for id in ids]

        first = tuple(self.name(number) for number in range(min(NAMED, len(self))))
        for note in notes_of_groups(collection.groups, KnownIds(f"the index at {self.folder}", there, first)):
            warn_once(f"{note}; no search finds them")

    def _check(self, kind: str) -> None:
        if not len(self):
            raise DataError(f"the index at {self.folder} holds no documents: its build failed, or had no documents")
        if deleted := self.reader.numDeletedDocs():
            raise DataError(
                f"the index at {self.folder} has {deleted:,} deleted documents, whose words still count in scores; "
                "merge it (Anserini: -optimize) or build it anew"
            )
        holds, ids = self._holds(), self.field(ID)
        if holds is None:
            raise IndexMismatch(
                f"the index at {self.folder} is none of Anserini's: it has neither the field `{CONTENTS}` nor "
                f"`{VECTOR}`"
            )
        if holds != kind:
            raise IndexMismatch(
                f"the index at {self.folder} is of {MADE_FOR[holds]}, which `engine: {{kind: {holds}, index: ...}}` "
                f"searches; `{kind}` is for {MADE_FOR[kind]}"
            )
        if ids is None or ids.getDocValuesType().toString() != "BINARY":
            raise IndexMismatch(
                f"the index at {self.folder} has no ids of its documents (docvalues `{ID}`), as Anserini writes them; "
                "build it again with the Anserini of this pyserini"
            )

    def _holds(self) -> str | None:
        """The kind of engine that searches such an index; None where there is none."""
        embeddings, words = self.field(VECTOR), self.field(CONTENTS)
        if embeddings is not None and embeddings.getVectorDimension():
            return VECTORS
        if words is None or words.getIndexOptions().toString() == "NONE":
            return None

        # ImpactSimilarity keeps no lengths: each is 1, however many terms a document has.
        def no_lengths(leaf: Any) -> bool:
            norms, looked_at = leaf.getNormValues(CONTENTS), range(min(1000, leaf.maxDoc()))
            return norms is None or all(not norms.advanceExact(n) or norms.longValue() == 1 for n in looked_at)

        longer = self.reader.getSumTotalTermFreq(CONTENTS) > self.reader.getDocCount(CONTENTS)
        return IMPACT if longer and all(no_lengths(leaf) for _, leaf in self.segments) else BM25


class AnseriniEngine:
    """An engine over an index of Anserini's."""

    index: AnseriniIndex

    def __len__(self) -> int:
        return len(self.index)

    def close(self) -> None:
        """Release the index's files."""
        self.index.close()


class TermEngine(AnseriniEngine):
    """One that scores by weighted terms. Ties are ordered by document id, at the cut as well."""

    def weights(self, query: Query) -> Mapping[str, float]:
        """The terms that are searched, with their weights."""
        raise NotImplementedError

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents, those that share a term with the query."""
        check_length(n)
        return self.index.search(self.weights(query), n)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of these documents, (n,), in one Lucene call; 0 where no term matches."""
        hits = self.index.pool(ids, self.weights(query))
        scores = dict(zip(hits.names, hits.scores.tolist(), strict=True))
        return np.array([scores[id.encode()] for id in ids], np.float64)


def commit_file(folder: Path) -> Path:
    """The file that names the segments of the index's last commit, with an id of its own in it."""
    # The number after the line is in base 36.
    commits = [path for path in folder.glob("segments_*") if path.name[9:].isalnum()]
    if commits:
        return max(commits, key=lambda path: int(path.name[9:], 36))
    if (folder / MANIFEST).is_file():
        raise BackendUnavailable(f"the index at {folder} is one of fairagent's own, which `engine: bm25` searches")
    raise BackendUnavailable(
        f"no Lucene index at {folder}: name the folder with the file segments_...; for a prebuilt index it is what "
        "pyserini's download_prebuilt_index(NAME) returns"
    )


def _cast(kind: str, value: Any) -> Any:
    """What pyjnius takes for a class of Lucene's in an overloaded method."""
    import jnius

    return jnius.cast(LUCENE + kind, value)


def _weighted(weights: Mapping[str, float]) -> Any:
    """The query for terms with weights above 0."""
    should = java_class(SEARCH + "BooleanClause$Occur").SHOULD
    builder = java_class(SEARCH + "BooleanQuery$Builder")()
    for term, weight in weights.items():
        clause = java_class(SEARCH + "BoostQuery")(_term_query(term), weight)
        builder.add(clause, should)
    return builder.build()


@lru_cache(maxsize=50_000)
def _term_query(term: str) -> Any:
    """The immutable Lucene query for one term: expanded queries repeat them, and creating Java objects is slow."""
    return java_class(SEARCH + "TermQuery")(java_class(LUCENE + "Term")(CONTENTS, term))


@cache
def _by_score_and_id() -> Any:
    fields = java_class(SEARCH + "SortField")
    by_id = fields(ID, java_class(SEARCH + "SortField$Type").STRING_VAL)
    return java_class(SEARCH + "Sort")(fields.FIELD_SCORE, by_id)


def write_json(value: Any) -> str:
    """A Java object as JSON."""
    text: str = _json().writeValueAsString(value)
    return text


@cache
def _json() -> Any:
    return java_class("com.fasterxml.jackson.databind.ObjectMapper")()


@cache
def _references() -> Any:
    reference = java_class("java.lang.Class").forName("org.apache.lucene.util.BytesRef")
    return _json().readerForListOf(reference)
