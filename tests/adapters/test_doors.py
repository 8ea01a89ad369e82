"""One reading of groups, targets and scores behind every door that hits of others come through."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument

from adapters.test_hits import EVEN, GENDERS, ORDER, SCORES, N
from adapters.words import node
from fairagent import Collection, DataError, FairHits, GroupTable, UsageError, fair_rerank
from fairagent.guests.langchain import ExposureCompressor
from fairagent.guests.llama_index import ExposurePostprocessor

IDS = [f"d{n}" for n in range(len(GENDERS))]
FAIR = {"n": N, "fairness": 2}


def plain(groups: Any, target: Any, scores: list[Any], labels: list[Any]) -> tuple[list[str], FairHits]:
    rows = zip(IDS, scores, labels, strict=True)
    fair = fair_rerank(
        [{"id": id, "score": s, "by": one, "a": {"by": one}} for id, s, one in rows], groups, target, **FAIR
    )
    return [hit["id"] for hit in fair.hits], fair


def llama_index(groups: Any, target: Any, scores: list[Any], labels: list[Any]) -> tuple[list[str], FairHits]:
    seen: list[FairHits] = []
    stage = ExposurePostprocessor(groups=groups, target=target, on_fair=seen.append, **FAIR)
    nodes = [node(id, score=s, by=one, a={"by": one}) for id, s, one in zip(IDS, scores, labels, strict=True)]
    return [one.node_id for one in stage.postprocess_nodes(nodes)], seen[0]


def langchain(groups: Any, target: Any, scores: list[Any], labels: list[Any]) -> tuple[list[str], FairHits]:
    seen: list[FairHits] = []
    stage = ExposureCompressor(groups=groups, target=target, on_fair=seen.append, **FAIR)
    rows = zip(IDS, labels, strict=True)
    found = [LangChainDocument(id=id, page_content="x", metadata={"by": one, "a": {"by": one}}) for id, one in rows]
    return [one.id or "" for one in stage.compress_documents(found, "")], seen[0]


Door = Callable[[Any, Any, list[Any], list[Any]], tuple[list[str], FairHits]]
doors = pytest.mark.parametrize("door", [plain, llama_index, langchain])
ROWS = [{"id": id, "text": "x", "gender": one} for id, one in zip(IDS, GENDERS, strict=True)]
EXPECTED = [IDS[place] for place in ORDER]


@doors
@pytest.mark.parametrize(
    "groups",
    [
        "by",
        ["by"],
        {"gender": "by"},
        {"gender": "a.by"},
        {"gender": dict(zip(IDS, GENDERS, strict=True))},
        GroupTable.from_rows([(row["id"], {"gender": row["gender"]}) for row in ROWS], ["gender"]),
        Collection.from_records(ROWS, groups="gender", population={"gender": EVEN}),
    ],
)
def test_groups_are_read_alike(door: Door, groups: Any) -> None:
    assert door(groups, EVEN, SCORES, GENDERS)[0] == EXPECTED


@doors
@pytest.mark.parametrize(
    ("groups", "target", "error", "said"),
    [
        ({"by": "gender"}, {"gender": EVEN}, UsageError, '{"gender": "author_gender"} (dimension -> field)'),
        ({"by": "gender"}, EVEN, UsageError, '{"gender": "author_gender"} (dimension -> field)'),
        (5, EVEN, UsageError, "groups=5"),
        (None, EVEN, UsageError, "groups=None"),
        ({"gender": 5}, EVEN, UsageError, "expected the name of a field"),
        ("by", {"cat": 0.5, "dog": 0.5}, DataError, "cat, dog"),
        ("by", {"female": 0.5, "male": 0.4}, DataError, "add up to 0.9"),
        ("by", {None: 0.5, "male": 0.5}, DataError, "None"),
    ],
)
def test_what_cannot_be_is_said_alike(door: Door, groups: Any, target: Any, error: Any, said: str) -> None:
    with pytest.raises(error) as raised:
        door(groups, target, SCORES, GENDERS)
    assert said in str(raised.value)


@doors
def test_the_target_s_names_are_compared_as_spellings_are_and_what_is_joined_or_left_over_is_told(door: Door) -> None:
    ids, fair = door("by", {"Female": 0.5, "M": 0.5}, SCORES, GENDERS)
    assert (ids, fair.after[0].labels, len(fair.notes)) == (EXPECTED, ("female", "male"), 1)
    assert "Female = female, M = male" in fair.notes[0]
    _, fair = door("by", {"female": 0.5, "dog": 0.5}, SCORES, GENDERS)
    assert [note.rpartition(": ")[2] for note in fair.notes] == ["dog", "male"]


@doors
def test_a_group_that_no_hit_is_in_has_nothing(door: Door) -> None:
    _, fair = door("by", EVEN, SCORES, ["male"] * len(IDS))
    assert (fair.after[0].labels, fair.after[0].shares.tolist()) == (("female", "male"), [0.0, 1.0])
    _, fair = door("by", EVEN, SCORES, [None] * len(IDS))
    assert (fair.after[0].shares.tolist(), fair.after[0].unknown) == ([0.0, 0.0], 1.0)
    with pytest.raises(UsageError, match=r"target=\{'by': \{'male': 0.5"):
        door("by", "uniform", SCORES, ["male"] * len(IDS))


@doors
@pytest.mark.parametrize("named", [{1: 0.5, 0: 0.5}, {"1": 0.5, 0.0: 0.5}, {True: 0.5, False: 0.5}])
def test_numbers_and_truth_values_are_labels(door: Door, named: Any) -> None:
    """Of the data as of the target: 1 and 1.0 are "1", true is "true"."""
    truth = True in named and type(next(iter(named))) is bool
    labels = [{"female": 1, "male": 0.0, "": None}[one] for one in GENDERS]
    ids, fair = door("by", named, SCORES, [None if one is None else bool(one) for one in labels] if truth else labels)
    assert (ids, fair.after[0].labels) == (EXPECTED, ("false", "true") if truth else ("0", "1"))


@pytest.mark.parametrize("door", [plain, llama_index])
@pytest.mark.parametrize("odd", [math.nan, None, math.inf])
def test_a_score_that_is_none_is_told_and_the_order_stands(door: Door, odd: Any) -> None:
    even = door("by", EVEN, [1.0] * len(IDS), GENDERS)
    ids, fair = door("by", EVEN, [*SCORES[:-1], odd], GENDERS)
    assert (ids, even[1].notes) == (even[0], ())
    assert "1 of 12 hits (the first is hit 12)" in fair.notes[0]
