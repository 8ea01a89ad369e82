"""Writing what a run came to: tables, TREC runs, timings; each file is whole, whenever the process ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fairagent.evaluate.fair_rag.tables import ANALYSIS, analysis_csv, analysis_text
from fairagent.evaluate.latex import details_latex, results_latex
from fairagent.evaluate.run import Run
from fairagent.evaluate.stereotypes.sets import FILE as SETS
from fairagent.evaluate.stereotypes.sets import sets_csv, sets_text
from fairagent.evaluate.tables import answered, answers_csv, results_csv, timings_csv, topics_csv
from fairagent.evaluate.text_table import results_text
from fairagent.evaluate.utility.tables import FILE as UTILITY
from fairagent.evaluate.utility.tables import utility_csv, utility_text
from fairagent.files import file_name, write_whole

PAGE = "report.html"
ANSWERS = "answers.csv"
TABLES = ("results.txt", "results.csv", "results.tex", "details.tex", "topics.csv", "timings.csv")
RESULTS = (*TABLES, ANSWERS, ANALYSIS, UTILITY, SETS, PAGE)
"""What is made from the journal, besides the runs."""


def write_results(run: Run, folder: Path) -> None:
    """Write all tables and a TREC run a system (but for the page, which is the report's)."""
    for system in run.systems:
        write_whole(folder / "runs" / f"{file_name(system)}.txt", trec_run(run, system))
    write_whole(folder / "topics.csv", topics_csv(run))
    write_whole(folder / "timings.csv", timings_csv(run))
    if run.questions:
        write_whole(folder / ANSWERS, answers_csv(run))
    write_whole(folder / "results.csv", results_csv(run))
    write_whole(folder / "results.tex", results_latex(run))
    write_whole(folder / "details.tex", details_latex(run))
    if run.draws:
        write_whole(folder / ANALYSIS, analysis_csv(run))
    if run.utility:
        write_whole(folder / UTILITY, utility_csv(run))
    if run.choices:
        write_whole(folder / SETS, sets_csv(run))
    write_whole(folder / "results.txt", whole_text(run))


def whole_text(run: Run) -> str:
    """The results as a page of plain text, with what a Fair RAG, a utility or a stereotype experiment shows."""
    if run.choices:
        return results_text(run, sets_text(run))
    return results_text(run, analysis_text(run) if run.draws else utility_text(run))


def trec_run(run: Run, system: str) -> str:
    """The rankings of the judged topics in TREC's form: topic, Q0, document, rank from 1, score, tag."""
    lines = []
    for outcome in answered(run):
        if outcome.system == system:
            pairs = zip(outcome.hits, falling([hit.score for hit in outcome.hits]), strict=True)
            for rank, (hit, score) in enumerate(pairs, start=1):
                lines.append(f"{outcome.topic} Q0 {hit.id} {rank} {score} {file_name(system)}\n")
    return "".join(lines)


def falling(scores: Sequence[float]) -> Iterator[str]:
    """The scores as text, each strictly below the one before even as 32-bit floats.

    Whoever reads a run sorts it by score, and trec_eval breaks ties by document id: the order must survive that.

    >>> list(falling([2.5, 1.0, 1.0, 0.25]))
    ['2.5', '1', '0.99999994', '0.25']
    """
    above = np.float32(np.inf)
    for score in scores:
        here = np.float32(score)
        above = here if here < above else np.nextafter(above, np.float32(-np.inf))
        yield f"{above:.9g}"
