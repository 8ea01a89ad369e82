"""Classes that files name by a word: those that are shipped, and those that other packages add by entry points.

Nothing is imported before it is named, so a broken package takes down only those who use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

OWN = "fairagent."
"""What the places of fairagent's own add-ons begin with."""
EXTEND_VERSION = 1
"""The version of `fairagent.extend`, which rises with names that add-ons may need. An add-on says which it needs by an
entry point of the group `fairagent.extend` whose name is the number: `[project.entry-points."fairagent.extend"]` with
`1 = "my_package"`."""


@cache
def all_entry_points() -> dict[str, tuple[EntryPoint, ...]]:
    """Group of ours -> its entry points by their names, in whatever order an installer has written them; read once."""
    # Of one class in Python 3.11 and of another from 3.12 on; both have groups and can `select`.
    points: Any = entry_points()
    ours = [group for group in points.groups if group.startswith(OWN)]
    there = {group: filter(_is_there, points.select(group=group)) for group in ours}
    return {group: tuple(sorted(some, key=lambda one: str(one.name))) for group, some in there.items()}


def _is_there(entry: EntryPoint) -> bool:
    """Not of an add-on of ours that is no more, which an installation in place still lists."""
    file = Path(__file__).parents[2].joinpath(*entry.module.split("."))
    return not entry.module.startswith(OWN) or file.with_suffix(".py").is_file() or file.is_dir()


def plugins(group: str, own: bool = True) -> dict[str, tuple[EntryPoint, ...]]:
    """Name -> the entry points of add-ons under it; more than one is a fault once the name is used.

    Without `own` only those that other packages bring.
    """
    by_name: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in all_entry_points().get(group, ()):
        if own or not entry.value.startswith(OWN):
            by_name[entry.name] = (*by_name.get(entry.name, ()), entry)
    return by_name


def names(shipped: Mapping[str, str], group: str) -> tuple[str, ...]:
    """The names that there are: the shipped ones, then those of other packages."""
    return tuple(dict.fromkeys((*shipped, *plugins(group))))


def ours(built_in: Mapping[str, str], group: str) -> dict[str, str]:
    """Name -> `module:Class` of what fairagent brings itself: what is built in, then its add-ons."""
    added = {name: entries[0].value for name, entries in plugins(group).items()}
    return {**built_in, **{name: value for name, value in added.items() if value.startswith(OWN)}}


def load(what: str, name: str, shipped: Mapping[str, str], group: str, base: type, called: str) -> Any:
    """The class of this name, which is one of `base` (`called` so in messages); None where nobody claims the name.

    `shipped` maps names to `module:Class`. Raises ValueError where several packages claim the name, or the one that
    does is at fault; where it cannot be imported, that is the error's cause.
    """
    entries = plugins(group).get(name, ())
    claims = [f"fairagent ({shipped[name]})"] if name in shipped else []
    claims += [f"{entry.dist.name if entry.dist else 'a package'} ({entry.value})" for entry in entries]
    if not claims:
        return None
    if len(claims) > 1:
        raise ValueError(f"{what} {name!r} is claimed by {' and '.join(claims)}; uninstall all but one")
    distribution = entries[0].dist if entries else None
    declared = (
        [one.name for one in distribution.entry_points if one.group == "fairagent.extend"] if distribution else []
    )
    wanted = max((int(number) for number in declared if number.isdecimal()), default=0)
    if wanted > EXTEND_VERSION:
        raise ValueError(
            f"{what} {name!r} of {claims[0]} needs version {wanted} of fairagent.extend, and this fairagent has "
            f"{EXTEND_VERSION}; update fairagent, or install an older version of the package"
        )
    try:
        if entries:
            loaded = entries[0].load()
        else:
            module, _, attribute = shipped[name].partition(":")
            loaded = getattr(import_module(module), attribute)
    # Foreign code, which may raise anything while it is imported.
    except Exception as error:
        remedy = "install what it needs" if isinstance(error, ImportError) else "mend it"
        cause = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{what} {name!r} of {claims[0]} cannot be loaded: {cause}; {remedy}, or uninstall the package"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ValueError(f"{what} {name!r} of {claims[0]} is no {called}")
    return loaded


def load_plugins(what: str, group: str, base: type, called: str) -> dict[str, Any]:
    """Name -> the class, of all entry points of a group; raises ValueError as `load` does."""
    return {name: load(what, name, {}, group, base, called) for name in plugins(group)}
