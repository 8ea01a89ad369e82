"""Lines of run files in all their forms: TREC's six columns, or topic and document alone, best first.

    1 Q0 d7 1 2.5 BM25        topic, Q0, document, rank, score, tag
    101<tab>12                topic, document
    101<tab>1<tab>12          topic, ranking, document: several rankings of a topic (the Fair Ranking track's Task 2)

Cells are separated by tabs, commas or spaces, all lines like the first. A header line may come first: its first cell is
one of `HEADERS`. What `fairagent.collection.records.lines` accepts (gzip, a byte order mark, CRLF ends, blank lines) is
accepted.
"""

import math
import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from fairagent.collection.records import Faults, lines, listed, shown

TREC = ("topic", "Q0", "document", "rank", "score", "tag")
PLAIN = ("topic", "document")
SEQUENCE = ("topic", "ranking", "document")
HEADERS = ("id", "topic", "topic_id", "query", "query_id", "qid")
"""How a header line begins, in capitals or not; a topic of such a name is a topic."""

Form = tuple[str, ...]

_SEPARATORS = ("\t", ",", None)
_RANK = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_SPACE = re.compile(r"\s")


class RunLine(NamedTuple):
    """Where one line puts a document; where it has no score, by its place in the file."""

    topic: str
    document: str
    rank: int
    score: float
    tag: str
    line: int


def run_lines(
    path: Path, forms: Sequence[Form], faults: Faults, topics: Container[str] = ()
) -> Iterator[tuple[int, list[str]]]:
    """The cells of every line, without the header, with the line's number; all have as many as the first.

    `forms` are those that are accepted, which differ in their number of columns. Errors: a first line of another form,
    after which nothing is read; further lines that are not like it; no lines at all. `topics` are names that begin no
    header.
    """
    separator: str | None = None
    form: Form = ()
    before = faults.count
    for place, (number, line) in enumerate(lines(path, faults)):
        if place == 0:
            first = re.split(r"[\t, ]", line.strip(" "), maxsplit=1)[0]
            if first.lower() in HEADERS and first not in topics:
                continue
        if not form:
            separator = _separator(line, forms)
            form = next((one for one in forms if len(one) == len(_cells(line, separator))), ())
            if not form:
                faults.add(path, number, _other_form(line, separator, forms))
                return  # every further line would say the same
        cells = _cells(line, separator)
        if len(cells) == len(form):
            yield number, cells
        else:
            faults.add(path, number, f"expected {_described(form)} as above, got {len(cells)}: {shown(line)}")
    if not form and faults.count == before:
        faults.add(path, None, "there are no lines")


def run_line(number: int, cells: Sequence[str]) -> RunLine:
    """What the cells of one ranking a topic say; ValueError for a rank or a score that is none."""
    if len(cells) == len(PLAIN):
        topic, document = cells
        return RunLine(topic, document, number, 0.0, "", number)
    topic, _, document, rank, score, tag = cells
    if not _RANK.fullmatch(rank):
        raise ValueError(f"the rank {shown(rank)} is no whole number")
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the score {shown(score)} is no finite number")
    return RunLine(topic, document, int(rank), value, tag, number)


def by_score(path: Path, of_topic: Iterable[RunLine], faults: Faults) -> list[RunLine]:
    """A topic's documents by falling score; those of equal scores by rank, and then as in the file.

    Programs for evaluation (trec_eval) look at scores alone, so ranks may be all alike. A rank that contradicts the
    scores is a fault: nobody can tell which was meant.
    """
    ordered = sorted(of_topic, key=lambda one: (-one.score, one.rank, one.line))
    for above, below in pairwise(ordered):
        if below.rank < above.rank:  # of equal scores the smaller rank is above
            this = f"rank {above.rank} of topic {above.topic} has the score {above.score:g}"
            other = f"rank {below.rank} (line {below.line}) the lower one {below.score:g}"
            faults.add(path, above.line, f"{this}, and {other}; write the ranks in the order of the scores")
    return ordered


def _cells(line: str, separator: str | None) -> list[str]:
    return line.split() if separator is None else [cell.strip(" ") for cell in line.split(separator)]


def _separator(line: str, forms: Collection[Form]) -> str | None:
    """What divides a line into the columns of one of the forms, if possible without empty cells and spaces inside.

    >>> _separator("q1 Q0 d,7 1 2.5 me", [TREC, PLAIN]) is None, _separator("q1, d7", [TREC, PLAIN])
    (True, ',')
    """
    numbers = {len(form) for form in forms}
    fitting = [one for one in _SEPARATORS if len(_cells(line, one)) in numbers]
    clean = (one for one in fitting if all(cell and not _SPACE.search(cell) for cell in _cells(line, one)))
    # Where none fits, the first in the line shows best how many columns are meant.
    present = (one for one in _SEPARATORS if one is None or one in line)
    return next(clean, fitting[0] if fitting else next(present))


def _other_form(line: str, separator: str | None, forms: Sequence[Form]) -> str:
    """What is wrong with a first line that has none of the forms."""
    columns = len(_cells(line, separator))
    hints = {
        len(SEQUENCE): f"; is this a run of Task 2 ({', '.join(SEQUENCE)}), with several rankings of a topic?",
        len(PLAIN): f"; is this a run of Task 1 ({', '.join(PLAIN)})?",
        len(TREC): f"; is this a run of a single ranking of a topic ({', '.join(TREC)})?",
        4: "; are these qrels?",
    }
    expected = f"expected {' or '.join(map(_described, forms))}, separated by tabs, commas or spaces"
    return f"{expected}, got {columns}: {shown(line)}{hints.get(columns, '')}"


def _described(form: Form) -> str:
    return f"{len(form)} columns ({listed(form)})"
