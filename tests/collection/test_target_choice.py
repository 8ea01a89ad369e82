"""Who chooses the target: the call, the collection, its population; and the error where nobody did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scripted import by_letter, collection, ranking

from fairagent import Collection, FairAgent, load_collection
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.targets import ESTIMATE_FROM, GivenTarget, UniformTarget, estimate_weights, target_choice
from fairagent.errors import UsageError
from fairagent.search.hits import groups_alone
from fairagent.settings import Settings

IDS = ["f1", "m1", "m2", "m3"]
EVEN = {"gender": {"female": 0.5, "male": 0.5}}
ROWS = [{"id": id, "text": f"law {id}", "gender": {"f": "female", "m": "male"}[id[0]]} for id in IDS]


def source(chosen: Any, whole: Collection) -> str:
    return ExposureMeter.make(whole, "", Settings(target=chosen), ranking(IDS)).targets[0].source


@pytest.mark.parametrize(
    ("called", "own", "population", "expected"),
    [
        ("uniform", "corpus", EVEN, "uniform"),
        ({"gender": "uniform"}, "corpus", EVEN, "uniform"),
        (None, {"gender": "corpus"}, EVEN, "corpus"),
        (None, {"region": "corpus"}, EVEN, "trec-estimated"),
        (None, None, EVEN, "trec-estimated"),
        (EVEN, "corpus", {}, "given"),
    ],
)
def test_the_call_beats_the_collection_and_this_its_population(
    called: Any, own: Any, population: Mapping[str, Mapping[str, float]], expected: str
) -> None:
    whole = collection(by_letter(IDS), population, target=Settings(target=own).target)
    assert source(called, whole) == expected


def test_nobody_chose_one() -> None:
    whole = collection(by_letter(IDS))
    assert target_choice(None, "gender", whole) is None
    with pytest.raises(UsageError) as raised:
        source(None, whole)
    # Of the estimate's weights 4/4 to 1/4 the woman has the first.
    assert [line.split() for line in str(raised.value).splitlines()[1:4]] == [
        ["uniform", "gender:", "female", "50.0%,", "male", "50.0%"],
        ["corpus", "gender:", "male", "75.0%,", "female", "25.0%"],
        ["estimated", "gender:", "male", "60.0%,", "female", "40.0%"],
    ]


def test_shares_of_a_call_are_the_target_as_they_are() -> None:
    whole = Collection.from_records(ROWS, groups="gender", population={"gender": {"female": 0.9, "male": 0.1}})
    assert source(None, whole) == "given"
    agent = FairAgent.from_records(
        ROWS, groups="gender", population={"gender": {"female": 0.9, "male": 0.1}}, engine="bm25", n=2
    )
    assert agent.search("law").trace.exposures[0].target.tolist() == [0.9, 0.1]
    assert source(None, groups_alone(by_letter(IDS), EVEN)) == "given"


def test_the_file_names_its_target(write, settings) -> None:  # type: ignore[no-untyped-def]
    text = settings(("target: trec-estimated", "target: {gender: {female: 0.4, male: 0.6}, region: uniform}"))
    loaded = load_collection(write({"collection.yaml": text}))
    assert loaded.target == {"gender": GivenTarget(shares={"female": 0.4, "male": 0.6}), "region": UniformTarget()}


def test_the_last_document_of_a_short_list_counts() -> None:
    assert estimate_weights(np.array([4.0, 3.0, 1.0])).tolist() == pytest.approx([1, 3.5 / 4.5, 1.5 / 4.5])
    assert estimate_weights(np.array([2.0])).tolist() == [1]
    assert estimate_weights(np.array([2.0, 2.0])).tolist() == [1, 1]
    assert estimate_weights(np.zeros(0)).tolist() == []
    full = np.arange(ESTIMATE_FROM, dtype=np.float64)[::-1]
    assert estimate_weights(full).tolist() == (full / full[0]).tolist()


def test_an_estimated_target_is_said_to_follow_the_engine() -> None:
    rows = [*ROWS, *({"id": f"g{n}", "text": "sea", "gender": "female"} for n in range(4))]
    agent = FairAgent.from_records(rows, groups="gender", engine="bm25", n=2, target="estimated", profile="engine")
    trace = agent.search("law m1 m2 m3").trace
    assert any("gender (estimated) follows the engine's own list" in note for note in trace.notes)
    (alarm,) = [one for one in trace.alarms if one.what == "a target that follows the engine"]
    assert "female" in alarm.detail
    assert "of all documents 62.5%" in alarm.detail
    chosen = agent.from_records(rows, groups="gender", engine="bm25", n=2, target="corpus").search("law").trace
    assert not any("follows" in note for note in chosen.notes)
    assert "a target that follows the engine" not in [one.what for one in chosen.alarms]
