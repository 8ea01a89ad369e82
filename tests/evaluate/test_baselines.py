"""The simplest systems that stand beside an agent: what each leaves out of it, and where they are proposed."""

from __future__ import annotations

import yaml

from fairagent.cli.evaluate import template_text
from fairagent.evaluate.judging import BASELINES, FUSED, SYSTEMS
from fairagent.search.rerank.exposure import ExposureConfig
from fairagent.settings import load_settings


def test_the_template_begins_with_them_in_their_order() -> None:
    given = yaml.safe_load(template_text("ranking"))
    assert list(given["systems"].items()) == list(SYSTEMS.items())


def test_each_is_the_agent_without_something() -> None:
    agent = load_settings(environ={})
    made = {name: load_settings(overrides=values, environ={}) for name, values in BASELINES.items()}
    assert {one.engine.kind for one in made.values()} == {agent.engine.kind} == {"auto"}
    assert agent.loops
    assert not any(one.loops for one in made.values())
    assert [name for name, one in made.items() if not one.sees_groups] == [FUSED]
    assert made["no loop"].rerank == agent.rerank
    for name, unlabeled, unknown in (("exposure", 0.0, "share"), ("exposure+labeled", 0.5, "ignore")):
        rerank = made[name].rerank
        assert isinstance(rerank, ExposureConfig)
        assert (rerank.fairness, rerank.unlabeled, made[name].unknown) == (0.5, unlabeled, unknown)
