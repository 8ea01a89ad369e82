"""The amortized re-ranker in a search: what is counted, who is paid, and what it may cost."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Engine, agent, ranking

from fairagent.collection import Collection
from fairagent.errors import DataError, SettingsError
from fairagent.measures import LOG2_MAX2, min_max
from fairagent.measures.amortized import quality
from fairagent.search import account as accounts
from fairagent.search.account import Account
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import open_in_memory
from fairagent.search.rerank.amortized import AmortizedReranker
from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.relevance import ChainReranker, FusedReranker
from fairagent.settings import Settings
from fairagent.types import UNKNOWN, Query

from .greedy_pools import pool, pools

COLUMNS = tuple(("gender", label) for label in (UNKNOWN, "female", "male"))
LISTS = {"q": "m1 m2 m3 m4 f5 f6 m7 f8"}


def amortized(account: Account | None = None, **changes: Any) -> AmortizedReranker:
    plain = AmortizedReranker(account, COLUMNS, "group", "relevance", 0.3, LOG2_MAX2)
    return replace(plain, **changes)


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return Account(tmp_path / "a.sqlite", "made")


def paying(account: Account, **changes: Any) -> FairAgent:
    return agent(Engine(LISTS), None, reranker=lambda engine: amortized(account, **changes), n=4, discount="log2-max2")


def test_what_a_request_adds_by_hand() -> None:
    # Scores 4, 3, 2, 1 are a relevance of 1, 2/3, 1/3, 0, due 1/2, 1/3, 1/6, 0. Two ranks of weight 1 have
    # an attention of 1/2 each: f0 and m1 shown give women 1/2 and men 1/2, as they are due.
    candidates = pool("fmmm", 2)
    shown = replace(candidates.of(candidates.ranking.top(2)), n=2)
    entry = amortized().entry(candidates, shown)
    assert entry.received == {"f0": 0.5, "m1": 0.5}
    assert entry.deserved == pytest.approx({"f0": 1 / 2, "m1": 1 / 3, "m2": 1 / 6, "m3": 0})
    assert entry.groups[("gender", "female")] == pytest.approx((0.5, 0.5))
    assert entry.groups[("gender", "male")] == pytest.approx((0.5, 0.5))
    candidates = pool("ufm", 2, target=(0.25, 0.75))
    # Relevance 1, 1/2, 0: two thirds without a label, and what is left as the target says.
    entry = amortized(due="target").entry(candidates, candidates)
    assert [entry.groups[column][1] for column in COLUMNS] == pytest.approx([2 / 3, 1 / 12, 1 / 4])
    candidates = pool("bx", 2)
    entry = amortized().entry(candidates, candidates)
    assert [entry.groups[column][0] for column in COLUMNS] == pytest.approx([0.5, 0.25, 0.25])


def of_relevance(made: Pool, ids: Sequence[str]) -> float:
    """The quality of a ranking of these candidates."""
    places = [made.ranking.ids.index(id) for id in ids]
    return quality(places, min_max(made.ranking.scores), LOG2_MAX2(len(ids)))


@given(pools(), st.sampled_from([0.0, 0.02, 0.2, 1.0]), st.sampled_from(["group", "individual"]))
def test_never_less_relevant_than_the_tolerance(candidates: Pool, tolerance: float, unit: Any) -> None:
    columns = tuple(("d" + str(number // 3), str(number)) for number in range(3 * len(candidates.memberships)))
    found = amortized(tolerance=tolerance, unit=unit, columns=columns).rerank(candidates)
    if len(found):
        assert of_relevance(candidates, found.ids) >= 1 - tolerance - 1e-9
    assert len(found) == min(candidates.n, len(candidates.ranking))


def test_a_search_counts_what_it_serves_and_pays_it_back(account: Account) -> None:
    plain = paying(account, tolerance=0.0)
    for _ in range(3):
        assert plain.search("q").ranking.ids == ("m1", "m2", "m3", "m4")
    owed = account.groups(COLUMNS)
    assert owed[1] > 0
    assert owed.sum() == pytest.approx(0)
    payer = paying(account)
    shown = [payer.search("q").ranking.ids for _ in range(40)]
    after = account.groups(COLUMNS)
    assert abs(after[1]) < 0.2 < owed[1]
    candidates = Pool(Query("q"), ranking(LISTS["q"].split()), (), (), 4)
    assert 0.7 - 1e-9 <= min(of_relevance(candidates, ids) for ids in shown) < 1
    # The same, as shares of all attention.
    received, deserved = account.shares(COLUMNS)
    assert np.abs(received - deserved).max() < 0.005


@pytest.mark.parametrize("due", ["relevance", "target"])
def test_debts_of_all_groups_shrink_over_requests(account: Account, due: Any) -> None:
    """Three women, 27 men and ten without a label, behind each other in every request another way."""
    rng, reranker = np.random.default_rng(1), amortized(account, due=due, tolerance=0.05)
    largest = []
    for request in range(1, 61):
        letters = "".join(rng.permutation(list("f" * 3 + "m" * 27 + "u" * 10)))
        candidates = pool(letters, 10, (0.15, 0.85), scores=np.sort(rng.exponential(size=40))[::-1].tolist())
        found = reranker.rerank(candidates)
        reranker.keep(candidates, replace(candidates.of(found), n=10))
        largest.append(np.abs(account.groups(COLUMNS)).max() / request)
    assert largest[-1] < min(0.02, largest[4])


def test_single_documents_are_paid(account: Account) -> None:
    payer = paying(account, unit="individual", tolerance=0.3)
    shown = {id for _ in range(30) for id in payer.search("q").ranking.ids}
    # The list is always the same, and its best four are not.
    assert len(shown) > 5
    assert np.abs(account.documents(["m1", "f5", "f6"])).max() / 30 < 0.1


def test_a_search_counts_once_and_what_only_measures_does_not(account: Account) -> None:
    payer = paying(account)
    run = payer.find("q", 4)
    run.result(run.pool)
    assert account.requests == 0
    payer.search("q")
    replace(payer, reranker=ChainReranker((FusedReranker(Engine(LISTS)), amortized(account)))).search("q")
    assert account.requests == 2


def test_drawn_rankings_are_counted_as_they_are_drawn(account: Account) -> None:
    sampled = replace(paying(account), settings=Settings(n=2, loop="none", sampling={"alpha": 0.5}, target="uniform"))
    shown = [sampled.search("q").ranking.ids for _ in range(12)]
    assert len(set(shown)) > 2
    received = Counter(id for ids in shown for id in ids)
    ids = LISTS["q"].split()
    expected = 12 * np.array([7, 6, 5, 4, 3, 2, 1, 0]) / 28 - [received[id] / 2 for id in ids]
    assert account.documents(ids) == pytest.approx(expected)
    assert account.requests == 12
    # Samples are none that anybody was served.
    sampled.sample("q", 5)
    assert account.requests == 12


def test_an_account_that_is_locked_costs_nobody_the_ranking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "LONGEST_WAIT", 0.05)
    account = Account(tmp_path / "b.sqlite", "made")
    other = sqlite3.connect(tmp_path / "b.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    result = paying(account).search("q")
    assert len(result.ranking) == 4
    assert any("missing in the account" in note for note in result.trace.notes)
    other.execute("ROLLBACK")
    other.close()


# --- from settings ---------------------------------------------------------------------------------------------------

ROWS = [{"id": f"d{number}", "text": "apples", "gender": "mf"[number % 2]} for number in range(4)]


def test_two_agents_and_another_collection(tmp_path: Path) -> None:
    def made(name: str = "apples", due: str = "relevance") -> FairAgent:
        collection = Collection.from_records(ROWS, groups=["gender"], name=name)
        chosen = {"kind": "amortized", "file": str(tmp_path / "account.sqlite"), "due": due}
        return open_in_memory(collection, rerank=chosen, loop="none", target="uniform", engine="bm25", n=5)

    for _ in range(2):
        made().search("apples")
    with pytest.raises(DataError, match="of collection 'apples', not of 'pears'"):
        made("pears")
    with pytest.raises(DataError, match="kept with due relevance, not target"):
        made(due="target")


def test_single_documents_need_no_groups(tmp_path: Path) -> None:
    collection = Collection.from_records(ROWS, name="bare")
    config = {"kind": "amortized", "unit": "individual", "file": str(tmp_path / "a.sqlite")}
    assert len(open_in_memory(collection, rerank=config, engine="bm25").search("apples").ranking) == 4
    with pytest.raises(SettingsError, match="looks at groups"):
        open_in_memory(collection, rerank={**config, "unit": "group"})
