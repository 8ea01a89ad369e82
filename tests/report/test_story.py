from __future__ import annotations

from dataclasses import replace

from fairagent.report.story import story_text
from fairagent.types import Trace

from .conftest import FEMALE

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


def test_an_oracle_and_a_profile_are_named(trace: Trace) -> None:
    assert not {"ORACLE", "profile"} & set(story_text(trace).split())
    assert "ORACLE" in story_text(replace(trace, oracle=True))
    text = story_text(replace(trace, profile="fair-qr"))
    assert text.index("discarded") < text.index("profile       fair-qr\n") < text.index("stopped")


def test_without_a_loop_and_a_reranker_there_is_no_word_of_them(trace: Trace) -> None:
    alone = replace(trace, steps=trace.steps[:1], stopped="", reranker="none")
    lines = story_text(alone).splitlines()
    assert lines[3].strip() == "final ranking from the list retrieved, as it is"
    assert "stopped" not in story_text(alone)
    assert "from the list retrieved, re-ranked (mmr)" in story_text(replace(alone, reranker="mmr"))
    chosen = story_text(replace(alone, steps=trace.steps, candidates="union"))
    assert "from all lists accepted (union), as it is" in chosen


def test_nothing_to_add(trace: Trace) -> None:
    last = replace(trace.steps[1], source="llm", aim=FEMALE, added=(), dropped=("zyzzyva",), accepted=False)
    stopped = "no new keyword occurs in the index"
    text = story_text(replace(trace, steps=(*trace.steps[:2], last), stopped=stopped))
    third = text[text.index("3. aim") :].splitlines()
    assert third[1].split(maxsplit=1) == ["llm", "nothing to add"]
    assert third[2].split()[:2] == ["dropped", "zyzzyva"]
    assert third[3].split(maxsplit=1) == ["stopped", stopped]


def test_worse_dimensions_and_entered_documents_are_named(trace: Trace) -> None:
    step = replace(trace.steps[2], aim=None, source="refine", why="groups lack exposure", worse=("region",), entered=7)
    text = story_text(replace(trace, steps=(trace.steps[0], step), entered=2), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "accepted, less fair in region" in text
    assert "7 documents from the whole collection" in text
    assert "2 of 7 documents from the whole collection" in text
