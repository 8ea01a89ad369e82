"""What a REPL and a notebook show of a result: one line, and a drawing in which nothing of strangers is markup."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from fairagent.types import Answer, AnswerResult, Attribution, Hit, Query, SearchResult

from .conftest import gender, make_trace
from .test_page import HOSTILE, Parsed


@pytest.fixture
def answered(result: SearchResult) -> AnswerResult:
    rests = Attribution(
        "citations", np.array([0.0, 1.0]), (), exposures=(gender(0.4, 0.02),), retrieved=(gender(0.2, 0.1),)
    )
    return AnswerResult(result.query, Answer("Courts [2].", (2,), source="llm"), result.hits, result, attribution=rests)


def test_a_result_says_what_matters_in_one_line(result: SearchResult, answered: AnswerResult) -> None:
    trace = result.trace
    assert repr(result) == "<SearchResult of 'lawyers': 2 documents, first 'First'; gap 0.005>"
    assert repr(trace) == "<Trace of 'lawyers': 4 steps, gap 0.37 to 0.005, 1.75 s; the gap did not fall>"
    assert repr(result.ranking) == "<Ranking of 2 documents: 'd0' (2) first>"
    assert repr(trace.query) == "<Query 'lawyers' (T1)>"
    kept = "<Step feedback for female (gender), 2 keywords added: gap 0.02, accepted>"
    assert repr(trace.steps[2]) == kept
    assert repr(gender(0.1, 0.37, unknown=0.25)) == (
        "<Exposure gender: female 10% (target 50%), male 90% (target 50%), no label (of all) 25%>"
    )
    assert repr(answered) == "<AnswerResult to 'lawyers': 'Courts [2].'; 1 of 2 documents cited>"
    assert repr(answered.attribution) == "<Attribution by citations: on 1 of 2 documents>"

    # Long and hostile texts stay in their line.
    hostile = replace(result, query=Query("lawyers\n\x1b[31m" + "a" * 5000))
    assert "\n" not in repr(hostile)
    assert "\x1b" not in repr(hostile)
    assert len(repr(hostile)) < 200


def test_a_notebook_shows_documents_groups_and_exposure(result: SearchResult, answered: AnswerResult) -> None:
    page = Parsed(result._repr_html_())
    assert page.open == []
    assert "it should have 50%. gap 0.3700 → 0.0050; the gap did not fall" in page.text
    assert "1Firstfemale 2d1–" in page.text
    bars = [one["aria-label"] for one in page.all("svg")]
    assert bars == [
        "gender: female 10% (target 50%), male 90% (target 50%), no label (of all) 25%",
        "gender: female 45% (target 50%), male 55% (target 50%)",
    ]
    assert [one["d"] for one in page.all("path")][3] == "M0 0h45v6.5h-45zM0 8h50v2h-50z"

    page = Parsed(answered._repr_html_())
    assert "Courts [2]." in page.text
    assert "1Firstfemale 2d1–✓" in page.text
    assert [one["aria-label"] for one in page.all("svg")] == [
        "gender: female 20% (target 50%), male 80% (target 50%)",
        "gender: female 40% (target 50%), male 60% (target 50%)",
    ]


def test_nothing_of_strangers_is_markup_in_a_notebook(result: SearchResult, answered: AnswerResult) -> None:
    hits = (Hit(1, "d0", 1.0, HOSTILE, {"gender": {HOSTILE: 1.0}}),)
    trace = replace(make_trace(), stopped=HOSTILE)
    hostile = replace(result, query=Query(HOSTILE), hits=hits, trace=trace)
    written = replace(answered, query=Query(HOSTILE), context=hits, answer=Answer(HOSTILE, source=HOSTILE))
    for one in (hostile, written):
        text = one._repr_html_()
        page = Parsed(text)
        assert page.open == []
        assert page.all("script") == page.all("img") == []
        assert len(page.all("style")) == 1
        assert "{{ 7 * 7 }}" in page.text
        assert not re.search("[\u202e\x00\ud800]", text)
