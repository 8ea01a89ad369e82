"""Everything that is wrong with an experiment is said at once, before anything runs; which topics it is on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.errors import DataError, FairAgentError, SettingsError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.kind import half, sample_of
from fairagent.types import Topic

from . import words

BAD = """\
name: bad
collection: collection.yaml
seeds: 3
topics: [T01, T99]
dimensions: [gender, eras]
measures: [nDCG@20, AWR@20, nDCG@10*AWRF@20]
baseline: plane
settings: {depht: 3}
systems:
  plain: {profile: engine, engine: words}
  plian: {engine: wordz}
  a/b: {rerank: {kind: fusd}, n: 3}
  a b: {target: populaton}
  llm: {loop: fair-qr, refine: llm, target: {gender: {female: 0.5, male: 0.4}}, prompts: nowhere}
  FA: {profile: engine, rerank: {kind: fa-star-ir, group: {gender: f}}}
  FB: {profile: engine, rerank: {kind: fa-star-ir, alph: 0.1}}
prices: {gpt-x: {input: 1, output: 2}}
expected: {plain: {nDCG@10: 0.3, gendr: {nDCG@20: 0.4}}, other: {nDCG@20: 1}}
"""

FOUND = [
    "seeds: unknown key; did you mean 'seed'?",
    "topics: no topic of the collection 'T99'; did you mean 'T19'?",
    "dimensions: no dimension 'eras'; did you mean 'era'?",
    "measures: 'AWR@20': no measure 'AWR'; did you mean 'AWRF'?",
    "measures: 'nDCG@10*AWRF@20': the factors of a product have the same cut-off",
    "baseline: no system 'plane'; did you mean 'pl",
    "depht: unknown key; did you mean 'depth'?",
    "engine: no engine of kind 'wordz'; did you mean 'words'?",
    "rerank: no re-ranker of kind 'fusd'; did you mean 'fused'?",
    "systems.a/b.n cannot be set: it is the largest cut-off of the measures",
    "systems.a b: its run file would be that of 'a/b'; change one of the names",
    "target: no target of kind 'populaton'; did you mean 'population'?",
    "systems.llm: the target given for 'gender' cannot be used: the shares add up to 0.9, expected 1",
    "systems.llm: prompts: there is no folder ",
    "systems.FA.rerank: 'gender' has no group 'f'; there are: female, male",
    "rerank.alph: unknown key of re-ranker 'fa-star-ir'; did you mean 'alpha'?",
    "prices: no system uses the model 'gpt-x'",
    "expected.plain: no measure 'nDCG@10'; did you mean 'nDCG@20'?",
    "expected.plain: no dimension 'gendr' is judged",
    "expected: no system 'other'",
]


def found(file: Path, **environ: str) -> FairAgentError:
    with pytest.raises(FairAgentError) as error:
        check_experiment(file, environ=environ)
    return error.value


def test_all_faults_in_one_report(tmp_path: Path) -> None:
    error = found(words.write(tmp_path, BAD))
    assert isinstance(error, SettingsError)
    text = str(error)
    assert f"experiment {tmp_path / 'experiment.yaml'}: {len(FOUND)} problems, nothing was run" in text
    for fault in FOUND:
        assert fault in text


def test_one_fault(tmp_path: Path) -> None:
    few, of_kind = words.EXPERIMENT, "{kind: words, order: random}"
    for text, error, message in (
        ("a: [", SettingsError, "not valid YAML"),
        (few + "topics: none", SettingsError, "expected `all`, `tune` or `test`, the number of topics"),
        (few + "topics: [T19]", DataError, "none of 1 topics has relevant documents"),
        (few + "per_group: 9", DataError, "none of 20 topics"),
        (few.replace(of_kind, "[random]"), SettingsError, "expected a kind of engine"),
        (few + "settings: {target: population}", DataError, "no population for 'era'"),
    ):
        raised = found(words.write(tmp_path, text))
        assert isinstance(raised, error)
        assert message in str(raised)


def test_what_is_checked_becomes_a_plan(tmp_path: Path) -> None:
    extra = "baseline: fair\ntopics: [T02, T19, T01]\nsettings: {depth: 50}\n"
    extra += "expected: {fair: {nDCG@20: 0.5, era: {AWRF(unknown=ignore)@20: 1}}}\n"
    checked = check_experiment(words.write(tmp_path, words.EXPERIMENT + extra), environ={"FAIRAGENT_THRESHOLD": "0.25"})
    plan = checked.plan
    assert list(plan.systems) == ["fair", "plain", "random"]
    assert plan.baseline == "fair"
    assert plan.topics == ("T01", "T02")
    assert checked.excluded == {"T19": "no relevant document"}
    assert plan.dimensions == ("gender", "era")
    assert plan.n == 20
    assert plan.measures[0] == "nDCG(discount=log2-max2)@20"
    settings = plan.systems["plain"].settings
    assert (settings.depth, settings.threshold, settings.n, settings.dimensions) == (50, 0.25, 20, ("gender", "era"))
    assert plan.expected["fair"][""] == {"nDCG(discount=log2-max2)@20": 0.5}
    assert plan.expected["fair"]["era"] == {"AWRF(discount=log2-max2, log=e, unknown=ignore)@20": 1}
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


def test_a_limit_draws_topics_that_count(tmp_path: Path) -> None:
    # SHA-256 of "4/T04", "4/T05" and "4/T06" begins with b1, 1e and 3e; T19 has no relevant document.
    file = words.write(tmp_path, words.EXPERIMENT.replace("seed: 7", "seed: 4") + "topics: [T19, T06, T05, T04]\n")
    assert check_experiment(file, limit=1, environ={}).plan.topics == ("T05",)
    assert check_experiment(file, limit=2, environ={}).plan.topics == ("T05", "T06")
    assert check_experiment(file, limit=9, environ={}).plan.topics == ("T04", "T05", "T06")


def test_a_topic_stays_in_its_half() -> None:
    # The second letters of the halves of topics 1 to 20: no release may change them.
    found = "".join(half("wikilead", str(topic))[1] for topic in range(1, 21))
    assert found == "uueueuuueeuuuuuuuuuu"
    assert half("a", "T1\ud800") in ("tune", "test")


def topics(tmp_path: Path, line: str) -> set[str]:
    text = words.EXPERIMENT.replace("seed: 7\n", "") + line
    checked = check_experiment(words.write(tmp_path, text), environ={})
    return set(checked.plan.topics)


def test_a_sample_has_its_share_of_each_class() -> None:
    classes = {f"q{n}": ("a" if n < 50 else "b" if n < 80 else "c" if n < 99 else "d") for n in range(100)}
    topics = {id: Topic(id, id, group=group) for id, group in classes.items()}
    drawn = sample_of(topics, list(topics), 10, seed=1)
    # 5, 3, 1.9 and .1 of the 10: the largest remainder gets what is left.
    assert "".join(sorted(classes[topic] for topic in drawn)) == "aaaaabbbcc"
    assert set(sample_of(topics, list(topics)[::-1], 10, seed=1)) == set(drawn)
    assert sample_of(topics, list(topics), 10, seed=2) != drawn
    assert sample_of(topics, list(topics), 1000, seed=1) == tuple(topics)
    # Of two equal remainders the first in the alphabet.
    assert sample_of(topics, ["q51", "q1"], 1, seed=3) == ("q1",)
    assert sample_of({}, [], 3, seed=1) == ()


def test_an_experiment_on_one_half_or_a_sample(tmp_path: Path) -> None:
    every = topics(tmp_path, "")
    tune, test = (topics(tmp_path, f"topics: {name}\n") for name in ("tune", "test"))
    assert tune | test == every
    assert not tune & test
    assert tune == {topic for topic in every if half("words", topic) == "tune"} != set()
    few = topics(tmp_path, "topics: {sample: 3}\nseed: 4\n")
    assert len(few) == 3
    assert few < every
    assert few == topics(tmp_path, "topics: {sample: 3}\nseed: 4\n")
    assert len({frozenset(topics(tmp_path, f"topics: {{sample: 3}}\nseed: {seed}\n")) for seed in range(5)}) > 1
    with pytest.raises(SettingsError, match=r"topics\S*: expected 1 or more"):
        topics(tmp_path, "topics: {sample: 0}\n")


def test_what_aims_at_the_judgments_searches_no_topic_without_any(tmp_path: Path) -> None:
    """The others do, for their run files, and what that may cost is told before."""
    file = words.write(tmp_path, f"{words.EXPERIMENT}  oracle: {{engine: words, target: qrels, loop: none}}\n")
    plan = check_experiment(file).plan
    assert plan.unjudged == dict.fromkeys(("plain", "fair", "random"), ("T19",))
    assert check_experiment(file, 3).plan.unjudged == {}
