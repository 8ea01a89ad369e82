"""The forty occupations of the demo collection, each the subject of one topic."""

from __future__ import annotations

from pathlib import Path

import yaml

from fairagent.collection.demo.words.occupation import Occupation


def _read(row: dict[str, object]) -> Occupation:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Occupation(**values)  # type: ignore[arg-type]


_TEXT = Path(__file__).with_name("occupations.yaml").read_text(encoding="utf-8")
OCCUPATIONS: tuple[Occupation, ...] = tuple(map(_read, yaml.safe_load(_TEXT)))
"""In the order of the topics."""
