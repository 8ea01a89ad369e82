"""Halves of topics: fixed for ever, about even, and what an experiment is run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.errors import SettingsError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.fields import half, sampled

from . import words

TOPICS = [f"T{n:02}" for n in range(19)]


def test_a_topic_stays_in_its_half() -> None:
    # The second letters of the halves of topics 1 to 20: no release may change them.
    found = "".join(half("wikilead", str(topic))[1] for topic in range(1, 21))
    assert found == "uueueuuueeuuuuuuuuuu"
    assert half("a", "T1\ud800") in ("tune", "test")


def test_halves_are_about_even_and_not_those_of_another_collection() -> None:
    halves = {name: [half(name, str(topic)) for topic in range(1000)] for name in ("a", "b")}
    for found in halves.values():
        assert 450 < found.count("tune") < 550
    same = sum(one == other for one, other in zip(halves["a"], halves["b"], strict=True))
    assert 400 < same < 600


def topics(tmp_path: Path, line: str) -> set[str]:
    text = words.EXPERIMENT.replace("seed: 7\n", "") + line
    checked = check_experiment(words.write(tmp_path, text), environ={})
    return set(checked.plan.topics)


def test_an_experiment_on_one_half(tmp_path: Path) -> None:
    every = topics(tmp_path, "")
    tune, test = (topics(tmp_path, f"topics: {name}\n") for name in ("tune", "test"))
    assert tune | test == every
    assert not tune & test
    assert tune == {topic for topic in every if half("words", topic) == "tune"}
    assert tune
    assert test


def test_a_sample_has_its_share_of_each_class() -> None:
    classes = {f"q{n}": ("a" if n < 50 else "b" if n < 80 else "c" if n < 99 else "d") for n in range(100)}
    found = sampled(classes, 10, seed=1)
    count = {name: sum(classes[topic] == name for topic in found) for name in "abcd"}
    # 5, 3, 1.9 and .1 of the 10: the largest remainder gets what is left.
    assert count == {"a": 5, "b": 3, "c": 2, "d": 0}
    assert sampled(dict(reversed(classes.items())), 10, seed=1) == found
    assert sampled(classes, 10, seed=2) != found
    assert sampled(classes, 1000, seed=1) == frozenset(classes)
    # Of two equal remainders the first in the alphabet.
    assert sum(classes[topic] == "a" for topic in sampled({"q1": "a", "q51": "b"}, 1, seed=3)) == 1
    assert sampled({}, 3, seed=1) == frozenset()


def test_an_experiment_on_a_sample(tmp_path: Path) -> None:
    every = topics(tmp_path, "")
    few = topics(tmp_path, "topics: {sample: 3}\nseed: 4\n")
    assert len(few) == 3
    assert few < every
    assert few == sampled(dict.fromkeys(every, ""), 3, seed=4)
    assert few == topics(tmp_path, "topics: {sample: 3}\nseed: 4\n")
    assert len({frozenset(topics(tmp_path, f"topics: {{sample: 3}}\nseed: {seed}\n")) for seed in range(5)}) > 1
    with pytest.raises(SettingsError, match=r"topics\S*: Input should be greater than or equal to 1"):
        topics(tmp_path, "topics: {sample: 0}\n")
