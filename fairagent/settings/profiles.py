"""Profiles: named sets of settings that are shipped, e.g. a paper's system."""

from pathlib import Path
from typing import Any

from fairagent.errors import SettingsError
from fairagent.settings.section import nearest, read_yaml

FOLDER = Path(__file__).resolve().parents[1] / "profiles"


def profiles() -> tuple[str, ...]:
    """The names of all profiles."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def read_profile(name: str) -> dict[str, Any]:
    """What a profile sets; SettingsError where there is none of this name."""
    if name not in profiles():
        raise SettingsError(f"no profile {name!r}; {nearest(name, profiles())}")
    return read_yaml(FOLDER / f"{name}.yaml")
