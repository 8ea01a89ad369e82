"""Vector search as a part: the embeddings beside the Lucene index, made where they are missing."""

from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from fairagent.digests import expect_whole
from fairagent.files import file_name
from fairagent.folders import is_there
from fairagent.retrieve.bm25 import beside_index, check_index, open_index, prepare_index
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.dense_index import MANIFEST, DenseManifest, build_dense_index
from fairagent.retrieve.encoded import remedy
from fairagent.retrieve.encoder import BUNDLED, Encoder, open_encoder
from fairagent.retrieve.one_text import OneTextEncoder
from fairagent.retrieve.passages import DensePassages
from fairagent.retrieve.with_texts import VectorRetrieverWithTexts
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site


class DenseConfig(Part):
    """Vector search (exact) with the embeddings of an encoder."""

    kind: Literal["dense"] = "dense"
    encoder: str = Field(BUNDLED, min_length=1)
    """The embedding model: the packaged one, a folder, or a name in the Hugging Face cache. `contriever:NAME` takes the
    mean of its token vectors, `contriever-cosine:NAME` the same with length 1."""

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the model is missing, IndexMismatch for an index of something else."""
        check_vectors(site, self.encoder)
        check_index(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index and the embeddings where there are none."""
        prepare_index(site, progress)
        prepare_vectors(site, self.encoder, progress)

    def build(self, site: Site) -> VectorRetrieverWithTexts:
        """The engine."""
        return open_vectors(site, self.encoder)


def open_vectors(site: Site, model: str) -> VectorRetrieverWithTexts:
    """Vector search with the embeddings beside the site's index."""

    def opened() -> VectorRetrieverWithTexts:
        dense = DenseRetriever(folder(site, model), encoder(site, model), site.collection)
        engine = DensePassages(dense) if site.collection.chunks else dense
        return VectorRetrieverWithTexts(engine, open_index(site))

    engine: VectorRetrieverWithTexts = site.memo.get(("dense", site.index, model), opened)
    return engine


def check_vectors(site: Site, model: str) -> None:
    """Raise BackendUnavailable where the model is missing, IndexMismatch where its embeddings are of something else."""
    encoder(site, model)
    embeddings = folder(site, model)
    if is_there(embeddings, MANIFEST):
        DenseManifest.read(embeddings).check(site.collection, embeddings)
        expect_whole(embeddings, "the embeddings", remedy(embeddings))


def prepare_vectors(site: Site, model: str, progress: Progress) -> None:
    """Make the embeddings of the collection where there are none."""
    embeddings = folder(site, model)
    if not is_there(embeddings, MANIFEST):
        name = site.collection.name
        build_dense_index(
            site.collection, embeddings, encoder(site, model), lambda done: progress(f"embedding {name}", done)
        )


def folder(site: Site, model: str) -> Path:
    """Where the embeddings of `model` are: beside the Lucene index."""
    return beside_index(site, file_name(model))


def encoder(site: Site, model: str) -> Encoder:
    """The text encoder `model`; BackendUnavailable where it is not on this machine."""
    # A search encodes its query alone.
    make = OneTextEncoder if model == BUNDLED else partial(open_encoder, model)
    opened: Encoder = site.memo.get(("encoder", model), make)
    return opened
