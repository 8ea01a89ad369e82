"""Example values for every template, so that one which cannot be rendered is found before any call is paid for.

What the variables of the templates are, in a sentence each, for those who edit one.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fairagent.storage.yaml_text import parse_yaml

SPECIMENS: Mapping[str, Mapping[str, object]] = parse_yaml(
    Path(__file__).with_name("specimens.yaml").read_text(encoding="utf-8")
)
"""Template's id -> a value for each of its variables."""


@cache
def _meanings() -> Mapping[str, Mapping[str, str]]:
    loaded: Mapping[str, Mapping[str, str]] = parse_yaml(
        Path(__file__).with_name("variables.yaml").read_text(encoding="utf-8")
    )
    return loaded


def meaning(template: str, variable: str) -> str:
    """What `variable` is in a shipped template.

    >>> meaning("answer", "length")
    'The largest number of words.'
    """
    meanings = _meanings()
    return meanings.get(template, {}).get(variable) or meanings["all"][variable]
