"""The controller as settings describe it: what is built of it, what it asks, and what that costs at most."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import Case
from fairagent.search.loop.config import ControllerConfig
from fairagent.settings import Settings

ALL = {"actions": ["neighbors", "judge", "refine", "filter"], "policy": "model", "judge": {"by": "model"}}


def read(**values: object) -> ControllerConfig:
    return ControllerConfig.model_validate({"kind": "controller", **values})


def test_the_default_is_refinement_by_feedback_and_asks_nobody() -> None:
    config = read()
    assert (config.evidence, config.actions, config.policy, config.judge) == (("feedback",), ("refine",), "rules", None)
    assert config.templates == ()
    assert list(config.worst_case(Case(Settings(), Prompts(), ["law"]))) == []


@pytest.mark.parametrize("value", ["llm", ["llm"], ("llm",)])
def test_one_kind_of_evidence_can_be_written_short(value: object) -> None:
    assert read(evidence=value).evidence == ("llm",)


@pytest.mark.parametrize(
    "values",
    [
        {"evidence": "rumor"},
        {"judge": {"by": "cross-encoder"}},
        {"passages": 2, "evidence": "llm"},
        {"weighting": "relevance"},
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        read(**values)


def test_it_says_which_templates_it_asks_with() -> None:
    config = read(evidence=["feedback", "llm", "grounded", "passage"], **ALL)
    assert config.model_evidence == ("llm", "grounded", "passage")
    assert config.templates == ("group_keywords", "group_passages", "judge_relevance", "choose_action")
    assert read(judge={"by": "model"}).templates == ()
    assert read(actions=["judge"], judge={"by": "cross-encoder", "scorer": "x"}).templates == ()


def test_the_worst_case_counts_every_call() -> None:
    """Each query: two kinds of evidence, 30 documents judged (4 of the longest fit), 60 filtered twice, 6 choices."""
    settings = Settings(filter="fair", n=20, model={"name": "tiny"})
    config = read(evidence=["llm", "passage"], **ALL)
    calls = list(config.worst_case(Case(settings, Prompts(), ["law", "sea"], ("gender", "female"))))
    assert sum(one.calls for one in calls) == 2 * (2 + 8 + 2 * 60 + 6)
    assert all(one.input_tokens > 0 and one.output_tokens > 0 for one in calls)
    assert sum(one.calls for one in read(evidence="llm").worst_case(Case(settings, Prompts(), ["law"]))) == 1
