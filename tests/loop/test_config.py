"""The widening loop as settings describe it: what is built of it, what it asks, what that costs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from fairagent.llm.prompts import Case, Prompts
from fairagent.search.loop.config import WidenConfig
from fairagent.settings import Settings

ALL = {"actions": ["neighbors", "keywords", "passages", "judge", "filter"]}


def read(**values: object) -> WidenConfig:
    return WidenConfig.model_validate({"kind": "widen", **values})


def test_the_default_widens_without_a_model() -> None:
    config = Settings().loop
    assert config == read()
    assert (config.actions, config.judge) == (("group", "documents"), None)
    assert config.templates == ()
    assert list(config.worst_case(Case(Settings(), Prompts(), ["law"]))) == []
    assert read(actions="keywords").actions == ("keywords",)


@pytest.mark.parametrize(
    "values",
    [{"actions": "rumor"}, {"actions": []}, {"judge": {"batch": 2}}, {"actions": "judge", "judge": {"batch": 0}}],
)
def test_what_makes_no_sense_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        read(**values)


def test_the_worst_case_counts_every_call() -> None:
    """Each query: keywords, a passage, 30 documents judged (4 of the longest a call), 60 filtered twice (5 a call)."""
    assert read(**ALL).templates == ("group_keywords", "group_passages", "judge_relevance")
    settings = Settings(filter="fair", n=20, model={"name": "tiny"})
    calls = list(read(**ALL).worst_case(Case(settings, Prompts(), ["law", "sea"], ("gender", "female"))))
    assert sum(one.calls for one in calls) == 2 * (1 + 1 + 8 + 2 * 12)
    assert all(one.input_tokens > 0 and one.output_tokens > 0 for one in calls)
    assert sum(one.calls for one in read(actions="passages").worst_case(Case(settings, Prompts(), ["law"]))) == 1


def test_a_model_that_chooses_takes_the_place_of_keywords_and_its_turns_are_announced() -> None:
    config = read(actions=["group", "keywords", "judge"], policy="model", turns=3, calls=2)
    settings = Settings(profile="agent", model={"name": "tiny"}, loop=config)
    assert config.templates == ("steer_search", "judge_relevance")
    assert config.actions_under(settings) == ("group", "judge")
    asked, *judged = config.worst_case(Case(settings, Prompts(), ["law"], ("gender", "female")))
    assert (asked.calls, sum(one.calls for one in judged)) == (3, 2 * 3)
    assert asked.input_tokens > 3 * (2 * 500 + 700)
