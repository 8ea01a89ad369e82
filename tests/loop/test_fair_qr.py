"""FAIR-QR's depth: how much of the refined list the original query re-ranks."""

from __future__ import annotations

import pytest
from scripted import Engine, Proposals, by_letter, collection

from fairagent.search.agent import FairAgent
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.rerank.relevance import OriginalReranker
from fairagent.settings import Settings

LISTS = {"q": "m1 m2 m3 f1 f2 f3", "q she": "f1 m1 f2 m2 f3 m3"}


@pytest.mark.parametrize(("depth", "ids"), [(0, "m1 m2"), (2, "m1 f1"), (4, "m1 m2"), (3, "m1 f1")])
def test_the_refined_list_is_cut_before_it_is_reranked(depth: int, ids: str) -> None:
    engine = Engine(LISTS)
    chosen = Settings(n=2, depth=100, target="uniform", discount="uniform", expansion={"documents": 0}, loop="fair-qr")
    loop = FairQR(Proposals("she"), iterations=1, depth=depth)
    made = FairAgent(collection(by_letter(engine.lists["q"])), engine, loop, OriginalReranker(engine), chosen)
    found = made.search("q")
    assert found.ranking.ids == tuple(ids.split())
    assert [step.accepted for step in found.trace.steps] == [True, True]
