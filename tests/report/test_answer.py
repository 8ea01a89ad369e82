from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.report.record import answer_record
from fairagent.report.story import answer_story, comparison_table, sources_table
from fairagent.report.text import plain
from fairagent.types import (
    UNKNOWN,
    Answer,
    AnswerResult,
    Attribution,
    Document,
    Filtered,
    Group,
    Hit,
    Query,
    Removal,
    SearchResult,
    Usage,
    Verdict,
)

from .conftest import gender, make_trace, ranking


@pytest.fixture
def result() -> AnswerResult:
    """Three documents of four survived a filter; the answer cites the third and the first."""
    trace = make_trace()
    titles = ["A lawyer with a title that is a good deal longer than any column is wide", "Two", "Three"]
    labels = ["male", "", "female"]
    hits = tuple(
        Hit(number, f"d{number}", 1.0, title, {"gender": {label: 1.0} if label else {}})
        for number, (title, label) in enumerate(zip(titles, labels, strict=True), start=1)
    )
    verdicts = tuple(Verdict(f"d{number}", number < 4, number < 4, None) for number in range(1, 5))
    weights = np.array([1.0, 0.0, 0.25])
    return AnswerResult(
        query=trace.query,
        answer=Answer("She won [3], he lost [1].", (3, 1), ("it is short",), Usage(1, 900, 20, 0.002), "llm"),
        context=hits,
        search=SearchResult(trace.query, ranking(4), hits, trace),
        notes=("1 of 3 documents was cut to fit 100 tokens",),
        filtered=Filtered((Document("d1", "One."),), verdicts, Usage(5, 500, 50, 0.001)),
        removed=(Removal(Group("gender", UNKNOWN), 2, 1), Removal(Group("gender", "female"), 1, 0)),
        attribution=Attribution(
            "nli", weights, ("read by half",), Usage(), (gender(0.2, 0.2),), (gender(0.5, 0.0),), "entailing"
        ),
        seconds=2.5,
    )


def test_the_story_tells_what_came_after_the_search(result: AnswerResult) -> None:
    text = plain(answer_story(result))
    assert text.index("stopped") < text.index("filter") < text.index("context") < text.index("rests on")
    lines = " ".join(text.split())
    for fact in (
        "kept 3 of 4; 5 model calls, 500 tokens in, 50 out, $0.0010",
        "removed no label (gender) 50% of 2",
        "1 of 3 documents was cut to fit 100 tokens",
        "by the language model, citing 2 of 3; 1 model call, 900 tokens in, 20 out, $0.0020",
        "it is short",
        "2 of 3 documents, by nli",
        "read by half",
        "female 20% (retrieved 50%), male 80% (50%)",
        "2.50 s, 8 model calls",
    ):
        assert fact in lines


def test_sources_are_numbered_and_marked_by_how_far_the_answer_rests_on_them(result: AnswerResult) -> None:
    first, second, third = [line.split() for line in plain(sources_table(result), 60).splitlines() if "[" in line]
    assert (first[0], first[-2:]) == ("[1]", ["male", "yes"])
    assert second == ["[2]", "Two", "-"]
    assert third == ["[3]", "Three", "female", "0.25"]
    assert "entailing" in plain(sources_table(result), 60)
    plainly = plain(sources_table(replace(result, attribution=None)), 60)
    assert [line.split()[-1] for line in plainly.splitlines() if "[" in line] == ["yes", "-", "yes"]


def test_the_record_holds_what_the_tables_show(result: AnswerResult) -> None:
    record = answer_record(result)
    assert record["answer"] == "She won [3], he lost [1]."
    assert [(source["number"], source["cited"], source["weight"]) for source in record["context"]] == [
        (1, True, 1.0),
        (2, False, 0.0),
        (3, True, 0.25),
    ]
    assert record["removed"][0] == {"dimension": "gender", "label": UNKNOWN, "seen": 2, "share": 0.5}
    assert [verdict["kept"] for verdict in record["verdicts"]] == [True, True, True, False]
    assert record["exposure"]["attributed"][0]["groups"][0] == {"label": "female", "share": 0.2, "target": 0.5}
    assert record["notes"] == ["1 of 3 documents was cut to fit 100 tokens", "it is short", "read by half"]
    assert record["usage"]["calls"] == 8


def test_a_collection_without_groups_has_no_exposures_side_by_side(result: AnswerResult) -> None:
    assert result.attribution is not None
    trace = replace(result.search.trace, exposures=(), targets=())
    attribution = replace(result.attribution, exposures=(), retrieved=())
    bare = replace(result, search=replace(result.search, trace=trace), attribution=attribution)
    text = plain(comparison_table(("BM25", bare), ("agent", bare)))
    assert "She won [3], he lost [1]." in text
    assert "target" not in text
    assert answer_record(bare)["exposure"] == {"retrieved": [], "attributed": []}


@pytest.mark.parametrize("width", [60, 80, 100])
def test_two_answers_side_by_side(result: AnswerResult, width: int) -> None:
    none = replace(result, answer=Answer(""), context=(), notes=("nothing was found",), attribution=None)
    text = plain(comparison_table(("BM25", none), ("agent", result)), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].strip() == Query("lawyers").text
    assert "No answer: " in text
    (female,) = [line.split() for line in lines if line.split()[:1] == ["female"]]
    assert female == ["female", "50%", "20%", "50%"]
