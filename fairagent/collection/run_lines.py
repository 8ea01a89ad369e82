"""Run files as the field's tools write them.

    1 Q0 d7 1 2.5 BM25              TREC's six columns: topic, Q0, document, rank, score, tag (or without the tag)
    1<tab>d7<tab>1<tab>2.5          topic, document, rank, score (and a tag)
    1<tab>d7<tab>1                  topic, document, and a rank from 0 or 1 (MS MARCO) or a score
    1<tab>d7                        topic and document alone, best first
    qid,docid,docno,rank,score,query    columns of any order by their names (PyTerrier's, ir_measures')
    {"1": {"d7": 2.5}}              JSON: topic -> document -> score (ranx, BEIR, bm25s)

Columns are separated by tabs, commas, semicolons or spaces, all lines like the first. What
`fairagent.collection.records.lines` accepts (packed files, a byte order mark, CRLF ends, blank lines) is accepted.
"""

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from fairagent.collection.records import Faults, csv_rows, lines, listed, shown
from fairagent.storage.readers import Malformed, file_text, first_bytes, parse_json
from fairagent.types.common import counted

TOPIC = ("qid", "query_id", "query-id", "q_id", "topic", "topic_id", "id", "query")
DOCUMENT = ("docno", "doc_id", "document_id", "corpus_id", "corpus-id", "pid", "page_id", "page", "document", "docid")
"""What the columns are called in a header, in capitals or not, the likeliest first: PyTerrier's docid is a number of
its index. A first line is a header where its first cell has a name of a topic and is none itself, or is empty."""
RANK, SCORE = ("rank", "position"), ("score", "similarity")
TAG = ("tag", "run", "run_id", "run name", "name", "system")
FORMS = (
    "a run has TREC's six columns (topic, Q0, document, rank, score, tag); or topic, document and, where there are "
    "more, rank, score and tag, or one of both; or a header that names its columns; or JSON, {topic: {document: score}}"
)
_WHOLE = re.compile(r"-?[0-9]{1,9}", re.ASCII)


class RunLine(NamedTuple):
    """Where one line puts a document; `rank` and `score` are None where it does not say."""

    topic: str
    document: str
    rank: int | None
    score: float | None
    tag: str
    line: int


Rows = Iterator[tuple[int, list[str]]]


def rows_of(path: Path, faults: Faults, topics: Container[str] = ()) -> tuple[tuple[str, ...], Rows]:
    """The names in a file's header, if it has one, and the cells of its rows with the number of their line.

    Adds a fault where there are no lines. `topics` are names that begin no header.
    """
    before = faults.count
    numbered = lines(path, faults, blank=True)
    filled = ((number, line) for number, line in numbered if line.strip(" "))
    first = next(filled, None)
    if first is None:
        if faults.count == before:
            faults.add(path, None, "there are no lines")
        return (), iter(())
    separator, names = _separator(first[1]), tuple[str, ...]()
    cells = [cell.strip(' "').lower() for cell in first[1].split(separator)]
    if (cells[0] in TOPIC or (not cells[0] and {*cells} & {*TOPIC})) and first[1].split(separator)[0] not in topics:
        names, first = tuple(cells), next(filled, (0, ""))
        if separator is None or separator not in first[1]:
            separator = _separator(first[1])
    rows: Iterable[tuple[int, list[str]]]
    if separator and separator in ",;":
        rows = csv_rows(chain([first], numbered), separator, path, faults)
    else:
        rows = ((number, line.split(separator)) for number, line in chain([first], filled))
    return names, ((number, [cell.strip(" ") for cell in cells]) for number, cells in rows if any(cells))


def run_lines(path: Path, faults: Faults, topics: Container[str] = ()) -> list[RunLine]:
    """All lines of a run in the file's order; adds what is wrong to `faults`: of a file in another form one error."""
    if first_bytes(path).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return _of_json(path, faults)
    (names, rows), entries = rows_of(path, faults, topics), list[RunLine]()
    # By the names of a header, where they name topic and document.
    columns = places_of(names, {"topic": TOPIC, "document": DOCUMENT, "rank": RANK, "score": SCORE, "tag": TAG})
    columns, width = columns if {"topic", "document"} <= columns.keys() else {}, len(names)
    for number, cells in rows:
        if not columns:
            columns, width = {name: place for place, name in enumerate(_columns(cells))}, len(cells)
            if not columns:
                hint = "; are these qrels?" if len(cells) == 4 else ""
                faults.add(path, number, f"no line of a run: {shown(' '.join(cells))}{hint}; {FORMS}")
                return []  # every further line would say the same
        try:
            if len(cells) != width:
                raise ValueError(f"{counted(len(cells), 'column')}, and {width} above: {shown(' '.join(cells))}")
            entries.append(_line({name: cells[place] for name, place in columns.items()}, number))
        except ValueError as error:
            if len(entries) < 2:
                faults.add(path, number, f"{error}; {FORMS}")
                return []
            faults.add(path, number, str(error))
    if not entries and not faults:
        faults.add(path, None, "there are no lines")
    return _ranked(entries) if "number" in columns else entries


def by_score(entries: Sequence[RunLine]) -> tuple[list[RunLine], bool]:
    """A topic's documents by falling score, as trec_eval orders them, and whether ranks contradict that.

    Those of equal scores stand by rank, and then as in the file; so do all where there are no scores.
    """
    ordered = sorted(entries, key=lambda one: (-(one.score or 0.0), one.rank or 0, one.line))
    return ordered, any((below.rank or 0) < (above.rank or 0) for above, below in pairwise(ordered))


def order_note(path: Path, contradicting: Sequence[str]) -> str:
    """What to know of a run in which the scores of these topics rise where their ranks do."""
    topics = f"{counted(len(contradicting), 'topic')} ({listed(contradicting, 5)})"
    return (
        f"{path}: in {topics} a lower rank has a higher score; documents stand by falling score, as trec_eval orders "
        "them: if scores are distances, turn their signs"
    )


def _separator(line: str) -> str | None:
    """What separates the columns of a line; None: spaces."""
    if "\t" in line:
        return "\t"
    sign = max(",;", key=line.count)
    cells = [cell.strip(" ") for cell in line.split(sign)]
    # A comma may stand in an id of a line of TREC's; names of a header may hold spaces.
    header = len(cells) > 1 and cells[0].strip('"').lower() in ("", *TOPIC)
    return sign if header or (len(cells) > 1 and all(cell and " " not in cell for cell in cells)) else None


def places_of(names: Sequence[str], kinds: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Of each kind of column that there is its place, by the likeliest of the names that it may have."""
    named = {kind: next((name for name in known if name in names), None) for kind, known in kinds.items()}
    return {kind: names.index(name) for kind, name in named.items() if name is not None}


def _columns(cells: Sequence[str]) -> tuple[str, ...]:
    """What the columns of a file without a header are, by its first line; none where it is no run's."""
    with_iteration = len(cells) > 3 and cells[1] in ("Q0", "q0", "0")
    if len(cells) == 6 or (len(cells) == 5 and with_iteration):
        return ("topic", "Q0", "document", "rank", "score", "tag")[: len(cells)]
    if len(cells) == 3:
        return "topic", "document", "number"
    return (
        ("topic", "document", "rank", "score", "tag")[: len(cells)] if 1 < len(cells) < 6 and not with_iteration else ()
    )


def _line(cells: dict[str, str], number: int) -> RunLine:
    rank, score = cells.get("rank"), cells.get("score", cells.get("number"))
    if rank is not None and not _WHOLE.fullmatch(rank):
        raise ValueError(f"the rank {shown(rank)} is no whole number")
    try:
        value = 0.0 if score is None else float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the score {shown(score)} is no finite number")
    place = None if rank is None else int(rank)
    return RunLine(
        cells["topic"], cells["document"], place, None if score is None else value, cells.get("tag", ""), number
    )


def _ranked(entries: list[RunLine]) -> list[RunLine]:
    """The lines of a file whose third column is a rank or a score: ranks count up from 0 or 1 in every topic."""
    of_topic: dict[str, list[float]] = {}
    for one in entries:
        of_topic.setdefault(one.topic, []).append(one.score or 0.0)
    for numbers in of_topic.values():
        if sorted(numbers) not in ([*range(len(numbers))], [*range(1, len(numbers) + 1)]):
            return entries
    # The scores 3, 2, 1 count down.
    if all(numbers == sorted(numbers, reverse=True) for numbers in of_topic.values()) and len(entries) > len(of_topic):
        return entries
    return [one._replace(rank=int(one.score or 0), score=None) for one in entries]


def _of_json(path: Path, faults: Faults) -> list[RunLine]:
    try:
        read = parse_json(file_text(path, 1 << 30, unzipped=True))
    except (Malformed, OSError) as error:
        faults.add(path, getattr(error, "line", None), f"no JSON of a run ({error}); {FORMS}")
        return []
    entries = []
    for topic, scores in read.items() if isinstance(read, dict) else [("", None)]:
        if not isinstance(scores, dict) or not all(type(score) in (int, float) for score in scores.values()):
            faults.add(path, None, f"no JSON of a run: {shown(scores or read)}; {FORMS}")
            return []
        entries += [
            RunLine(topic, id, None, float(score), "", place) for place, (id, score) in enumerate(scores.items())
        ]
    if not entries:
        faults.add(path, None, "there are no documents in it")
    return entries
