"""The default engine: BM25 and vector search fused, where the vectors are made, else BM25 alone."""

from typing import Literal

from fairagent.folders import is_there
from fairagent.retrieve.bm25.manifest import MANIFEST as INDEX_MANIFEST
from fairagent.retrieve.bm25.manifest import Manifest
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.retrieve.dense_index import MANIFEST
from fairagent.retrieve.fused import FusedConfig
from fairagent.retrieve.light.encoder import LIGHT
from fairagent.retrieve.vectors import DenseConfig, folder
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site

LIGHT_WEIGHT = 0.5
"""The weight of the light vectors beside BM25: chosen over public topics (evaluations/controller/constants.py)."""


class AutoConfig(Part):
    """BM25 and vector search fused (`encoder` says with which vectors), where the vectors are made; else BM25."""

    kind: Literal["auto"] = "auto"

    def settled(self, site: Site, preparing: bool = False) -> Part:
        """What it comes to here; `preparing`: the vectors will be made if they can be."""
        encoder = site.settings.encoder
        vectors = folder(site, encoder)
        by_lucene = is_there(site.index, INDEX_MANIFEST) and Manifest.read(site.index).by_lucene
        # Damaged ones are there too: to go without them would be another ranking, silently.
        there = is_there(vectors, MANIFEST) or vectors.is_dir() or (preparing and not by_lucene)
        if not there:
            return BM25Config()
        weights = (1.0, LIGHT_WEIGHT) if encoder == LIGHT else ()
        return FusedConfig(engines=(BM25Config(), DenseConfig(encoder=encoder)), weights=weights)

    def check(self, site: Site) -> None:
        """As the engine that it comes to."""
        self.settled(site).check(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """As the engine that it comes to once all is made."""
        self.settled(site, preparing=True).prepare(site, progress)

    def build(self, site: Site) -> object:
        """The engine that it comes to."""
        return self.settled(site).build(site)
