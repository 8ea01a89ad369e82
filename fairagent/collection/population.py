"""World shares: the share of the world's population that each group of a dimension has."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairagent.collection.faults import Faults, shown
from fairagent.errors import SettingsError
from fairagent.intake.json_text import parse_json
from fairagent.intake.malformed import Malformed
from fairagent.intake.text import file_text
from fairagent.settings import read_yaml
from fairagent.types import UNKNOWN

Population = dict[str, dict[str, float]]

LARGEST = 1 << 20
"""Bytes of a file."""
TOLERANCE = 1e-6
"""How far from 1 shares may add up."""


def read_population(path: Path, faults: Faults) -> Population:
    """Dimension -> label -> share, from a JSON or YAML file; what is wrong is added to `faults`."""
    try:
        values = parse_json(file_text(path, LARGEST)) if path.suffix == ".json" else read_yaml(path)
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except Malformed as error:
        faults.add(path, error.line, f"not JSON ({error})")
    except OSError as error:
        faults.add(path, None, f"cannot be read ({error})")
    except SettingsError as error:
        faults.add(path, None, str(error).removeprefix(f"{path}: "))
    else:
        return checked_population(values, path, faults)
    return {}


def checked_population(values: Any, path: Path, faults: Faults) -> Population:
    """The same from values that stand in `path` already."""
    if not isinstance(values, Mapping):
        faults.add(path, None, f"expected dimension -> label -> share, found {shown(values)}")
        return {}
    population: Population = {}
    for dimension, shares in values.items():
        messages = share_faults(shares)
        for message in messages:
            faults.add(path, None, f"population of {dimension!r}: {message}")
        if not messages:
            population[str(dimension)] = {str(label): float(share) for label, share in shares.items()}
    return population


def share_faults(shares: Any) -> list[str]:
    """What keeps `shares` from being a distribution over known labels; empty where nothing does.

    >>> share_faults({"female": 0.5, "male": 0.4})
    ['the shares add up to 0.9, expected 1']
    """
    if not isinstance(shares, Mapping) or not shares:
        return [f"expected label -> share, found {shown(shares)}"]
    faults = [
        f"the share of {label!r} is {shown(share)}, expected a number from 0 to 1"
        for label, share in shares.items()
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1
    ]
    if UNKNOWN in shares:
        faults.append(f"{UNKNOWN} is no group; shares are over known labels only")
    total = math.fsum(shares.values()) if not faults else 1.0
    if abs(total - 1.0) > TOLERANCE:
        faults.append(f"the shares add up to {total:.6g}, expected 1")
    return faults
