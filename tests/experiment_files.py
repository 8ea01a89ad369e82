"""Experiment files of evaluations/, read and checked without their collections."""

from __future__ import annotations

from pathlib import Path

from fairagent.evaluate.check import read_systems, read_values
from fairagent.evaluate.kind import Checking, ExperimentKind, Problems, Systems
from fairagent.settings import read_yaml


def read_file(file: Path) -> tuple[ExperimentKind, Systems]:
    """What the file says, and its systems; raises every problem of both."""
    problems = Problems()
    described = read_values(read_yaml(file), file, problems)
    dimensions = getattr(described, "dimensions", ())
    systems = read_systems(described, file.parent, Checking(problems, {}, True, None, None, dimensions))
    problems.check(file)
    return described, systems
