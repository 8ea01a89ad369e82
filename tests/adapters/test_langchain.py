"""fairagent in LangChain's own conventions, with the real package: a retriever, and a document compressor."""

import asyncio

from langchain_core.documents import BaseDocumentCompressor, Document

from adapters.test_hits import GENDERS
from adapters.test_llama_index import Passages, fair
from fairagent import fair_rerank
from fairagent.guests.langchain import ExposureCompressor, FairLangChainRetriever
from fairagent.types import SearchResult

EVEN = {"female": 0.5, "male": 0.5}


def documents() -> list[Document]:
    return [Document(id=f"d{n}", page_content="x", metadata={"gender": one}) for n, one in enumerate(GENDERS)]


def test_the_compressor_gives_the_order_of_fair_rerank() -> None:
    hits = documents()
    stage = ExposureCompressor(groups="gender", target=EVEN, n=5, fairness=2)
    assert isinstance(stage, BaseDocumentCompressor)
    found, expected = stage.compress_documents(hits, "jazz"), fair_rerank(hits, "gender", EVEN, n=5, fairness=2)
    assert all(one is other for one, other in zip(found, expected.hits, strict=True))
    assert asyncio.run(stage.acompress_documents(hits, "jazz")) == found
    assert stage.compress_documents([], "jazz") == []


def test_the_retriever_gives_the_ranking_of_the_search() -> None:
    expected, seen = fair().search("q"), list[SearchResult]()
    retriever = FairLangChainRetriever(agent=fair(), on_result=seen.append)
    found = retriever.invoke("q")
    assert tuple(one.id for one in found) == expected.ranking.ids == seen[0].ranking.ids
    assert found[0].page_content == f"This is {found[0].id}."
    groups = {name: dict(shares) for name, shares in expected.hits[0].groups.items()}
    assert found[0].metadata == {
        "url": f"https://example.org/{found[0].id}",
        "title": expected.hits[0].title,
        "rank": 1,
        "score": expected.hits[0].score,
        "groups": groups,
    }
    assert asyncio.run(FairLangChainRetriever(agent=fair()).ainvoke("q")) == found
    assert FairLangChainRetriever(agent=fair()).batch(["nothing"]) == [[]]
    [first, *_] = FairLangChainRetriever(agent=fair(Passages)).invoke("q")
    assert first.page_content == f"The part of {first.id} about q."
