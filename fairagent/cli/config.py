"""`fairagent config`: the settings that a call would use, and where each comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import yaml

from fairagent.cli.options import AsJson, SettingsOptions, echo, option, overrides, print_json, settings_file, spread
from fairagent.settings import Part, Section, from_environment, lay, load_settings, read_yaml
from fairagent.settings.parts import SLOTS, described
from fairagent.settings.section import meanings
from fairagent.settings.tree import ENV_PREFIX, default_profile, profiles, read_profile

Place = tuple[str, ...]
ENVIRONMENT = "environment"


@spread
def config(
    under: SettingsOptions,
    defaults: Annotated[bool, option("--defaults", "Print all defaults with what they mean.")] = False,
    profile: Annotated[
        str | None, option("--profile", f"A profile to start from: {', '.join(profiles())}.", "NAME")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the settings; those that were set say where.

    --set beats FAIRAGENT_... variables (FAIRAGENT_RERANK__KIND=fused), these beat the file, the file the defaults; a
    profile lies right below whatever names it. The output of --defaults is a settings file to start from, with
    --profile that of the profile.
    """
    file = None if defaults else settings_file(under.settings)
    called = overrides(() if defaults else under.assignments, profile=profile)
    environ: Mapping[str, str] = {} if defaults else os.environ
    chosen = load_settings(file, called, environ)
    layers: list[tuple[str, Mapping[str, Any]]] = [
        (str(file), read_yaml(file) if file else {}), (ENVIRONMENT, from_environment(environ)), ("--set", called)
    ]  # fmt: skip
    if default_profile([values for _, values in layers]) == "agent":
        layers.insert(0, ("a model is named", {"profile": "agent"}))
    # The layers are laid anew, one by one: what a part of another kind took the place of counts for nothing.
    sources: dict[Place, str] = {}
    merged: dict[str, Any] = {}
    places, of_profile = list(leaves(chosen)), ""
    for name, values in [] if defaults else layers:
        steps = [(name, {key: value for key, value in values.items() if key != "profile"})]
        if values.get("profile"):
            of_profile = _variable(("profile",)) if name == ENVIRONMENT else name
            steps.insert(0, (f"profile {values['profile']}", read_profile(values["profile"])))
        for source, step in steps:
            merged = lay(merged, step)
            # A place that is gone meanwhile was another part's.
            sources = {place: source for place, source in sources.items() if _sets(merged, place)}
            new = [place for place in places if _sets(step, place)]
            sources |= {place: _variable(place) if source == ENVIRONMENT else source for place in new}
    if of_profile:
        sources["profile",] = "--profile" if profile is not None else of_profile
    sources = {place: sources[place] for place in places if place in sources}
    if as_json:
        named = {".".join(place): name for place, name in sources.items()}
        print_json({"settings": _plain(chosen), "sources": named})
    else:
        echo("\n".join(_yaml_lines(chosen, sources, explained=defaults)))


def leaves(section: Section, above: Place = ()) -> Iterator[Place]:
    """The place of every single setting in the tree, e.g. ("rerank", "kind")."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name)


def _sets(values: Mapping[str, Any], place: Place) -> bool:
    """Whether there is a value at `place`, which may stand in a part's short form."""
    inner: Any = {key: described(key, value) if key in SLOTS else value for key, value in values.items()}
    for part in place:
        if isinstance(inner, str):
            inner = {"kind": inner}
        if not isinstance(inner, Mapping) or part not in inner:
            return False
        inner = inner[part]
    return True


def _variable(place: Place) -> str:
    """The variable that sets what is at `place`: its own, or that of a section around it."""
    names = [ENV_PREFIX + "__".join(place[:length]).upper() for length in range(len(place), 0, -1)]
    given = {name.upper() for name in os.environ}
    return next((name for name in names if name in given), names[0])


def _yaml_lines(section: Section, sources: Mapping[Place, str], explained: bool, above: Place = ()) -> Iterator[str]:
    """The settings as a YAML file: comments say where a value comes from, or (`explained`) what it means."""
    margin = "  " * len(above)
    for name in type(section).model_fields:
        value, place = getattr(section, name), (*above, name)
        kind = isinstance(section, Part) and name == "kind"
        meaning = section.__doc__ if kind else meanings(type(section)).get(name) or value.__doc__
        if explained:
            yield f"{margin}# {' '.join((meaning or name).split())}"
        if isinstance(value, Section):
            yield f"{margin}{name}:"
            yield from _yaml_lines(value, sources, explained, place)
        else:
            yield f"{margin}{name}: {flow(_plain(value))}{f'  # {sources[place]}' if place in sources else ''}"


def _plain(value: Any) -> Any:
    """`value` in lists and mappings alone, with the user part of every address in it replaced."""
    if isinstance(value, Section):
        return _plain(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return re.sub(r"//[^/@\s]*@", "//***@", value) if isinstance(value, str) else value


def flow(value: Any) -> str:
    """A value as YAML in one line.

    >>> flow({"BM25": {"profile": "engine"}, "agent": {}}), flow(""), flow(1.5)
    ('{BM25: {profile: engine}, agent: {}}', "''", '1.5')
    """
    text = yaml.safe_dump(value, default_flow_style=True, width=100_000, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
