"""The exposure of groups in the hits of any engine, of one query or of many: `exposures_of`.

It reads hits and groups as `fair_rerank` does, and leaves their order alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from fairagent.collection import Collection, Groups, GroupTable
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.labels import Labeling
from fairagent.errors import DataError, UsageError
from fairagent.search.hit_shapes import hits_in, read_hit
from fairagent.search.hits import HitGroups, are_shares, groups_alone, known_groups
from fairagent.settings import load_settings
from fairagent.types import Exposure, Ranking


def exposures_of(
    answers: Mapping[str, Any],
    groups: HitGroups,
    target: str | Mapping[str, Any] | None = None,
    n: int = 20,
    *,
    separator: str | None = None,
    labels: Labeling | None = None,
) -> dict[str, tuple[Exposure, ...]]:
    """The exposures in the first `n` hits of each query (query -> hits, best first), one for each dimension.

    Hits, `groups`, `target`, `separator` and `labels` are what `fair_rerank` takes. The order of the hits counts, not
    their scores; a group that the hits of one query have is one for all queries. Documents without a label are left
    out of the shares and of the divergence. A query without hits has no exposures: ().

    Raises what `fair_rerank` does, naming the query; UsageError where no query has a hit.

    >>> found = {"jazz": [{"id": "a", "sex": "m"}, {"id": "b", "sex": "f"}], "law": [{"id": "c", "sex": "m"}]}
    >>> for query, (exposure,) in exposures_of(found, "sex", "uniform").items():
    ...     print(query, dict(zip(exposure.labels, exposure.shares.round(2).tolist(), strict=True)))
    jazz {'f': 0.5, 'm': 0.5}
    law {'f': 0.0, 'm': 1.0}
    """
    known: dict[str, tuple[Groups, int]] = {}
    population: Mapping[str, Mapping[str, float]] = {}
    for query, answer in answers.items():
        with _of(query):
            read = [read_hit(hit, number) for number, hit in enumerate(hits_in(answer), start=1)]
            if read:
                table, population, _ = known_groups(groups, read, separator, labels, target)
                known[query] = table, len(read)
    if not known:
        raise UsageError("no query has a hit, so there is no exposure")
    tables = [table for table, _ in known.values()]
    dimensions = tables[0].dimensions
    targets = {dimensions[0]: target} if len(dimensions) == 1 and are_shares(target) else target
    given = targets if isinstance(targets, Mapping) else {}
    every: dict[str, list[str]] = {}
    for name in dimensions:
        named: Any = given[name] if are_shares(given.get(name)) else ()
        every[name] = list(dict.fromkeys([*named, *(label for table in tables for label in table.labels(name))]))
        if not every[name]:
            raise DataError(f"no hit has a label of {name!r}, so there is no exposure")
    settings = load_settings(overrides={"n": n, "target": targets, "unknown": "ignore"}, environ={})
    measured: dict[str, tuple[Exposure, ...]] = dict.fromkeys(answers, ())
    for query, (table, count) in known.items():
        with _of(query):
            if isinstance(table, GroupTable):
                for name in dimensions:  # the groups of all queries, in one order
                    table = table.relabeled(name, every[name])
            # What falls evenly leaves the engine's order as it is.
            ranking = Ranking(tuple(map(str, range(count))), np.linspace(1, 0, count, endpoint=False))
            collection = groups_alone(table, population)
            if isinstance(groups, Collection):
                collection = replace(collection, target=groups.target)
            measured[query] = ExposureMeter.make(collection, "", settings, ranking).measure(ranking)
    return measured


@contextmanager
def _of(query: str) -> Iterator[None]:
    """An error with the query whose hits it is about."""
    try:
        yield
    except (UsageError, DataError) as error:
        raise (UsageError if isinstance(error, UsageError) else DataError)(f"query {query!r}: {error}") from None
