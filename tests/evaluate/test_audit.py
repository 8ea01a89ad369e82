"""An audit of a log: shares by hand, intervals by queries, and what is no log."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.collection import Collection
from fairagent.collection.known import KnownIds
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.audit import Audit, LoggedRequest, audit_account, audit_requests, is_account, read_log
from fairagent.search.account import Account, Entry
from fairagent.settings import Settings, load_settings
from fairagent.types import UNKNOWN

DAY = 86400.0
ROWS = [
    {"id": f"{letter}{number}", "text": "x", "gender": "" if letter == "u" else letter}
    for letter in "fmu"
    for number in range(20)
]


@pytest.fixture(scope="module")
def collection() -> Collection:
    return Collection.from_records(ROWS, groups=["gender"], name="people")


def chosen(**settings: Any) -> Settings:
    return load_settings(overrides={"n": 2, "discount": "uniform", "target": "uniform", **settings}, environ={})


def audited(collection: Collection, requests: Iterable[LoggedRequest], **settings: Any) -> Audit:
    known = KnownIds.of("the collection", [row["id"] for row in ROWS])
    return audit_requests(requests, collection, chosen(**settings), known, Path("log.csv"))


# Four requests of two ranks that weigh the same: fm, fu, mm, m alone. Women get 1/2, 1/2, 0, 0, men 1/2, 0, 1, 1,
# nobody known 0, 1/2, 0, 0. The means are .25, .625 and .125; half of what is labeled is due to each, .4375.
HAND = [
    LoggedRequest("a", ("f1", "m1", "f2"), DAY),
    LoggedRequest("a", ("f1", "u1")),
    LoggedRequest("b", ("m1", "m2"), 0.0),
    LoggedRequest("c", ("m3",), 5.0),
]


def test_shares_dues_and_bounds_by_hand(collection: Collection) -> None:
    found = audited(collection, [*HAND, LoggedRequest("d", (), 2 * DAY)])
    (gender,) = found.dimensions
    women, men = gender.groups
    assert (women.share, men.share, gender.unlabeled) == pytest.approx((0.25, 0.625, 0.125))
    assert women.due == men.due == pytest.approx(0.4375)
    assert (women.least, women.most, men.least, men.most) == pytest.approx((0.25, 0.375, 0.625, 0.75))
    # Of the three queries a gives women 1/2 of the attention, and b and c nothing.
    assert (women.low, women.high) == pytest.approx((0, 0.5))
    assert (found.requests, found.begins, found.ends) == (4, "1970-01-01T00:00Z", "1970-01-03T00:00Z")
    for note in ("1 request showed nothing", "1 requests have no time", "few queries (3)"):
        assert any(note in one for one in found.notes)


def test_intervals_hold_the_share_of_a_log(collection: Collection) -> None:
    """100 queries, each of a chance of its own to show women, asked for 1 to 5 times: 95 % of 40 logs, or nearly."""
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        log = []
        for query, (chance, times) in enumerate(zip(rng.random(100), rng.integers(1, 6, 100), strict=True)):
            letters = rng.choice(["f", "m"], (times, 2), p=[chance, 1 - chance])
            log += [LoggedRequest(f"q{query}", (f"{a}1", f"{b}2")) for a, b in letters]
        group = audited(collection, log).dimensions[0].groups[0]
        assert group.low is not None
        assert group.high is not None
        held += group.low <= 0.5 <= group.high
    assert 35 <= held <= 40


def test_one_pass_in_memory_that_does_not_grow(collection: Collection) -> None:
    def peak(count: int) -> int:
        log: Iterator[LoggedRequest] = (LoggedRequest(f"q{k}", (f"f{k % 20}", f"x{k}"), float(k)) for k in range(count))
        tracemalloc.start()
        found = audited(collection, log)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.requests == count
        return most

    peak(100)
    assert peak(6_000) < 1.3 * peak(2_000)


def test_an_account_has_its_own_dues(tmp_path: Path) -> None:
    account = Account(tmp_path / "a.sqlite", "people", {"due": "relevance", "discount": "uniform"})
    with pytest.raises(DataError, match="no requests yet"):
        audit_account(account)
    for due in (0.5, 0.8):
        groups = {("gender", UNKNOWN): (0.2, 0.0), ("gender", "f"): (0.1, due), ("gender", "m"): (0.7, 1 - due)}
        account.add(Entry({"d": 1.0}, {"d": 1.0}, groups))
    assert is_account(tmp_path / "a.sqlite")
    found = audit_account(Account(tmp_path / "a.sqlite"))
    (gender,) = found.dimensions
    assert [(one.label, one.low, one.high) for one in gender.groups] == [("f", None, None), ("m", None, None)]
    assert [one.share for one in gender.groups] == pytest.approx([0.1, 0.7])
    assert [one.due for one in gender.groups] == pytest.approx([0.65, 0.35])
    assert [one.most for one in gender.groups] == pytest.approx([0.3, 0.9])
    assert (found.requests, found.collection) == (2, "people")


def read(path: Path, text: str) -> list[LoggedRequest]:
    path.write_text(text)
    assert not is_account(path)
    return list(read_log(path))


def test_forms_of_logs(tmp_path: Path) -> None:
    for text in (
        "query,document\nq1,a\nq1,b\nq2,c\n",
        "Query\tDocID\tRank\nq1\ta\t1\nq1\tb\t2\nq2\tc\t1\n",
        "request;q;id;position\n1;q1;b;2\n1;q1;a;1\n2;q2;c;1\n",
        '{"query": "q1", "ids": ["a", "b"]}\n{"query": {"text": "q2", "id": "7"}, "hits": [{"id": "c", "rank": 1}]}\n',
    ):
        assert [(one.query, one.ids) for one in read(tmp_path / "log", text)] == [("q1", ("a", "b")), ("q2", ("c",))]


def test_the_same_query_again_is_another_request(tmp_path: Path) -> None:
    ranked = read(tmp_path / "log", "query,doc,rank\nq,a,1\nq,b,2\nq,a,1\nq,c,2\n")
    assert [one.ids for one in ranked] == [("a", "b"), ("a", "c")]
    assert [one.ids for one in read(tmp_path / "log", "query,doc\nq,a\nq,b\nq,a\n")] == [("a", "b"), ("a",)]


def test_forms_of_time(tmp_path: Path) -> None:
    forms = {
        "10": 10.0,
        "100000000000001": 100000000000.001,
        "1970-01-02T00:00:00": DAY,
        "1970-01-01T01:00:00+01:00": 0.0,
        "1970-01-02": DAY,
        "": None,
    }
    found = read(tmp_path / "log", "query,doc,time\n" + "".join(f"q{time},a,{time}\n" for time in forms))
    assert [one.time for one in found] == list(forms.values())


TIMES = ("yesterday", "1e5", "9" * 30, "9" * 400, "-99999999999", "0001-01-01T00:00+23:00", "2026-13-01")


@pytest.mark.parametrize("time", [*(f'"{time}"' for time in TIMES), "true", "NaN", "1e999", "[]", "{}"])
def test_a_time_that_cannot_be_read_is_told_with_its_line(tmp_path: Path, time: str) -> None:
    given = '{"query": "q", "ids": ["a"]'
    with pytest.raises(DataError, match="log:3: the time '" if time[0] == '"' else "log:3: "):
        read(tmp_path / "log", f'{given}}}\n\n{given}, "time": {time}}}\n')
    if time[0] == '"':
        with pytest.raises(DataError, match="log:3: the time '"):
            read(tmp_path / "log", f"query,doc,time\nq,a,1\nq,b,{time[1:-1]}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no"),
        ("query,doc,rank\nq,a,first\n", "log:2: the rank 'first' is no number"),
        ("query,doc\nq,a b\n", "log:2: .*white space"),
        ('{"query": "q"}\n', "log:1: no list `ids` or `hits`"),
        ('{"query": 3, "ids": []}\n', "log:1: .*expected a text"),
        ('{"query": "q", "ids": [null]}\n', "log:1: .*expected text"),
        ("one,two\n1,2\n", "log:1: expected JSON lines, or columns"),
        ("q1 Q0 a 1 9 run\nq1 Q0 b 2 8 run\n", "log:1: expected JSON lines, or columns"),
    ],
    ids=["empty", "rank", "id", "no ids", "query", "null", "columns", "run"],
)
def test_bad_logs_are_told_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(tmp_path / "log", text)


def test_ids_that_the_collection_lacks(collection: Collection) -> None:
    some = audited(collection, [LoggedRequest("q", ("f1", "x9"))])
    assert any("1 of 2 documents shown are not in the collection" in note for note in some.notes)
    assert some.dimensions[0].unlabeled == pytest.approx(0.5)
    with pytest.raises(DataError, match="none of the 2 documents"):
        audited(collection, [LoggedRequest("q", ("x1", "x2"))])
    with pytest.raises(DataError, match="no request shows"):
        audited(collection, [LoggedRequest("q", ())])


def test_a_target_that_needs_a_query_is_refused(collection: Collection) -> None:
    with pytest.raises(UsageError, match="has to hold for every query"):
        audited(collection, HAND, target="estimated")
    # Nobody chose one, and there is no population: the collection's own shares.
    found = audited(collection, HAND, target=None)
    assert found.dimensions[0].groups[0].due == pytest.approx(0.4375)
