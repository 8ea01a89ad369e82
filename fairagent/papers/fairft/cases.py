"""Single questions in full: what every system was given, what it took away, and what it answered, side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Table

WIDTH = 100
FAILED = "failed"


def case_table(run: Run, id: str) -> Table:
    """A row for each document's rank, the last for the answer; a column for each system that has answered it."""
    outcomes = _outcomes(run, id)
    columns = [list(_cells(one)) for one in outcomes]
    deepest = max((len(documents) for *documents, _ in columns), default=0)
    rows = [
        [f"document {rank + 1}", *((documents[rank] if rank < len(documents) else "") for *documents, _ in columns)]
        for rank in range(deepest)
    ]
    rows.append(["answer", *(answer for *_, answer in columns)])
    return Table.of(["", *(one.system for one in outcomes)], rows, f"{id}: {_query(outcomes)}", prose=True)


def case_text(run: Run, id: str) -> str:
    """The same as lines, system by system."""
    outcomes = _outcomes(run, id)
    lines = list(_wrapped(f"case {id}: ", _query(outcomes)))
    for one in outcomes:
        *documents, answer = _cells(one)
        lines.append(f"  {one.system}")
        for rank, text in enumerate(documents, start=1):
            lines += _wrapped(f"    document {rank}: ", text)
        lines += _wrapped("    answer: ", answer)
    return "\n".join(lines)


def _outcomes(run: Run, id: str) -> list[Outcome]:
    of_topic = run.by_topic.get(id, {})
    return [of_topic[system] for system in run.systems if system in of_topic]


def _query(outcomes: list[Outcome]) -> str:
    return outcomes[0].query if outcomes else "not answered yet"


def _cells(outcome: Outcome) -> Iterator[str]:
    """The documents as they were found, those that the filter took marked, then the answer and its grade."""
    answer = outcome.answer
    for hit in outcome.hits:
        removed = " [removed by the filter]" if answer and hit.id in answer.removed else ""
        yield ": ".join(filter(None, (hit.title or hit.id, hit.snippet))) + removed
    if answer is None:
        yield f"{FAILED}: {outcome.failed}"
    else:
        grades = ", ".join(f"{name} {value:.0f}" for name, value in outcome.values[""].items())
        yield f"{answer.text} [{grades}, by {answer.graded_by}]"


def _wrapped(first: str, text: str) -> list[str]:
    indent = " " * (len(first) - len(first.lstrip()) + 4)
    return textwrap.wrap(first + " ".join(text.split()), WIDTH, subsequent_indent=indent, break_long_words=False)
