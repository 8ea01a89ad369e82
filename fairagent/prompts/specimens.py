"""Example values for every template, so that one which cannot be rendered is found before any call is paid for."""

from collections.abc import Mapping
from pathlib import Path

from fairagent.intake.yaml_text import parse_yaml

SPECIMENS: Mapping[str, Mapping[str, object]] = parse_yaml(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
"""Template's id -> a value for each of its variables."""
