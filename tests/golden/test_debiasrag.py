"""DebiasRAG's re-ranking, weights and word swaps against independent reference values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.debias.lexicon import load_lexicon
from fairagent.debias.signals import best, features, passing, scaled
from fairagent.debias.theta import Theta, gradient, loss, project, step, target

pytestmark = pytest.mark.shared

EXACT = {"rel": 1e-9, "abs": 1e-12}


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((shared / "golden/seed_systems/debiasrag.json").read_text(encoding="utf-8"))
    return content


def test_every_case(golden: dict[str, Any]) -> None:
    assert len(golden["cases"]) == 6
    for case in golden["cases"]:
        avoided = np.array(case["max_sim_avoid"])
        kept, emptied = passing(avoided, case["tau_avoid"], case["K"], np.zeros(len(avoided), dtype=bool))
        assert (kept.tolist(), emptied) == (case["kept_indices"], False)
        phi = features(np.array(case["sim_query"])[kept], avoided[kept])
        start = np.array(case["theta_start"])
        assert phi == pytest.approx(np.array(case["phi"]), **EXACT)
        assert scaled(phi.sum(axis=1)) == pytest.approx(np.array(case["u_hat"]), **EXACT)
        assert target(phi) == pytest.approx(np.array(case["target"]), **EXACT)
        assert loss(phi, start) == pytest.approx(case["loss_start"], **EXACT)
        assert gradient(phi, start) == pytest.approx(np.array(case["grad_start"]), **EXACT)

        taken = step(phi, start, case["eta0"])
        assert (taken.halvings, taken.rate) == (case["backtracks_halving"], case["eta_accepted"])
        assert taken.theta == pytest.approx(np.array(case["theta_next"]), **EXACT)
        assert (taken.loss_before, taken.loss_after) == pytest.approx((case["loss_start"], case["loss_next"]), **EXACT)
        plain = project(start - case["eta0"] * gradient(phi, start))
        assert plain == pytest.approx(np.array(case["theta_next_without_backtracking"]), **EXACT)
        assert loss(phi, plain) == pytest.approx(case["loss_without_backtracking"], **EXACT)

        assert phi @ taken.theta == pytest.approx(np.array(case["scores_next"]), **EXACT)
        assert kept[best(phi, taken.theta, case["K"])].tolist() == case["topk_indices_in_pool"]
        optimum = np.array(case["simplex_optimum_theta"])
        assert loss(phi, optimum) == pytest.approx(case["simplex_optimum_loss"], **EXACT)


def test_streaming(golden: dict[str, Any]) -> None:
    theta = Theta(rate=golden["streaming"][0]["eta0"])
    for query in golden["streaming"]:
        found, taken = theta.move(np.array(query["phi"]))
        assert found == pytest.approx(np.array(query["theta_before"]), **EXACT)
        assert taken.theta == pytest.approx(np.array(query["theta_after"]), **EXACT)
        assert taken.loss_before == pytest.approx(query["loss_before"], **EXACT)
        assert taken.loss_after == pytest.approx(query["loss_after"], **EXACT)
        assert taken.halvings == query["backtracks"]


@pytest.mark.parametrize(("arrow", "expected"), [("->", "swapped_one_way"), ("<->", "swapped_both_ways")])
def test_swaps(golden: dict[str, Any], tmp_path: Path, arrow: str, expected: str) -> None:
    entries = "".join(f"  - {word} {arrow} {other}\n" for word, other in golden["lexicon"].items())
    file = tmp_path / "words.yaml"
    file.write_text(f"gender:\n{entries}", encoding="utf-8")
    lexicon = load_lexicon(file)
    for case in golden["substitution"]:
        assert lexicon.swap(" ".join(case["tokens"])).split() == case[expected]


def test_projection(shared: Path) -> None:
    cases = json.loads((shared / "golden/seed_systems/simplex_projection.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 19
    for case in cases:
        assert project(np.array(case["v"])) == pytest.approx(np.array(case["projection"]), **EXACT)
