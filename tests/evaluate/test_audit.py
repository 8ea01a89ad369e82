"""Audits of logs: shares and bounds by hand, windows, worst queries, false alarms by simulation, and bad logs."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.collection import Collection
from fairagent.collection.known import KnownIds
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.audit import Audit, audit_account, audit_requests, intervals
from fairagent.evaluate.request_log import LoggedRequest, is_account, read_log
from fairagent.report.audit import audit_page, audit_record, audit_text
from fairagent.search.account import Account, Entry, Identity
from fairagent.settings import Settings, load_settings

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


def audited(collection: Collection, requests: list[LoggedRequest], seed: int = 0, **settings: Any) -> Audit:
    known = KnownIds.of("the collection", [row["id"] for row in ROWS])
    return audit_requests(requests, collection, chosen(**settings), known, Path("log.csv"), seed)


# Four requests of two ranks that weigh the same: fm, fu, mm, m alone. Women get 1/2, 1/2, 0, 0, men 1/2, 0, 1, 1,
# nobody known 0, 1/2, 0, 0. The means are .25, .625 and .125; half of what is labeled is due to each, .4375.
HAND = [
    LoggedRequest("a", ("f1", "m1", "f2")),
    LoggedRequest("a", ("f1", "u1")),
    LoggedRequest("b", ("m1", "m2")),
    LoggedRequest("c", ("m3",)),
]


def test_shares_bounds_and_worst_queries_by_hand(collection: Collection) -> None:
    found = audited(collection, [*HAND, LoggedRequest("d", ())])
    (gender,) = found.dimensions
    women, men = gender.groups
    assert (women.share, men.share, gender.unlabeled) == pytest.approx((0.25, 0.625, 0.125))
    assert women.due == men.due == pytest.approx(0.4375)
    assert (women.least, women.most, men.least, men.most) == pytest.approx((0.25, 0.375, 0.625, 0.75))
    # b and c: men get all, half is due to women; of a women got 1/2 and were due 3/8.
    assert [(one.query, one.requests, one.lacking) for one in gender.worst] == [
        ("b", 1, "f"),
        ("c", 1, "f"),
        ("a", 2, "m"),
    ]
    assert [one.distance for one in gender.worst] == pytest.approx([0.5, 0.5, 0.125])
    assert (found.requests, found.queries, found.drifts) == (4, 3, ())
    assert any("1 request showed nothing" in note for note in found.notes)
    assert any("fewer than 60" in note for note in found.notes)


def test_intervals_hold_the_mean_of_requests() -> None:
    values = np.random.default_rng(3).random((400, 2))
    low, high = intervals(values, np.random.default_rng(1))
    assert (low < values.mean(axis=0)).all()
    assert (values.mean(axis=0) < high).all()
    # Two standard errors on each side, .289 / 20.
    assert high - low == pytest.approx(np.full(2, 2 * 1.96 * 0.2887 / 20), rel=0.15)


@pytest.mark.parametrize(
    ("days", "names"),
    [
        ([0, 0, 1, 1, 2, 2], ["1970-01-01", "1970-01-02", "1970-01-03"]),
        ([0, 1, 7, 8, 40, 41], ["week of 1969-12-29", "week of 1970-01-05", "week of 1970-02-09"]),
        ([0, 0, 0, 0, 0, 0], ["1 to 6"]),
    ],
    ids=["days", "weeks", "one"],
)
def test_windows_are_days_or_weeks(collection: Collection, days: list[int], names: list[str]) -> None:
    requests = [LoggedRequest("q", ("f1", "m1"), DAY * day) for day in days]
    assert [one.name for one in audited(collection, requests).dimensions[0].windows] == names


def test_without_times_windows_are_equal_numbers(collection: Collection) -> None:
    found = audited(collection, [LoggedRequest("q", ("f1", "m1"))] * 100)
    assert [one.requests for one in found.dimensions[0].windows] == [10] * 10
    assert any("not every request has a time" in note for note in found.notes)


def drawn(rng: np.random.Generator, count: int, women: float) -> list[LoggedRequest]:
    """Requests of which each of two ranks is a woman's with this chance, or in one of ten cases nobody's known."""
    letters = rng.choice(["f", "m", "u"], (count, 2), p=[0.9 * women, 0.9 * (1 - women), 0.1])
    return [LoggedRequest(f"q{k % 50}", (f"{a}1", f"{b}2")) for k, (a, b) in enumerate(letters.tolist())]


def rates(collection: Collection, logs: int) -> tuple[float, float]:
    """In how many logs of 400 requests without a change there is an alarm, and any p below .05 after Holm."""
    alarms = tests = 0
    for seed in range(logs):
        found = audited(collection, drawn(np.random.default_rng(seed), 400, 0.5), seed)
        alarms += bool(found.alarms)
        tests += any(one.holm < 0.05 for one in found.drifts)
    return alarms / logs, tests / logs


def test_false_alarms_are_rare(collection: Collection) -> None:
    alarms, tests = rates(collection, 60)
    # 5 % is the most that the method promises; of 60 logs 8 or more would be a chance of 1 %.
    assert alarms <= tests < 8 / 60


def test_a_change_is_an_alarm(collection: Collection) -> None:
    rng = np.random.default_rng(5)
    found = audited(collection, drawn(rng, 200, 0.6) + drawn(rng, 200, 0.35))
    assert {one.what for one in found.alarms} == {"gender: share of f", "gender: share of m"}
    change = next(one for one in found.drifts if one.what == "gender: share of f")
    assert change.before > 0.45 > 0.4 > change.after
    assert found.tested == (80, 80)
    # More documents without a label.
    emptied = [LoggedRequest("q", ("u1", "u2") if k > 300 and k % 3 else ("f1", "m1")) for k in range(400)]
    assert "gender: share without a label" in {one.what for one in audited(collection, emptied).alarms}


def test_an_account_has_its_own_dues(tmp_path: Path) -> None:
    account = Account(tmp_path / "a.sqlite", Identity("people", "", {"due": "relevance", "discount": "uniform"}))
    with pytest.raises(DataError, match="no requests yet"):
        audit_account(account)
    for number in range(100):
        due = 0.5 if number < 50 else 0.8
        groups = {("gender", "f"): (0.3, due), ("gender", "m"): (0.7, 1 - due)}
        unusable = int(number > 70)
        account.add(Entry("q", {}, {}, groups, 0.9, calls=1, unusable=unusable))
    found = audit_account(account)
    (gender,) = found.dimensions
    assert [one.share for one in gender.groups] == pytest.approx([0.3, 0.7])
    assert gender.groups[0].due == pytest.approx(0.65)
    assert (found.quality, found.calls, found.unusable) == (pytest.approx(0.9), 100, 29)
    # The target changed, and so did what the model replies.
    said = {one.what for one in found.alarms}
    assert said == {"gender: due of f", "gender: due of m", "replies of models that could not be used"}
    assert is_account(tmp_path / "a.sqlite")


# --- logs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "query,document\nq1,a\nq1,b\nq2,c\n",
        "Query\tDocID\tRank\nq1\tb\t2\nq1\ta\t1\nq2\tc\t1\n".replace("b\t2\nq1\ta\t1", "a\t1\nq1\tb\t2"),
        "request;q;id;position\n1;q1;b;2\n2;q2;c;1\n1;q1;a;1\n",
        '{"query": "q1", "ids": ["a", "b"]}\n{"query": {"text": "q2", "id": "7"}, "hits": [{"id": "c", "rank": 1}]}\n',
        "q1 Q0 a 1 9 run\nq1 Q0 b 2 8 run\nq2 Q0 c 1 3 run\n",
        "q1 a\nq1 b\nq2 c\n",
    ],
    ids=["csv", "tsv", "requests", "json", "trec", "plain"],
)
def test_forms_of_logs(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text)
    assert not is_account(tmp_path / "log")
    assert [(one.query, one.ids) for one in read_log(tmp_path / "log")] == [("q1", ("a", "b")), ("q2", ("c",))]


def test_the_same_query_again_is_another_request(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("query,doc,rank\nq,a,1\nq,b,2\nq,a,1\nq,c,2\n")
    assert [one.ids for one in read_log(tmp_path / "log")] == [("a", "b"), ("a", "c")]
    (tmp_path / "log").write_text("query,doc\nq,a\nq,b\nq,a\n")
    assert [one.ids for one in read_log(tmp_path / "log")] == [("a", "b"), ("a",)]


def test_times_and_calls(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "query,doc,time\nlate,a,1970-01-02T00:00:00\nearly,b,10\nmilli,c,100000000000001\nzone,d,1970-01-01T01:00:00+01:00\n"
    )
    assert [(one.query, one.time) for one in read_log(tmp_path / "log")] == [
        ("zone", 0.0), ("early", 10.0), ("late", DAY), ("milli", 100000000000.001)
    ]  # fmt: skip
    (tmp_path / "log").write_text('{"query": "q", "ids": ["a"], "trace": {"usage": {"calls": 4, "unusable": 1}}}\n')
    (one,) = read_log(tmp_path / "log")
    assert (one.calls, one.unusable) == (4, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no"),
        ("query,doc,rank\nq,a,first\n", "the rank 'first' is no number"),
        ("query,doc,time\nq,a,yesterday\n", "neither seconds since 1970 nor a date"),
        ("query,doc\nq,a b\n", "white space"),
        ('{"query": "q"}\n', "no list `ids` or `hits`"),
        ('{"query": 3, "ids": []}\n', "expected a text"),
        ("one two three\n", "expected"),
    ],
    ids=["empty", "rank", "time", "id", "no ids", "query", "columns"],
)
def test_bad_logs_are_told_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(DataError, match=said):
        read_log(tmp_path / "log")


def test_ids_that_the_collection_lacks(collection: Collection) -> None:
    some = audited(collection, [LoggedRequest("q", ("f1", "x9"))])
    assert "1 of 2 documents of log.csv are not in the collection" in some.unknown_ids
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


# --- the page -----------------------------------------------------------------------------------------------------


def test_the_page_says_what_was_found_and_nothing_runs(collection: Collection) -> None:
    rng = np.random.default_rng(5)
    hostile = [LoggedRequest("<script>alert(1)</script>", ("m1", "m2"))] * 3
    found = audited(collection, drawn(rng, 200, 0.6) + drawn(rng, 197, 0.3) + hostile)
    page = audit_page(found)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src 'none'" in unescape(page)
    assert "script-src" not in page
    assert " style=" not in page
    for word in ("Article 34(1)", "Article 35(1)", "2022/2065", "Holm", "gender: share of f", "bootstrap"):
        assert word in page
    assert page == audit_page(found)
    text = audit_text(found)
    assert "! gender: share of f changed from" in text
    assert audit_record(found)["alarms"] == ["gender: share of f", "gender: share of m"]


def test_the_page_of_few_requests(collection: Collection) -> None:
    page = audit_page(audited(collection, HAND[:1]))
    assert "no change was tested" in page
