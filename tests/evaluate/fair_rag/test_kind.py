"""Fair RAG on the words of words.py, whose documents that are judged relevant are the useful ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import yaml

from evaluate import words
from fairagent.errors import FairAgentError
from fairagent.evaluate.kind import as_kind
from fairagent.evaluate.results import results_text
from fairagent.evaluate.run import Results
from fairagent.measures.expected_exposure import DisparityInterval
from fairagent.papers.fair_rag.kind import MEASURES, Curve, RowMeans, curves, medians, stages
from fairagent.papers.fair_rag.trial import HIGHEST, NORMALIZED

EXPERIMENT = """\
kind: fair-rag
name: drawn words
collection: collection.yaml
seed: 7
fair_rag: {k: 2, samples: 40, alphas: [0, 8], pool: 10}
settings: {generate: {sentences: 1}}
systems:
  plain: {profile: engine, engine: words}
  fair: {profile: engine, engine: {kind: words, order: exposure}, rerank: exposure}
"""
ROWS = ("plain", "plain α=0", "plain α=8", "fair", "fair α=0", "fair α=8", "oracle α=8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


@pytest.fixture(scope="module")
def run(folder: Path) -> Results:
    return words.run(words.write(folder, EXPERIMENT), folder / "run")


def mean(run: Results, system: str, measure: str, dimension: str = "") -> float:
    (found,) = (
        row.mean for row in run.comparisons if (row.system, row.measure, row.dimension) == (system, measure, dimension)
    )
    return found


def test_its_own_order_is_drawn_once_and_shows_the_same_items_to_everyone(run: Results) -> None:
    for system in ("plain", "fair"):
        assert mean(run, system, "EE-D") == 1.0
        assert mean(run, system, "EAE-D") == 1.0
        # Two documents are shown, and the one sentence is from one of them.
        assert mean(run, system, "EAR") == 0.5


def test_alpha_0_is_the_fairest_and_the_oracle_the_best(run: Results) -> None:
    assert mean(run, "plain α=0", "EE-D") < mean(run, "plain α=8", "EE-D") < 1.0
    assert mean(run, "plain α=0", "EE-R") < mean(run, "plain α=8", "EE-R")
    assert mean(run, "oracle α=8", "EE-R") == 1.0
    assert mean(run, "oracle α=8", "nDCG") == 1.0
    assert mean(run, "oracle α=8", "EE-L") < 0.05


def test_one_topic_by_hand(run: Results) -> None:
    """T00 asks for judges, of whom d00, d01 and d03 are relevant and d02 is not; tailors met them as well."""
    (own,) = (outcome for outcome in run.outcomes if (outcome.topic, outcome.system) == ("T00", "plain"))
    assert [hit.id for hit in own.hits] == ["d00", "d01"]
    assert [hit.score for hit in own.hits] == [1.0, 1.0]
    assert [hit.relevant for hit in own.hits] == [True, True]
    # Precision at 2 is 1; the answer rests on one of the two useful documents that fit.
    assert own.values[""]["EE-R"] == 1.0
    assert own.values[""]["EU"] == 0.5
    assert own.values[""][HIGHEST] == 0.5
    # Both are men, and the population is half and half: 1 - AWRF is the divergence of (0, 1) from the target.
    (gender,) = (shares for shares in own.exposures if shares.dimension == "gender")
    assert gender.shares == (0.0, 1.0)
    target = np.array(gender.target)
    middle = (np.array([0.0, 1.0]) + target) / 2
    divergence = (np.log(1 / middle[1]) + (target * np.log(target / middle)).sum()) / 2
    assert own.values["gender"]["gap re-ranked"] == pytest.approx(divergence)
    assert own.values["gender"]["gap retrieved"] == own.values["gender"]["gap re-ranked"]


def test_the_normalized_utility_is_that_of_the_best_draw_of_the_topic(run: Results) -> None:
    of_topic = {outcome.system: outcome.values[""] for outcome in run.outcomes if outcome.topic == "T03"}
    highest = max(values[HIGHEST] for values in of_topic.values())
    for values in of_topic.values():
        assert values["normalized EU"] == pytest.approx(values["EU"] / highest)


def test_the_same_retrievers_draws_are_the_authors_reading(folder: Path, tmp_path: Path) -> None:
    text = EXPERIMENT.replace("pool: 10", "pool: 10, highest: same-retriever, oracle: null")
    text = text.replace("seed: 7", "seed: 7\ntopics: [T00, T05]")
    run = words.run(words.write(tmp_path, text), tmp_path / "run")
    for topic in ("T00", "T05"):
        of_topic = {outcome.system: outcome.values[""] for outcome in run.outcomes if outcome.topic == topic}
        drawn = max(of_topic[name][HIGHEST] for name in ("fair α=0", "fair α=8"))
        assert of_topic["fair α=8"]["normalized EU"] == pytest.approx(of_topic["fair α=8"]["EU"] / drawn)


def test_curves_and_stages(run: Results, folder: Path) -> None:
    plain, fair, oracle = curves(run)
    assert [curve.system for curve in (plain, fair, oracle)] == ["plain", "fair", "oracle α=8"]
    assert [row.alpha for row in plain.drawn] == [0.0, 8.0]
    assert plain.own is not None
    assert plain.slope == pytest.approx(
        (plain.drawn[1].means["EE-R"] - plain.drawn[0].means["EE-R"])
        / (plain.drawn[1].means["EE-D"] - plain.drawn[0].means["EE-D"])
    )
    assert sum(interval.count for interval in plain.intervals) == 2 * 19
    ((before, after, p),) = plain.steps
    assert (before, after) == (0.0, 8.0)
    assert p is not None
    assert p < 1e-3
    assert oracle.own is None
    gender = {row: gaps for (row, dimension), gaps in stages(run).items() if dimension == "gender"}
    assert gender.keys() == set(ROWS)
    # What the engine finds first is the same for all; drawing uniformly closes its gap.
    assert len({retrieved for retrieved, *_ in gender.values()}) == 1
    assert gender["plain"][1] == gender["plain"][0]
    assert gender["plain α=0"][1] < gender["plain α=0"][0] - 0.01
    text = (folder / "run" / "results.txt").read_text()
    assert "gender: the exposure gap, stage by stage" in text
    assert "slope of EE-R on EE-D,plain" in (folder / "run" / "fair_rag.csv").read_text()


def test_a_run_refuses_other_draws_and_goes_on_with_more_of_them(run: Results, folder: Path) -> None:
    (folder / "other.yaml").write_text(EXPERIMENT.replace("samples: 40", "samples: 41"))
    with pytest.raises(FairAgentError, match=r"fair_rag\.samples: was 40, is 41"):
        words.run(folder / "other.yaml", folder / "run")
    # More alphas are more rows, and change none.
    (folder / "other.yaml").write_text(EXPERIMENT.replace("alphas: [0, 8]", "alphas: [0, 2, 8]"))
    more = words.run(folder / "other.yaml", folder / "run")
    assert mean(more, "plain α=8", "EE-D") == mean(run, "plain α=8", "EE-D")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("alphas: [0, 8]", "alphas: [0, -1]"), "alphas[1]: expected 0 or more (got -1)"),
        (("alphas: [0, 8]", "alphas: [1, 1]"), "a value stands there twice"),
        (("pool: 10", "pool: 1"), "1 candidates are fewer than k = 2"),
        (("seed: 7", "measures: [nDCG@20]"), "measures: no key of kind 'fair-rag'; it is one of kind ranking"),
        (("{sentences: 1}", "{sentences: 1}, attribute: {kind: none}"), "attribute is none"),
        (("seed: 7", "baseline: plain α=3"), "no system 'plain α=3'"),
    ],
)
def test_bad_input(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert message in words.refused(words.write(tmp_path, EXPERIMENT.replace(*change)))


def test_a_topic_that_finds_nothing_exposes_nothing(tmp_path: Path) -> None:
    file = words.write(tmp_path, EXPERIMENT.replace("seed: 7", "seed: 7\ntopics: [T00, T01]"))
    topics = (tmp_path / "topics.jsonl").read_text().splitlines()
    topics[0] = json.dumps({"id": "T00", "title": "zebra"})
    (tmp_path / "topics.jsonl").write_text("\n".join(topics) + "\n")
    run = words.run(file, tmp_path / "run")
    (own,) = (one for one in run.outcomes if (one.system, one.topic) == ("plain α=8", "T00"))
    assert own.failed is None
    assert own.values[""] == {
        # Two blanks are shown in every draw.
        **{"nDCG": 0.0, "EE-R": 0.0, "EE-D": 1.0, "EE-L": 1.0, "EU": 0.0, HIGHEST: 0.0},
        # No answer of any row says a word about zebras: where the best is 0, so is everything, and all are as good.
        **{"EAR": 0.0, "EAE-D": 0.0, "normalized EU": 1.0},
    }
    assert own.values["gender"]["gap re-ranked"] == pytest.approx(np.log(2))


ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "fairagent" / "papers" / "fair_rag" / "README.md").read_text(encoding="utf-8")


def test_the_experiment_is_one(tmp_path: Path) -> None:
    described = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)[0])
    assert as_kind(described).kind == "fair-rag"
    # On a small collection: with its engine, and few draws.
    described["fair_rag"] |= {"samples": 3, "k": 2}
    described["systems"] = {"words": {"profile": "engine", "engine": "words"}}
    run = words.run(words.write(tmp_path, yaml.safe_dump(described)), tmp_path / "run", limit=2)
    assert run.systems == ("words", *(f"words α={alpha}" for alpha in (0, 1, 2, 4, 8)), "oracle α=8")


SEVERAL_RUNS = """\
kind: fair-rag
name: medians
collection: collection.yaml
seed: 7
topics: 12
fair_rag: {k: 2, samples: 10, alphas: [0, 2, 8], pool: 10, runs: 3, queries: 5, medians: {both: [plain, fair]}}
settings: {generate: {sentences: 1}}
systems:
  plain: {profile: engine, engine: words}
  fair: {profile: engine, engine: {kind: words, order: exposure}, rerank: exposure}
expected: {both: {slope: 0.125, "difference [0, 0.2)": -0.5, normalized EU: 0.75}}
"""


@pytest.fixture(scope="module")
def several_runs(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("medians")
    return words.run(words.write(folder, SEVERAL_RUNS), folder / "run")


def curve(of: str, slope: float | None, eu: float | None, low: float | None = None) -> Curve:
    own = None if eu is None else RowMeans(of, None, {NORMALIZED: eu})
    intervals = (DisparityInterval(0.0, 0.2, 1, 0.5, low, None),)
    return Curve(of, of, (), own, slope, slope, intervals, ())


def test_by_hand() -> None:
    """Two runs of a and one of b: slopes .1, .3, .2, one of them missing; a's own order counts once."""
    found = [curve("a", 0.1, 0.4, -0.3), curve("a", 0.3, 0.4), curve("b", 0.2, 0.8, -0.1), curve("c", 9.0, 9.0)]
    count, values = medians({"both": ("a", "b")}, found)["both"]
    assert (count, values) == (
        3,
        {"slope": 0.2, "AUC": 0.2, NORMALIZED: pytest.approx(0.6), "difference [0, 0.2)": pytest.approx(-0.2)},
    )
    few = [curve("a", None, None), curve("b", 0.5, None)]
    assert medians({"both": ("a", "b")}, few) == {"both": (2, {"slope": 0.5, "AUC": 0.5})}
    assert medians({"nobody": ("d",)}, found) == {}


def test_every_run_is_drawn_anew_and_has_the_systems_own_order(several_runs: Results) -> None:
    assert [name for name in several_runs.systems if name.startswith("plain")] == [
        *("plain", "plain α=0", "plain α=2", "plain α=8"),
        *(f"plain α={alpha}, run {number}" for number in (2, 3) for alpha in (0, 2, 8)),
    ]
    found = {one.system: one for one in curves(several_runs)}
    assert list(found) == ["plain", "plain, run 2", "plain, run 3", "fair", "fair, run 2", "fair, run 3", "oracle α=8"]
    assert len({found[name].slope for name in ("plain", "plain, run 2", "plain, run 3")}) == 3
    assert found["plain, run 3"].own == found["plain"].own
    assert found["oracle α=8"].own is None


def test_they_are_over_all_curves_of_their_systems_and_beside_what_is_expected(several_runs: Results) -> None:
    six = [one for one in curves(several_runs) if one.of]
    assert len(six) == 6
    values = several_runs.of_kind.together
    for measure in MEASURES:
        told = [value for one in six if (value := one.measures.get(measure)) is not None]
        assert values.get(("both", "", measure)) == (median(told) if told else None)
    own = [one.own.means[NORMALIZED] for one in (six[0], six[3]) if one.own]
    assert values["both", "", NORMALIZED] == pytest.approx(np.mean(own))
    table = results_text(several_runs, 200).partition("medians over systems and runs")[2].splitlines()
    head = re.split(r"\s{2,}", table[1].strip())
    line = next(line.split() for line in table if line.startswith("both"))
    assert line[1] == "6"
    assert line[head.index("slope")] == f"{values['both', '', 'slope']:.4f}"
    assert [line[head.index(f"expected {name}")] for name in ("slope", NORMALIZED)] == ["0.1250", "0.7500"]
