"""Topics that count, values by hand, and the simplest systems that stand beside an agent."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from fairagent.cli.evaluate import TEMPLATES
from fairagent.collection import Collection, load_collection
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.judging import (
    BASELINES,
    FUSED,
    SYSTEMS,
    evaluate_topic,
    judged_topics,
    standard_measures,
)
from fairagent.search.rerank.exposure import ExposureConfig
from fairagent.settings import load_settings
from fairagent.types import Ranking

FILES = {
    "collection.yaml": """
name: judged
documents: {path: docs.jsonl}
topics: {path: topics.jsonl}
qrels: {path: qrels.txt}
groups: {path: groups.tsv, dimensions: {gender: {labels: [female, male]}}}
population: {gender: {female: 0.5, male: 0.5}}
""",
    "docs.jsonl": "".join(f'{{"id": "d{n}", "text": "text"}}\n' for n in range(6)),
    "topics.jsonl": "".join(f'{{"id": "T{n}", "query": "q"}}\n' for n in range(4)),
    # T0: one woman, three men. T1: one woman. T2: nobody with a label. T3: nothing relevant.
    "qrels.txt": "T0 0 d0 1\nT0 0 d1 1\nT0 0 d2 1\nT0 0 d3 1\nT1 0 d0 1\nT2 0 d4 1\nT3 0 d0 0\n",
    "groups.tsv": "id\tgender\nd0\tfemale\nd1\tmale\nd2\tmale\nd3\tmale\nd4\t\nd5\t\n",
}
MEASURES = standard_measures(2)
NOTHING = Ranking((), np.zeros(0))


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    folder: Path = tmp_path_factory.mktemp("judged")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return load_collection(folder / "collection.yaml")


def ranked(*ids: str) -> Ranking:
    return Ranking(ids, np.arange(len(ids), 0, -1, dtype=np.float64))


def test_which_topics_count(collection: Collection) -> None:
    gender = judged_topics(collection, "gender")
    assert (gender.counted, gender.without_relevant, gender.without_label) == (("T0", "T1"), ("T3",), ("T2",))
    plain = judged_topics(collection, None)
    assert (plain.counted, plain.without_relevant, plain.without_label) == (("T0", "T1", "T2"), ("T3",), ())
    assert judged_topics(collection, "gender", per_group=1).counted == ("T0",)
    with pytest.raises(UsageError, match="no dimension 'age'"):
        judged_topics(collection, "age")


def test_one_topic_by_hand(collection: Collection) -> None:
    """Relevant: 1/4 women; with the world's 1/2 the target is (3/8, 5/8). Shown: a woman, then no label."""
    relevance, fairness, product = evaluate_topic(collection, "T0", "gender", ranked("d0", "d5"), MEASURES)
    middle = (1 + 3 / 8) / 2, (0 + 5 / 8) / 2
    divergence = (
        math.log(1 / middle[0]) + 3 / 8 * math.log(3 / 8 / middle[0]) + 5 / 8 * math.log(5 / 8 / middle[1])
    ) / 2
    assert relevance == pytest.approx(0.5)
    assert fairness == pytest.approx(1 - divergence)
    assert product == pytest.approx(0.5 * (1 - divergence))


def test_a_ranking_that_shows_no_group_has_the_lowest_value(collection: Collection) -> None:
    for ranking in (NOTHING, ranked("d4"), ranked("d4", "d5", "d0")):
        values = evaluate_topic(collection, "T0", "gender", ranking, MEASURES)
        assert values == pytest.approx((0, 1 - math.log(2), 0))
    # With equal weights at ranks 1 and 2, where the unlabeled document stands makes no difference.
    pairs = ("d5", "d1"), ("d1", "d5")
    first, second = (evaluate_topic(collection, "T0", "gender", ranked(*ids), MEASURES) for ids in pairs)
    assert first[1] == pytest.approx(second[1])


def test_a_topic_that_does_not_count_is_an_error(collection: Collection) -> None:
    for topic in ("T3", "nowhere"):
        with pytest.raises(DataError):
            evaluate_topic(collection, topic, "gender", ranked("d0"), MEASURES)


def test_the_template_begins_with_them_in_their_order() -> None:
    given = yaml.safe_load((TEMPLATES / "ranking.yaml").read_text(encoding="utf-8"))
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
