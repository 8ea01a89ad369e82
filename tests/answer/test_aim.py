"""The target of a context and its citations: hand-computed orders and choices, and every choice there is, compared."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import by_letter, collection

from fairagent.answer import aim as module
from fairagent.answer.aim import Aim
from fairagent.answer.generators import ExtractiveGenerator, LlmGenerator
from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import BudgetExceeded, ModelError, ReplyTruncated
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.settings import Settings
from fairagent.settings.tree import CitationSettings
from fairagent.types import Answer, Document, Ranking


def aim_of(ids: str, loss: float = 0.1, **settings: Any) -> Aim:
    """The aim of these documents: f1 is female, m1 male, u1 unlabeled; the target is half and half."""
    chosen = Settings(**{"target": {"gender": {"female": 0.5, "male": 0.5}}, "unknown": "ignore", **settings})
    names = ids.split()
    ranking = Ranking(tuple(names), np.arange(len(names), 0, -1.0))
    made = Aim.of(
        ExposureMeter.make(collection(by_letter(names)), "", chosen, ranking), names, CitationSettings(loss=loss)
    )
    assert made
    return made


def test_what_the_groups_lack_decides_what_comes_next() -> None:
    # Lacking after m1: female 1, male 0; after m1 f1: both 1/2, so m2 by relevance; then female has 1 of 2.
    aim = aim_of("m1 m2 m3 f1 f2 m4")
    assert aim.order(np.array([1, 0.9, 0.8, 0.7, 0.6, 0.5]), 6) == [1, 4, 2, 5, 3, 6]
    aim = aim_of("m1 m2 f1")
    assert aim.order(np.array([1.0, 1.0, 0.4]), 2) == [1, 2]  # half of the median of the first two is .5
    assert aim.order(np.array([1.0, 1.0, 0.6]), 2) == [1, 3]


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.25, 0.75), (0.4, 0.6)], ids=str)
def test_every_beginning_is_within_one_document_of_the_target(shares: tuple[float, float]) -> None:
    ids = [*(f"m{i}" for i in range(12)), *(f"f{i}" for i in range(12))]
    aim = aim_of(" ".join(ids), target={"gender": dict(zip(("female", "male"), shares, strict=True))})
    order = aim.order(np.ones(24), 12)
    for k in range(1, 13):
        women = sum(number > 12 for number in order[:k])
        assert abs(women - shares[0] * k) < 1


def test_documents_without_a_label_are_shared_out_or_get_their_share() -> None:
    aim = aim_of("u1 m1 u2 f1")
    # u1 lacks as much as anything at first; then both groups lack 1/2, and so does u2.
    assert aim.order(np.array([1.0, 0.9, 0.8, 0.7]), 4) == [1, 2, 4, 3]
    aim = aim_of("u1 u2 u3 m1 f1 m2 f2", unknown=0.5)
    assert aim.due[0].tolist() == [0.5, 0.25, 0.25]
    order = aim.order(np.ones(7), 4)
    assert sum(number <= 3 for number in order) == 2
    assert sum(number <= 3 for number in order[:2]) == 1


def test_the_choice_gives_up_no_more_than_it_may() -> None:
    # m1 + m2 = 3.8; m1 + f1 = 3 is less than 90 % of it, more than 75 %.
    scores = {1: 2.0, 2: 1.8, 3: 1.0}
    assert aim_of("m1 m2 f1").choose(scores, 2) == ([1, 2], True)
    assert aim_of("m1 m2 f1", loss=0.25).choose(scores, 2) == ([1, 3], True)
    assert aim_of("m1 m2 f1", loss=0.25).choose(scores, 3) == ([1, 2, 3], True)  # {1, 3} would be 3 of 4.8
    assert aim_of("m1 m2 f1").choose({}, 3) == ([], True)


def best_of_all(aim: Aim, scores: dict[int, float], most: int) -> tuple[float, float]:
    """The smallest gap of all choices that keep enough, and the largest score at it."""
    plain = sum(sorted(scores.values(), reverse=True)[:most])
    allowed = [
        (round(aim.gap(some), 9), -round(sum(scores[one] for one in some), 9))
        for size in range(1, most + 1)
        for some in combinations(sorted(scores), size)
        if sum(scores[one] for one in some) >= (1 - aim.settings.loss) * plain - 1e-9
    ]
    return min(allowed)


POOLS = st.lists(st.tuples(st.sampled_from("fmub"), st.integers(1, 9)), min_size=1, max_size=7)


@given(POOLS, st.integers(1, 7), st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from(["ignore", 0.2]))
def test_no_other_choice_is_nearer_to_the_target(pool: list[tuple[str, int]], most: int, loss: float, u: Any) -> None:
    aim = aim_of(" ".join(f"{kind}{place}" for place, (kind, _) in enumerate(pool)), loss, unknown=u)
    scores = {number: float(score) for number, (_, score) in enumerate(pool, start=1)}
    chosen, exact = aim.choose(scores, most)
    assert exact
    reached = round(aim.gap(chosen), 9), -round(sum(scores[one] for one in chosen), 9)
    assert reached == best_of_all(aim, scores, min(most, len(scores)))


def test_too_many_choices_end_in_a_local_optimum_which_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_COUNTS", 1)
    aim, scores = aim_of("m1 m2 m3 f1 f2", loss=0.3), {1: 3.0, 2: 2.9, 3: 2.8, 4: 2.7, 5: 2.6}
    chosen, exact = aim.choose(scores, 4)
    assert (chosen, exact) == ([1, 2, 4, 5], False)
    assert aim.gap(chosen) == pytest.approx(0, abs=1e-9)
    context = [Document(f"d{i}", f"Roses, and {word}.") for i, word in enumerate(["ab", "cd", "ef", "gh", "ij"])]
    assert "single exchanges gain nothing" in ExtractiveGenerator(4).aimed("roses", context, aim).notes[-1]


def test_the_extractive_answer_cites_who_was_chosen() -> None:
    context = [
        Document("m1", "He grew roses and more roses."),
        Document("m2", "A man of roses."),
        Document("m3", "Roses were his joy."),
        Document("f1", "She bred roses in the north."),
    ]
    aim, generator = aim_of("m1 m2 m3 f1", loss=0.5), ExtractiveGenerator(2)
    plain, aimed = generator.answer("roses", context), generator.aimed("roses", context, aim)
    assert len(plain.cited) == len(aimed.cited) == 2
    assert aim.gap(aimed.cited) == pytest.approx(0, abs=1e-9)
    assert 4 in aimed.cited
    assert "She bred roses in the north [4]." in aimed.text


CONTEXT = [
    Document("m1", "He was a judge in the north."),
    Document("m2", "A judge, and a poet."),
    Document("f1", "She was the first judge of the south."),
    Document("f2", "A river without any court."),
]
MEN = "He was a judge in the north [1]. A judge, and a poet [2]."
BOTH = "He was a judge in the north [1]. She was the first judge of the south [3]."


def asked(*script: Any, context: list[Document] = CONTEXT, tolerance: float = 0.02) -> tuple[Answer, ScriptedModel]:
    """What a model of this script answers to a question on judges, half of whose sources should be women."""
    ids = [one.id for one in context]
    settings = Settings(target={"gender": {"female": 0.5, "male": 0.5}}, unknown="ignore")
    ranking = Ranking(tuple(ids), np.arange(len(ids), 0, -1.0))
    meter = ExposureMeter.make(collection(by_letter([*ids, "f9", "m9"])), "", settings, ranking)
    aim = Aim.of(meter, ids, CitationSettings(aim=True, tolerance=tolerance))
    assert aim
    model = ScriptedModel(script[0] if callable(script[0]) else script)
    return LlmGenerator(model, Prompts()).aimed("which judge?", context, aim), model


def raised(answer: Any) -> Any:
    if isinstance(answer, BudgetExceeded):
        raise answer
    return answer


def test_citations_near_the_target_or_without_help_are_left_as_they_are() -> None:
    answer, model = asked(BOTH)
    assert (answer.text, answer.revision, len(model.requests)) == (BOTH, None, 1)
    answer, model = asked(MEN, tolerance=20)
    assert (answer.text, answer.revision, len(model.requests)) == (MEN, None, 1)
    answer, model = asked(MEN, context=CONTEXT[:2])
    assert len(model.requests) == 1
    assert answer.revision
    assert "no source that it does not cite" in answer.revision.why


def test_a_second_answer_nearer_to_the_target_takes_the_place_of_the_first() -> None:
    answer, model = asked(MEN, BOTH)
    assert (answer.text, answer.cited, answer.usage.calls) == (BOTH, (1, 3), 2)
    assert answer.revision
    assert (answer.revision.kept, answer.revision.why) == (True, "told of sources that it had not used: 3")
    assert answer.revision.gap == (pytest.approx(0.2158, abs=1e-4), pytest.approx(0, abs=1e-6))
    assert answer.revision.support == (1, 1)
    first, second = (request.messages[-1][1] for request in model.requests)
    assert "Your first answer" not in first
    # Document 4 says nothing on the question.
    assert "does not use the documents 3, so" in second
    assert MEN in second


@pytest.mark.parametrize(
    ("second", "why", "calls"),
    [
        (MEN, "its citations are no nearer to the target", 2),
        ("He was a judge [1]. She ruled wisely over seven seas [3].", "its sources hold it up less", 2),
        ("They do not say.", "its citations are no nearer to the target", 2),
        (ModelError("overloaded"), "the second pass came to nothing: overloaded", 1),
        (ReplyTruncated("cut off", raw="She was [3]"), "the second pass came to nothing: cut off", 1),
        (BudgetExceeded("no call is left"), "the second pass came to nothing: no call is left", 1),
    ],
    ids=["no nearer", "less support", "cites nothing", "fails", "cut off", "no budget"],
)
def test_else_the_first_one_stays_and_it_is_said_why(second: Any, why: str, calls: int) -> None:
    given = iter([MEN, second])
    answer, _ = asked(lambda _: raised(next(given)))
    assert (answer.text, answer.cited, answer.truncated) == (MEN, (1, 2), False)
    assert answer.revision
    assert not answer.revision.kept
    assert why in answer.revision.why
    assert answer.usage.calls == calls


def test_an_answer_that_cites_nothing_or_what_is_not_there_is_asked_to_cite() -> None:
    for first in ("There were judges.", "There were judges [8]."):
        answer, model = asked(first, BOTH)
        assert (answer.cited, len(model.requests)) == ((1, 3), 2)
        assert answer.revision
        assert answer.revision.kept
