"""A Lucene index that Anserini has built, opened: what it holds, and the faults that keep it from being searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve.anserini import loops
from fairagent.retrieve.anserini.kept import commit_file, kept_ids
from fairagent.retrieve.hits import numbers_and_scores
from fairagent.retrieve.java import java_class, start_java, using_java
from fairagent.retrieve.queries import CONTENTS, MAX_TERMS
from fairagent.retrieve.strings import IdTable, ranked
from fairagent.types import FloatArray, Ranking

SEEN = 1000
"""Documents of each segment whose lengths are looked at to tell an impact index from one of texts."""
BM25, IMPACT, VECTORS = "lucene", "lucene-impact", "lucene-hnsw"
"""The engines, by what an index holds."""
MADE_FOR = {BM25: "words of texts (BM25)", IMPACT: "impacts (weights of terms, as of SPLADE)", VECTORS: "embeddings"}


@dataclass(frozen=True, slots=True)
class Field:
    """What an index keeps in a field."""

    searched: bool
    vectors: bool
    by_column: bool
    dimension: int


class AnseriniIndex:
    """An open index of Anserini's: its fields, its documents' ids, and lists by any Lucene query.

    One reader serves all threads, one call at a time (why: `fairagent.retrieve.java`).
    """

    def __init__(
        self, folder: Path, kind: str, kept: Path, progress: Callable[[int], None] = lambda done: None
    ) -> None:
        """Open the index in `folder`, which has to be one for the engine `kind`; its ids are kept below `kept`.

        `progress` is told how many ids were read, where they had to be. Raises BackendUnavailable where there is no
        index; IndexMismatch where this Lucene cannot read it, or another engine searches such; DataError where it is
        empty, has deleted documents, or its documents have no ids.
        """
        start_java()
        # Java resolves relative paths against the folder in which it was started.
        self.folder = folder.absolute()
        commit_file(self.folder)
        with using_java():
            self.reader = _open(self.folder)
            self.fields = _fields(self.reader)
        try:
            self._check(kind)
            with using_java():
                leaves = self._leaves
            self.ids: IdTable = kept_ids(self.folder, kept, leaves, progress)
        except BaseException:
            self.close()
            raise
        self.kind = kind

    def __len__(self) -> int:
        return len(self.ids)

    def close(self) -> None:
        """Release the files."""
        with using_java():
            self.reader.close()

    @property
    def _leaves(self) -> list[Any]:
        """The readers of the segments, in their order."""
        import jnius

        found = self.reader.leaves()
        contexts = (jnius.cast("org.apache.lucene.index.LeafReaderContext", found.get(i)) for i in range(found.size()))
        return [jnius.cast("org.apache.lucene.index.LeafReader", context.reader()) for context in contexts]

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The number of the first document of each segment, and the number of documents: (segments + 1,)."""
        with using_java():
            return np.cumsum([0, *(leaf.maxDoc() for leaf in self._leaves)])

    def leaf(self, place: int) -> Any:
        """The reader of a segment."""
        return self._leaves[place]

    @cached_property
    def stored(self) -> frozenset[str]:
        """The fields whose texts are stored, by the first document."""
        with using_java():
            fields = self.reader.storedFields().document(0).getFields()
            return frozenset(fields.get(i).name() for i in range(fields.size()))

    def searcher(self, similarity: Any) -> Any:
        """A searcher that scores by `similarity`."""
        import jnius

        searcher_class = java_class("org.apache.lucene.search.IndexSearcher")
        searcher_class.setMaxClauseCount(MAX_TERMS + 1)
        # The constructor is overloaded; the cast says which one is meant.
        searcher = searcher_class(jnius.cast("org.apache.lucene.index.IndexReader", self.reader))
        searcher.setSimilarity(similarity)
        return searcher

    def best(self, searcher: Any, query: Any, n: int) -> Ranking:
        """The best `n` documents for a Lucene query, those that match; ties in the order of ids, at the cut as well."""
        n = min(index(n), len(self))
        # One more than wanted shows whether a tie goes across the cut; then the whole tie is fetched.
        asked = n + 1
        with using_java():
            numbers, scores = self._top(searcher, query, asked)
            while len(scores) == asked and scores[n - 1] == scores[-1]:
                asked *= 2
                numbers, scores = self._top(searcher, query, asked)
        if len(scores) > n:
            whole_tie = int(np.searchsorted(-scores, -scores[n - 1], side="right"))
            numbers, scores = numbers[:whole_tie], scores[:whole_tie]
        return ranked(self.ids.names(numbers), scores, n)

    def scores(self, searcher: Any, query: Any, ids: Sequence[str]) -> FloatArray:
        """The scores (n,) of documents for a Lucene query, by one call; 0 where nothing matches.

        Raises DataError naming ids that are not in the index.
        """
        if not len(ids):
            return np.zeros(0)
        numbers = self.ids.known(ids)
        distinct = np.unique(numbers)
        with using_java(), self.sound():
            found, scores = numbers_and_scores(loops.scored(searcher, query, distinct.tolist()))
        order = np.argsort(found)
        return scores[order][np.searchsorted(found[order], numbers)]

    def sound(self) -> Sound:
        """A block in which Java's errors are the index's: IndexMismatch."""
        return Sound(self.folder)

    def _top(self, searcher: Any, query: Any, n: int) -> tuple[NDArray[np.intp], FloatArray]:
        with self.sound():
            return numbers_and_scores(searcher.search(query, n))

    def _check(self, kind: str) -> None:
        with using_java():
            documents, deleted = self.reader.maxDoc(), self.reader.numDeletedDocs()
        if not documents:
            raise DataError(f"the index at {self.folder} holds no documents: its build failed, or found nothing")
        if deleted:
            raise DataError(
                f"the index at {self.folder} has {deleted:,} deleted documents, whose words still count in scores; "
                "merge it (Anserini: -optimize) or build it anew"
            )
        found = self._holds()
        if found is None:
            raise IndexMismatch(
                f"the index at {self.folder} is none of Anserini's: it has neither the field `{CONTENTS}` nor "
                f"`{loops.VECTOR}`; its fields: {', '.join(sorted(self.fields))}"
            )
        if found != kind:
            raise IndexMismatch(
                f"the index at {self.folder} is of {MADE_FOR[found]}, which `engine: {{kind: {found}, index: ...}}` "
                f"searches; `{kind}` is for {MADE_FOR[kind]}"
            )
        if loops.ID not in self.fields or not (self.fields[loops.ID].by_column or loops.ID in self.stored):
            raise IndexMismatch(
                f"the index at {self.folder} has no ids of its documents (docvalues, or a stored field, `{loops.ID}`), "
                "as Anserini writes them; build it again with the Anserini of this pyserini"
            )

    def _holds(self) -> str | None:
        """The kind of engine that searches such an index; None where there is none."""
        if loops.VECTOR in self.fields and self.fields[loops.VECTOR].dimension:
            return VECTORS
        if CONTENTS not in self.fields or not self.fields[CONTENTS].searched:
            return None
        with using_java():
            terms = self.reader.getSumTotalTermFreq(CONTENTS)
            # ImpactSimilarity keeps no lengths: each is 1, however many terms a document has.
            longer = terms > self.reader.getDocCount(CONTENTS)
            return IMPACT if longer and all(map(_no_lengths, self._leaves)) else BM25


class AnseriniEngine:
    """An engine over an index of Anserini's."""

    index: AnseriniIndex

    def __len__(self) -> int:
        return len(self.index)

    def close(self) -> None:
        """Release the index's files."""
        self.index.close()


class Sound:
    """A block in which Java's errors are those of a damaged index: IndexMismatch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import jnius

        if isinstance(error, jnius.JavaException):
            raise _damaged(self._folder, error) from None


def _no_lengths(leaf: Any) -> bool:
    norms = leaf.getNormValues(CONTENTS)
    if norms is None:
        return True
    return all(
        norms.advanceExact(number) is False or norms.longValue() == 1 for number in range(min(SEEN, leaf.maxDoc()))
    )


def _open(folder: Path) -> Any:
    import jnius

    path = java_class("java.nio.file.Paths").get(str(folder))
    try:
        directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
        return java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    except jnius.JavaException as error:
        reason = str(error).partition("\n")[0]
        lucene = java_class("org.apache.lucene.util.Version").LATEST.toString()
        if "IndexFormatTooOld" in reason:
            raise IndexMismatch(
                f"the index at {folder} was built by a Lucene that is too old for this one ({lucene}); take a newer "
                f"prebuilt index, or build it again with the Anserini of this pyserini ({_short(reason)})"
            ) from None
        if "IndexFormatTooNew" in reason or "Could not load codec" in reason or "does not exist" in reason:
            raise IndexMismatch(
                f"the index at {folder} was built by a Lucene that is newer than this one ({lucene}) or by one with "
                f"another codec; update pyserini, or build the index with this one ({_short(reason)})"
            ) from None
        raise _damaged(folder, error) from None


def _damaged(folder: Path, error: Exception) -> IndexMismatch:
    reason = _short(str(error).partition("\n")[0])
    return IndexMismatch(f"the index at {folder} is damaged; copy, download or build it again ({reason})")


def _short(reason: str) -> str:
    return reason.rpartition("Exception: ")[2][:200]


def _fields(reader: Any) -> dict[str, Field]:
    import jnius

    merged = java_class("org.apache.lucene.index.FieldInfos").getMergedFieldInfos(reader)
    iterator, found = merged.iterator(), {}
    while iterator.hasNext():
        info = jnius.cast("org.apache.lucene.index.FieldInfo", iterator.next())
        found[info.name] = Field(
            info.getIndexOptions().toString() != "NONE",
            info.hasVectors(),
            info.getDocValuesType().toString() == "BINARY",
            info.getVectorDimension(),
        )
    return found
