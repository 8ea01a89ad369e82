"""Indexes that Anserini has built as parts: BM25, impacts, embeddings; a folder, or a prebuilt one of pyserini's."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from fairagent.errors import BackendUnavailable
from fairagent.guests.lucene.bm25 import AnseriniRetriever, commit_file
from fairagent.guests.lucene.java import start_java
from fairagent.guests.lucene.vectors import HnswRetriever, ImpactRetriever
from fairagent.retrieve.encoders import BUNDLED
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import encoder
from fairagent.settings import Part
from fairagent.settings.parts import Progress, read_part
from fairagent.storage.packages import is_installed
from fairagent.types.common import Check


@cache
def prebuilt(name: str) -> bool:
    """Whether pyserini has a prebuilt Lucene index of this name."""
    if Path(name).exists() or not is_installed("pyserini"):
        return False
    # Its list is made by Java, which pyserini itself would start as the shell has it.
    start_java()
    from pyserini import prebuilt_index_info as known

    return any(name in getattr(known, f"{kind}_INDEX_INFO") for kind in ("TF", "IMPACT", "LUCENE_HNSW"))


class AnseriniPart(Part):
    """An index that Anserini (pyserini) has built, searched where it is; nothing is written into it."""

    index: str = Field(min_length=1)
    """The folder of the index, with the file segments_...; a relative path in an experiment starts at its file. Or the
    name of one of pyserini's prebuilt indexes, which `fairagent index` downloads."""

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
        return (self,)

    @property
    def words(self) -> "LuceneConfig | None":
        """The index with the texts and terms of the documents, where another one is named."""
        values = dict(self)
        return LuceneConfig(index=values["texts"], analyzer=values["analyzer"]) if values.get("texts") else None

    @property
    def folder(self) -> Path:
        """The index's folder, of a prebuilt one that in pyserini's cache."""
        if not prebuilt(self.index):
            return Path(self.index).expanduser()
        from pyserini import util

        if not util.check_downloaded(self.index):
            return Path(util.get_cache_home()) / "indexes" / self.index
        return Path(util.download_prebuilt_index(self.index, verbose=False))

    def relative_to(self, folder: Path) -> Self:
        named = {name: getattr(self, name) for name in ("index", "texts") if getattr(self, name, "")}
        moved = {name: str((folder / Path(path).expanduser()).absolute()) for name, path in named.items()}
        return self.model_copy(update={name: path for name, path in moved.items() if not prebuilt(named[name])})

    def prepare(self, site: Site, progress: Progress) -> None:
        """Download a prebuilt index that is not there; BackendUnavailable where that fails."""
        if prebuilt(self.index) and not self.folder.is_dir():
            progress(f"downloading {self.index}", 0)
            from pyserini import util

            try:
                with redirect_stdout(sys.stderr):
                    util.download_prebuilt_index(self.index, verbose=False)
            except (OSError, ValueError) as error:
                raise BackendUnavailable(f"{self.index} cannot be downloaded ({error})") from None
        if self.words:
            self.words.prepare(site, progress)

    def check(self, site: Site) -> None:
        self.build(site)

    def diagnose(self, site: Site) -> Iterator[Check]:
        self.check(site)
        yield Check("index", "ok", self.summary(site))

    def opened(self, site: Site) -> Any:
        """The engine, which the parts of a pipeline share."""
        words = self.words and self.words.opened(site)
        return site.memo.get(self, lambda: self.open(site, words))

    def build(self, site: Site) -> Any:
        """The engine; its documents are compared once with those that have groups."""
        engine = self.opened(site)
        site.memo.get(("groups in the index", self.folder), lambda: engine.check_groups(site.collection))
        return engine

    def open(self, site: Site, words: Any) -> Any:
        raise NotImplementedError

    def summary(self, site: Site) -> str:
        """What there is, and where texts and terms come from, in a line for people."""
        engine = self.opened(site)
        return f"{len(engine):,} documents at {self.folder}" + (f"; {engine.holds}" if self.kind == "lucene" else "")


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

    def open(self, site: Site, words: Any) -> AnseriniRetriever:
        return AnseriniRetriever(self.folder, self.analyzer, self.k1, self.b)


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

    def open(self, site: Site, words: Any) -> ImpactRetriever:
        splade: Any = read_part("engine", {"kind": "splade", "model": self.encoder}) if self.encoder else None
        model = splade.open_encoder(site.memo) if splade else None
        return ImpactRetriever(self.folder, model, self.scale, self.levels, words)


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

    def open(self, site: Site, words: Any) -> HnswRetriever:
        return HnswRetriever(self.folder, encoder(site, self.encoder), self.ef, words)
