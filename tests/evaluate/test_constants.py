"""Constants are chosen by the mean over collections, ties by the grid's order, each fold without its collection."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

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


def test_the_error_is_that_of_the_paired_differences(constants: ModuleType) -> None:
    ours, theirs = {"a": [np.array([0.1, 0.5, 0.9])]}, {"a": [np.array([0.0, 0.4, 0.8])]}
    assert constants.error(ours, theirs, ["a"]) == pytest.approx(0)
    uneven = {"a": [np.array([0.0, 0.5, 0.7])]}
    differences = np.array([0.1, 0.0, 0.2])
    assert constants.error(ours, uneven, ["a"]) == pytest.approx(differences.std(ddof=1) / np.sqrt(3))


def test_within_the_error_the_first_stays_and_beyond_it_the_best_is_taken(constants: ModuleType) -> None:
    rng = np.random.default_rng(0)
    base = rng.random(50)
    noisy = base + rng.normal(0.001, 0.1, 50)
    better = base + rng.normal(0.1, 0.05, 50)
    first, second, third = ({"a": [values]} for values in (base, noisy - noisy.mean() + base.mean() + 0.001, better))
    assert constants.first_good_enough([first, second], ["a"]) == 0
    assert constants.first_good_enough([first, second, third], ["a"]) == 2
    assert constants.first_good_enough([first, first], ["a"]) == 0


def test_a_fold_does_not_see_the_collection_left_out(constants: ModuleType) -> None:
    folds = list(dict.fromkeys(name for name, _ in constants.AIMS))
    asked: list[Any] = []

    def run(tasks: Iterable[Any]) -> list[list[float]]:
        # Only the first collection gains, by a larger weight of the vectors alone.
        asked.extend(tasks)
        return [[0.5 + (name == folds[0]) * 0.1 * config[0]] * 3 for (name, _), config in tasks]

    table = constants.Table(run, None)
    everybody, without_first = constants.descend(table, [folds, folds[1:]], passes=2)
    assert everybody == (1.0, *constants.START[1:])
    assert without_first == constants.START
    different = {json.dumps(task) for task in asked}
    assert len(different) == len(asked), "measured once"
    lines = "\n".join(constants.report(table, everybody, folds, [constants.START] * len(folds)))
    assert "weight 1.0 *" in lines
    assert f"before     {0.5 + 0.05 / len(folds):.4f}" in lines
    assert f"the choice {0.5 + 0.1 / len(folds):.4f}: weight 1.0" in lines


def test_the_table_is_read_again_from_its_file(constants: ModuleType, tmp_path: Path) -> None:
    file, calls = tmp_path / "table.json", []

    def run(tasks: Iterable[Any]) -> list[list[float]]:
        calls.append(len(list(tasks)))
        return [[0.25, 0.75]] * calls[-1]

    constants.Table(run, file).measure([constants.START])
    again = constants.Table(run, file)
    again.measure([constants.START, constants.START])
    assert calls == [len(constants.AIMS), 0]
    assert constants.objective(again[constants.START], ["allsides"]) == 0.5


def test_settings_are_those_of_the_configuration(constants: ModuleType) -> None:
    from fairagent.settings import load_settings

    for grid, name in zip(constants.GRIDS.values(), constants.GRIDS, strict=True):
        for value in grid:
            place = list(constants.GRIDS).index(name)
            config = (*constants.START[:place], value, *constants.START[place + 1 :])
            load_settings(overrides=constants.overrides(config, "gender", "light"), environ={})
