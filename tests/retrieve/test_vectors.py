"""Vector search as a part: its ANN index is made where it is wanted, searched, measured by group, and reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import words

from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.guests.dense import ann as ann_build
from fairagent.retrieve import ann, vectors
from fairagent.retrieve.ann import AnnManifest
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoded import DenseManifest, Work
from fairagent.retrieve.encoders import BUNDLED, Embeddings
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import DenseConfig, ann_folder, ann_reports, dense_parts, folder
from fairagent.search.pipeline import open_site, prepare
from fairagent.settings import Settings
from fairagent.types import Query

from .test_dense import Words

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> Words:
    encoder = Words()
    monkeypatch.setattr(vectors, "open_encoder", lambda model, device, served: encoder)
    return encoder


def site(place: Path, **engine: Any) -> Site:
    if not (place / "collection.yaml").exists():
        words.write(place)
    engine = {"kind": "dense", "encoder": BUNDLED, **engine}
    return open_site(place / "collection.yaml", place / "index", Settings(profile="engine", engine=engine))


def told(site: Site) -> list[str]:
    names: dict[str, None] = {}
    prepare(site, lambda what, done: names.setdefault(what))
    return list(names)


@pytest.mark.parametrize(
    ("when", "exact", "made"), [("auto", 39, True), ("auto", 40, False), ("always", 40, True), ("never", 1, False)]
)
def test_it_is_made_where_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, exact: int, made: bool
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(ann, "EXACT", exact)
    here = site(tmp_path, ann=when)
    assert told(here) == ["indexing words", "embedding words", *(["ANN index of words"] if made else [])]
    assert ann_folder(here, BUNDLED).is_dir() is made
    assert len(list(ann_reports(here))) == made
    assert told(site(tmp_path, ann=when)) == []
    engine = here.settings.engine.build(here)
    assert len(engine.search(Query("judge singer"), 8)) == 8


@pytest.mark.parametrize("when", ["auto", "always"])
def test_where_it_is_wanted_and_not_there_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(ann, "EXACT", 10)
    told(site(tmp_path, ann="never"))
    here = site(tmp_path, ann=when)
    with pytest.raises(BackendUnavailable, match=r"no ANN index at .*`fairagent index`, or set `ann: never`"):
        here.settings.engine.build(here)
    assert site(tmp_path, ann="never").settings.engine.build(site(tmp_path, ann="never"))


def test_the_groups_of_the_collection_and_its_topics_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(ann_build, "COUNTED", 1)
    here = site(tmp_path, ann="always")
    told(here)
    ((place, found),) = ann_reports(here)
    assert place == ann_folder(here, BUNDLED)
    assert found.topics == 1
    dimensions = here.collection.groups.dimensions
    labels = {f"{name}: {label}" for name in dimensions for label in here.collection.groups.labels(name)}
    assert labels <= set(found.groups) <= labels | {f"{name}: unknown" for name in dimensions}


def test_memberships_by_hand(tmp_path: Path) -> None:
    here = site(tmp_path)
    told(here)
    dense = DenseRetriever(folder(here, BUNDLED), Words())
    numbers = np.array([3, 0, 17])
    ids = [name.decode() for name in dense.ids.names(numbers).tolist()]
    found = vectors._memberships(here, dense, numbers)
    for name in here.collection.groups.dimensions:
        columns = [found[f"{name}: {label}"] for label in ("unknown", *here.collection.groups.labels(name))]
        assert np.array(columns).T.tolist() == here.collection.groups.memberships(name, ids).tolist()


def test_check_refuses_an_index_of_other_embeddings(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    here = site(tmp_path, ann="always")
    told(here)
    file = ann_folder(here, BUNDLED) / AnnManifest.FILE
    file.write_text(file.read_text().replace('"vectors": "', '"vectors": "0'))
    with pytest.raises(IndexMismatch, match=r"was not made from the embeddings at .*vectors: index 0"):
        here.settings.engine.check(here)
    # Who searches without it is not kept from that.
    exact = site(tmp_path, ann="never")
    exact.settings.engine.check(exact)


def test_the_parts_of_an_engine_that_search_by_embeddings() -> None:
    one, other = DenseConfig(encoder="a"), DenseConfig(encoder="b", ann="never")
    engine = Settings(engine={"kind": "fused", "engines": ["bm25", one, other]}).engine
    assert dense_parts(engine) == (one, other)
    assert dense_parts(Settings(engine="fused").engine) == (DenseConfig(),)
    assert dense_parts(Settings(engine="bm25").engine) == ()


def test_one_index_whatever_the_encoder_is_called(tmp_path: Path) -> None:
    here = site(tmp_path, encoder="minilm")
    told(here)
    assert folder(here, "minilm") == folder(here, BUNDLED)
    assert told(site(tmp_path, encoder=BUNDLED)) == []
    assert vectors.encoder(here, "minilm") is vectors.encoder(here, BUNDLED)


@pytest.mark.parametrize("earlier", ["float32", "bfloat16", None])
def test_documents_are_encoded_in_the_type_of_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: str | None
) -> None:
    calls: list[tuple[Any, ...]] = []

    class Parallel(Words):
        quickest_dtype = "quickest"

        @contextmanager
        def work(self, workers: int, dtype: str) -> Iterator[Work[Embeddings]]:
            calls.append((workers, dtype))
            yield Work(Words().documents, lambda documents: calls.append((documents,)), dtype=dtype)

    monkeypatch.setattr(vectors, "open_encoder", lambda model, device, served: Parallel())
    here = replace(site(tmp_path), workers=3)
    told(here)
    assert calls == [(3, "quickest"), (40,)]
    assert DenseManifest.read(folder(here, BUNDLED)).dtype == "quickest"
    if earlier:
        file = folder(here, BUNDLED) / DenseManifest.FILE
        file.write_text(file.read_text().replace("quickest", earlier))
        opened = vectors.encoder(here, BUNDLED)
        with vectors._work(here, BUNDLED, opened, lambda what, done: None) as work:
            assert work.dtype == earlier
