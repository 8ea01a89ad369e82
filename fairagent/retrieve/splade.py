"""Sparse search: exact inner products of SPLADE weights over an inverted index."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from fairagent.digests import expect_whole
from fairagent.files import file_name
from fairagent.folders import is_there
from fairagent.intake.arrays import read_array
from fairagent.retrieve.base import check_length
from fairagent.retrieve.bm25.manifest import Indexable
from fairagent.retrieve.bm25.part import beside_index, check_index, open_index, prepare_index
from fairagent.retrieve.clock import engine_time
from fairagent.retrieve.encoded import PROBE, expect_renewable, opened, remedy
from fairagent.retrieve.passages import PassageRetriever
from fairagent.retrieve.splade_encoder import SparseTextEncoder, SpladeEncoder
from fairagent.retrieve.splade_index import (
    MANIFEST,
    InvertedWeights,
    SpladeManifest,
    build_splade_index,
    probe_vector,
)
from fairagent.retrieve.strings import IdTable, ranked
from fairagent.retrieve.with_texts import RetrieverWithTexts
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site
from fairagent.types import FloatArray, Query, Ranking


class SpladeRetriever:
    """Every document by the inner product of its weights and the query's; ties are ordered by document id.

    A query is weighed as its text and its keywords in one line, without their weights. A document that shares no
    vocabulary entry with the query is not found; a blank query finds nothing.
    """

    def __init__(self, folder: Path, encoder: SparseTextEncoder, collection: Indexable | None = None) -> None:
        """Open the index in `folder`; with `collection`, only if the index was built from it as it is now.

        Raises BackendUnavailable where there is no index, IndexMismatch where it is damaged, or was built from
        something else or with another model.
        """
        self.manifest = SpladeManifest.read(folder)
        self.manifest.check(collection, folder)
        expect_whole(folder, "the SPLADE weights", remedy(folder))
        probe = opened(SpladeManifest, folder, lambda: read_array(folder / PROBE))
        self.manifest.check_model(folder, encoder.name, probe, probe_vector(encoder))
        self._ids = opened(SpladeManifest, folder, lambda: IdTable.load(folder))
        self._weights = opened(SpladeManifest, folder, lambda: InvertedWeights.load(folder, len(self._ids)))
        self._encoder = encoder
        # The query of a search is often scored against a pool afterwards.
        self._query = lru_cache(maxsize=64)(self._weighed)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> IdTable:
        """The documents' ids by number."""
        return self._ids

    def search(self, query: Query, n: int) -> Ranking:
        """The `n` documents with the largest inner products above 0, exactly."""
        check_length(n)
        scores = np.zeros(len(self))
        with engine_time("vectors"):
            for entry, weight in self._query(str(query)):
                documents, weights = self._weights.of(entry)
                scores[documents] += weight * weights.astype(np.float64)
            found = np.flatnonzero(scores > 0)
            if len(found) > n:
                found = found[scores[found] >= np.partition(scores[found], -n)[-n]]
        return ranked(self._ids.names(found), scores[found], n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of the given documents, (n,), equal to those of `search`; 0 for a blank query.

        Raises DataError naming ids that are not in the index.
        """
        numbers = self._ids.known(ids)
        scores = np.zeros(len(ids))
        with engine_time("vectors"):
            # In the order of `search`, so that every sum is rounded alike.
            for entry, weight in self._query(str(query)):
                documents, weights = self._weights.of(entry)
                if not len(documents):
                    continue
                at = np.minimum(np.searchsorted(documents, numbers), len(documents) - 1)
                hit = np.flatnonzero(documents[at] == numbers)
                scores[hit] += weight * weights[at[hit]].astype(np.float64)
        return scores

    def _weighed(self, text: str) -> list[tuple[int, float]]:
        """The query's vocabulary entries in rising order, with their weights."""
        if not text.strip():
            return []
        row = self._encoder.queries([text])
        return sorted(zip(row.indices.tolist(), row.data.tolist(), strict=True))


class SpladeConfig(Part):
    """Sparse search (exact) with the weights that a SPLADE model gives."""

    kind: Literal["splade"] = "splade"
    model: str = Field(min_length=1)
    """The SPLADE model: a folder, or a name in the Hugging Face cache, e.g. naver/splade-cocondenser-ensembledistil."""

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the model is missing, IndexMismatch for an index of something else."""
        self.encoder(site)
        if is_there(self._folder(site), MANIFEST) and not self._outdated(site):
            SpladeManifest.read(self._folder(site)).check(site.collection, self._folder(site))
            expect_whole(self._folder(site), "the SPLADE weights", remedy(self._folder(site)))
        check_index(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index and the weights where there are none, or bring the weights up to date."""
        prepare_index(site, progress)
        there = is_there(self._folder(site), MANIFEST)
        if there and self._outdated(site):
            expect_renewable(SpladeManifest, self._folder(site))
            # It finds out whether the model is still the same.
            SpladeRetriever(self._folder(site), self.encoder(site))
        if not there or self._outdated(site):
            name = site.collection.name
            build_splade_index(
                site.collection,
                self._folder(site),
                self.encoder(site),
                lambda done: progress(f"weighing {name}", done),
            )

    def build(self, site: Site) -> RetrieverWithTexts:
        """The engine."""

        def opened() -> RetrieverWithTexts:
            splade = SpladeRetriever(self._folder(site), self.encoder(site), site.collection)
            engine = PassageRetriever(splade) if site.collection.chunks else splade
            return RetrieverWithTexts(engine, open_index(site))

        engine: RetrieverWithTexts = site.memo.get(("splade", site.index, self.model), opened)
        return engine

    def _outdated(self, site: Site) -> bool:
        """Whether the weights are of the documents as they were before, and to be brought up to date."""
        return site.renew and SpladeManifest.read(self._folder(site)).outdated(site.collection)

    def _folder(self, site: Site) -> Path:
        return beside_index(site, f"splade-{file_name(self.model)}")

    def encoder(self, site: Site) -> SparseTextEncoder:
        """The model; BackendUnavailable where it is not on this machine."""
        opened: SparseTextEncoder = site.memo.get(("splade encoder", self.model), lambda: SpladeEncoder(self.model))
        return opened
