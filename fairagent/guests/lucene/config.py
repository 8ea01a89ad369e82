"""Indexes that Anserini has built as parts: BM25, impacts, embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from fairagent.guests.lucene.bm25 import AnseriniRetriever
from fairagent.guests.lucene.index import commit_file
from fairagent.guests.lucene.vectors import HnswRetriever, ImpactRetriever
from fairagent.retrieve.encoders import BUNDLED
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import encoder
from fairagent.settings import Part
from fairagent.settings.parts import read_part
from fairagent.types.common import Check


class AnseriniPart(Part):
    """An index that Anserini (pyserini) has built, searched where it is; nothing is written into it."""

    index: str = Field(min_length=1)
    """The folder of the index, with the file segments_...; a relative path in an experiment starts at its file."""

    @property
    def files(self) -> Mapping[str, Path]:
        """The index's last commit, which changes with any of its documents."""
        return {"index": commit_file(self.folder)} if any(self.folder.glob("segments_*")) else {}

    @property
    def tells_words(self) -> bool:
        """Whether it tells the terms of its documents: there is nothing that another index could be built from."""
        return True

    @property
    def foreign(self) -> tuple[Part, ...]:
        """Itself."""
        return (self,)

    @property
    def folder(self) -> Path:
        """The index's folder."""
        return Path(self.index).expanduser()

    def relative_to(self, folder: Path) -> Self:
        """With the paths from anywhere."""
        paths = {name: getattr(self, name) for name in ("index", "texts") if getattr(self, name, "")}
        return self.model_copy(
            update={name: str((folder / Path(path).expanduser()).absolute()) for name, path in paths.items()}
        )

    def check(self, site: Site) -> None:
        """Raise what keeps the index from being searched, and DataError where no document of the groups is in it."""
        self.build(site)

    def diagnose(self, site: Site) -> Iterator[Check]:
        """What there is; raises what keeps the index from being searched."""
        self.check(site)
        yield Check("index", "ok", self.summary(site))

    def build(self, site: Site) -> Any:
        """The engine."""
        engine = self.opened(site)
        site.memo.get(("groups in the index", self.folder), lambda: engine.index.check_groups(site.collection))
        return engine

    def opened(self, site: Site) -> Any:
        """The engine; the parts of a pipeline share it."""
        return site.memo.get(self, lambda: self.open(site))

    def open(self, site: Site) -> Any:
        """Open the index."""
        raise NotImplementedError

    def summary(self, site: Site) -> str:
        """What there is, in a line for people."""
        return f"{len(self.opened(site)):,} documents at {self.folder}"


class LuceneConfig(AnseriniPart):
    """BM25 over an index that Anserini has built."""

    kind: Literal["lucene"] = "lucene"
    analyzer: str = "english"
    """The analyzer that the index was built with, which Anserini does not keep in it: english is its default."""
    k1: float = Field(0.9, ge=0)
    """How much repeated words add to a document's score: 0 counts each word once, with larger values repetitions count
    longer."""
    b: float = Field(0.4, ge=0, le=1)
    """How much long documents are held back, 0 (not at all) to 1 (in proportion to their length)."""

    def open(self, site: Site) -> AnseriniRetriever:
        """Open the index."""
        return AnseriniRetriever(self.folder, self.analyzer, self.k1, self.b)

    def summary(self, site: Site) -> str:
        """What there is, and where texts and terms come from."""
        engine = self.opened(site)
        return f"{super().summary(site)}; {engine.holds}"


class LuceneImpactConfig(AnseriniPart):
    """An impact index that Anserini has built (SPLADE, uniCOIL ...): terms with quantized weights."""

    kind: Literal["lucene-impact"] = "lucene-impact"
    encoder: str = ""
    """The SPLADE model that weighs queries: a folder, or a name in the Hugging Face cache. Empty: a query's words are
    terms of the index as they stand, and weigh 1 each time that they occur."""
    scale: float = Field(5.0, gt=0)
    """The weight of a query's term that becomes `levels` (pyserini's weight range)."""
    levels: int = Field(256, ge=1)
    """The whole number that `scale` becomes (pyserini's quantization range)."""
    texts: str = ""
    """A BM25 index of the same documents, with their texts and terms, for titles, answers and the loop."""
    analyzer: str = "english"
    """The analyzer of `texts`."""

    def open(self, site: Site) -> ImpactRetriever:
        """Open the index."""
        splade: Any = read_part("engine", {"kind": "splade", "model": self.encoder}) if self.encoder else None
        encoder = splade.open_encoder(site.memo) if splade else None
        return ImpactRetriever(self.folder, encoder, self.scale, self.levels, _words(self, site))


class LuceneHnswConfig(AnseriniPart):
    """An HNSW index of embeddings that Anserini has built."""

    kind: Literal["lucene-hnsw"] = "lucene-hnsw"
    encoder: str = Field(BUNDLED, min_length=1)
    """The encoder that made the index's embeddings; named as for `engine: dense`."""
    ef: int = Field(1000, ge=1)
    """How many nodes of the graph are looked at, or as many as documents are wanted. More find more of the nearest,
    and take longer."""
    texts: str = ""
    """A BM25 index of the same documents, with their texts and terms, for titles, answers and words of the loop."""
    analyzer: str = "english"
    """The analyzer of `texts`."""

    def open(self, site: Site) -> HnswRetriever:
        """Open the index."""
        return HnswRetriever(self.folder, encoder(site, self.encoder), self.ef, _words(self, site))


def _words(part: LuceneImpactConfig | LuceneHnswConfig, site: Site) -> AnseriniRetriever | None:
    """The index with the texts and terms of the documents, where one is named."""
    if not part.texts:
        return None
    words: AnseriniRetriever = LuceneConfig(index=part.texts, analyzer=part.analyzer).opened(site)
    return words
