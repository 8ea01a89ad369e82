"""`fair_rerank`: the hits of any engine in a fair order, as the same objects."""

import math
from typing import Any

import pytest

from fairagent import DataError, UsageError, fair_rerank
from fairagent.types.search import FAIRNESS

GENDERS = ["male"] * 4 + ["female", "male", "", "male", "female", "male", "male", "female"]
EVEN = {"female": 0.5, "male": 0.5}
SCORES = [10.0 - place / 2 for place in range(len(GENDERS))]
N = 5


ORDER = [0, 4, 1, 2, 3]
"""With fairness 2."""
DICTS = [
    {"id": f"d{n}", "score": score, "gender": one} for n, (one, score) in enumerate(zip(GENDERS, SCORES, strict=True))
]


def test_exposures_are_those_of_the_first_n_before_and_after() -> None:
    """By hand: ranks 1 and 2 weigh 1, rank 3 weighs 1 / log2(3)."""
    hits = [("a", 3.0), ("b", 2.0), ("c", 1.0), ("d", 0.0)]
    groups = {"gender": {"a": "male", "b": "male", "c": "female", "d": "female"}}
    found, before, after, _ = fair_rerank(hits, groups, EVEN, n=3, fairness=100)
    third = 1 / math.log2(3)
    assert before[0].labels == ("female", "male")
    assert before[0].shares.tolist() == pytest.approx([third / (2 + third), 2 / (2 + third)])
    assert found == [("a", 3.0), ("c", 1.0), ("b", 2.0)]
    assert after[0].shares.tolist() == pytest.approx([1 / (2 + third), (1 + third) / (2 + third)])
    assert after[0].divergence < before[0].divergence
    assert after[0].target.tolist() == [0.5, 0.5]


def test_hits_without_a_label_keep_their_share_whatever_the_fairness() -> None:
    """Two women among forty men and 38 without a label: in every other place nobody is labeled."""
    labels = {f"d{place}": ("male", None)[place % 2] for place in range(78)} | {"d78": "female", "d79": "female"}
    hits = [f"d{place}" for place in range(80)]
    for fairness in (0.1, 0.5, FAIRNESS, 2, 10, 100):
        found = fair_rerank(hits, {"gender": labels}, EVEN, n=20, fairness=fairness)
        (before,), (after,) = found.before, found.after
        assert after.unknown_target == before.unknown
        assert after.unknown == pytest.approx(before.unknown, abs=0.05)
        assert after.shares[0] >= before.shares[0]
    assert str(found).startswith("20 hits; gender: female 0% -> ")
    everything = fair_rerank(hits, {"gender": labels}, EVEN, n=20, unknown=0.0).after[0]
    assert everything.unknown <= 0.05


def test_fields_of_other_names_several_labels_and_dimensions() -> None:
    hits = [{"id": n, "by": by, "region": ["Asia", "Europe"]} for n, by in enumerate(["m", "m|f", "m", None])]
    _, before, _, _ = fair_rerank(hits, {"gender": "by", "region": "region"}, "uniform", n=4, separator="|")
    weights = [1, 1, 1 / math.log2(3), 1 / 2]
    known = sum(weights[:3])
    assert before[0].shares.tolist() == pytest.approx([0.5 / known, 1 - 0.5 / known])
    assert before[0].unknown == pytest.approx(weights[3] / sum(weights))
    assert before[1].shares.tolist() == [0.5, 0.5]


def test_scores_that_say_nothing_leave_the_order() -> None:
    """Distances rise, and a hit may have no score."""
    hits = [{"id": n, "gender": gender} for n, gender in enumerate(GENDERS)]
    expected = [hit["id"] for hit in fair_rerank(hits, "gender", EVEN, n=N).hits]
    for scores in (SCORES[::-1], [*SCORES[:-1], None], [*SCORES[:-1], math.nan], [1.0] * len(hits)):
        scored = [hit | {"score": score} for hit, score in zip(hits, scores, strict=True)]
        assert [hit["id"] for hit in fair_rerank(scored, "gender", EVEN, n=N).hits] == expected


def test_spellings_of_a_label_are_named_and_joined_as_the_target_spells_them() -> None:
    hits = [hit | {"gender": hit["gender"].upper() if place % 2 else hit["gender"]} for place, hit in enumerate(DICTS)]
    even = {"FEMALE": 0.5, "MALE": 0.5}
    apart = fair_rerank(hits, "gender", {**even, "male": 0.0, "female": 0.0}, n=N)
    assert apart.after[0].labels == ("FEMALE", "MALE", "female", "male")
    [note] = apart.notes
    assert note.startswith("spellings of 'gender' that look like the same label: ")
    assert note.endswith('; labels="join" joins them')
    joined = fair_rerank(hits, "gender", even, n=N, labels="join")
    assert (joined.after[0].labels, joined.notes) == (("FEMALE", "MALE"), ())
    assert [hit["id"] for hit in joined.hits] == [hit["id"] for hit in fair_rerank(DICTS, "gender", EVEN, n=N).hits]
    named = fair_rerank(hits, "gender", EVEN, n=N, labels={"gender": {"FEMALE": "female", "MALE": "male"}})
    assert named.after[0].shares.tolist() == joined.after[0].shares.tolist()


WRONG = [
    ([{"id": 1, "gender": ""}], {}, DataError, "no hit has a label of 'gender'"),
    ([{"id": 1, "gender": "f"}, {"id": 2, "gender": 0.5}], {}, DataError, "hit:2: gender: 0.5 is no label"),
    ([("a", "high")], {}, UsageError, "the score of hit 1 is 'high', expected a number"),
    (DICTS, {"target": "population"}, DataError, "no population for 'gender'"),
]


@pytest.mark.parametrize(("hits", "more", "error", "said"), WRONG)
def test_what_cannot_be_is_said(hits: Any, more: dict[str, Any], error: Any, said: str) -> None:
    with pytest.raises(error) as raised:
        fair_rerank(hits, "gender", **more)
    assert type(raised.value) is error
    assert said in str(raised.value)
