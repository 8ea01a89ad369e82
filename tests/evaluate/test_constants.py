"""Constants are chosen by the mean over collections, each fold without its collection."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fairagent.retrieve.fused import LIGHT_WEIGHT
from fairagent.search.rerank.exposure import FAIRNESS
from fairagent.search.rerank.similarity import GraphConfig
from fairagent.settings import Settings

FILE = Path(__file__).resolve().parents[2] / "evaluations" / "controller" / "constants.py"


@pytest.fixture(scope="module")
def constants() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("constants", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        # It asks for one thread a worker when it is loaded: not for the tests after this one.
        patched.setenv("OPENBLAS_NUM_THREADS", "1")
        patched.setenv("OMP_NUM_THREADS", "1")
        spec.loader.exec_module(module)
        yield module


def test_collections_weigh_the_same_whatever_their_aims_and_topics(constants: ModuleType) -> None:
    values = {"a": [np.full(100, 0.2)], "b": [np.full(2, 0.4), np.full(3, 0.8)]}
    assert constants.objective(values, ["a", "b"]) == pytest.approx((0.2 + 0.6) / 2)
    assert constants.objective(values, ["b"]) == pytest.approx(0.6)


def test_a_fold_does_not_see_the_collection_left_out(constants: ModuleType) -> None:
    folds = list(dict.fromkeys(name for name, _ in constants.AIMS))
    asked: list[Any] = []

    def run(tasks: Iterable[Any]) -> list[list[float]]:
        # The first collection gains by a larger weight of the vectors, the others lose a little by it.
        asked.extend(tasks)
        return [[0.5 + (0.1 if name == folds[0] else -0.01) * config[0]] * 3 for (name, _), config in tasks]

    table = constants.Table(run, None)
    table.measure(constants.combinations())
    lines = list(constants.report(table, folds))
    assert len({json.dumps(task) for task in asked}) == len(asked), "measured once"
    gain = (0.1 - 0.01 * (len(folds) - 1)) / len(folds)
    assert f"the choice   {0.5 + gain:.4f}: weight 1.0, rocchio 0.0, beta 0.3, terms 0.0, again 100" in lines
    assert f"all, mean    {0.5 + 0.75 * gain:.4f}" in lines
    left_out = {line.split()[0]: line for line in lines if line.split() and line.split()[0] in folds}
    assert left_out[folds[0]].endswith("weight 0.5, rocchio 0.0, beta 0.3, terms 0.0, again 100")
    assert left_out[folds[0]].split()[2:6] == ["0.5500", "0.6000", "0.5750", "0.6000"]
    for fold in folds[1:]:
        assert "  weight 1.0, " in left_out[fold]
    # The first fold loses .025 to a choice at random, each of the others .0025.
    assert lines[-1].endswith(f"{-(0.025 + 0.0025 * (len(folds) - 1)) / len(folds):+.4f}")


def test_the_defaults_are_what_was_chosen(constants: ModuleType) -> None:
    """As evaluations/controller/README.md prints the choice."""
    page = (FILE.parent / "README.md").read_text(encoding="utf-8")
    loop = Settings().loop
    chosen = f"weight {LIGHT_WEIGHT}, rocchio {loop.rocchio}, beta {loop.beta}, terms {loop.terms}, again {loop.again}"
    [choice] = [line for line in page.splitlines() if line.strip().startswith("the choice ")]
    assert choice.endswith(f": {chosen}")
    fixed = {name: values[0] for name, values in constants.FIXED.items()}
    assert (fixed["fairness"], fixed["graph"]) == (FAIRNESS, GraphConfig().weight)
