"""The loops as parts of a pipeline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fairagent.loop.controller import Controller
from fairagent.loop.fair_qr import FairQR
from fairagent.loop.kinds import KindSource
from fairagent.retrieve.bm25 import prepare_index, words_of
from fairagent.retrieve.graph import graph_of, prepare_graphs
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site


class FairQRConfig(Part):
    """FAIR-QR: the part `refine` proposes keywords for the most under-exposed group."""

    kind: Literal["fair-qr"] = "fair-qr"
    rerank_depth: int = Field(0, ge=0)
    """How much of the refined list is re-ranked: 20 to 100 keeps the paper's pattern; 0 is all of it."""

    @property
    def sees_groups(self) -> bool:
        """Always."""
        return True

    def build(self, site: Site) -> FairQR:
        """The loop."""
        settings = site.settings
        refiner = settings.refine.build(site)
        return FairQR(refiner, settings.iterations, settings.threshold, settings.candidates, self.rerank_depth)


class ControllerConfig(Part):
    """The groups' own evidence, mixed into the query by weights that follow what each group lacks."""

    kind: Literal["controller"] = "controller"
    steps: int = Field(3, ge=0)
    """How many refinements are tried at most; 0: the kinds of documents alone."""
    beta: float = Field(0.5, gt=0, lt=1)
    """The share of the groups' evidence in the refined query."""
    eta: float = Field(0.5, gt=0)
    """The exponent of a step: 1 is faster, and costs a little relevance."""
    feedback: int = Field(20, ge=1)
    """How many documents the groups' evidence is learned from, shared among the groups of a dimension."""
    smoothing: float = Field(0.02, gt=0)
    """Added to target and exposure in the control law."""
    drift: float = Field(0.1, ge=0, le=1)
    """A step may lose at most this share of the estimated relevance of the engine's own list."""
    prior: float | None = Field(None, ge=0)
    """The weight of the kinds of documents (is this query about persons at all?); none given: .6 with a corpus graph,
    .3 without; 0: they do not count."""
    worse: float = Field(0.01, ge=0)
    """By how much what is served may be less fair than the engine's own list before something is done about it."""

    @property
    def sees_groups(self) -> bool:
        """Always."""
        return True

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index whose terms it reads, and the graph of the engine's embeddings."""
        if site.words is None:
            prepare_index(site, progress)
        prepare_graphs(site, progress)

    def build(self, site: Site) -> Controller:
        """The loop."""
        graph = graph_of(site)
        prior = self.prior if self.prior is not None else 0.6 if graph else 0.3
        told = self.model_dump(exclude={"kind", "prior"})
        kinds = KindSource.of_collection(site.collection, graph, site.memo) if prior else None
        source = None if hasattr(site.engine, "query_vector") else words_of(site)
        return Controller(**told, tolerance=site.settings.threshold, prior=prior, source=source, kinds=kinds)
