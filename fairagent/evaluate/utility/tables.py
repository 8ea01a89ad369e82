"""The utility experiment's own table: a line for each row and k, as text and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairagent.collection.faults import listed
from fairagent.evaluate.labels import measure_label
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import SIGNIFICANT, csv_text
from fairagent.evaluate.text_table import aligned
from fairagent.evaluate.utility.section import NOT_COMPARABLE, Utility
from fairagent.evaluate.utility.summary import Line, summary, without_utility
from fairagent.measures.utility import PairedTest

FILE = "utility.csv"
TO_BASELINE, TO_ORDER = "†", "‡"


def short(section: Utility) -> tuple[str, str]:
    """What the table calls utility and performance: both say where they are not comparable.

    >>> short(Utility())
    ('U[not comparable]', 'P[not comparable]')
    """
    of_one = (section.utility(1), section.performance(1))
    return measure_label(of_one[0]).removesuffix("@1"), measure_label(of_one[1]).removesuffix("@1")


def utility_text(run: Run) -> list[list[str]]:
    """The table and its notes as a block of lines; none where there is nothing to tell."""
    lines = summary(run)
    if run.utility is None or not lines:
        return []
    utility, performance = short(run.utility)
    header = ["row", performance, utility, "nDCG@k", "r", "p(r)", "t-test to baseline", "t-test to rank order"]
    table = [header, *(_cells(line) for line in lines)]
    return [[f"utility and ranking quality ({lines[0].topics:,} topics)", *aligned(table), *_notes(run, run.utility)]]


def utility_csv(run: Run) -> str:
    """One line a row and k; numbers keep every digit."""
    header = ("system", "k", "topics", "similarity", "P", "U", "nDCG", "r", "r_p")
    tests = [f"{against}_{part}" for against in ("baseline", "rank_order") for part in ("difference", "t", "p")]
    similarity = _similarity(run.utility) if run.utility else ""
    return csv_text((*header, *tests), [_numbers(line, similarity) for line in summary(run)])


def _numbers(line: Line, similarity: str) -> list[object]:
    found = line.correlation
    tests = [
        part
        for test in (line.to_baseline, line.to_order)
        for part in ((test.difference, test.t, test.p) if test else (None, None, None))
    ]
    means = (line.performance, line.utility, line.quality)
    related = (found.r, found.p) if found else (None, None)
    return [line.system, line.k, line.topics, similarity, *means, *related, *tests]


def _similarity(section: Utility) -> str:
    return section.similarity.name + ("" if section.similarity.comparable else f" ({NOT_COMPARABLE})")


def _cells(line: Line) -> list[str]:
    found = line.correlation
    return [
        line.name,
        f"{line.performance:.4f}",
        f"{line.utility:+.4f}",
        f"{line.quality:.4f}",
        f"{found.r:+.3f}" if found else "-",
        f"{found.p:.4f}" if found else "-",
        _test(line.to_baseline, TO_BASELINE),
        _test(line.to_order, TO_ORDER),
    ]


def _test(test: PairedTest | None, mark: str) -> str:
    if test is None:
        return ""
    p = "-" if test.p is None else f"{test.p:.4f}"
    return f"{test.difference:+.4f} ({p}){mark if test.p is not None and test.p < SIGNIFICANT else ' '}"


def _notes(run: Run, section: Utility) -> Iterator[str]:
    utility, performance = short(section)
    against = f"the highest over the relevant passages (grade {section.relevant} or more)"
    yield f"{performance}: {_similarity(section)}, {against}"
    yield f"{utility}: the mean over the topics of (P - P_0) / P_0, where P_0 is that of the answer from no documents"
    yield "r: Pearson's correlation of a topic's U with its nDCG@k, which is that of the list in rank order"
    yield (
        f"t-tests: mean difference of U (two-sided p, paired, not corrected); {TO_BASELINE}: p < {SIGNIFICANT} to "
        f"{run.baseline}, {TO_ORDER}: to the same documents in rank order"
    )
    if left_out := without_utility(run):
        yield f"left out of U, since P_0 is 0: {_counted(left_out)}"


def _counted(topics: Sequence[str]) -> str:
    return f"{len(topics)} topic{'s' * (len(topics) != 1)}: {listed(topics)}"
