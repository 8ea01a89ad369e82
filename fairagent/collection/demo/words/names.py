"""Given names as they are used in many cultures, and family names that are mostly made up in their manner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True)
class Names:
    """One culture's names; where `family_first`, people are called "Qiao Ruolan" and then "Qiao"."""

    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]
    family_first: bool = False


def _names(women: str, men: str, families: str, *, family_first: bool = False) -> Names:
    return Names(tuple(women.split()), tuple(men.split()), tuple(families.split()), family_first)


_TEXT = Path(__file__).with_name("names.yaml").read_text(encoding="utf-8")
NAMES: dict[str, Names] = {culture: _names(**lists) for culture, lists in yaml.safe_load(_TEXT).items()}
"""Culture -> its names."""
