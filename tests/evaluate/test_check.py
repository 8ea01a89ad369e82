"""Everything that is wrong with an experiment is said at once, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.errors import DataError, FairAgentError, SettingsError
from fairagent.evaluate.check import check_experiment

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
    "topics: the collection has no topic 'T99'; did you mean 'T19'?",
    "dimensions: no dimension 'eras'; there are: gender, era",
    "measures: 'AWR@20' is no measure",
    "measures: 'nDCG@10*AWRF@20': the factors of a product have the same cut-off",
    "baseline: no system 'plane'; there are: plain, plian",
    "depht: unknown key; did you mean 'depth'?",
    "engine: no engine of kind 'wordz'; did you mean 'words'?",
    "rerank: no re-ranker of kind 'fusd'; did you mean 'fused'?",
    "systems.a/b.n cannot be set: it is the largest cut-off of the measures",
    "systems.a b: its run file would be that of 'a/b'; change one of the names",
    "target: no target of kind 'populaton'; did you mean 'population'?",
    "systems.llm: the target given for 'gender' cannot be used: the shares add up to 0.9, expected 1",
    "systems.llm: prompts: there is no folder ",
    "systems.FA.rerank: group: 'f' is no group of 'gender', which has: female, male",
    "rerank.alph: unknown key of re-ranker 'fa-star-ir'; did you mean 'alpha'?",
    "prices: no system uses the model 'gpt-x'",
    "expected.plain: no measure 'nDCG@10'; there are: nDCG@20",
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


def test_faults_of_file_and_collection_together(tmp_path: Path) -> None:
    file = words.write(tmp_path, words.EXPERIMENT.replace("seed: 7", "seed: -1"))
    with (tmp_path / "qrels.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("T00 0 d01\nT00 0 d02 many\n")
    text = str(found(file))
    assert "seed: Input should be greater than or equal to 0" in text
    assert "qrels.tsv:58" in text
    assert "qrels.tsv:59" in text


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("a: [", SettingsError, "not valid YAML"),
        (words.EXPERIMENT + "topics: none", SettingsError, "expected `all`, `tune` or `test`, the number of topics"),
        (words.EXPERIMENT + "topics: [T19]", DataError, "none of 1 topics has relevant documents"),
        (words.EXPERIMENT + "per_group: 9", DataError, "none of 20 topics"),
        (
            words.EXPERIMENT.replace("{kind: words, order: random}", "[random]"),
            SettingsError,
            "expected a kind of engine",
        ),
        (words.EXPERIMENT + "settings: {target: population}", DataError, "no population for 'era'"),
    ],
)
def test_one_fault(tmp_path: Path, text: str, error: type[FairAgentError], message: str) -> None:
    found_error = found(words.write(tmp_path, text))
    assert isinstance(found_error, error)
    assert message in str(found_error)


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
