"""A fair order for the hits of any engine, without an index, `fair_rerank`, and their exposure, `exposures_of`.

    from fairagent import fair_rerank

    hits, before, after, notes = fair_rerank(engine.search("jazz"), "gender", {"female": 0.5, "male": 0.5}, n=10)

No engine's package is imported. A hit is a mapping, an object with attributes (LlamaIndex, LangChain, Haystack, OpenAI,
Qdrant), or a pair of a hit, or its id, and a score; a whole answer of an engine is read as the list in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection, Groups, GroupTable
from fairagent.collection.collection import NoDocuments
from fairagent.collection.config import DimensionColumn
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.known import compare_ids, known_documents
from fairagent.collection.labels import Labeling, label_notes, labeled, labels_of, meant
from fairagent.collection.load import aligned
from fairagent.collection.records import Faults, listed, shown
from fairagent.collection.rows import Bounds, bounded, error_text, plain
from fairagent.collection.table import Labels, TableBuffer
from fairagent.collection.targets import GivenTarget, following, share_faults
from fairagent.errors import DataError, FairAgentError, UsageError
from fairagent.measures import parse_discount
from fairagent.search.rerank.base import pool_of
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.settings import SearchOptions, Unknown, load_settings
from fairagent.types import Dial, Exposure, FloatArray, Hit, Query, Ranking, exposure_rows
from fairagent.types.clean import label_text
from fairagent.types.common import counted

IDS = ("ref_doc_id", "id", "_id", "node_id", "docid", "doc_id", "docno", "file_id")
"""Where hits keep the id of their document; the first that is set counts."""
SCORES = ("score", "_score", "distance")
WITHIN = ("_source", "fields", "entity", "payload", "attributes", "meta", "metadata", "groups")
"""Where they keep further fields."""
LISTS = ("body", "hits", "points", "data", "results", "documents")
"""Where a whole answer keeps its hits: Elasticsearch, Qdrant, OpenAI (a search, a call of file_search), Haystack."""
COLUMNS = {"ids": "id", "distances": "distance", "metadatas": "metadata", "documents": "document", "uris": "uri"}
"""Chroma's answers are columns: the name of each, and what it is in a row."""
Shares = Mapping[str, Mapping[str, float]]
"""Dimension -> label -> share."""


def groups_alone(groups: Collection | Groups, population: Shares) -> Collection:
    """A collection of these groups, with the world's shares as their target; a collection is returned as it is."""
    if isinstance(groups, Collection):
        return groups
    target = {dimension: GivenTarget(shares=dict(shares)) for dimension, shares in population.items()} or None
    return Collection("", {}, {}, groups, population, (), NoDocuments("of groups alone"), target=target)


class GroupsByPlace:
    """Groups of the documents `ids` of a list by their places there (`place`), and by their own ids."""

    def __init__(self, groups: Groups, ids: Sequence[str]) -> None:
        self._groups, self._ids = groups, ids
        self.dimensions, self.oracle, self.predicted = groups.dimensions, groups.oracle, groups.predicted
        self.labels, self.shares, self.missing = groups.labels, groups.shares, groups.missing

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        return self._groups.memberships(dimension, self._documents(ids), topic)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        return self._groups.of_type(dimension, self._documents(ids), topic)

    def _documents(self, ids: Sequence[str]) -> list[str]:
        return [self._ids[int(id[1:])] if id[:1] == "\0" else id for id in ids]


def place(number: int) -> str:
    """The name of a place in a list, from 0; no document's id begins like it."""
    return f"\0{number}"


HitGroups = str | Sequence[str] | Mapping[str, str | Mapping[Any, Any]] | Collection | Groups
"""Where the groups of hits are: see `fair_rerank`."""


class FairHits(NamedTuple):
    """Hits in a fair order, with the exposure of the first `n` of the engine's order and of this one.

    `notes` are about labels that look like spellings of one, and about targets that the engine's own order gave.

    >>> groups = {"sex": {"d1": "m", "d2": "m", "d3": "f"}}
    >>> print(fair_rerank(["d1", "d2", "d3"], groups, {"f": 0.5, "m": 0.5}, n=2, fairness=2))
    2 hits; sex: f 0% -> 50% (target 50%), m 100% -> 50% (target 50%), no label (of all) 0% -> 0% (target 0%)
    """

    hits: list[Any]
    before: tuple[Exposure, ...]
    after: tuple[Exposure, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """What was done, in one line: the exposure of each group before and after, and its target."""
        parts = [counted(len(self.hits), "hit")]
        for before, after in zip(self.before, self.after, strict=True):
            rows = [
                f"{now.label} {was.share:.0%} -> {now.share:.0%}"
                + ("" if now.target is None else f" (target {now.target:.0%})")
                for was, now in zip(exposure_rows(before), exposure_rows(after), strict=True)
            ]
            parts.append(f"{before.dimension}: {', '.join(rows)}")
        return "; ".join([*parts, *self.notes])


def fair_rerank(
    hits: Any,
    groups: HitGroups,
    target: str | Mapping[str, Any] | None = None,
    n: int = 10,
    *,
    fairness: float | None = None,
    keep: float | None = None,
    gap: float | None = None,
    unknown: Unknown = "share",
    separator: str | None = None,
    labels: Labeling | None = None,
) -> FairHits:
    """The `n` hits that are relevant and together give every group about its target share of the exposure.

    Pass many more hits than `n`, the best first: nothing else can be chosen. They are a list, or a whole answer of
    Elasticsearch, Qdrant, Chroma, OpenAI or Haystack; an answer in columns (Chroma) becomes a dict for each hit.
    `groups` says where their groups are:

    | `groups` | the groups are |
    |---|---|
    | `"gender"`, `["gender", "payload.meta.region"]` | in the hits, in fields of these names, or at these paths |
    | `{"gender": "author_gender"}` | in the hits: dimension -> field |
    | `{"gender": {"d1": "female"}}` | apart from them: dimension -> id -> label |
    | a `Collection`, a `GroupTable` | known by the hits' ids |

    A label is a text, a list of them (equal shares) or a mapping to weights, `separator` what stands between several in
    one text; nothing is unknown. `labels` says how values become labels, as in `Collection.from_records`: "join", or
    dimension -> "join" or value -> label; what the target names stays as it is spelled there. `target` is a target by
    name, the same for all dimensions, or maps dimensions to targets or to the shares of their labels; where there is
    one dimension, the shares alone will do. Without one a collection's own is taken, and else a UsageError shows what
    each choice would mean.

    Scores count where all hits have one and they fall along the order; else (they are missing, or are distances, which
    rise, or the hits are those of an agent, which are re-ranked) the order stands for them. Of the orders between the
    most relevant and the fairest `fairness`, `keep` or `gap` chooses one, as `SearchOptions` says: fairness 0 keeps the
    engine's order, 10 comes as near to the target as the hits allow. Hits without a label are a group of their own:
    `unknown` is what they get, share (what they have in the engine's order), ignore, or a number (0 to 1).

    Returns the same objects in their new order, and the exposures before and after. Raises UsageError for what is no
    hit, for a field that no hit has, naming those there are, and for scores in no order; DataError, naming the hit, for
    what is no label, where no hit has a label, and for targets that cannot be used.
    """
    options = SearchOptions.of({"n": n, "fairness": fairness, "keep": keep, "gap": gap})
    dial, hits = options.dial or Dial(), hits_in(hits)
    if not hits:
        return FairHits([], (), ())
    read = [read_hit(hit, number) for number, hit in enumerate(hits, start=1)]
    collection, targets, notes = _grouped(groups, read, separator, labels, target)
    scores, doubts = _scores(read, ranked=all(isinstance(hit, Hit) for hit in hits))
    ranking = Ranking(tuple(map(place, range(len(read)))), scores)
    settings = load_settings(overrides={"n": n, "target": targets, "unknown": unknown}, environ={})
    meter = ExposureMeter.make(collection, "", settings, ranking)
    reranker = ExposureReranker(dial, 0.0, parse_discount(settings.discount), settings.divergence)
    fair = reranker.rerank(pool_of(Query(""), ranking, meter, n))
    notes = [*notes, *doubts, *following(meter.targets)]
    return FairHits([hits[int(id[1:])] for id in fair.ids], meter.measure(ranking), meter.measure(fair), tuple(notes))


def exposures_of(
    answers: Mapping[str, Any],
    groups: HitGroups,
    target: str | Mapping[str, Any] | None = None,
    n: int = 20,
    *,
    separator: str | None = None,
    labels: Labeling | None = None,
    named: Mapping[str, Iterable[object]] | None = None,
) -> tuple[dict[str, tuple[Exposure, ...]], tuple[str, ...]]:
    """The exposures in the first `n` hits of each query (query -> hits, best first), one for each dimension; and notes.

    Hits, `groups`, `target`, `separator` and `labels` are what `fair_rerank` takes. The order of the hits counts, not
    their scores; a group that the hits of one query have is one for all queries, and so is one that is `named`
    (dimension -> groups) or has a share in the target. Where groups or targets depend on the topic, a query is the id
    of one. Documents without a label are left out of the shares and of the divergence. A query without hits has no
    exposures: ().

    Raises what `fair_rerank` does, naming the query where it is about one; UsageError where no query has a hit.

    >>> found = {"jazz": [{"id": "a", "sex": "m"}, {"id": "b", "sex": "f"}], "law": [{"id": "c", "sex": "m"}]}
    >>> for query, (exposure,) in exposures_of(found, "sex", "uniform")[0].items():
    ...     print(query, dict(zip(exposure.labels, exposure.shares.round(2).tolist(), strict=True)))
    jazz {'f': 0.5, 'm': 0.5}
    law {'f': 0.0, 'm': 1.0}
    """
    read, spans = list[HitShape](), dict[str, range]()
    for query, answer in answers.items():
        with _of(query):
            some = [read_hit(hit, number, f"query {query!r}, ") for number, hit in enumerate(hits_in(answer), start=1)]
        spans[query] = range(len(read), len(read) + len(some))
        read += some
    if not read:
        raise UsageError("no query has a hit, so there is no exposure")
    collection, targets, notes = _grouped(groups, read, separator, labels, target, named or {})
    settings = load_settings(overrides={"n": n, "target": targets, "unknown": "ignore"}, environ={})
    measured: dict[str, tuple[Exposure, ...]] = dict.fromkeys(answers, ())
    for query, places in spans.items():
        if not places:
            continue
        with _of(query):
            # Scores that fall evenly keep the engine's order.
            ranking = Ranking(tuple(map(place, places)), np.linspace(1, 0, len(places), endpoint=False))
            topic = query if query in collection.topics else ""
            measured[query] = ExposureMeter.make(collection, topic, settings, ranking).measure(ranking)
    return measured, tuple(notes)


@contextmanager
def _of(query: str) -> Iterator[None]:
    """An error with the query whose hits it is about."""
    try:
        yield
    except (UsageError, DataError) as error:
        raise (UsageError if isinstance(error, UsageError) else DataError)(f"query {query!r}: {error}") from None


def _scores(read: Sequence[HitShape], ranked: bool) -> tuple[FloatArray, list[str]]:
    """The hits' scores (n,), or some that fall evenly from 1 where they do not say which hit is better; and a note."""
    scores = np.array([np.nan if hit.score is None else hit.score for hit in read])
    none, steps = np.flatnonzero(~np.isfinite(scores)), np.diff(scores)
    if none.size or (steps >= 0).all() or (ranked and (steps > 0).any()):
        # No note where no hit has a score at all: then nobody expects scores to count.
        some = any(hit.score is not None for hit in read)
        first = f"{len(none)} of {counted(len(read), 'hit')} (the first is hit {none[0] + 1})" if none.size else ""
        notes = [f"no score, or none that is a number, in {first}: the order of all stands for their scores"]
        return np.linspace(1, 0, len(read), endpoint=False), notes if some and none.size else []
    if (steps > 0).any():
        rank = int(np.flatnonzero(steps > 0)[0]) + 2
        raise UsageError(
            f"the hits are in no order: hit {rank} has the score {scores[rank - 1]:g} and the one before it "
            f"{scores[rank - 2]:g}; pass them the best first"
        )
    return scores, []


def fields_of(groups: Any, target: Any = None) -> dict[str, str | Mapping[Any, Any]]:
    """Dimension -> the field of the hits with its groups, or id -> label; {} where a collection or a table knows them.

    UsageError for anything else, and for field -> dimension, which the `target` tells from dimension -> field.
    """
    if isinstance(groups, Collection) or hasattr(groups, "memberships"):
        return {}
    if isinstance(groups, str):
        groups = [groups]
    if isinstance(groups, Sequence) and all(isinstance(name, str) for name in groups):
        groups = dict(zip(groups, groups, strict=True))
    if not isinstance(groups, Mapping) or not all(isinstance(where, str | Mapping) for where in groups.values()):
        raise UsageError(
            f'groups={shown(groups)}: expected the name of a field or several, {_FORM}, {{"gender": {{id: label}}}}, a '
            "Collection or a GroupTable"
        )
    if not groups:
        raise UsageError("no groups are named, so there is nothing to be fair to")
    dimensions = () if are_shares(target) or not isinstance(target, Mapping) else target
    fields = [where for where in groups.values() if isinstance(where, str)]
    if turned := [name for name in dimensions if name not in groups and name in fields]:
        raise UsageError(f"groups={shown(groups)}: {turned[0]!r} is the dimension and comes first, as in {_FORM}")
    return dict(groups)


_FORM = '{"gender": "author_gender"} (dimension -> field)'


def _grouped(
    groups: HitGroups,
    read: Sequence[HitShape],
    separator: str | None,
    labels: Labeling | None,
    target: str | Mapping[str, Any] | None,
    named: Mapping[str, Iterable[object]] = {},
) -> tuple[Collection, Any, list[str]]:
    """The groups of the hits by their places, their target by dimension and label, and notes on both."""
    columns = fields_of(groups, target)
    if not columns:
        assert not isinstance(groups, str | Sequence | Mapping)
        if labels is not None:
            raise UsageError("labels: these groups have their labels already; it is for values of hits")
        whole = groups_alone(groups, {})
        # Its ids are taken from the labels, since reading its documents may take long.
        known = known_documents(replace(whole, source=NoDocuments(whole.name)))
        by_place = GroupsByPlace(whole.groups, _ids(read))
        unknown = compare_ids("hits", _ids(read), known) if known else ""
        _expect_labels(by_place, len(read), *by_place.dimensions)
        notes = [unknown] if unknown else []
        return replace(whole, groups=by_place), _by_dimension(target, by_place.dimensions), notes
    values = {dimension: _values(dimension, where, read) for dimension, where in columns.items()}
    faults, buffer = Faults(), TableBuffer(dict.fromkeys(columns))
    targets = _by_dimension(target, list(columns))
    given: dict[str, Mapping[Any, float]] = {}
    for name, one in targets.items() if isinstance(targets, Mapping) else ():
        if isinstance(shares := getattr(one, "shares", one), Mapping) and "kind" not in shares:
            if wrong := share_faults(shares):
                raise DataError(f"the target given for {name!r} cannot be used: {'; '.join(wrong)}")
            given[name] = shares
    spelled = {name: tuple(map(label_text, shares)) for name, shares in given.items()}
    plainly = dict.fromkeys(columns, DimensionColumn(separator=separator))
    how, notes = labeled(plainly, labels, lambda name: map(plain, values[name]), spelled)
    for row, hit in enumerate(read):
        of_hit: dict[str, Labels] = {}
        name = ""
        try:
            for name, cells in values.items():
                of_hit[name] = labels_of(plain(cells[row]), how[name])
            name = ""
            buffer.add(place(row), of_hit, hit.number)
        except ValueError as error:
            faults.add(Path(f"{hit.of}hit"), hit.number, f"{name}: {error}" if name else str(error))
    faults.check("the groups of the hits")
    table = GroupTable(*buffer.finish())
    notes += label_notes(table, 'labels="join" joins them')
    _expect_labels(table, len(read), *(name for name, where in columns.items() if isinstance(where, Mapping)))
    table, shares = aligned(table, given, notes, "hit")
    chosen = {**targets, **shares} if isinstance(targets, Mapping) else dict.fromkeys(columns, targets)
    for name, names in _by_dimension(named, list(columns)).items():
        if name in columns and name not in given:
            more = dict.fromkeys([*table.labels(name), *meant(names, table.labels(name)).values()])
            table = table.relabeled(name, list(more))
    for name, there in ((name, table.labels(name)) for name in columns):
        if not there:
            raise DataError(f"no hit has a label of {name!r}: there is nothing to be fair to")
        if len(there) < 2 and "uniform" in (chosen.get(name), getattr(chosen.get(name), "kind", "")):
            raise UsageError(
                f"target 'uniform' in {name!r}: the hits are of one group, {there[0]!r}, and nothing names another; "
                f"write the shares, which name the groups: target={{{name!r}: {{{there[0]!r}: 0.5, 'another': 0.5}}}}"
            )
    return groups_alone(table, {}), chosen if isinstance(targets, Mapping) else targets, notes


def _expect_labels(groups: Groups, hits: int, *dimensions: str) -> None:
    """Raise DataError for a dimension of which no hit has a label."""
    for name in dimensions:
        if not groups.memberships(name, list(map(place, range(hits))))[:, 1:].any():
            raise DataError(f"no hit has a label of {name!r}: there is nothing to be fair to")


def _by_dimension(target: Any, dimensions: Sequence[str]) -> Any:
    """The target; of one dimension, the shares alone will do."""
    return {dimensions[0]: target} if len(dimensions) == 1 and are_shares(target) else target


def _values(dimension: str, where: str | Mapping[Any, Any], read: Sequence[HitShape]) -> list[Any]:
    """The value for each hit's group: its own field, or what belongs to its id."""
    if isinstance(where, Mapping):
        by_id = {str(id): label for id, label in where.items()}
        return [by_id.get(id) for id in _ids(read)]
    values = [at_path(hit.fields, where) for hit in read]
    if not any(where in hit.fields for hit in read) and all(value is None for value in values):
        names: dict[str, None] = {}
        for hit in read:
            for name, one in hit.fields.items():
                inner = (
                    [f"{name}.{key}" for key in one if key not in hit.fields] if isinstance(one, Mapping) else [name]
                )
                names |= dict.fromkeys(inner)
        turned = f"; groups are {_FORM}" if dimension != where and dimension in names else ""
        raise UsageError(
            f"no hit has a field {where!r} for dimension {dimension!r}; there are: {listed(names) or 'none'} (looked "
            f"for in the hits and in their {', '.join(WITHIN)}){turned}"
        )
    return values


def _ids(read: Sequence[HitShape]) -> list[str]:
    for hit in read:
        if hit.id is None:
            raise UsageError(
                f"{hit.of}hit {hit.number} has no id, by which its groups are known; ids are in {', '.join(IDS)}"
            )
    return [str(hit.id) for hit in read]


def are_shares(target: Any) -> bool:
    """Whether a target is the shares of labels, and not targets by dimension."""
    return isinstance(target, Mapping) and bool(target) and all(isinstance(one, Real) for one in target.values())


@dataclass(frozen=True, slots=True)
class HitShape:
    """What a hit says: the id of its document (None: no such field), its score and its fields.

    The score is nan where its field is empty, None where it has no such field. `of` stands before the hit's number.
    """

    number: int
    id: str | None
    score: float | None
    fields: Mapping[str, Any]
    of: str = ""


def at_path(within: Any, path: str) -> Any:
    """The value of a field, None where there is none; "a.b" is also b of the a, and of each a of a list.

    >>> at_path({"a": {"b": 1}}, "a.b"), at_path({"a.b": 2}, "a.b"), at_path({"a": [{"b": 1}, {"b": 2}]}, "a.b")
    (1, 2, [1, 2])
    """
    if isinstance(within, list):
        return [one for one in (at_path(one, path) for one in within) if one is not None] or None
    values = within if isinstance(within, Mapping) else attributes(within)
    if path in values:
        return values[path]
    first, dot, rest = path.partition(".")
    return at_path(values[first], rest) if dot and first in values else None


def attributes(one: Any) -> dict[str, Any]:
    """What an object holds, by name; of its properties those that have one of the names above."""
    held = [field.name for field in fields(one)] if is_dataclass(one) else _held(one)
    names = dict.fromkeys([*IDS, *SCORES, *WITHIN, *(name for name in held if not name.startswith("_"))])
    return {name: getattr(one, name) for name in names if hasattr(one, name)}


def _held(one: Any) -> list[str]:
    """The names in the `__dict__` of an object, and in the `__slots__` of its classes."""
    named = (vars(kind).get("__slots__", ()) for kind in type(one).__mro__[:-1])
    slots = [name for slots in named for name in ([slots] if isinstance(slots, str) else slots)]
    return [*getattr(one, "__dict__", ()), *slots]


def hits_in(answer: Any) -> list[Any]:
    """The hits of an engine's answer, or a list of them, as they are; columns (Chroma's) become a dict for each hit.

    Raises UsageError for what holds no hits, naming where they were looked for, and for answers to several queries.
    """
    if isinstance(answer, Mapping) and "ids" in answer and answer.keys() & {"metadatas", "distances", "documents"}:
        given = {one: _column(answer[name]) for name, one in COLUMNS.items() if answer.get(name) is not None}
        if any(isinstance(id, list) for id in given["id"]):
            given = {name: _of_one_query(lists) for name, lists in given.items()}
        if len({len(column) for column in given.values()}) > 1:
            lengths = ", ".join(f"{name} {len(column)}" for name, column in given.items())
            raise UsageError(f"the columns of these hits differ in length ({lengths})")
        return [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
    if isinstance(answer, Iterator):
        return [one for _, one in bounded(answer, "hit", Bounds())]
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes | memoryview):
        # Milvus has a list of hits for each query; any other list of two is a hit with its score.
        nested = bool(answer) and all(
            isinstance(one, list) and all(isinstance(hit, Mapping) for hit in one) for one in answer
        )
        return _of_one_query([list(one) for one in answer]) if nested else list(answer)
    held = answer if isinstance(answer, Mapping) else {name: getattr(answer, name, None) for name in LISTS}
    inner = next((held[name] for name in LISTS if isinstance(held.get(name), list | tuple | Mapping)), None)
    if inner is None:
        raise UsageError(
            f"{shown(answer)} ({type(answer).__name__}) is no list of hits, and holds none in {', '.join(LISTS)}; pass "
            "the list, the best hit first"
        )
    return hits_in(inner)


def _of_one_query(lists: list[Any]) -> list[Any]:
    if len(lists) != 1:
        raise UsageError(f"these are the hits of {len(lists)} queries; pass those of one at a time")
    return _column(lists[0])


def _column(values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise UsageError(f"a column of these hits is {shown(values)}, expected a list") from None


def read_hit(hit: Any, number: int, of: str = "") -> HitShape:
    """The hit with this number; UsageError for what is no hit, DataError for one that raises when it is looked at."""
    try:
        return replace(_read(hit, number), of=of)
    except FairAgentError:
        raise
    except Exception as error:
        raise DataError(f"hit {number} cannot be read: {error_text(error)}") from None


def _read(hit: Any, number: int) -> HitShape:
    if isinstance(hit, str | Integral):
        return HitShape(number, str(hit), None, {})
    if isinstance(hit, tuple | list) and not hasattr(hit, "_asdict"):
        if len(hit) != 2:
            raise UsageError(f"hit {number} is {shown(hit)}; expected a pair: a hit or its id, and a score")
        return replace(_read(hit[0], number), score=_number(hit[1], number))
    if isinstance(hit, Mapping):
        held: Mapping[str, Any] = hit
    elif hasattr(hit, "_asdict"):
        held = hit._asdict()
    else:
        # A node of LlamaIndex has a score around it.
        held = {**attributes(hit), **attributes(getattr(hit, "node", None))}
    if not held:
        raise UsageError(
            f"hit {number} is a {type(hit).__name__} ({shown(hit)}), which has no id, score or metadata; looked for "
            f"were {listed([*IDS, *SCORES, *WITHIN])}"
        )
    within: dict[str, Any] = {}
    for one in (held[name] for name in WITHIN if held.get(name) is not None):
        # The metadata of a hit are a mapping, or an object with attributes; texts and lists say nothing.
        if isinstance(one, Mapping):
            within |= one
        elif not isinstance(one, str | bytes | Integral | Sequence) and _held(one):
            within |= attributes(one)
    ids = (id for name in IDS if held.get(name) is not None and (id := str(plain(held[name]))))
    scores = (_number(held[name], number) for name in SCORES if held.get(name) is not None)
    none = math.nan if any(name in held for name in SCORES) else None
    return HitShape(number, next(ids, None), next(scores, none), {**within, **held})


def _number(score: Any, number: int) -> float:
    try:
        return float(score)
    except Exception:
        raise UsageError(f"the score of hit {number} is {shown(score)}, expected a number") from None
