"""What would lift a document, computed by hand: two ranks that weigh the same, half of them for each gender.

Relevance falls from 1 to 0 in sevenths. Of the second rank m2 is worth 6/14 - JSD, f1 2/14; JSD((0, 1), (1/2, 1/2)) is
.2158, so m2 has .2128 and is served: f1 would be from a relevance of .4256, or a fairness of 1.324.
"""

from __future__ import annotations

import pytest
from scripted import Engine, agent

from fairagent.errors import UsageError
from fairagent.search.agent import FairAgent
from fairagent.search.lift import Lift, lift
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.run import SearchRun
from fairagent.types import Group


@pytest.fixture
def searched() -> tuple[FairAgent, SearchRun]:
    engine = Engine({"q": "m1 m2 m3 m4 m5 f1 m6 f2"})
    made = agent(engine, None, reranker=lambda _: ExposureReranker(1.0), n=2, unknown="ignore")
    return made, made.find("q", 2)


def test_relevance_or_more_weight_on_fairness_would_lift_it(searched: tuple[FairAgent, SearchRun]) -> None:
    # 3/7 is .4286: the fifth place will do, the sixth, with 2/7, will not.
    assert lift(*searched, "f1") == Lift("f1", None, 6, 5, (2.0, 4.0, 8.0), ())


def test_its_group_keeps_it_out(searched: tuple[FairAgent, SearchRun]) -> None:
    # 5/14 as a woman; as the man that it is, no weight helps, and it would have to come second.
    assert lift(*searched, "m3") == Lift("m3", None, 3, 2, (), (Group("gender", "female"),))


def test_what_is_served_needs_nothing(searched: tuple[FairAgent, SearchRun]) -> None:
    found = lift(*searched, "m1")
    assert (found.rank, found.place, found.needed) == (1, 1, 1)
    assert set(found.fairness) == {0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0}


def test_what_no_search_has_retrieved_cannot_be_lifted(searched: tuple[FairAgent, SearchRun]) -> None:
    with pytest.raises(UsageError, match="f9"):
        lift(*searched, "f9")
    plain = agent(Engine({"q": "m1 f1"}), None, reranker=lambda _: None, n=1)
    with pytest.raises(UsageError, match="re-ranker"):
        lift(plain, plain.find("q", 1), "f1")


def test_it_is_said_in_sentences(searched: tuple[FairAgent, SearchRun]) -> None:
    assert lift(*searched, "m1").sentences == ("It is 1st in the list; by relevance it is 1st.",)
    said = " ".join(lift(*searched, "m3").sentences)
    assert "No fairness lifts it" in said
    assert "female (gender): its group, and not its text, keeps it out" in said
    assert "even if it were the most relevant" in Lift("d", None, 9, None, (), ()).sentences[1]
