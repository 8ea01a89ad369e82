"""The results of a run as tables, text, LaTeX and TREC runs, and the files of all that.

But for the timings, nothing in the files depends on the clock or the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np

from fairagent.answer.filtering import removal_warnings
from fairagent.collection.records import listed
from fairagent.evaluate.comparison import RESAMPLES, SIGN, SIGNIFICANT, Comparison, smallest_p
from fairagent.evaluate.findings import best_mean, label_error_text, mark, under_label_error, verdict_lines
from fairagent.evaluate.run import JOURNAL, TRANSCRIPT, Results
from fairagent.evaluate.tables import LATEX_WIDTH, ORACLE, WIDTH, Cell, Column, Table, p_value, short_names, tex
from fairagent.evaluate.thresholds import summary, thresholds_table
from fairagent.measures.parse import short_labels
from fairagent.measures.trec_fair import LONGEST
from fairagent.storage.files import file_name, write_whole
from fairagent.types import Group, Proposals, Removal, exposure_rows
from fairagent.types.common import GROUP_REMOVED, counted, dollars

PAGE = "report.html"
RUNS = "runs"
"""The folder, in a run's, of the rankings of every system."""
TOPICS_NAMED = 50
UNDER_ERROR = "under label error"


def write_results(run: Results, folder: Path) -> None:
    """Write all tables, and for each system a TREC run and, on the TREC Fair Ranking track, its submission."""
    for system in run.systems:
        outcomes = [outcome for outcome in run.outcomes if outcome.system == system]
        # In TREC's form: topic, Q0, document, rank from 1, score, tag.
        lines = [
            f"{outcome.topic} Q0 {id} {rank} {score} {file_name(system)}\n"
            for outcome in outcomes
            for rank, ((id, _), score) in enumerate(
                zip(outcome.scored, falling([score for _, score in outcome.scored]), strict=True), start=1
            )
        ]
        write_whole(folder / RUNS / f"{file_name(system)}.txt", "".join(lines), within=folder)
        if run.track:
            # As Task 1 of the track takes them: topic, tab, page.
            lines = [f"{one.topic}\t{id}\n" for one in outcomes for id, _ in one.scored[: LONGEST[run.track]]]
            write_whole(folder / RUNS / f"{file_name(system)}.tsv", "".join(lines), within=folder)
    # The values that the means are taken over; seconds of topics that run side by side include waiting for each other.
    targets = run.targets
    topics = [
        (outcome.topic, outcome.system, dimension, measure, value, targets.get(dimension))
        for outcome in run.answered
        for dimension, of_measure in outcome.values.items()
        for measure, value in of_measure.items()
    ]
    timings = [(one.topic, one.system, one.seconds) for one in run.outcomes]
    tables = {
        "topics.csv": Table.of(("topic", "system", "dimension", "measure", "value", "target"), topics),
        "timings.csv": Table.of(("topic", "system", "seconds"), timings),
        "results.csv": results_table(run),
        **run.of_kind.files,
    }
    if run.kind.classes:
        # Questions: answer, grade, who gave it, and what debiasing did (`DebiasRecord`).
        given = [(one, one.answer) for one in run.answered if one.answer]
        more = ("made", "survived", "placed", "theta_moved") if any(answer.debiased for _, answer in given) else ()
        rows = [
            (
                *(outcome.topic, outcome.system, next(filter(None, outcome.values), "")),
                *(outcome.values[""][measure] for measure in run.measures),
                *(answer.graded_by, " ".join(answer.removed)),
                *(astuple(answer.debiased) if answer.debiased else [None] * len(more)),
                *(outcome.query, answer.text),
            )
            for outcome, answer in given
        ]
        heads = ("topic", "system", "kind", *run.measures, "graded_by", "removed", *more, "question", "answer")
        tables["answers.csv"] = Table.of(heads, rows)
    for name, table in tables.items():
        write_whole(folder / name, table.csv())
    write_whole(folder / "results.tex", results_latex(run))
    write_whole(folder / "results.txt", results_text(run))


def falling(scores: Sequence[float]) -> Iterator[str]:
    """The scores as text, each strictly below the one before even as 32-bit floats: trec_eval breaks ties by id."""
    above = np.float32(np.inf)
    for score in scores:
        here = np.float32(score)
        above = here if here < above else np.nextafter(above, np.float32(-np.inf))
        yield f"{above:.9g}"


def made_files(folder: Path) -> list[Path]:
    """The journal, the transcript and all that is made from the journal, where it is there."""
    made = [path for pattern in ("*.csv", "results.t*") for path in folder.glob(pattern)]
    if not (runs := folder / RUNS).is_symlink():
        made += [*runs.glob("*.txt"), *runs.glob("*.tsv")]
    files = (folder / JOURNAL, folder / TRANSCRIPT, folder / PAGE, *made)
    return [path for path in files if path.is_symlink() or (path.exists() and not path.is_dir())]


def results_text(run: Results, width: int = WIDTH, details: bool = True) -> str:
    """A page of plain text: the verdict and the means first, what it cost, and what to know.

    With `details` every measure in full, and all tables of the kind. No table is wider than `width` characters;
    sentences are not broken into lines.
    """
    short = short_names(run.systems, width // 3)
    tables = [] if run.kind.ranks and not details else [*run.of_kind.tables, *published_tables(run)]
    cost = cost_table(run)
    judged = details and run.thresholds and not run.partial
    # Where systems are compared, the verdict says what groups get.
    alone = [name for name in run.dimensions if len(run.systems) == 1 and run.mean_exposures(name)]
    blocks = [
        "\n".join(_head(run)),
        "\n".join(verdict_lines(run)),
        means_table(run).text(width, short) if run.columns else "no topic has been answered by all systems",
        *(exposure_table(run, name).text(width, short) for name in alone),
        "\n".join(f"! {line}" for line in alarms_of(run)),
        thresholds_table(run).text(width, short) if judged else summary(run),
        *(table.text(width, short) for table in (measure_tables(run) if details else [])),
        "\n".join(run.of_kind.remarks),
        *(table.text(width, short) for table in tables),
        cost.text(width, short) if cost else "no system asked a language model",
        "\n".join([*(f"{new} is {name}" for name, new in short.items()), *notes(run, details)]),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def results_latex(run: Results) -> str:
    """`tabular`s of the means for booktabs, each no wider than an article's text, and a legend; no column of zeros.

    The best mean of a system that did not look at the judgments is bold; +/- as `mark`, a dagger for oracles; the
    measures' definitions are in comments.
    """
    short, names = short_labels(list(run.labels)), short_names(run.systems, LATEX_WIDTH // 3)
    comments = [f"% {label} is {measure}" for measure, label in short.items() if label != measure]
    test = f"paired randomization test, $p < {SIGNIFICANT}$ after Holm"
    legend = [
        *(f"{tex(new)} is {tex(name)}." for name, new in names.items()),
        *([f"Target: {tex(run.target_text)}."] if run.target_text else []),
        "Bold: the best of a column.",
        f"$^{{+}}$, $^{{-}}$: better, worse than {tex(names.get(run.baseline, run.baseline))} ({test}).",
        *([r"$^\dagger$: looked at the judgments."] if run.oracle_systems else []),
    ]
    below = [r"\par\smallskip\noindent{\footnotesize", *legend, r"\par}"]
    return "\n".join([*comments, means_table(run, latex=True).filled().latex(names) + "\n".join(below), ""])


def _head(run: Results) -> Iterator[str]:
    yield run.name
    yield from str(run.provenance.get("about", "")).strip().splitlines()
    topics = max((row.topics for row in run.comparisons), default=0)
    failed = {one.topic for one in run.outcomes if one.failed is not None}
    unjudged = len(run.by_topic.keys() & run.excluded.keys() - failed)
    also = f" ({unjudged} more in the run files, not judged)" if unjudged else ""
    scope = run.kind.scope.format(n=run.n)
    yield f"{run.collection}, {counted(topics, 'topic')}{also}, {scope}; baseline: {run.baseline}"
    if run.target_text:
        yield f"target: {run.target_text}"
    yield from run.steered_otherwise
    if run.partial:
        yield "PARTIAL: these are the topics that every system has answered; repeat the command to finish"


def alarms_of(run: Results) -> list[str]:
    """The alarms of all systems, those that several have in one line, which begins with their names.

    What a filter took from the groups is judged over all topics together.
    """
    systems_of: dict[str, list[str]] = {}
    for system in run.systems:
        outcomes = [outcome for outcome in run.answered if outcome.system == system]
        counts = Counter(what for one in outcomes for what in {alarm.what for alarm in one.alarms} - {GROUP_REMOVED})
        lost: dict[Group, Removal] = {}
        for one in (removal for outcome in outcomes for removal in outcome.removals):
            before = lost.get(one.group, Removal(one.group, 0.0, 0.0))
            lost[one.group] = Removal(one.group, before.seen + one.seen, before.removed + one.removed)
        alarms = [f"{what} on {count} of {len(outcomes)}" for what, count in sorted(counts.items())]
        for alarm in (*alarms, *removal_warnings(tuple(lost.values()))):
            systems_of.setdefault(alarm, []).append(system)
    lines: dict[tuple[str, ...], list[str]] = {}
    for alarm, systems in systems_of.items():
        lines.setdefault(tuple(systems), []).append(alarm)
    everyone = f"all {len(run.systems)} systems"
    return [
        f"{everyone if 1 < len(systems) == len(run.systems) else ', '.join(systems)}: {'; '.join(alarms)}"
        for systems, alarms in lines.items()
    ]


def notes(run: Results, details: bool) -> Iterator[str]:
    """What the numbers mean and rest on, a line each; with `details` also of intervals and tests."""
    meant: dict[str, list[str]] = {}
    for measure, label in short_labels(list(run.labels)).items():
        meant.setdefault(run.measured[measure].definition or measure, []).append(label)
    for definition, named in meant.items():
        if named != [definition]:
            yield f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} {definition}"
    yield f"+ and -: better and worse than {run.baseline} (paired randomization test, p < {SIGNIFICANT} after Holm)"
    if details:
        yield f"intervals: {RESAMPLES:,} bootstrap resamples of the topics; Holm: over the systems of a measure"
        yield f"p <= ...: the smallest value that a test of {RESAMPLES:,} random signs can give"
        yield "diff: the difference from the baseline; W/T/L: topics won, tied and lost"
    if any(under_label_error(run, dimension) for dimension in run.dimensions):
        yield f"{UNDER_ERROR}: AWRF where labels are made, and between what 95 % of their errors leave it"
    if run.oracle_systems:
        yield f"{ORACLE} looked at the judgments (target or groups): no fair comparison with systems that did not"
    for why in dict.fromkeys(run.excluded.values()):
        left_out = [topic for topic, reason in run.excluded.items() if reason == why]
        yield f"left out for all systems, {why}: {counted(len(left_out), 'topic')} ({listed(left_out, TOPICS_NAMED)})"
    # A topic is of one class, so most are not judged for any other.
    for dimension in () if run.kind.classes else run.dimensions:
        if without := tuple(dict.fromkeys(one.topic for one in run.answered if dimension not in one.values)):
            yield f"not judged for {dimension}, {counted(len(without), 'topic')}: {listed(without, TOPICS_NAMED)}"


def marked(run: Results, system: str) -> str:
    """The system with its marks."""
    equal = any(one.system == system for one in run.equal)
    return f"{system}{f' {ORACLE}' * (system in run.oracle_systems)}{f' {SIGN}' * equal}"


def means_table(run: Results, latex: bool = False) -> Table:
    """Every system's means, the best of each column marked; for `latex` with the calls of a model.

    Where labels are made, AWRF under their errors stands behind a dimension's measures.
    """
    labels, short = run.labels, short_labels(list(run.labels))
    heads: list[str | Column] = ["System" if latex else "system"]
    lines: list[list[object]] = [[marked(run, system)] for system in run.systems]
    for place, (dimension, measure) in enumerate(run.columns):
        heads.append(Column(labels[measure], above=dimension or run.kind.overall, short=short[measure]))
        column = [run.compared[system, dimension, measure] for system in run.systems]
        top = best_mean(run, column)
        for line, row in zip(lines, column, strict=True):
            line.append(Cell(row.mean, mark(run, row), row.mean == top))
        is_last = all(one != dimension for one, _ in run.columns[place + 1 :])
        if is_last and (made := under_label_error(run, dimension)):
            heads.append(Column(UNDER_ERROR, above=dimension))
            for line, system in zip(lines, run.systems, strict=True):
                line.append(label_error_text(made.get(system), 3) or None)
    if latex:
        heads.append("Calls")
        for line, system in zip(lines, run.systems, strict=True):
            line.append(str(run.costs[system].calls))
    return Table.of(heads, lines, notes=map(str, run.equal), systems=True)


def exposure_table(run: Results, dimension: str) -> Table:
    """Each group's share of the exposure beside its target, by system: means over the topics."""
    lines = [
        (run.systems[mean.system], row.label, row.share, row.target)
        for mean in run.mean_exposures(dimension)
        for row in exposure_rows(mean)
    ]
    return Table.of(["system", dimension, "exposure", "target"], lines, systems=True)


def measure_tables(run: Results) -> list[Table]:
    """A table for each measure that can be better or worse, with intervals, tests and what was expected."""
    labels, tables = run.labels, []
    tests: list[str | Column] = [
        Column("difference", short="diff"),
        Column("won/tied/lost", short="W/T/L"),
        *(Column(name, above=above) for above in ("randomization", "t-test") for name in ("p", "Holm")),
    ]
    for dimension, measure in run.columns:
        if measure in run.neutral:
            continue
        rows = [run.compared[system, dimension, measure] for system in run.systems]
        compared = any(run.expected_of(row) is not None for row in rows)
        least = smallest_p(rows[0].topics)
        lines: list[list[object]] = []
        for row in rows:
            line: list[object] = [marked(run, row.system), row.mean, f"[{row.low:.4f}, {row.high:.4f}]"]
            if row.difference is None:
                line += [""] * len(tests)
            else:
                line += [f"{row.difference:+.4f}", f"{row.wins}/{row.ties}/{row.losses}"]
                line += [p_value(row.randomization_p, least)]
                line += [p_value(row.randomization_holm, least * (len(rows) - 1))]
                line += [p_value(row.t_p), p_value(row.t_holm)]
            lines.append([*line, *([run.expected_of(row)] if compared else [])])
        heads = ["system", "mean", "95 % interval", *tests, *(["expected"] if compared else [])]
        title = f"{f'{dimension}, ' if dimension else ''}{labels[measure]} ({counted(rows[0].topics, 'topic')})"
        tables.append(Table.of(heads, lines, title, systems=True))
    return tables


def published_tables(run: Results) -> list[Table]:
    """A table for each block of numbers that the file cites and nothing here measures."""
    tables = []
    for block in run.kind.published:
        names = list(dict.fromkeys(name for row in block.values.values() for name in row))
        lines = [[row, *map(values.get, names)] for row, values in block.values.items()]
        heads: list[str | Column] = ["published", *(Column(name, "g") for name in names)]
        tables.append(Table.of(heads, lines, f"not measured here: {block.why}"))
    return tables


def cost_table(run: Results) -> Table | None:
    """What every system used of a language model; None where none used one."""
    if not any(cost.calls for cost in run.costs.values()):
        return None
    proposed = dict.fromkeys(run.systems, Proposals())
    for outcome in run.outcomes:
        proposed[outcome.system] = sum((step.proposals for step in outcome.steps), proposed[outcome.system])
    proposing = any(proposed.values())
    lines = []
    for system, cost in run.costs.items():
        counts = map(str, (cost.calls, cost.unusable, cost.input_tokens, cost.output_tokens))
        # Beside the replies without their form: what stands in those with it may be of no use either.
        made = proposed[system]
        usable = [f"{made.usable}/{made.made}" if made else "-"] * proposing
        lines.append([marked(run, system), *counts, *usable, dollars(cost.cost)])
    heads = ["system", "calls", "unusable", "tokens in", "tokens out", *["usable proposals"] * proposing, "cost"]
    return Table.of(heads, lines, "language model, all topics together", systems=True)


def results_table(run: Results) -> Table:
    """One line for each system, dimension and measure, with the cost of the system."""
    more = ("calls", "input_tokens", "output_tokens", "cost", "oracle", "expected", "target")
    lines = [
        (
            *(*astuple(row), *astuple(run.costs[row.system])[:4], int(row.system in run.oracle_systems)),
            *(run.expected_of(row), run.targets.get(row.dimension)),
        )
        for row in run.comparisons
    ]
    return Table.of([*(field.name for field in fields(Comparison)), *more], lines)
