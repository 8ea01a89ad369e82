"""Utility against fairness: the accuracy of each system beside its agreement with stereotypes, and the Pareto front.

    python evaluations/answers/pareto.py runs/answers_accuracy runs/answers_agreement            # a table
    python evaluations/answers/pareto.py runs/answers_accuracy runs/answers_agreement page.html  # and a plot

The two runs are those of accuracy.yaml and agreement.yaml, or of any two such files; the systems of both are shown. A
system is on the front if no other is at least as good in both and better in one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from fairagent.errors import FairAgentError, UsageError
from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.findings import comparisons_of
from fairagent.evaluate.run import Results, load_run
from fairagent.evaluate.tables import aligned
from fairagent.report.page import STYLES, TEMPLATES
from fairagent.report.plots import MARKERS, Point, color_number, marker_number, points, trade_off_plot
from fairagent.storage.files import write_whole

AXES = ("accuracy", "1 - agreement")


def pareto(accuracy: Results, agreement: Results) -> tuple[Point, ...]:
    """The systems that both runs have; upwards is 1 - agreement, so that more is better."""
    useful, fair = (_of_all(run, measure) for run, measure in ((accuracy, "accuracy"), (agreement, "agreement")))
    both = {system: (row, _upside_down(fair[system])) for system, row in useful.items() if system in fair}
    return points(accuracy, both)


def table(found: Sequence[Point], systems: Sequence[str]) -> str:
    """The systems in their order; * marks the front."""
    rows = [["system", "accuracy", "agreement", "front"]]
    for point in found:
        means = (point.x.mean, 1 - point.y.mean)
        rows.append([systems[point.system], *(f"{mean:.4f}" for mean in means), "*" if point.front else ""])
    return "\n".join(aligned(rows))


def page(found: Sequence[Point], systems: Sequence[str]) -> str:
    """The plot as a page that needs nothing else."""
    style = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in STYLES)
    plot = trade_off_plot(found, systems, AXES)
    legend = "".join(
        f'<li class="sys"><svg class="mk f-s{color_number(one.system)}" viewBox="-6 -6 12 12">'
        f'<path d="{MARKERS[marker_number(one.system)]}"/></svg>{escape(systems[one.system])}</li>'
        for one in found
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Accuracy and agreement</title>'
        f'<style>{style}</style></head>\n<body><main class="wrap"><h1>Accuracy and agreement</h1>'
        f"<p>Up and right is better. The dashed line joins those that no other beats in both.</p>"
        f'<ul class="legend">{legend}</ul>'
        f"<figure>{plot}</figure><pre>{escape(table(found, systems))}</pre></main></body></html>\n"
    )


def _of_all(run: Results, measure: str) -> dict[str, Comparison]:
    found = {system: row for (system, name), row in comparisons_of(run, "").items() if name == measure}
    if not found:
        raise UsageError(f"the run {run.name!r} does not measure {measure}; name the run of accuracy.yaml first")
    return found


def _upside_down(row: Comparison) -> Comparison:
    return replace(row, mean=1 - row.mean, low=1 - row.high, high=1 - row.low)


def main(arguments: Sequence[str]) -> int:
    """Print the table, and write the page where one is named."""
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return UsageError.exit_code
    try:
        accuracy, agreement = (load_run(Path(folder)) for folder in arguments[:2])
        found = pareto(accuracy, agreement)
        print(table(found, accuracy.systems))
        if len(arguments) == 3:
            write_whole(Path(arguments[2]), page(found, accuracy.systems))
    except FairAgentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
