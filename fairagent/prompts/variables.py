"""What the variables of the templates are, in a sentence each, for those who edit one."""

from collections.abc import Mapping
from pathlib import Path

from fairagent.intake.yaml_text import parse_yaml

_MEANINGS: Mapping[str, Mapping[str, str]] = parse_yaml(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def meaning(template: str, variable: str) -> str:
    """What `variable` is in a shipped template.

    >>> meaning("answer", "length")
    'The largest number of words.'
    """
    return _MEANINGS.get(template, {}).get(variable) or _MEANINGS["all"][variable]
