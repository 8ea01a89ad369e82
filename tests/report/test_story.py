"""The story of a search and of an answer, and what a person reads of an answer; `record` holds the same."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from fairagent.report.record import answer_record, result_record, to_json
from fairagent.report.story import answer_story, comparison_table, sources_table, story_text
from fairagent.report.text import plain
from fairagent.types import UNKNOWN, Answer, AnswerResult, Attribution, Document, Filtered, Group, Hit, Removal

from fairagent.types import SearchResult, Trace, Usage, Verdict  # isort: skip

from .conftest import FEMALE, gender, make_trace, ranking

STORY = """\
1. query         lawyers (50 documents)
   gender        female 10% (target 50%), male 90% (50%), no label (of all) 25%
   gap           0.3700
2. topic words   topic0^1, topic1^0.5, topic2^0.333, topic3^0.25, topic4^0.2, topic5^0.167,
                 topic6^0.143, topic7^0.125 and 92 more (90 documents)
   gender        female 20% (target 50%), male 80% (50%)
   gap           0.1900, was 0.3700
3. aim           female (gender): 20%, target 50%
   feedback      she^0.5, judge^0.25
   dropped       zyzzyva (not in the index)
   gap           0.0200, was 0.1900; female now 40%: accepted
4. aim           female (gender): 40%, target 50%
   feedback      her^0.1
   gap           0.0800, was 0.0200; female now 30%: discarded
   stopped       the gap did not fall
   final ranking from the last list accepted (best), re-ranked (exposure)
   gender        female 45% (target 50%), male 55% (50%)
   gap           0.0050
   target        uniform
   cost          1.75 s (engine 0.50, model 1.00, own 0.25), 2 model calls, 2,400 tokens in,
                 68 out, $0.0042
"""


def test_the_whole_story(trace: Trace) -> None:
    assert story_text(trace, 92) == STORY


def test_what_else_a_story_tells(trace: Trace) -> None:
    assert not {"ORACLE", "profile"} & set(story_text(trace).split())
    assert "ORACLE" in story_text(replace(trace, oracle=True))
    text = story_text(replace(trace, profile="fair-qr"))
    assert text.index("discarded") < text.index("profile       fair-qr\n") < text.index("stopped")
    alone = replace(trace, steps=trace.steps[:1], stopped="", reranker="none")
    assert story_text(alone).splitlines()[3].strip() == "final ranking from the list retrieved, as it is"
    assert "stopped" not in story_text(alone)
    assert "from the list retrieved, re-ranked (mmr)" in story_text(replace(alone, reranker="mmr"))
    chosen = story_text(replace(alone, steps=trace.steps, candidates="union"))
    assert "from all lists accepted (union), as it is" in chosen
    last = replace(trace.steps[1], source="llm", aim=FEMALE, added=(), dropped=("zyzzyva",), accepted=False)
    text = story_text(replace(trace, steps=(*trace.steps[:2], last), stopped="no new keyword"))
    third = [line.split() for line in text[text.index("3. aim") :].splitlines()[1:4]]
    assert third == [["llm", "nothing", "to", "add"], ["dropped", "zyzzyva", "(not", "in", "the", "index)"],
                     ["stopped", "no", "new", "keyword"]]  # fmt: skip
    step = replace(trace.steps[2], aim=None, source="refine", why="groups lack exposure", worse=("region",), entered=7)
    text = story_text(replace(trace, steps=(trace.steps[0], step), entered=2), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "accepted, less fair in region" in text
    assert "2 of 7 documents from the whole collection" in text


def test_the_record_of_a_search(result: SearchResult) -> None:
    record = json.loads(to_json(result_record(result)))
    assert record["query"] == {"text": "lawyers", "topic": "T1"}
    own = {"rank": 1, "id": "d0", "title": "First", "name": "First", "snippet": "First of all.", "score": 1.0}
    assert record["hits"][0] == {**own, "text": "", "columns": {}, "groups": {"gender": {"female": 1.0}}}
    assert record["targets"] == {"gender": "uniform"}
    assert record["exposure"]["before"][0]["groups"][0] == {"label": "female", "share": 0.1, "target": 0.5}
    assert record["exposure"]["after"][0]["divergence"] == 0.005
    assert record["gap"] == {"before": 0.37, "after": 0.005}
    assert len(record["steps"][1]["added"]) == 100
    assert record["steps"][2]["aim"] == {"dimension": "gender", "label": "female"}
    assert record["steps"][2]["usage"] == {"calls": 1, "input_tokens": 1200, "output_tokens": 34, "cost": 0.0021}
    assert [step["accepted"] for step in record["steps"]] == [True, True, True, False]
    assert record["seconds"] == {"all": 1.75, "engine": 0.5, "model": 1.0, "own": 0.25}
    under = {"exposures": "exposure", "engine_seconds": "seconds"}
    assert {under.get(field.name, field.name) for field in fields(result.trace)} <= record.keys()
    trace = replace(result.trace, gap=math.inf, exposures=(gender(0.0, math.inf, unknown=1.0),))
    record = json.loads(to_json(result_record(replace(result, trace=trace))))
    assert (record["gap"]["after"], record["exposure"]["after"][0]["divergence"]) == (None, None)
    assert json.loads(to_json({"a": [math.nan, (-math.inf, 1)]})) == {"a": [None, [None, 1]]}


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def answer() -> AnswerResult:
    """Three documents of four survived a filter; the answer cites the third and the first."""
    trace = make_trace()
    titles = ["A lawyer with a title that is a good deal longer than any column is wide", "Two", "Three"]
    named = zip(titles, ["male", "", "female"], strict=True)
    hits = tuple(
        Hit(number, f"d{number}", 1.0, title, {"gender": {label: 1.0} if label else {}})
        for number, (title, label) in enumerate(named, start=1)
    )
    verdicts = tuple(Verdict(f"d{number}", number < 4, number < 4, None) for number in range(1, 5))
    used = (gender(0.2, 0.2),), (gender(0.5, 0.0),)
    return AnswerResult(
        query=trace.query,
        answer=Answer("She won [3], he lost [1].", (3, 1), ("it is short",), Usage(1, 900, 20, 0.002), "llm"),
        context=hits,
        search=SearchResult(trace.query, ranking(4), hits, trace),
        notes=("1 of 3 documents was cut to fit 100 tokens",),
        filtered=Filtered((Document("d1", "One."),), verdicts, Usage(5, 500, 50, 0.001)),
        removed=(Removal(Group("gender", UNKNOWN), 2, 1), Removal(Group("gender", "female"), 1, 0)),
        attribution=Attribution("nli", np.array([1.0, 0.0, 0.25]), ("read by half",), Usage(), *used, "entailing"),
        seconds=2.5,
    )


def test_the_story_tells_what_came_after_the_search(answer: AnswerResult) -> None:
    text = plain(answer_story(answer))
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


def test_sources_are_numbered_and_marked_by_how_far_the_answer_rests_on_them(answer: AnswerResult) -> None:
    first, second, third = [line.split() for line in plain(sources_table(answer), 60).splitlines() if "[" in line]
    assert (first[0], first[-2:]) == ("[1]", ["male", "yes"])
    assert second == ["[2]", "Two", "-"]
    assert third == ["[3]", "Three", "female", "0.25"]
    assert "entailing" in plain(sources_table(answer), 60)
    plainly = plain(sources_table(replace(answer, attribution=None)), 60)
    assert [line.split()[-1] for line in plainly.splitlines() if "[" in line] == ["yes", "-", "yes"]


def test_the_record_holds_what_the_tables_show(answer: AnswerResult) -> None:
    record = answer_record(answer)
    assert record["answer"] == "She won [3], he lost [1]."
    sources = [(source["number"], source["cited"], source["weight"]) for source in record["context"]]
    assert sources == [(1, True, 1.0), (2, False, 0.0), (3, True, 0.25)]
    assert record["removed"][0] == {"dimension": "gender", "label": UNKNOWN, "seen": 2, "share": 0.5}
    assert [verdict["kept"] for verdict in record["verdicts"]] == [True, True, True, False]
    assert record["exposure"]["attributed"][0]["groups"][0] == {"label": "female", "share": 0.2, "target": 0.5}
    assert record["notes"] == ["1 of 3 documents was cut to fit 100 tokens", "it is short", "read by half"]
    assert record["usage"]["calls"] == 8


def test_two_answers_side_by_side(answer: AnswerResult) -> None:
    none = replace(answer, answer=Answer(""), context=(), notes=("nothing was found",), attribution=None)
    for width in (60, 80, 100):
        text = plain(comparison_table(("BM25", none), ("agent", answer)), width)
        lines = text.splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].strip() == "lawyers"
        assert "No answer: " in text
        (female,) = [line.split() for line in lines if line.split()[:1] == ["female"]]
        assert female == ["female", "50%", "20%", "50%"]
    # A collection without groups has no exposures.
    assert answer.attribution is not None
    trace = replace(answer.search.trace, exposures=(), targets=())
    attribution = replace(answer.attribution, exposures=(), retrieved=())
    bare = replace(answer, search=replace(answer.search, trace=trace), attribution=attribution)
    text = plain(comparison_table(("BM25", bare), ("agent", bare)))
    assert "She won [3], he lost [1]." in text
    assert "target" not in text
    assert answer_record(bare)["exposure"] == {"retrieved": [], "attributed": []}
