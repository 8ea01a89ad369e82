"""`fairagent config`: the settings that a call would use, and where each comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
    sources = {} if defaults else {path: source for path in leaves(chosen) if (source := source_of(path, layers))}
    if as_json:
        values = _without_passwords(chosen.model_dump(mode="json"))
        typer.echo(to_json({"settings": values, "sources": {".".join(path): name for path, name in sources.items()}}))
        return
    for line in yaml_lines(chosen, sources, described=defaults):
        typer.echo(line)


def leaves(section: Section, above: Place = ()) -> Iterator[Place]:
    """The place of every single setting in the tree, e.g. ("reranking", "kind")."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name)


def source_of(place: Place, layers: Layers) -> str | None:
    """Which layer, the strongest first, sets the value at `place`; None where it is the default."""
    for name, values in layers.items():
        found: Any = values
        for part in place:
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is not None:
            return f"{ENV_PREFIX}{'__'.join(place).upper()}" if name == "environment" else name
    return None


def yaml_lines(
    section: Section, sources: Mapping[Place, str], described: bool = False, above: Place = ()
) -> Iterator[str]:
    """The settings as a YAML file: comments say where a value comes from, or (`described`) what it means."""
    margin = "  " * len(above)
    for name, field in type(section).model_fields.items():
        value, place = getattr(section, name), (*above, name)
        meaning = value.__doc__ if isinstance(value, Section) else field.description
        if described:
            yield f"{margin}# {' '.join((meaning or '').split())}"
        if isinstance(value, Section):
            yield f"{margin}{name}:"
            yield from yaml_lines(value, sources, described, place)
        else:
            yield f"{margin}{name}: {_flow(value)}{f'  # {sources[place]}' if place in sources else ''}"


def _flow(value: Any) -> str:
    """`value` as YAML in one line."""
    plain = list(value) if isinstance(value, tuple) else _without_passwords(value)
    text = yaml.safe_dump(plain, default_flow_style=True, width=100_000, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _without_passwords(value: Any) -> Any:
    """`value` with the user part of every address in it replaced."""
    if isinstance(value, dict):
        return {key: _without_passwords(part) for key, part in value.items()}
    return re.sub(r"//[^/@\s]*@", "//***@", value) if isinstance(value, str) else value
