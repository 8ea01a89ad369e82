"""One system on one topic, and the topics that gained or lost most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairagent.evaluate.outcome import GroupShares, HitRecord
from fairagent.report.text import highlighted, is_keyword, keywords_of
from fairagent.report.topics import (
    FEWEST_HITS,
    MOST_HITS,
    ROWS,
    STEP_GROUPS,
    exposure_bar,
    extremes,
    palette,
    panel_of,
    topic_views,
)

from .runs import MEASURES, made_run, tiny_run

PRODUCT = str(MEASURES[2])
COLORS = {("gender", "female"): 0, ("gender", "male"): 1}


def outcome(**changes):
    return replace(tiny_run().outcomes[1], **changes)


def panel(shown: int = 10, **changes):
    return panel_of(1, outcome(**changes), COLORS, {"d1": 1, "d2": 2}, shown, (0.1,))


def test_documents_tell_how_far_they_rose():
    assert [(hit.id, hit.rank, hit.moved) for hit in panel().hits] == [("d2", 1, 1), ("d1", 2, -1)]
    assert panel_of(1, outcome(), COLORS, {}, 10, ()).hits[0].moved is None


def test_a_document_without_a_title_shows_its_id():
    assert panel().hits[0].title == (("d2", False),)


def test_words_of_discarded_steps_are_not_marked():
    # "court" was accepted, "judg" was not.
    assert panel().hits[1].title == (("Judges of the ", False), ("courts", True))


def test_a_single_letter_is_no_keyword():
    assert keywords_of(["O", "she", "court of law"]) == {"she", "court", "of", "law"}


def test_long_rankings_are_cut_and_say_so():
    cut = panel(shown=1)
    assert (len(cut.hits), cut.hidden) == (1, 1)


def test_chips_have_shares_where_they_differ():
    split = {"gender": {"female": 0.75, "male": 0.25}}
    chips = panel(hits=(HitRecord("d1", "x", 1.0, False, split),)).hits[0].chips
    assert [(chip.color, chip.text) for chip in chips] == [(0, "female 75%"), (1, "male 25%")]
    alike = {"gender": {"female": 0.5, "male": 0.5}}
    chips = panel(hits=(HitRecord("d1", "x", 1.0, False, alike),)).hits[0].chips
    assert [chip.text for chip in chips] == ["female", "male"]


def test_the_story_knows_what_each_step_was():
    first, words, tried = panel().steps
    assert [step.kind for step in (first, words, tried)] == ["query", "expansion", "refinement"]
    assert (first.before, words.before, tried.before) == (None, 0.4, 0.3)
    assert tried.aim == ("female (gender)", 0.4, 0.4, 0.5)


def test_the_step_after_a_discarded_one_starts_from_the_accepted_one():
    steps = outcome().steps
    again = panel(steps=(*steps, replace(steps[2], gap=0.1, accepted=True))).steps[-1]
    assert again.before == 0.3


def test_a_step_that_found_nothing_has_no_bars():
    steps = outcome().steps
    nothing = panel(steps=(*steps[:2], replace(steps[2], terms=()))).steps[-1]
    assert (nothing.kind, nothing.exposures) == ("nothing", ())


def test_only_the_first_of_many_topic_words_are_shown():
    steps = outcome().steps
    many = tuple((f"word{i}", 1 / (i + 1)) for i in range(100))
    words = panel(steps=(steps[0], replace(steps[1], terms=many))).steps[1]
    assert (len(words.terms), words.more) == (8, 92)


def test_with_many_groups_a_step_shows_the_dimension_it_was_for():
    labels = tuple(map(str, range(STEP_GROUPS)))
    many = GroupShares("language", labels, (1 / STEP_GROUPS,) * STEP_GROUPS, (1 / STEP_GROUPS,) * STEP_GROUPS, 0.0)
    steps = [replace(step, exposures=(*step.exposures, many)) for step in outcome().steps]
    first, _, tried = panel(steps=tuple(steps)).steps
    assert first.exposures == ()
    assert [shown.dimension for shown in tried.exposures] == ["gender"]


def test_a_bar_ends_at_its_end():
    shares = GroupShares("gender", ("female", "male"), (0.25, 0.75), (1.0, 0.0), 0.125)
    bar = exposure_bar(shares, COLORS)
    female, male = "M0 0h21.88v6.5h-21.88zM0 8h87.5v2h-87.5z", "M21.88 0h65.62v6.5h-65.62z"
    assert bar.parts == ((0, female), (1, male), (None, "M87.5 0h12.5v6.5h-12.5z"))
    assert bar.words == "gender: female 25% (target 100%), male 75% (target 0%), no label (of all) 12%"


def test_a_bar_shows_what_documents_without_a_label_should_get():
    shares = GroupShares("gender", ("female", "male"), (0.5, 0.5), (0.5, 0.5), 0.5, unknown_target=0.2)
    bar = exposure_bar(shares, COLORS)
    assert bar.parts[-1] == (None, "M50 0h50v6.5h-50zM80 8h20v2h-20z")
    assert bar.parts[0] == (0, "M0 0h25v6.5h-25zM0 8h40v2h-40z")
    assert bar.words == "gender: female 50% (target 50%), male 50% (target 50%), no label (of all) 50% (target 20%)"


@pytest.mark.parametrize(
    ("word", "stem"),
    [("Botanists", "botanist"), ("botany", "botani"), ("universities", "univers"), ("governed", "govern")],
)
def test_titles_show_the_words_behind_stems(word, stem):
    assert is_keyword(word, frozenset({stem}))


@pytest.mark.parametrize(("word", "stem"), [("portrait", "port"), ("arts", "ar"), ("shed", "she"), ("court", "courts")])
def test_other_words_that_begin_alike_are_left_alone(word, stem):
    assert not is_keyword(word, frozenset({stem}))


@pytest.mark.parametrize("title", ["", "a", "judge", "no judge, no court", "判事 judge", "judge-judge"])
def test_pieces_make_up_the_title(title):
    assert "".join(text for text, _ in highlighted(title, frozenset({"judge"}))) == title


def test_extremes_are_the_largest_gains_and_losses():
    run = tiny_run()
    best, worst = extremes(run, topic_views(run, palette(run)), "gender", PRODUCT, "B")
    assert [(e.topic.id, round(e.gain, 6), e.before, e.after) for e in best] == [("t1", 0.14, 0.4, 0.54)]
    assert [(e.topic.id, round(e.gain, 6)) for e in worst] == [("t2", -0.3)]


def test_extremes_come_in_order_and_few():
    run = made_run()
    best, _ = extremes(run, topic_views(run, palette(run)), "gender", PRODUCT, "agent, exposure")
    assert len(best) == 3
    assert [e.gain for e in best] == sorted((e.gain for e in best), reverse=True)


def test_all_topics_are_there_the_excluded_ones_too():
    views = topic_views(made_run(), {})
    assert [view.id for view in views] == [*(f"T{number:02d}" for number in range(1, 13)), "T98"]
    assert [view.number for view in views] == list(range(1, 14))
    assert views[-1].excluded == "no relevant document"
    assert views[-1].panels == ()
    assert [panel.name for panel in views[0].panels] == list(made_run().systems)


def test_rankings_get_shorter_as_runs_get_larger():
    run = tiny_run()
    long = replace(run.outcomes[0], hits=run.outcomes[0].hits * 100)
    (view,) = topic_views(replace(run, outcomes=(long,)), {})
    assert len(view.baseline.hits) == MOST_HITS
    many = [replace(long, topic=f"t{number}") for number in range(ROWS // 20)]
    views = topic_views(replace(run, outcomes=tuple(many)), {})
    assert {len(view.baseline.hits) for view in views} == {20}
    assert FEWEST_HITS <= 20


def test_the_dimensions_have_colors_of_their_own():
    colors = palette(made_run())
    assert list(colors.values()) == list(range(9))
    assert colors["region", "Africa"] == 3
