"""The default engine: BM25 and vectors fused, light ones unless the settings name others; where none are made, BM25."""

from pathlib import Path

import pytest
from evaluate import words

from fairagent import build_index, open_agent
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.fused import MOST_LIGHT, FusedConfig, FusedRetriever
from fairagent.retrieve.graph import TABLE, graph_folder
from fairagent.retrieve.light import LIGHT
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import DenseConfig
from fairagent.search.pipeline import build, open_site, prepare, resolved
from fairagent.settings import Settings

# The fixtures of all tests make the default BM25; these have it as it is.
pytestmark = [pytest.mark.usefixtures("no_variables"), pytest.mark.vectors]

FUSED = FusedConfig(engines=(BM25Config(), DenseConfig(encoder=LIGHT)))
ALL = {"indexing words", "light vectors of words", "neighbors in words"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    words.write(tmp_path)
    return open_site(tmp_path / "collection.yaml", tmp_path / "index", Settings(n=6, depth=20))


def made(site: Site) -> set[str]:
    told: dict[str, None] = {}
    prepare(site, lambda what, done: told.setdefault(what))
    return set(told)


def test_it_is_bm25_until_the_vectors_are_made(site: Site) -> None:
    assert resolved(site).settings.engine == BM25Config()
    assert resolved(site, preparing=True).settings.engine == FUSED
    assert made(site) == ALL
    assert (graph_folder(site, LIGHT) / TABLE).is_file()
    assert resolved(site).settings.engine == FUSED
    agent = build(site)
    assert isinstance(agent.retriever, FusedRetriever)
    assert agent.retriever.most == MOST_LIGHT
    result = agent.search("judge singer")
    # The trace says what it came to.
    assert (result.trace.engine, len(result.ranking)) == ("fused (bm25 + light)", 6)
    assert all(hit.title for hit in result.hits)
    # What is there is not made again.
    assert made(site) == set()


def test_an_index_of_bm25_goes_on_serving_and_is_completed(site: Site) -> None:
    bm25 = open_site(site.collection, site.index, Settings(engine="bm25", rerank="exposure"))
    assert made(bm25) == {"indexing words"}
    agent = open_agent(site.collection, site.index, Settings(n=6))
    assert isinstance(agent.retriever, BM25Retriever)  # type: ignore[union-attr]
    assert agent.search("judge singer").trace.engine == "bm25"  # type: ignore[union-attr]
    assert made(site) == ALL - {"indexing words"}


def test_python_builds_all_of_it_and_builds_it_anew(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "collection.yaml"
    told: dict[str, None] = {}
    assert build_index(file, site.index, progress=lambda what, done: told.setdefault(what)).documents == 40
    assert set(told) == ALL
    docs = tmp_path / "docs.jsonl"
    docs.write_text(docs.read_text().replace("the judge met", "the judge, a diver, met"))
    rankings = []
    for index in (site.index, tmp_path / "anew"):
        build_index(file, index)
        found = open_agent(file, index, n=6).search("diver")  # type: ignore[union-attr]
        assert found.trace.engine == "fused (bm25 + light)"
        assert {"d00", "d01", "d02", "d03"} <= {hit.id for hit in found.hits}
        rankings.append(found.ranking.scores.tolist())
    assert rankings[0] == rankings[1]
