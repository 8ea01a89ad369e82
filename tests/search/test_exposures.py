"""Exposure in the hits of a search function: its numbers by hand, hits of several shapes, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.collection import Collection, GroupTable, load_collection, make_target
from fairagent.collection.demo import write_demo
from fairagent.errors import DataError, UsageError
from fairagent.guests.testing import assert_exposure_of, exposure_of
from fairagent.measures import jensen_shannon
from fairagent.types import Ranking

HALF = {"women": 0.5, "men": 0.5}
GENDER = {"a": "men", "b": "women", "c": "men", "d": None}
THIRD = 1 / math.log2(3)


def shelf(**lists: Any) -> Any:
    return lists.get


def test_means_and_the_worst_query_by_hand() -> None:
    """Weights 1, 1, 1 / log2(3), of those with a label."""
    search = shelf(one=["a", "b", "c"], two=["c", "a"], three=["b", "d"])
    shown = exposure_of(search, ["one", "two", "three"], {"gender": GENDER}, HALF)
    women = [1 / (2 + THIRD), 0, 1]
    assert shown.shares["gender"] == pytest.approx({"women": np.mean(women), "men": 1 - np.mean(women)})
    assert [exposures[0].unknown for exposures in shown.measured.values()] == pytest.approx([0, 0, 0.5])
    assert shown.gap_of("one") == pytest.approx(
        jensen_shannon(np.array([women[0], 1 - women[0]]), np.array([0.5, 0.5])), abs=1e-4
    )
    assert shown.gap == pytest.approx(np.mean([shown.gap_of(query) for query in ("one", "two", "three")]))
    assert shown.worst in ("two", "three")
    assert exposure_of(search, "one", {"gender": GENDER}, HALF, at=2).shares["gender"]["women"] == 0.5


def test_groups_of_hits_of_a_table_and_of_a_collection() -> None:
    search = shelf(one=[{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}], two=[{"id": 3, "city": "Oslo"}])
    shown = exposure_of(search, ["one", "two"], "city", "uniform")
    assert shown.shares == {"city": {"Oslo": 0.75, "Rome": 0.25}}
    assert [one[0].target.tolist() for one in shown.measured.values()] == [[0.5, 0.5], [0.5, 0.5]]
    table = GroupTable.from_rows([(id, {"gender": label}) for id, label in GENDER.items()], ["gender"])
    ranking = Ranking(("a", "b"), np.array([2.0, 1.0]))
    assert exposure_of(lambda query: ranking, "q", table, HALF).shares == {"gender": HALF}
    records = [{"id": id, "text": "x", "gender": label} for id, label in GENDER.items()]
    collection = Collection.from_records(records, text="text", groups=["gender"])
    assert exposure_of(lambda query: ["a", "b"], "q", collection, "uniform").shares == {"gender": HALF}


def test_each_query_and_the_gap() -> None:
    search = shelf(one=["a", "b"], two=["a", "c"], three=["a", "b", "c"])
    asked = ["one", "three"]
    assert_exposure_of(search, asked, {"gender": GENDER}, HALF, min_share={"women": 0.4}, gap=0.02)
    with pytest.raises(AssertionError, match=r"women gets 38.0% of the attention for 'three'; the least is 40.0%"):
        assert_exposure_of(search, asked, {"gender": GENDER}, HALF, min_share={"women": 0.4}, each=True)
    with pytest.raises(AssertionError, match=r"the gap to the target is 0\.21\d+ for 'two'; the most is 0.1"):
        assert_exposure_of(search, ["one", "two"], {"gender": GENDER}, HALF, gap=0.1, each=True)
    with pytest.raises(AssertionError, match=r"^no hits for 'two'"):
        assert_exposure_of(shelf(one=["b"]), ["one", "two"], {"gender": GENDER}, HALF, gap=9)
    with pytest.raises(UsageError, match="no query has a hit"):
        assert_exposure_of(shelf(), ["one", "two"], {"gender": GENDER}, HALF, gap=9)


MEN = [{"id": n, "sex": "men"} for n in range(3)]


@pytest.mark.parametrize(
    ("target", "bounds", "missed"),
    [
        pytest.param(HALF, {"gap": 0.2}, r"gap to the target is 0\.2158", id="gap"),
        pytest.param({"Women": 0.5, "Men": 0.5}, {"gap": 0.2}, r"gap to the target is 0\.2158", id="spelling"),
        pytest.param(HALF, {"min_share": {"women": 0.01}}, "sex: women gets 0.0%", id="named by the target"),
        pytest.param("uniform", {"min_share": {"women": 0.01}}, "sex: women gets 0.0%", id="named by the bound"),
        pytest.param("uniform", {"min_share": {"sex": {"WOMEN": 0.01}, "age": {}}}, "dimensions are: sex", id="age"),
        pytest.param("uniform", {"gap": 0.2}, "'men', and nothing names another; write the shares", id="unnamed"),
    ],
)
def test_a_list_of_men_alone_never_passes(target: Any, bounds: Any, missed: str) -> None:
    failed = UsageError if missed.startswith(("'men'", "dim")) else AssertionError
    with pytest.raises(failed, match=missed):
        assert_exposure_of(lambda query: MEN, "jazz", "sex", target, **bounds)


def test_names_of_bounds_are_compared_as_spellings_are_and_notes_are_shown() -> None:
    hits = [{"id": 1, "sex": "women"}, {"id": 2, "sex": "men"}]
    shown = assert_exposure_of(lambda query: hits, "q", "sex", {"Women": 0.5, "men": 0.5}, min_share={"WOMEN": 0.5})
    assert shown.shares == {"sex": HALF}
    assert "Women = women" in shown.notes[0]
    assert shown.notes[0] in str(shown)


def test_targets_of_a_topic_and_ids_that_are_not_there(tmp_path: Path) -> None:
    collection = load_collection(write_demo(tmp_path, people=200))
    topic, grades = next(iter(collection.qrels.items()))
    ids = [*list(grades)[:4], "nowhere"]
    shown = exposure_of(lambda query: ids, topic, collection, "trec")
    due = make_target("trec", "gender", collection, topic)
    assert shown.by_query[topic][0].target.tolist() == pytest.approx(due.shares.tolist())
    assert "1 of 5 hits are not in the labels and judgments of collection 'demo' (20 %): 'nowhere'" in shown.notes[0]
    with pytest.raises(DataError, match="none of the 1 hits is in the labels and judgments of collection 'demo'"):
        exposure_of(lambda query: ["nowhere"], topic, collection, "trec")


@pytest.mark.parametrize(
    ("hits", "asked", "error", "said"),
    [
        pytest.param(["a"], {}, UsageError, "no bound", id="no bound"),
        pytest.param(["a"], {"min_share": {"womn": 0.3}}, UsageError, "did you mean 'women'", id="group"),
        pytest.param(["a"], {"gap": 1, "queries": ["q", "q"]}, UsageError, "'q' is there twice", id="twice"),
        pytest.param([3.5], {"gap": 1}, UsageError, "query 'q': hit 1 is a float", id="no hit"),
        pytest.param(["a"], {"gap": 1, "groups": "sex"}, UsageError, "^no hit has a field 'sex'", id="field"),
        pytest.param(["d"], {"gap": 1}, DataError, "no hit has a label of 'gender'", id="unlabeled"),
    ],
)
def test_what_cannot_be_judged_is_an_error(hits: Any, asked: dict[str, Any], error: type, said: str) -> None:
    given = {"queries": "q", "groups": {"gender": GENDER}, "target": HALF} | asked
    with pytest.raises(error, match=said):
        assert_exposure_of(lambda query: hits, **given)
