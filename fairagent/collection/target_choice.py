"""Who chooses what a search steers by (call or settings, the collection, its population), and what judges it.

Where nobody chose, the error of `open_choice`. And the notes on targets that are estimated from the engine's own list:
they repeat what it favors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairagent.collection.collection import Collection
from fairagent.collection.records import listed
from fairagent.collection.targets import TARGET, Target, TargetKind, make_target, read_target
from fairagent.errors import DataError, UsageError
from fairagent.measures import known_part
from fairagent.settings.faults import no_such
from fairagent.types import FloatArray, Ranking
from fairagent.types.clean import in_line
from fairagent.types.common import FOLLOWS, Alarm

KINDS = ("uniform", "corpus", "estimated")
"""The kinds that every collection with labels has, and that an open choice is shown with."""
MOST_GROUPS = 9
"""Groups of all dimensions that are named; the others are counted."""
LONGEST_NAME = 32
"""Characters of a group's name in a line of 80."""


def make_targets(
    chosen: Any, dimensions: Sequence[str], collection: Collection, topic: str, ranking: Ranking
) -> tuple[Target, ...]:
    """The targets of `dimensions` for one topic id; `chosen` is what the call or the settings say, None: nothing.

    `ranking` serves the targets that estimate. Raises UsageError, with what each choice would mean here, where a
    dimension has no target; else what `make_target` does.
    """
    there = collection.groups.dimensions
    if isinstance(chosen, Mapping) and (strange := [name for name in chosen if name not in there]):
        raise UsageError(f"a target is set for what is none: {no_such('dimension', in_line(strange[0]), there)}")
    kinds = {dimension: target_choice(chosen, dimension, collection) for dimension in dimensions}
    if lacking := [dimension for dimension, kind in kinds.items() if kind is None]:
        raise UsageError(open_choice(lacking, collection, topic, ranking))
    return tuple(make_target(kind, dimension, collection, topic, ranking) for dimension, kind in kinds.items())


def target_choice(chosen: Any, dimension: str, collection: Collection) -> Any:
    """The target of one dimension, as `make_target` takes it; None where nobody chose one.

    What is `chosen`, in a call or the settings, beats the collection's own `target`, and this its population, which
    makes `trec-estimated`.
    """
    for targets in (chosen, collection.target):
        if (kind := _of(targets, dimension)) is not None:
            return kind
    return "trec-estimated" if dimension in collection.population else None


def _of(targets: Any, dimension: str) -> Any:
    return targets.get(dimension) if isinstance(targets, Mapping) else targets


def judged_by(dimension: str, collection: Collection, chosen: Any = None, judged: bool | None = None) -> TargetKind:
    """The target that rankings are judged by in one dimension; every door asks here.

    What is `chosen` (one target, or one for some of the dimensions) beats the collection's own `target`, and this
    `trec`. A track judges by its own, whatever the collection's is. An estimate from a ranking is judged by what it
    estimates. Where nothing is `judged` (None: where the collection has no judgments), the population takes the place
    of a target that is counted from judgments, or the corpus.
    """
    if (own := _of(chosen, dimension)) is not None:
        return read_target(own)
    kind = read_target(collection.judged or _of(collection.target, dimension) or TARGET)
    kind = read_target(kind.judged_by) if kind.judged_by else kind
    if kind.of_judgments and not (any(collection.qrels.values()) if judged is None else judged):
        return read_target("population" if dimension in collection.population else "corpus")
    return kind


def open_choice(
    dimensions: Sequence[str], collection: Collection, topic: str = "", ranking: Ranking | None = None
) -> str:
    """What has to be chosen: the shares of the groups under each of `KINDS`, and how to say it, in lines of 80.

    Without the `ranking` of a query nothing is estimated.
    """
    kinds = [kind for kind in KINDS if kind != "estimated" or ranking]
    follows = "the engine's own list for this query" if ranking else "each query's own list (not shown)"
    most = max(2, MOST_GROUPS // len(dimensions))
    lines = [
        f"no target is set for {in_line(listed(dimensions))}.",
        "How much of the exposure each group should get is for you to choose. Here it is",
        "",
    ]
    for dimension in dimensions:
        shares = [_shares(kind, dimension, collection, topic, ranking) for kind in kinds]
        lines += [_row(dimension, kinds), *_rows(collection.groups.labels(dimension), shares, most), ""]
    first = in_line(dimensions[0])
    label = in_line(next(iter(collection.groups.labels(dimensions[0])), "GROUP"))
    lines += [
        f"`estimated` follows {follows}, and its bias with it.",
        "Choose one of these, or shares of your own, which add up to 1:",
        "  command line         --target uniform",
        f"                       --target '{{{first}: {{{label}: 0.5, ...}}}}'",
        '  Python               target="uniform" in the call',
        "  settings             target: uniform",
        f"  collection's file    target: {{{first}: uniform}}",
    ]
    return "\n".join(lines)


def _shares(kind: str, dimension: str, *about: Any) -> FloatArray | None:
    """The shares under one kind; None where there are none, and where an estimate would have to be the corpus's."""
    try:
        made = make_target(kind, dimension, *about)
    except (DataError, UsageError):
        return None
    return made.shares if made.follows or kind != "estimated" else None


def _rows(labels: Sequence[str], columns: Sequence[FloatArray | None], most: int) -> list[str]:
    if not labels:
        return ["    (no document has a label: search without this dimension)"]
    places = list(range(len(labels)))
    if len(places) > most:
        known = next((column for column in columns[1:] if column is not None), np.zeros(len(labels)))
        places = sorted(np.argsort(-known, kind="stable")[:most].tolist())
    rows = [
        _row(f"  {labels[place]}", ["-" if column is None else f"{column[place]:.1%}" for column in columns])
        for place in places
    ]
    return rows + [f"    and {len(labels) - len(places)} more"] * (len(places) < len(labels))


def _row(name: str, cells: Sequence[str]) -> str:
    name = in_line(name)
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    return f"  {name:<{LONGEST_NAME}}" + "".join(f"{cell:>12}" for cell in cells)


LOW = 0.5
"""A group whose target is below this share of its share of all documents is named."""


def following(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """A note on the targets that follow the engine's own list."""
    names = [f"{one.dimension} ({one.source})" for one in targets if one.follows]
    if not names:
        return ()
    what = "target of {} follows" if len(names) == 1 else "targets of {} follow"
    return (f"the {what.format(' and '.join(names))} the engine's own list for this query",)


def below_corpus(targets: tuple[Target, ...], collection: Collection) -> tuple[Alarm, ...]:
    """One alarm for each dimension in which such a target is far below what the groups have of all documents."""
    alarms = []
    for target in (one for one in targets if one.follows):
        try:
            shares = known_part(collection.groups.shares(target.dimension))
        except UsageError:
            # Groups in metadata have no shares of all documents.
            continue
        rows = zip(target.labels, target.shares.tolist(), shares.tolist(), strict=True)
        low = [f"{label} {due:.1%} (of all documents {share:.1%})" for label, due, share in rows if due < LOW * share]
        if low:
            alarms.append(Alarm(FOLLOWS, f"{target.source} in {target.dimension} gives {', '.join(low)}"))
    return tuple(alarms)
