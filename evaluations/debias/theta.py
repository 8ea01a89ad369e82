"""The paper's outer search for theta (its section 4.2.3, Figures 2 and 3): the weights with the highest ICAT.

    python evaluations/debias/theta.py evaluations/debias/stereoset.yaml [--system DebiasRAG] [--questions 3 10 30 60]

The file is a StereoSet experiment; of its systems one is DebiasRAG's. Questions are drawn by seed from the half `tune`
of its examples, and asked under each of `--points` fixed weights; what was found is then tried on the half `test`,
beside the file's baseline and the system as it stands. Both runs are experiments of their own, in the folder --runs,
which go on where they were broken off.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fairagent.evaluate.check import CheckedExperiment, check_experiment
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.run import Results
from fairagent.evaluate.workers import threads
from fairagent.papers.debias_rag.benchmarks.items import ItemScores
from fairagent.papers.debias_rag.benchmarks.preference import OVERALL, StereoSet
from fairagent.settings import read_yaml

Weights = tuple[float, float]
SHOWN = ("LMS", "SS", "ICAT")


def fixed(system: dict[str, Any], theta: Weights) -> dict[str, Any]:
    """DebiasRAG with these weights for every query."""
    return {**system, "debias": {**system["debias"], "rate": 0, "theta": list(theta)}}


def grid(points: int) -> list[Weights]:
    """Evenly spaced weights (first, second) from (0, 1) to (1, 0), `points` (2 or more) of them."""
    shares = [number / (points - 1) for number in range(points)]
    return [(round(share, 12), round(1 - share, 12)) for share in shares]


def name_of(theta: Weights) -> str:
    """What a system with these weights is called."""
    return f"theta {theta[0]:.4g}"


@contextmanager
def checked(file: Path, described: dict[str, Any]) -> Iterator[CheckedExperiment]:
    """The experiment, whose paths are relative to `file`."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=file.parent, encoding="utf-8") as written:
        yaml.safe_dump(described, written, sort_keys=False)
        written.flush()
        yield check_experiment(Path(written.name))


def run(file: Path, described: dict[str, Any], folder: Path, workers: int) -> Results:
    """The run of the experiment, whose paths are relative to `file`."""
    with checked(file, described) as experiment, threads(workers) as many:
        build_indexes(experiment)
        return run_experiment(experiment, folder, many)


def icat(run: Results, system: str, asked: Sequence[str]) -> float:
    """The ICAT of a system over some of the run's questions."""
    assert isinstance(run.kind, StereoSet)
    scored = [
        ItemScores.read(outcome.record)
        for outcome in run.answered
        if outcome.system == system and outcome.topic in asked and outcome.record
    ]
    overall = (row for row in run.kind.numbers(scored) if (row.part, row.kind) == (OVERALL, OVERALL))
    value = next(overall).values["ICAT"]
    return float("nan") if value is None else value


def main(arguments: list[str] | None = None) -> dict[int, Weights]:
    """Search, try, and print both; number of questions -> the weights that were found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--system", default="DebiasRAG")
    parser.add_argument("--questions", type=int, nargs="+", default=[3, 10, 30, 60])
    parser.add_argument("--points", type=int, default=21)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs/debias-theta"))
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args(arguments)
    described = read_yaml(options.file)
    described.pop("expected", None)
    own = described["systems"][options.system]
    if not isinstance(own.get("debias"), dict):
        parser.error(f"the system {options.system!r} has no section `debias: {{...}}`; name DebiasRAG's with --system")
    with checked(options.file, {**described, "topics": "tune"}) as experiment:
        half = experiment.plan.topics
    asked = random.Random(options.seed).sample(half, min(max(options.questions), len(half)))
    points = grid(options.points)
    tried = {name_of(theta): fixed(own, theta) for theta in points}
    searched = run(
        options.file,
        {**described, "topics": asked, "systems": tried, "baseline": name_of(points[0])},
        options.runs / "search",
        options.workers,
    )
    found: dict[int, Weights] = {}
    for count in options.questions:
        first = asked[:count]
        # Ties go to the more even weights.
        value, _, best = max((icat(searched, name_of(one), first), -abs(one[0] - 0.5), one) for one in points)
        found[count] = best
        print(f"{len(first)} questions: theta = ({best[0]:.4g}, {best[1]:.4g}), ICAT {value:.2f}")

    baseline = described.get("baseline") or next(iter(described["systems"]))
    rows = {baseline: described["systems"][baseline], options.system: own}
    rows |= {f"optimized by {count}": fixed(own, theta) for count, theta in found.items()}
    tested = run(
        options.file,
        {**described, "topics": "test", "systems": rows, "baseline": baseline},
        options.runs / "test",
        options.workers,
    )
    values = tested.of_kind.together
    print(f"\n{'on the half test':28}" + "".join(f"{name:>9}" for name in SHOWN))
    for system in tested.systems:
        print(f"{system:28}" + "".join(f"{values.get((system, '', name), np.nan):9.2f}" for name in SHOWN))
    return found


if __name__ == "__main__":
    main()
