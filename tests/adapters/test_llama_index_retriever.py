"""A fair ranking inside LlamaIndex: the retriever and the query engine give what `FairAgent.search` gives."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import MetadataMode
from scripted import Engine, Proposals, agent

from adapters.words import Echo
from fairagent.errors import UsageError
from fairagent.guests.llama_index import FairRetriever, fair_query_engine
from fairagent.types import Document, Filtered, Query, SearchResult, Verdict

ROOT = Path(__file__).resolve().parents[2]
LISTS = {"q": "m1 m2 m3 f1 f2", "q she": "f1 f2 m1 m2", "nothing": ""}


class Library(Engine):
    """An engine that keeps texts."""

    def document(self, id: str) -> Document:
        return Document(id, f"This is {id}.", f"Title of {id}", {"url": f"https://example.org/{id}", "rank": "its own"})


class Passages(Library):
    """An engine whose documents are long."""

    def passages(self, query: Query, ids: Any) -> list[Document]:
        return [Document(id, f"The part of {id} about {query.text}.") for id in ids]


def fair(engine: type[Engine] = Library) -> Any:
    return agent(engine(LISTS), Proposals("she"), iterations=1)


class OnlyWomen:
    """A filter that keeps the documents whose id begins with f."""

    def filter(self, query: str, documents: Any) -> Filtered:
        verdicts = tuple(Verdict(one.id, one.id[0] == "f", True, None) for one in documents)
        return Filtered(tuple(one for one in documents if one.id[0] == "f"), verdicts)


def test_the_query_engine_answers_from_the_ranking_of_the_search() -> None:
    expected = fair().search("q").ranking
    assert expected.ids != ("m1", "m2", "m3", "f1")
    response = fair_query_engine(fair(), Echo()).query("q")
    assert tuple(node.node_id for node in response.source_nodes) == expected.ids
    assert [node.score for node in response.source_nodes] == expected.scores.tolist()
    # The model read them in that order, with their titles and without their groups.
    texts = [str(response).index(f"title: Title of {id}\n\nThis is {id}.") for id in expected.ids]
    assert texts == sorted(texts)
    assert "female" not in str(response)
    assert "example.org" not in str(response)


def test_an_event_loop_gets_the_same_and_goes_on_meanwhile() -> None:
    async def asked() -> tuple[Any, list[str]]:
        beats: list[str] = []

        async def beat() -> None:
            while True:
                beats.append("beat")
                await asyncio.sleep(0)

        heart = asyncio.create_task(beat())
        response = await fair_query_engine(fair(), Echo()).aquery("q")
        heart.cancel()
        return response, beats

    response, beats = asyncio.run(asked())
    assert tuple(node.node_id for node in response.source_nodes) == fair().search("q").ranking.ids
    assert len(beats) > 1


def test_a_node_says_who_it_is() -> None:
    results: list[SearchResult] = []
    nodes = FairRetriever(fair(), results.append).retrieve("q")
    first, hit = nodes[0].node, results[0].hits[0]
    assert first.metadata == {
        "url": f"https://example.org/{hit.id}",
        "title": f"Title of {hit.id}",
        "rank": 1,
        "score": hit.score,
        "groups": {"gender": dict(hit.groups["gender"])},
    }
    assert first.get_content(MetadataMode.EMBED) == f"title: Title of {hit.id}\n\nThis is {hit.id}."
    assert results[0].trace.steps[1].aim is not None


def test_of_a_long_document_the_node_holds_the_best_passage() -> None:
    nodes = FairRetriever(fair(Passages)).retrieve("q")
    assert [node.text for node in nodes] == [f"The part of {node.node_id} about q." for node in nodes]
    assert nodes[0].metadata["title"] == f"Title of {nodes[0].node_id}"


def test_a_filter_stands_before_the_model() -> None:
    response = fair_query_engine(fair(), Echo(), OnlyWomen()).query("q")
    assert [node.node_id for node in response.source_nodes] == ["f1", "f2"]
    assert "This is m1" not in str(response)


def test_an_engine_without_texts_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="Engine keeps no texts"):
        FairRetriever(fair(Engine))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama_index_query_engine", "llama_index_vector_index"])
def test_the_examples_run_with_the_network_closed(name: str, tmp_path: Path) -> None:
    closed = "import socket; socket.socket.connect = None; import runpy; "
    code = f"{closed}runpy.run_path({str(ROOT / 'examples' / f'{name}.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 6
