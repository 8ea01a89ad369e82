"""`fairagent config`: the settings that a call would use, and where each comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from fairagent.cli.options import AsJson, Assignments, SettingsFile, overrides, settings_file
from fairagent.settings import ENV_PREFIX, Section, Settings, from_environment, load_settings, read_yaml

Place = tuple[str, ...]
Layers = Mapping[str, Mapping[str, Any]]


def config(
    defaults: Annotated[bool, typer.Option("--defaults", help="Print all defaults with what they mean.")] = False,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Print the settings; those that were set say where.

    --set beats FAIRAGENT_... variables (FAIRAGENT_RERANKING__KIND=fused), these beat the file, the file the defaults.
    The output of --defaults is a settings file to start from.
    """
    from fairagent.report.record import to_json

    file = settings_file(settings)
    called = overrides(assignments)
    chosen = Settings() if defaults else load_settings(file, called)
    layers = {"--set": called, "environment": from_environment(), str(file): read_yaml(file) if file else {}}
    sources = {} if defaults else {path: source for path, _, _ in leaves(chosen) if (source := source_of(path, layers))}
    if as_json:
        values = _without_passwords(chosen.model_dump(mode="json"))
        typer.echo(to_json({"settings": values, "sources": {".".join(path): name for path, name in sources.items()}}))
        return
    for line in yaml_lines(chosen, sources, described=defaults):
        typer.echo(line)


def leaves(section: Section, above: Place = ()) -> Iterator[tuple[Place, Any, str]]:
    """Every single setting: its path, its value, what it means."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value, " ".join((field.description or "").split())


def source_of(path: Place, layers: Layers) -> str | None:
    """Which layer, the strongest first, sets the value at `path`; None where it is the default."""
    for name, values in layers.items():
        place: Any = values
        for part in path:
            place = place.get(part) if isinstance(place, Mapping) else None
        if place is not None:
            return f"{ENV_PREFIX}{'__'.join(path).upper()}" if name == "environment" else name
    return None


def yaml_lines(settings: Settings, sources: Mapping[Place, str], described: bool = False) -> Iterator[str]:
    """The settings as a YAML file: comments say where a value comes from, or (`described`) what it means."""
    above: Place = ()
    for path, value, description in leaves(settings):
        if path[:-1] != above:
            above = path[:-1]
            yield f"{above[-1]}:"
        margin = "  " * len(above)
        if described:
            yield f"{margin}# {description}"
        plain = list(value) if isinstance(value, tuple) else _without_passwords(value)
        flow = yaml.safe_dump(plain, default_flow_style=True, width=10_000, allow_unicode=True)
        source = f"  # {sources[path]}" if path in sources else ""
        yield f"{margin}{path[-1]}: {flow.removesuffix(chr(10)).removesuffix('...').rstrip()}{source}"


def _without_passwords(value: Any) -> Any:
    """`value` with the user part of every address in it replaced."""
    if isinstance(value, dict):
        return {key: _without_passwords(part) for key, part in value.items()}
    return re.sub(r"//[^/@\s]*@", "//***@", value) if isinstance(value, str) else value
