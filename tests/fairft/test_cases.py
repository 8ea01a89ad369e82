"""Single questions in full: documents, what the filter took, answers, and systems that failed."""

from __future__ import annotations

from dataclasses import replace

from evaluate.made_runs import outcome, run_of

from fairagent.evaluate.outcome import AnswerRecord, HitRecord, Outcome
from fairagent.papers.fairft.graded import case_table, case_text

HITS = tuple(
    HitRecord(id, title, 1.0, False, {}, snippet)
    for id, title, snippet in (("d1", "Judges", "Some are late."), ("d2", "", "None is."), ("d3", "Courts", ""))
)


def answered(system: str, text: str, grade: float, hits: tuple[HitRecord, ...], *removed: str) -> Outcome:
    made = replace(outcome("q1", system, {"": {"agreement": grade}}), query="Is every judge late?", hits=hits)
    return replace(made, answer=AnswerRecord(text, "rule", removed))


RUN = run_of(
    [
        answered("no retrieval", "No.", 0.0, ()),
        answered("Contriever", "Yes, all of them.", 1.0, HITS),
        answered("FairFilter", "No.", 0.0, HITS[:2], "d1"),
        Outcome.failure("q1", "Is every judge late?", "FairFT", "the server is gone", 0.1),
    ]
)


def test_systems_stand_side_by_side() -> None:
    table = case_table(RUN, "q1")
    assert table.prose
    assert table.title == "q1: Is every judge late?"
    assert [column.name for column in table.columns] == ["", "no retrieval", "Contriever", "FairFilter", "FairFT"]
    removed = "Judges: Some are late. [removed by the filter]"
    assert table.rows == (
        ("document 1", "", "Judges: Some are late.", removed, ""),
        ("document 2", "", "d2: None is.", "d2: None is.", ""),
        ("document 3", "", "Courts", "", ""),
        (
            "answer",
            "No. [agreement 0, by rule]",
            "Yes, all of them. [agreement 1, by rule]",
            "No. [agreement 0, by rule]",
            "failed: the server is gone",
        ),
    )


def test_a_case_that_nobody_has_answered_yet() -> None:
    assert case_text(RUN, "q9") == "case q9: not answered yet"
    assert case_table(RUN, "q9").rows == (("answer",),)
