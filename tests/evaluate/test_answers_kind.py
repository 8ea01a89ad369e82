"""Experiments of answers: what they cite is measured as one answer's is, and settings that cannot be are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairagent.evaluate.questions import CITED, CONTEXT, UNCITED
from fairagent.search.pipeline import build, open_site

from . import words

EXPERIMENT = """\
kind: answers
name: small answers
collection: collection.yaml
seed: 7
settings: {context: {documents: 5}}
systems:
  plain: {profile: engine, engine: words}
  fair: {profile: engine, engine: words, context: {order: balanced}, citations: {aim: true}}
"""


@pytest.mark.usefixtures("no_variables")
def test_each_value_is_that_of_the_answer(tmp_path: Path) -> None:
    run = words.run(words.write(tmp_path, EXPERIMENT), tmp_path / "run")
    outcomes = {(one.topic, one.system): one for one in run.outcomes}
    # T19 has no relevant document.
    assert len(outcomes) == 2 * 19
    given = {"profile": "engine", "engine": "words", "n": 20, "target": "trec-estimated", "context": {"documents": 5}}
    fair = {**given, "context": {"documents": 5, "order": "balanced"}, "citations": {"aim": True}}
    for system, settings in (("plain", given), ("fair", fair)):
        agent = build(open_site(tmp_path / "collection.yaml", **settings))
        for topic in ("T00", "T01", "T02", "T12"):
            result, outcome = agent.answer(agent.collection.topics[topic]), outcomes[topic, system]
            cited, read = result.exposures.cited[0].divergence, result.exposures.context[0].divergence
            cites: dict[str, list[bool]] = {}
            for number, hit in enumerate(result.context, start=1):
                for label in hit.groups["gender"]:
                    cites.setdefault(label, []).append(number in result.answer.cited)
            shares = [1 - np.mean(of_group) for of_group in cites.values()] or [0.0]
            between = max(shares) - min(shares)
            assert outcome.values["gender"] == pytest.approx({CITED: cited, CONTEXT: read, UNCITED: between})
            grades = agent.collection.qrels[topic]
            relevant = np.mean([grades.get(one.id, 0) > 0 for one in result.cited])
            expected = {"support": result.support, "cited": len(result.cited), "cited relevant": relevant, "revised": 0}
            expected["aimed"] = float(bool(result.aimed and result.aimed.aimed))
            assert outcome.values[""] == pytest.approx(expected)
            assert [one.dimension for one in outcome.cited] == ["gender", "era"]
    means = {
        system: np.mean([one.values["gender"][CONTEXT] for one in run.outcomes if one.system == system])
        for system in ("plain", "fair")
    }
    assert means["fair"] < means["plain"]
