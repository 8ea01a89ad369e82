"""The topics of the page: one system on one topic as the page's script reads it, groups as bars, gains and losses."""

from __future__ import annotations

import json
from dataclasses import replace

from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome
from fairagent.report.page import FEWEST_HITS, MOST_HITS, ROWS, STEP_GROUPS, TopicTables, TopicView

from fairagent.report.page import exposure_bar, topic_views, topics_json  # isort: skip

from .runs import tiny_run

COLORS = {("gender", "female"): 0, ("gender", "male"): 1}
BASE, AGENT = tiny_run().outcomes[:2]


def panel(most: int = 10, baseline: tuple[str, ...] = ("d1", "d2"), **changes):
    """What the page has of the agent on one topic, and its tables."""
    tables = TopicTables(COLORS, most)
    base = replace(BASE, hits=tuple(HitRecord(id, id, 1.0, False, {}) for id in baseline))
    view = TopicView(1, "t1", AGENT.query, None, {0: base, 1: replace(AGENT, **changes)}, {1: (0.1,)})
    return tables.panel(view, 1, (), base.system), tables


def test_what_a_panel_shows():
    shown, tables = panel()
    moved = [(tables.documents[place][0], moved) for place, _, moved in shown["hits"]]
    assert moved == [("d2", 1), ("Judges of the courts", -1)]
    shown, _ = panel(baseline=())
    assert shown["hits"][0][2] is None
    # Chips have shares where these differ; of many topic words the first are shown.
    for female, texts in ((0.75, ["female 75%", "male 25%"]), (0.5, ["female", "male"])):
        _, tables = panel(hits=(HitRecord("d1", "x", 1.0, False, {"gender": {"female": female, "male": 1 - female}}),))
        assert tables.documents == [["x", [[0, texts[0]], [1, texts[1]]]]]
    many = tuple((f"word{i}", 1 / (i + 1)) for i in range(100))
    words = panel(steps=(AGENT.steps[0], replace(AGENT.steps[1], terms=many)))[0]["steps"][1]
    assert (len(words["terms"]), words["more"]) == (8, 92)


def test_with_many_groups_a_step_shows_the_dimension_it_was_for():
    labels = tuple(map(str, range(STEP_GROUPS)))
    many = GroupShares("language", labels, (1 / STEP_GROUPS,) * STEP_GROUPS, (1 / STEP_GROUPS,) * STEP_GROUPS, 0.0)
    shown, tables = panel(steps=tuple(replace(step, exposures=(*step.exposures, many)) for step in AGENT.steps))
    first, _, tried = shown["steps"]
    assert "exposures" not in first
    assert [list(tables.scales)[place][0] for place, *_ in tried["exposures"]] == ["gender"]


def test_bars_by_hand():
    """A bar ends at its end, and shows what documents without a label should get."""
    bar = exposure_bar(GroupShares("gender", ("female", "male"), (0.25, 0.75), (1.0, 0.0), 0.125), COLORS)
    female, male = "M0 0h21.88v6.5h-21.88zM0 8h87.5v2h-87.5z", "M21.88 0h65.62v6.5h-65.62z"
    assert bar.parts == ((0, female), (1, male), (None, "M87.5 0h12.5v6.5h-12.5z"))
    assert bar.words == "gender: female 25% (target 100%), male 75% (target 0%), no label (of all) 12%"
    shares = GroupShares("gender", ("female", "male"), (0.5, 0.5), (0.5, 0.5), 0.5, unknown_target=0.2)
    bar = exposure_bar(shares, COLORS)
    assert bar.parts[-1] == (None, "M50 0h50v6.5h-50zM80 8h20v2h-20z")
    assert bar.parts[0] == (0, "M0 0h25v6.5h-25zM0 8h40v2h-40z")
    assert bar.words == "gender: female 50% (target 50%), male 50% (target 50%), no label (of all) 50% (target 20%)"


def test_rankings_get_shorter_as_runs_get_larger():
    run = tiny_run()
    long = replace(run.outcomes[0], hits=run.outcomes[0].hits * 100)

    def lengths(*outcomes: Outcome) -> set[int]:
        made = replace(run, outcomes=outcomes)
        data = json.loads(topics_json(made, topic_views(made), (), {}))
        return {len(panel["hits"]) for topic in data["topics"] for panel in topic["panels"]}

    assert lengths(long) == {MOST_HITS}
    assert lengths(*(replace(long, topic=f"t{number}") for number in range(ROWS // 20))) == {20}
    assert FEWEST_HITS <= 20
