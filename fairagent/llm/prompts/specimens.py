"""Example values of every template, so that one which cannot be rendered is noticed before any call."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fairagent.storage.yaml_text import parse_yaml


@cache
def _load(name: str) -> Mapping[str, Mapping[str, Any]]:
    values: Mapping[str, Mapping[str, Any]] = parse_yaml(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return values


SPECIMENS: Mapping[str, Mapping[str, object]] = _load("specimens.yaml")
"""Template's id -> a value for each of its variables."""


def meaning(template: str, variable: str) -> str:
    """What `variable` is in a shipped template.

    >>> meaning("answer", "length")
    'The largest number of words.'
    """
    meanings = _load("variables.yaml")
    return str(meanings.get(template, {}).get(variable) or meanings["all"][variable])
