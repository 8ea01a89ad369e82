"""The account of exposure: sums by hand, debts that fade, what it keeps of a query, documents that change."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.search.account import Account, Entry, Identity, open_account

BASIS = {"due": "relevance", "discount": "uniform"}
MADE = Identity("made", "one", BASIS)
WOMEN, MEN = ("gender", "female"), ("gender", "male")
COLUMNS = [WOMEN, MEN]


def entry(query: str = "q", shown: str = "m1", due: float = 0.5) -> Entry:
    """Two candidates, f1 and m1, of which one is shown alone."""
    got = float(shown == "f1")
    groups = {WOMEN: (got, due), MEN: (1 - got, 1 - due)}
    return Entry(query, {shown: 1.0}, {"f1": due, "m1": 1 - due}, groups, 0.9, calls=3, unusable=1)


def test_sums_by_hand(tmp_path: Path) -> None:
    made = Account(tmp_path / "a.sqlite", MADE)
    assert made.documents(["f1", "x"]).tolist() == [0, 0]
    assert made.shares(COLUMNS)[0].tolist() == [0, 0]
    for shown in ("m1", "m1", "f1"):
        assert made.add(entry(shown=shown)) == ()
    # f1 was due 1.5 and got 1; m1 the reverse.
    assert made.documents(["f1", "m1", "x"]) == pytest.approx([0.5, -0.5, 0])
    assert made.groups(COLUMNS) == pytest.approx([0.5, -0.5])
    received, deserved = made.shares(COLUMNS)
    assert received == pytest.approx([1 / 3, 2 / 3])
    assert deserved == pytest.approx([1 / 2, 1 / 2])
    assert [one.number for one in made.requests()] == [1, 2, 3]
    last = list(made.requests())[-1]
    assert (last.groups[WOMEN], last.quality, last.calls, last.unusable) == ((1.0, 0.5), 0.9, 3, 1)
    assert (made.size().requests, made.size().documents, made.size().days) == (3, 2, 1)
    assert "3 requests" in str(made.size())


def test_debts_fade_by_their_half_life(tmp_path: Path) -> None:
    made = Account(tmp_path / "a.sqlite", MADE, half_life=1.0)
    made.add(entry(shown="m1"))
    made.add(entry(shown="m1"))
    # .5 / 2 + .5, and what was not touched fades by the number of requests as well.
    assert made.documents(["f1"]) == pytest.approx([0.75])
    made.add(Entry("q", {"x": 1.0}, {"x": 1.0}, {}, 1.0))
    assert made.documents(["f1"]) == pytest.approx([0.375])
    # The attention of all requests fades alike: 1/4 + 1/2 + 1, of which the men got 1/4 + 1/2.
    assert made.shares(COLUMNS)[0] == pytest.approx([0, 0.75 / 1.75])


def test_it_is_there_again(tmp_path: Path) -> None:
    Account(tmp_path / "a.sqlite", MADE).add(entry())
    assert Account(tmp_path / "a.sqlite", MADE).groups(COLUMNS) == pytest.approx([0.5, -0.5])
    assert open_account(tmp_path / "a.sqlite").size().collection == "made"


def test_it_is_its_owners_alone_and_holds_no_query(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = Account(tmp_path / "new" / "a.sqlite", MADE)
        made.add(entry("a secret question"))
    finally:
        os.umask(before)
    files = list((tmp_path / "new").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert not any(b"secret" in path.read_bytes() for path in files)
    (kept,) = made.requests()
    assert len(kept.query) == 16
    # Another account has another salt.
    other = Account(tmp_path / "b.sqlite", MADE)
    other.add(entry("a secret question"))
    assert next(other.requests()).query != kept.query
    made.add(entry("a secret question"))
    assert [one.query for one in made.requests()] == [kept.query] * 2


@pytest.mark.parametrize(("queries", "kept"), [("none", ""), ("text", "plain words")])
def test_queries_as_asked(tmp_path: Path, queries: Any, kept: str) -> None:
    made = Account(tmp_path / "a.sqlite", MADE, queries=queries)
    made.add(entry("plain words"))
    assert [one.query for one in made.requests()] == [kept]


def test_documents_that_change_are_the_same_collection(tmp_path: Path) -> None:
    Account(tmp_path / "a.sqlite", MADE).add(entry())
    changed = Identity("made", "two", BASIS, lambda ids: [id == "f1" for id in ids])
    assert Account(tmp_path / "a.sqlite", changed).size().requests == 1
    # From now on these are its documents.
    never = Identity("made", "two", BASIS, lambda ids: pytest.fail("asked"))
    assert Account(tmp_path / "a.sqlite", never).size().requests == 1


def test_many_ids_at_once(tmp_path: Path) -> None:
    made = Account(tmp_path / "a.sqlite", MADE)
    ids: Sequence[str] = [f"d{number}" for number in range(1200)]
    made.add(Entry("q", {}, dict.fromkeys(ids, 1 / 1200), {}, 1.0))
    assert made.documents(ids) == pytest.approx(np.full(1200, 1 / 1200))
