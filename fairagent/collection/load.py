"""Loading a collection from its settings file, or from rows; all errors of all files are reported together."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fairagent.collection.collection import (
    Collection,
    Documents,
    DocumentsInMemory,
    NoDocuments,
    Origin,
    Source,
    State,
    blank_note,
    document_of,
    states_of,
)
from fairagent.collection.config import (
    CONTENT,
    ROW,
    CollectionFile,
    DimensionColumn,
    DocumentsFile,
    GroupsFile,
    RecordsFile,
    check_splitter,
    template_fields,
)
from fairagent.collection.labels import (
    LabelErrors,
    Labeling,
    LabelReader,
    label_notes,
    labeled,
    meant,
    read_groups,
    read_label_errors,
)
from fairagent.collection.qrels import Qrels, read_qrels, read_topics
from fairagent.collection.records import (
    ROW_WARNING,
    Faults,
    Record,
    check_form,
    checked_id,
    field_reader,
    form_of,
    is_dataset,
    listed,
    records,
    shown,
    splits_of,
    with_ids,
)
from fairagent.collection.rows import Bounds, rows_of, weight
from fairagent.collection.table import Groups, GroupTable, Intersection, JoinedGroups, Made, cached_table
from fairagent.collection.targets import GivenTarget, TargetKind, by_label, read_population
from fairagent.errors import DataError, FairAgentError
from fairagent.settings import read_yaml, validate
from fairagent.settings.faults import no_such
from fairagent.storage.digests import file_digest
from fairagent.storage.files import file_name
from fairagent.types.clean import logger

FEW = 30
"""A group of an intersection with fewer documents is noted as small."""
WORTH_CACHING = 1 << 18
"""Bytes of a groups file that take longer to read than a cached table to load."""
LOOKED_AT = 100
"""Rows in which the columns of a file are looked for."""
GroupColumns = str | Sequence[str] | Mapping[str, str | Mapping[str, Any]]
"""The column of a dimension that is named like it, several, or dimension -> its column or its `DimensionColumn`."""

log = logger(__name__)


def load_collection(path: Path | str, index: Path | str = "") -> Collection:
    """Load the collection that the settings file `path` describes (fairagent.collection.config says how).

    Large tables of groups are read once and cached beside its `index` (`<index>-groups-...`); where none is named,
    beside indexes/NAME if that is there. SettingsError for a wrong settings file; otherwise one DataError with all
    errors of all files; BackendUnavailable where a package that reads or cuts the documents is missing. The documents
    are not read, only looked for.
    """
    for left in reversed(range(5)):
        states: dict[Path, State] = {}
        try:
            loaded = _load(Path(path), index, states)
            break
        except DataError:
            if not left or not Origin(Path(path), states).changed():
                raise
    assert loaded.origin
    made = loaded.source, loaded.groups, loaded.chunks
    return replace(loaded, origin=replace(loaded.origin, made=made))


def _load(path: Path, index: Path | str, states: dict[Path, State]) -> Collection:
    """The collection as it is now; `states` gets those of its files before any is read."""
    settings = validate(CollectionFile, read_yaml(path), str(path))
    if settings.chunks:
        check_splitter()
    root = path.parent / settings.root if settings.root else path.parent
    what, faults, documents = f"collection {settings.name!r} ({path})", Faults(), settings.documents
    if settings.track:
        # Imported here: only the track needs its formats.
        from fairagent.collection.trec_fair import load_track

        of = settings.track
        about = of.year, of.split, of.dimensions, of.query, root / of.keywords if of.keywords else None
        track = load_track(root / of.folder, *about, settings.name)
        track = replace(track, chunks=settings.chunks, origin=Origin(path, states))
        track = replace(track, target=track.target if settings.target is None else settings.target)
        assert isinstance(track.groups, GroupTable)
        return _finished(track, [track.groups], settings.intersections, path)
    paths: tuple[Path, ...] = ()
    for name in documents.path if documents else ():
        paths += _files(root, name, settings, path, faults)
    for file in paths:
        check_form(file, form_of(file, documents.format if documents else None))
    # Before any of them is read: what changes meanwhile is noticed.
    columns = {name: column for block in settings.blocks for name, column in block.dimensions.items()}
    error_files = {name: root / column.errors for name, column in columns.items() if column.errors is not None}
    states.update(states_of([*paths, *(root / block.path for block in settings.groups), *error_files.values()]))
    source: Source = NoDocuments(settings.name)
    if documents:
        source = Documents(settings.name, paths, documents, settings.share)
        if documents.seen and not faults:
            for file in paths:
                _check_header(file, settings, documents, faults)
            faults.check(what)
    population = read_population(settings.population, path, faults, root)
    topics = read_topics(root / settings.topics.path, settings.topics, faults) if settings.topics else {}
    qrels = Qrels({})
    if settings.qrels:
        qrels = read_qrels(root / settings.qrels.path, settings.qrels, topics, faults)
    elif topics:
        qrels.notes.append("there are no judgments: exposure can be measured, relevance cannot")
    tables = [*_tables(root, settings, index, faults), *([qrels.groups] if qrels.groups else [])]
    errors: dict[str, LabelErrors] = {}
    for dimension, file in error_files.items():
        try:
            errors[dimension] = read_label_errors(file)
            if errors[dimension].dimension != dimension:
                faults.add(file, None, f"the errors of {errors[dimension].dimension!r}, not of {dimension!r}")
        except FairAgentError as error:
            faults.add(file, None, str(error).removeprefix(f"{file}: "))
    faults.check(what)
    notes, parts = qrels.notes, list[GroupTable]()
    for table in tables:
        part, shares = aligned(table, population, notes)
        parts, population = [*parts, part], {**population, **shares}
    # Without documents the groups may come with the engine.
    named = {*(name for part in parts for name in part.dimensions), *settings.intersections}
    if documents and (idle := sorted(population.keys() - named)):
        notes.append(f"the population has shares for {listed(idle)}, which is no dimension of the groups")
    collection = Collection(
        name=settings.name,
        topics=topics,
        qrels=qrels.grades,
        groups=parts[0] if len(parts) == 1 else JoinedGroups(parts),
        population=population,
        notes=tuple(notes),
        source=source,
        chunks=settings.chunks,
        target=settings.target,
        origin=Origin(path, states, paths),
        label_errors=errors,
    )
    return _finished(collection, parts, settings.intersections, path)


def _files(root: Path, name: str, settings: CollectionFile, path: Path, faults: Faults) -> tuple[Path, ...]:
    """The files that `name` stands for: itself, or in order those that match it as a pattern."""
    plain = root / name
    if plain.is_file() or is_dataset(plain):
        return (plain,)
    if splits := splits_of(plain):
        message = f"documents.path: {plain} is a dataset in several splits; name one of them: {listed(splits)}"
        faults.add(path, None, message)
    elif plain.is_dir():
        faults.add(path, None, f"documents.path: {plain} is a folder; name the files, e.g. {name}/*.jsonl.gz")
    elif matches := sorted(glob.glob(str(plain), recursive=True)):
        return tuple(map(Path, matches))
    else:
        seen = settings.documents.seen if settings.documents else None
        beside = [file for file in sorted(plain.parent.glob(f"*{plain.suffix}"))[:LOOKED_AT] if file.is_file()]
        same = [file.name for file in beside if seen and seen.sha256 and file_digest(file) == seen.sha256]
        hint = f"; {same[0]} has the content that `fairagent init` saw: name it as the `path`" if same else ""
        faults.add(plain, None, f"no such file (documents){hint}")
    return ()


def _check_header(path: Path, settings: CollectionFile, fields: DocumentsFile, faults: Faults) -> None:
    """Add a fault where a file that `fairagent init` saw lacks a column that is used, instead of one for each row."""
    plain = RecordsFile(format=fields.format, columns=fields.columns, encoding=fields.encoding)
    there = {name for _, record in islice(records(path, plain, Faults()), LOOKED_AT) for name in record}
    used = [*(template_fields(fields.id) or [fields.id]), *fields.text]
    # An object in JSON may lack what others have, but for its id and its text.
    if form_of(path, fields.format) != "jsonl":
        used += [fields.title] if fields.title else []
        blocks = [block for block in settings.groups if block.path in fields.path]
        used += [column.column or name for block in blocks for name, column in block.dimensions.items()]
    missing = [name for name in dict.fromkeys(used) if name not in (ROW, CONTENT, *there)]
    if there and missing:
        seen = listed(fields.seen.columns) if fields.seen else ""
        faults.add(
            path,
            1,
            f"no column {listed(missing)}; there are: {listed(sorted(there))}, and when `fairagent init` looked: "
            f"{seen}; name them anew, or run it again",
        )


def _tables(root: Path, settings: CollectionFile, index: Path | str, faults: Faults) -> Iterator[GroupTable]:
    """One table a groups block, cached where it is large; those with errors, which are in `faults`, are left out."""
    place = Path(index or Path("indexes") / settings.name)
    # The current folder has its name only in full; the root has none, and nothing is kept beside it.
    place = place if place.name else place.absolute()
    is_kept = place.name and (index or place.is_dir())
    for block in settings.groups:
        path = root / block.path
        if settings.documents and block.path in settings.documents.path and not path.exists():
            continue  # that it is gone is said there

        def read(path: Path = path, block: GroupsFile = block) -> Made:
            if (table := read_groups(path, block, faults)) is None:
                raise DataError(f"{path}: wrong")
            return table, ()

        def origin(path: Path = path, block: GroupsFile = block) -> dict[str, object]:
            about = block.model_dump(mode="json", exclude={"path"})
            return {"sha256": file_digest(path), "name": path.name, "block": about}

        # All that is wrong is reported together.
        with suppress(DataError):
            if is_kept and path.is_file() and path.stat().st_size >= WORTH_CACHING:
                # One of each file: an older one has the labels of documents that were deleted since.
                name = f"{place.name}-groups-{file_name(path.name)[:100]}"
                yield cached_table(place.with_name(name), origin, read, latest=1)[0]
            else:
                yield read()[0]


def _finished(
    collection: Collection, tables: Sequence[GroupTable], wanted: Mapping[str, tuple[str, ...]], path: Path
) -> Collection:
    """The collection with the intersections of the tables' dimensions; DataError where its file's targets are wrong."""
    what, faults = f"collection {collection.name!r} ({path})", Faults()
    of = {dimension: table for table in tables for dimension in table.dimensions}
    for name, parts in wanted.items():
        unknown = [part for part in parts if part not in of]
        if name in of:
            message = "this is the name of a dimension; choose another"
        elif len(set(parts)) < max(2, len(parts)):
            message = f"expected two or more different dimensions, got {listed(parts) or 'none'}"
        elif unknown:
            hint = " (an intersection is none: name its parts)" if any(part in wanted for part in unknown) else ""
            message = f"{no_such('dimension', listed(unknown), of)}{hint}"
        else:
            continue
        faults.add(path, None, f"the intersection {name!r}: {message}")
    faults.check(what)
    notes, population, topics = list(collection.notes), dict(collection.population), dict(collection.topics)
    made = [Intersection(name, {part: of[part] for part in parts}) for name, parts in wanted.items()]
    for one in made:
        labels = one.labels(one.name)
        if len(set(labels)) < len(labels):
            faults.add(path, None, f"the intersection {one.name!r}: two combinations of labels have the same name")
        if strange := [label for label in population.get(one.name, ()) if label not in labels]:
            message = f"population of {one.name!r}: {listed(strange)} is no combination; there are: {listed(labels)}"
            faults.add(path, None, message)
        if one.name not in population and (shares := one.product(population)):
            population[one.name] = shares
        # Nobody should read too much into small groups.
        things, world = "judged documents" if one.oracle else "documents", population.get(one.name, {})
        counts = dict(zip(labels, one.counts.tolist(), strict=True))
        none = [label for label, count in counts.items() if not count and world.get(label)]
        few = [f"{label} ({count})" for label, count in counts.items() if count < FEW and label not in none]
        if few:
            small = f"fewer than {FEW} {things} are in these groups of {one.name!r}"
            notes.append(f"{small}, so read little into them: {listed(few)}")
        if none:
            absent = f"no document is in these groups of {one.name!r}, though they have a world share"
            notes.append(f"{absent}: {listed(none)}")
        for id, topic in topics.items():
            if topic.dimensions is not None and set(one.parts) <= set(topic.dimensions):
                topics[id] = replace(topic, dimensions=(*topic.dimensions, one.name))
    groups = JoinedGroups([*tables, *made]) if made else collection.groups
    for dimension, target in (collection.target if isinstance(collection.target, Mapping) else {}).items():
        messages: Sequence[str] = ()
        if dimension in groups.dimensions:
            messages = target.faults(groups.labels(dimension)) if isinstance(target, TargetKind) else ()
        elif not isinstance(collection.source, NoDocuments):
            # Without documents the groups may come with the engine.
            messages = [no_such("dimension", dimension, groups.dimensions)]
        for message in messages:
            faults.add(path, None, f"target of {dimension!r}: {message}")
    faults.check(what)
    return replace(collection, topics=topics, groups=groups, population=population, notes=tuple(notes))


def aligned(
    table: GroupTable, population: Mapping[str, Mapping[Any, float]], notes: list[str], what: str = "document"
) -> tuple[GroupTable, dict[str, dict[str, float]]]:
    """The table with the groups that only the shares name, and the shares of its dimensions by the table's labels.

    A name is compared with the labels as spellings are (F, Female and female are one). What is joined so, and what one
    side lacks, is added to `notes`. Raises DataError where none of the names of a dimension is one of its labels.
    """
    shares: dict[str, dict[str, float]] = {}
    for dimension in table.dimensions:
        present, given = table.labels(dimension), population.get(dimension, {})
        if not present:
            notes.append(f"no {what} has a label of dimension {dimension!r}")
        if dimension in table.predicted:
            notes.append(f"{dimension!r} is predicted: its memberships are a classifier's probabilities")
        if not given:
            continue
        meaning = meant(given, present)
        world = shares[dimension] = by_label(given, meaning)
        if present and world.keys().isdisjoint(present):
            raise DataError(
                f"none of the groups of {dimension!r} that have a share, {listed(list(world))}, is a label of any "
                f"{what}: these have {listed(present)}"
            )
        if joined := [f"{name} = {label}" for name, label in meaning.items() if name != label]:
            notes.append(f"names of groups of {dimension!r} that are taken for spellings of labels: {listed(joined)}")
        if absent := [label for label in world if label not in present]:
            notes.append(f"no {what} is in these groups of {dimension!r}: {listed(absent)}")
            labels = [*present, *absent]
            table = table.relabeled(dimension, sorted(labels) if list(present) == sorted(present) else labels)
        if without := [label for label in present if label not in world]:
            notes.append(f"no share is given for these groups of {dimension!r}, so 0: {listed(without)}")
    return table, shares


def collection_of(
    source: Any,
    text: str | Sequence[str],
    id: str | None,
    groups: GroupColumns,
    title: str | None,
    separator: str | None,
    population: Mapping[str, Mapping[str, float]],
    name: str,
    labels: Labeling | None = None,
    bounds: Bounds | None = None,
) -> Collection:
    """See `Collection.from_records`."""
    names = [groups] if isinstance(groups, str) else groups
    dimensions: dict[str, DimensionColumn] = {}
    for dimension, column in (names if isinstance(names, Mapping) else {name: name for name in names}).items():
        about = {"column": column} if isinstance(column, str) else column
        dimensions[dimension] = validate(DimensionColumn, {"separator": separator, **about}, f"groups.{dimension}")
    faults, place = Faults(), Path(source) if isinstance(source, str | Path) else Path(name)
    bounds = bounds or Bounds()
    is_file = isinstance(source, str | Path)
    rows: Iterator[tuple[int, Record]] = records(place, RecordsFile(), faults) if is_file else rows_of(source, bounds)
    if id is None:
        first = next(rows, None)
        rows = chain([first] if first else [], rows)
        id = "id" if first and "id" in first[1] else CONTENT
    rows = with_ids(rows, id)
    fields = validate(DocumentsFile, {"path": str(place), "id": id, "text": text, "title": title}, "from_records")
    shares = read_population(population, place, faults)
    doubts: list[str] = []
    if labels is not None:
        all_rows, columns = list(rows), {name: column.column or name for name, column in dimensions.items()}
        rows = iter(all_rows)
        dimensions, doubts = labeled(
            dimensions, labels, lambda name: (row.get(columns[name]) for _, row in all_rows), shares
        )
    read_id, reader = field_reader(id), LabelReader(dimensions)
    buffer, documents, numbers, titled, characters = reader.buffer(), [], dict[str, int](), title is None, 0
    for number, record in rows:
        titled = titled or title in record
        try:
            document = document_of(checked_id(read_id(record), "document"), record, fields)
            buffer.add(document.id, reader.read(record, number), number, reader.read_types(record))
        except ValueError as error:
            faults.add(place, number, str(error))
            continue
        if numbers.setdefault(document.id, number) != number:
            message = f"the document id {shown(document.id)} is that of {numbers[document.id]} already"
            faults.add(place, number, message)
        documents.append(document)
        characters += len(document.text) + len(document.title) + weight(document.extra)
        if characters > bounds.text:
            message = f"up to here the rows have more than {bounds.text:,} characters (bound `text`)"
            faults.add(place, number, f"{message}; index a file of them (`fairagent index`), or give other `bounds`")
            break
    if not documents and not faults:
        faults.add(place, None, "there are no rows")
    elif not titled:
        faults.add(place, None, f"no row has the title field {title!r}")
    reader.check(place, faults)
    faults.check(f"collection {name!r}")
    notes: list[str] = []
    table: Groups = JoinedGroups([])
    if dimensions:
        table, aligned_shares = aligned(GroupTable(*buffer.finish()), shares, notes)
        shares = {**shares, **aligned_shares}
    for dimension in table.dimensions:
        if not table.labels(dimension):
            column_name = reader.columns[dimension]
            faults.add(place, None, f"the column {column_name!r} of dimension {dimension!r} is empty in every row")
    faults.check(f"collection {name!r}")
    blank = sum(not document.text.strip() for document in documents)
    warnings = [*([ROW_WARNING] if id == ROW else []), *doubts, *label_notes(table, 'labels="join" joins them')]
    warnings += blank_note(blank, len(documents))
    for warning in warnings:
        log.warning("collection %r: %s", name, warning)
    # Whoever gives shares in a call means them: they are not mixed with what an engine shows.
    target = {dimension: GivenTarget(shares=given) for dimension, given in shares.items()} or None
    documents_given = DocumentsInMemory(tuple(documents))
    return Collection(name, {}, {}, table, shares, (*notes, *warnings), documents_given, target=target)
