"""The results as a page of plain text: means first, then every measure in full, what it cost, and what to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairagent.collection.faults import listed
from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.cost import Cost, costs
from fairagent.evaluate.labels import DEFINITIONS, measure_labels
from fairagent.evaluate.run import Run
from fairagent.evaluate.statistics import RESAMPLES
from fairagent.evaluate.tables import ORACLE, SIGNIFICANT, answered, columns, expected, mark

TOPICS_NAMED = 50
COST = "language model, all topics together"
TESTS = ("difference", "t-test", "Holm", "randomization", "Holm", "won/tied/lost")


def results_text(run: Run, more: Sequence[Sequence[str]] = ()) -> str:
    """The page, with blocks of `more` lines before what it took; lines are as long as their tables need."""
    blocks = [list(_head(run)), list(_means(run))]
    blocks += [[measure_heading(run, *pair), *aligned(measure_table(run, *pair))] for pair in columns(run)]
    blocks += map(list, more)
    cost = cost_table(run)
    blocks += [[COST, *aligned(cost)] if cost else ["no system asked a language model"], list(_notes(run))]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(run: Run) -> Iterator[str]:
    yield run.name
    if about := str(run.provenance.get("about", "")).strip():
        yield from about.splitlines()
    topics = max((row.topics for row in run.comparisons), default=0)
    judged = f"answered from at most {run.n} documents" if run.questions else f"rankings of {run.n}"
    yield f"{run.collection}, {counted(topics)}, {judged}; baseline: {run.baseline}"
    if run.partial:
        yield "PARTIAL: these are the topics that every system has answered; repeat the command to finish"


def _means(run: Run) -> Iterator[str]:
    labels, pairs = measure_labels(run.measures), columns(run)
    rows = {(row.system, row.dimension, row.measure): row for row in run.comparisons}
    if not pairs:
        yield "no topic has been answered by all systems"
        return
    above = ["", *(dimension or run.overall for dimension, _ in pairs)]
    table = [above, ["system", *(labels[measure] for _, measure in pairs)]]
    for system in run.systems:
        cells = [f"{rows[system, *pair].mean:.4f}{mark(rows[system, *pair]) or ' '}" for pair in pairs]
        table.append([_name(run, system), *cells])
    yield from aligned(table)


def measure_heading(run: Run, dimension: str, measure: str) -> str:
    """What `measure_table` is about."""
    topics = next(row.topics for row in run.comparisons if (row.dimension, row.measure) == (dimension, measure))
    return f"{f'{dimension}, ' if dimension else ''}{measure_labels(run.measures)[measure]} ({counted(topics)})"


def measure_table(run: Run, dimension: str, measure: str) -> list[list[str]]:
    """Every system by one measure, with interval, tests and what was expected; a header, then a row a system."""
    rows = [row for row in run.comparisons if (row.dimension, row.measure) == (dimension, measure)]
    paper = [expected(run, row) for row in rows]
    header = ["system", "mean", "95 % interval", *TESTS]
    table = [[*header, *(["expected"] if any(value is not None for value in paper) else [])]]
    for row, value in zip(rows, paper, strict=True):
        cells = [_name(run, row.system), f"{row.mean:.4f}", f"[{row.low:.4f}, {row.high:.4f}]", *_tests(row)]
        table.append([*cells, *([_number(value)] if len(table[0]) > len(header) else [])])
    return table


def _tests(row: Comparison) -> list[str]:
    if row.difference is None:
        return [""] * len(TESTS)
    ps = [row.t_p, row.t_holm, row.randomization_p, row.randomization_holm]
    return [f"{row.difference:+.4f}", *map(_p_value, ps), f"{row.wins}/{row.ties}/{row.losses}"]


def cost_table(run: Run) -> list[list[str]]:
    """What every system asked of a language model; a header, then a row a system. Empty where none asked."""
    spent: dict[str, Cost] = costs(run)
    if not any(cost.calls for cost in spent.values()):
        return []
    table = [["system", "calls", "tokens in", "tokens out", "cost"]]
    for system in run.systems:
        cost = spent[system]
        dollars = "price unknown" if cost.dollars is None else f"${cost.dollars:.4f}"
        table.append([_name(run, system), *map(str, (cost.calls, cost.input_tokens, cost.output_tokens)), dollars])
    return table


def _notes(run: Run) -> Iterator[str]:
    for definition, label in measure_labels(run.measures).items():
        yield f"{label} is {DEFINITIONS.get(definition, definition)}"
    yield f"+ and -: better and worse than {run.baseline} (paired randomization test, p < {SIGNIFICANT} after Holm)"
    yield f"intervals: {RESAMPLES:,} bootstrap resamples of the topics; Holm: over the systems of a measure"
    if run.oracle_systems:
        yield f"{ORACLE} looked at the judgments (target or groups): no fair comparison with systems that did not"
    for topic, why in list(run.excluded.items())[:TOPICS_NAMED]:
        yield f"left out for all systems: topic {topic}, {why}"
    if len(run.excluded) > TOPICS_NAMED:
        yield f"left out for all systems: {len(run.excluded) - TOPICS_NAMED} more"
    # A question has one kind, so most are not judged for any other.
    for dimension in () if run.questions else run.dimensions:
        without = dict.fromkeys(outcome.topic for outcome in answered(run) if dimension not in outcome.values)
        if without:
            yield f"not judged for {dimension}, {counted(len(without))}: {listed(without, TOPICS_NAMED)}"


def counted(topics: int) -> str:
    """So many topics, in words.

    >>> counted(1), counted(20)
    ('1 topic', '20 topics')
    """
    return f"{topics:,} topic{'s' * (topics != 1)}"


def _name(run: Run, system: str) -> str:
    return f"{system} {ORACLE}" if system in run.oracle_systems else system


def _p_value(p: float | None) -> str:
    return "<.0001" if p is not None and p < 0.0001 else _number(p)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows with columns of one width, the first to the left, the others to the right.

    >>> list(aligned([["a", "1"], ["bcd", "23"]]))
    ['a     1', 'bcd  23']
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *others in table:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()
