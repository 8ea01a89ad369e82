"""Vector search as a part: the vectors in the folder of the index, and their ANN index, made where they are missing."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.config import passage_document
from fairagent.retrieve.ann import AnnManifest, When, build_ann, is_wanted, open_ann
from fairagent.retrieve.base import lend_texts
from fairagent.retrieve.bm25.part import check_index, index_sibling, open_index, open_matrix, prepare_index
from fairagent.retrieve.dense import DenseManifest, DenseRetriever, VectorSearch, build_dense_index
from fairagent.retrieve.encoders import BUNDLED, ENDPOINT, Encoder, open_encoder
from fairagent.retrieve.light import LIGHT, LightEncoder, build_light
from fairagent.retrieve.passages import DensePassages
from fairagent.retrieve.site import Site
from fairagent.settings.parts import Part, Progress
from fairagent.storage.files import file_name
from fairagent.storage.threads import progress
from fairagent.types import FloatArray


class DenseConfig(Part):
    """Vector search with the embeddings of an encoder."""

    scores_items: ClassVar[bool] = True
    kind: Literal["dense"] = "dense"
    encoder: str = ""
    """What makes the vectors: light, minilm (the packaged model), a folder, or a name in the Hugging Face cache.
    `endpoint:MODEL` is one of the server at model.base_url; `contriever:NAME` takes the mean of its token vectors,
    `contriever-cosine:NAME` the same with length 1. Empty: the setting `encoder`."""
    ann: When = "auto"
    """Whether an approximate index names the documents that are scored: auto above 200,000 documents, always, or never.
    Scores are exact in any case, and without it so is the list."""

    def __str__(self) -> str:
        return LIGHT if self.encoder == LIGHT else self.kind

    @property
    def text_encoder(self) -> str:
        """The encoder of texts that are in no index: experiments with items of their own have such."""
        return self.encoder or BUNDLED

    @property
    def files(self) -> Mapping[str, Path]:
        """The folder of its model, where it has one: a model that is trained anew is another."""
        # What stands before a folder (`contriever:`) decides too, so that such a name stays in the fingerprint as well.
        places = {"encoder": self.encoder, "model": self.encoder.partition(":")[2]}
        return {field: Path(place) for field, place in places.items() if place and Path(place).is_dir()}

    def named(self, site: Site) -> str:
        """The name of the encoder: its own, or that of the settings."""
        return self.encoder or site.settings.encoder

    def resolved(self, site: Site, preparing: bool = False) -> Part:
        return self.model_copy(update={"encoder": self.named(site)})

    def check(self, site: Site) -> None:
        name = self.named(site)
        check_vectors(site, name)
        if DenseManifest.exists(folder(site, name)):
            _ann(site, name, self.ann)
        check_index(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        prepare_index(site, progress)
        prepare_vectors(site, self.named(site), progress)
        prepare_ann(site, self.named(site), self.ann, progress)

    def build(self, site: Site) -> VectorSearch:
        return open_vectors(site, self.named(site), self.ann)


def open_vectors(site: Site, model: str, ann: When = "never") -> VectorSearch:
    """Vector search with the embeddings in the folder of the site's index."""

    def opened() -> VectorSearch:
        place = folder(site, model)
        with progress(f"loading the embeddings {place} and their encoder"):
            index = open_ann(ann_folder(site, model), place) if _wanted(site, model, ann) else None
            dense = DenseRetriever(place, encoder(site, model), site.collection, index)
        return lend_texts(DensePassages(dense) if site.collection.chunks else dense, open_index(site))

    engine: VectorSearch = site.memo.get(("dense", site.index, *_encoder_key(site, model), ann), opened)
    return engine


def check_vectors(site: Site, model: str) -> None:
    """Raise BackendUnavailable where the model is missing, IndexMismatch where its embeddings are of something else."""
    if model != LIGHT:
        encoder(site, model)
    embeddings = folder(site, model)
    if DenseManifest.exists(embeddings):
        DenseManifest.read_checked(embeddings, site.collection)


def prepare_vectors(site: Site, model: str, progress: Progress) -> None:
    """Make the embeddings of the collection where there are none."""
    embeddings = folder(site, model)
    if DenseManifest.exists(embeddings):
        return
    name = site.collection.name
    if model == LIGHT:
        build_light(open_matrix(site), embeddings, partial(progress, f"light vectors of {name}"))
        return
    opened, report = encoder(site, model), partial(progress, f"embedding {name}")
    report(0)
    earlier = site.earlier and site.earlier / embeddings.name
    build_dense_index(site.collection, embeddings, opened, report, earlier)


def prepare_ann(site: Site, model: str, ann: When, progress: Progress) -> None:
    """Make the ANN index of the embeddings where it is wanted and there is none."""
    place = ann_folder(site, model)
    if AnnManifest.exists(place) or not _wanted(site, model, ann):
        return
    dense = DenseRetriever(folder(site, model), encoder(site, model), site.collection)
    # It is measured with the first topics of the collection as well.
    queries = [topic.query for topic in site.collection.topics.values() if topic.query.strip()][:50]
    topics = encoder(site, model).queries(queries) if queries else None

    def members(numbers: NDArray[np.intp]) -> Mapping[str, FloatArray]:
        ids, groups = dense.ids.texts(numbers), site.collection.groups
        if site.collection.chunks:
            ids = [passage_document(id) for id in ids]
        return {
            f"{dimension}: {label}": column
            for dimension in groups.dimensions
            for label, column in zip(
                ("unknown", *groups.labels(dimension)), groups.memberships(dimension, ids).T, strict=True
            )
        }

    build_ann(dense, place, members, topics, partial(progress, f"ANN index of {site.collection.name}"))


def _wanted(site: Site, model: str, ann: When) -> bool:
    return is_wanted(ann, DenseManifest.read(folder(site, model)).documents)


def _ann(site: Site, model: str, ann: When) -> AnnManifest | None:
    """What was measured of the ANN index that is searched; None where none is made, or wanted."""
    place = ann_folder(site, model)
    wanted = AnnManifest.exists(place) and _wanted(site, model, ann)
    return AnnManifest.read_for(place, folder(site, model)) if wanted else None


def dense_parts(part: Part) -> tuple[DenseConfig, ...]:
    """The parts of an engine that search by embeddings."""
    this = (part,) if isinstance(part, DenseConfig) else ()
    return this + tuple(one for inner in part.inner for one in dense_parts(inner))


def ann_reports(site: Site) -> Iterator[tuple[Path, AnnManifest]]:
    """The ANN indexes that the site's engine searches, and what was measured of them when they were built."""
    for part in dense_parts(site.settings.engine):
        if manifest := _ann(site, part.named(site), part.ann):
            yield ann_folder(site, part.named(site)), manifest


def folder(site: Site, model: str) -> Path:
    """Where the embeddings of `model` are: in the folder of the index."""
    return index_sibling(site, file_name(model))


def ann_folder(site: Site, model: str) -> Path:
    """Where the ANN index of these embeddings is."""
    return Path(f"{folder(site, model)}-ann")


def encoder(site: Site, model: str) -> Encoder:
    """The text encoder `model`; BackendUnavailable where it is not on this machine, or a server's key is missing."""

    def opened() -> Encoder:
        if model == LIGHT:
            return LightEncoder.open(open_matrix(site), folder(site, model))
        return open_encoder(model, site.device, site.embeddings)

    made: Encoder = site.memo.get(("encoder", *_encoder_key(site, model)), opened)
    return made


def _encoder_key(site: Site, model: str) -> tuple[object, ...]:
    """What an encoder is known by: of a server's the settings decide too, of light vectors the index."""
    if model == LIGHT:
        return model, site.index, site.settings.analyzer
    return model, site.device, site.settings.model if model.startswith(ENDPOINT) else None
