"""Groups of documents that an index lacks: counted and named, since their shares count in a target all the same."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from fairagent.clean import logger
from fairagent.collection import Collection
from fairagent.collection.groups import Groups, JoinedGroups, TopicGroups
from fairagent.collection.table import GroupTable
from fairagent.errors import DataError
from fairagent.retrieve.anserini.opened import AnseriniIndex

NAMED = 5

log = logger(__name__)


def check_groups(collection: Collection, index: AnseriniIndex) -> None:
    """Warn of documents in the collection's tables of groups that are not in the index.

    Raises DataError where none of a table's documents is in it.
    """
    for table in tables(collection.groups):
        missing = np.sort(index.ids.absent(table.ids))
        if not len(missing):
            continue
        first = ", ".join(repr(id.decode("utf-8", "replace")) for id in missing[:NAMED].tolist())
        what = f"groups of {', '.join(table.dimensions)}"
        if len(missing) == len(table):
            own = ", ".join(repr(id.decode()) for id in index.ids.names(np.arange(min(NAMED, len(index)))).tolist())
            raise DataError(
                f"none of the {len(table):,} documents with {what} is in the index at {index.folder}: they are called "
                f"{first}, and those of the index {own}; `id` of the groups has to make the same (a template such as "
                '"{q_id}-{d_id}" does)'
            )
        named = first if len(missing) <= NAMED else f"{first} ..."
        _warn(
            f"{len(missing):,} of {len(table):,} documents with {what} are not in the index at {index.folder}, so that "
            f"no search finds them: {named}"
        )


@cache
def _warn(what: str) -> None:
    """Say it once, however many systems search the index."""
    log.warning("%s", what)


def tables(groups: Groups) -> Iterator[GroupTable]:
    """The tables whose rows are documents."""
    if isinstance(groups, JoinedGroups):
        for part in groups.parts:
            yield from tables(part)
    elif isinstance(groups, GroupTable) and not isinstance(groups, TopicGroups) and len(groups):
        yield groups
