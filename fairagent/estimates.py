"""What is said of targets that are estimated from the engine's own list: they repeat what it favors."""

from __future__ import annotations

from fairagent.alarms import FOLLOWS, Alarm
from fairagent.collection import Collection, Target
from fairagent.errors import UsageError
from fairagent.measures import known_part

LOW = 0.5
"""A group whose target is below this share of its share of all documents is named."""


def following(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """A note on the targets that follow the engine's own list."""
    names = [f"{one.dimension} ({one.source})" for one in targets if one.follows]
    if not names:
        return ()
    verb = "follows" if len(names) == 1 else "follow"
    return (f"the target of {', '.join(names)} {verb} the engine's own list for this query",)


def below_corpus(targets: tuple[Target, ...], collection: Collection) -> tuple[Alarm, ...]:
    """One alarm for each dimension in which such a target is far below what the groups have of all documents."""
    found = []
    for target in (one for one in targets if one.follows):
        try:
            shares = known_part(collection.groups.shares(target.dimension))
        except UsageError:
            # Groups in metadata do not tell it.
            continue
        rows = zip(target.labels, target.shares.tolist(), shares.tolist(), strict=True)
        low = [f"{label} {due:.1%} (of all documents {share:.1%})" for label, due, share in rows if due < LOW * share]
        if low:
            found.append(Alarm(FOLLOWS, f"{target.source} in {target.dimension} gives {', '.join(low)}"))
    return tuple(found)
