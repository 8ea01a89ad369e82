"""Medians over systems and runs."""

from __future__ import annotations

import re
from statistics import median

import numpy as np
import pytest

from evaluate import words
from fairagent.evaluate.results import results_text
from fairagent.evaluate.run import Results
from fairagent.measures.expected_exposure import DisparityInterval
from fairagent.papers.fair_rag.drawn import MEASURES, Curve, RowMeans, curves, medians
from fairagent.papers.fair_rag.draws import NORMALIZED

EXPERIMENT = """\
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
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("medians")
    return words.run(words.write(folder, EXPERIMENT), folder / "run")


def curve(of: str, slope: float | None, eu: float | None, low: float | None = None) -> Curve:
    own = None if eu is None else RowMeans(of, None, {NORMALIZED: eu})
    intervals = (DisparityInterval(0.0, 0.2, 1, 0.5, low, None),)
    return Curve(of, of, (), own, slope, slope, intervals, ())


def test_by_hand() -> None:
    """Two runs of a and one of b: slopes .1, .3, .2, one of them missing; a's own order counts once."""
    found = [curve("a", 0.1, 0.4, -0.3), curve("a", 0.3, 0.4), curve("b", 0.2, 0.8, -0.1), curve("c", 9.0, 9.0)]
    (row,) = medians({"both": ("a", "b")}, found)
    assert (row.name, row.curves) == ("both", 3)
    assert row.values == {
        "slope": 0.2,
        "AUC": 0.2,
        NORMALIZED: pytest.approx(0.6),
        "difference [0, 0.2)": pytest.approx(-0.2),
    }
    (row,) = medians({"both": ("a", "b")}, [curve("a", None, None), curve("b", 0.5, None)])
    assert (row.curves, row.values) == (2, {"slope": 0.5, "AUC": 0.5})
    assert list(medians({"nobody": ("d",)}, found)) == []


def test_every_run_is_drawn_anew_and_has_the_systems_own_order(run: Results) -> None:
    assert [name for name in run.systems if name.startswith("plain")] == [
        *("plain", "plain α=0", "plain α=2", "plain α=8"),
        *(f"plain α={alpha}, run {number}" for number in (2, 3) for alpha in (0, 2, 8)),
    ]
    found = {one.system: one for one in curves(run)}
    assert list(found) == ["plain", "plain, run 2", "plain, run 3", "fair", "fair, run 2", "fair, run 3", "oracle α=8"]
    assert len({found[name].slope for name in ("plain", "plain, run 2", "plain, run 3")}) == 3
    assert found["plain, run 3"].own == found["plain"].own
    assert found["oracle α=8"].own is None


def test_they_are_over_all_curves_of_their_systems_and_beside_what_is_expected(run: Results) -> None:
    six = [one for one in curves(run) if one.of]
    assert len(six) == 6
    values = run.of_kind.together
    for measure in MEASURES:
        told = [value for one in six if (value := one.measures.get(measure)) is not None]
        assert values.get(("both", "", measure)) == (median(told) if told else None)
    own = [one.own.means[NORMALIZED] for one in (six[0], six[3]) if one.own]
    assert values["both", "", NORMALIZED] == pytest.approx(np.mean(own))
    table = results_text(run, 200).partition("medians over systems and runs")[2].splitlines()
    head = re.split(r"\s{2,}", table[1].strip())
    line = next(line.split() for line in table if line.startswith("both"))
    assert line[1] == "6"
    assert line[head.index("slope")] == f"{values['both', '', 'slope']:.4f}"
    assert [line[head.index(f"expected {name}")] for name in ("slope", NORMALIZED)] == ["0.1250", "0.7500"]
