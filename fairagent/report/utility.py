"""What the page says of a utility experiment: utility and its correlation with ranking quality, over k."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from fairagent.evaluate.run import Run
from fairagent.evaluate.utility.section import NOT_COMPARABLE
from fairagent.evaluate.utility.summary import Line, summary, without_utility
from fairagent.evaluate.utility.tables import short
from fairagent.report.lines import Line as Drawn
from fairagent.report.lines import LinePoint, line_plot


@dataclass(frozen=True, slots=True)
class UtilityShown:
    """The section's content: a line a row and k, both figures (one is None where it has no points), what is left out.

    `similarity` says how answers are compared, `warning` that the numbers compare with no others, or nothing.
    """

    lines: tuple[Line, ...]
    utility: Markup
    correlation: Markup | None
    left_out: tuple[str, ...]
    names: tuple[str, str]
    similarity: str
    warning: str


def utility(run: Run) -> UtilityShown | None:
    """The section of a utility experiment; None for other runs, and where no topic has been answered by all rows."""
    lines = summary(run)
    if run.utility is None or not lines:
        return None
    names = short(run.utility)
    of_u = [_drawn(run, system, {0: 0.0, **_by_k(lines, system)}) for system in run.systems]
    of_r = [_drawn(run, system, found) for system in run.systems if (found := _correlations(lines, system))]
    return UtilityShown(
        lines,
        line_plot(of_u, ("k", names[0]), "u0-"),
        line_plot(of_r, ("k", "Pearson's r"), "u1-") if of_r else None,
        without_utility(run),
        names,
        run.utility.similarity.name,
        "" if run.utility.similarity.comparable else NOT_COMPARABLE,
    )


def _drawn(run: Run, system: str, of_k: dict[int, float]) -> Drawn:
    points = tuple(LinePoint(f"k={k}", float(k), value) for k, value in of_k.items())
    return Drawn(system, run.systems.index(system), points)


def _by_k(lines: tuple[Line, ...], system: str) -> dict[int, float]:
    return {line.k: line.utility for line in lines if line.system == system}


def _correlations(lines: tuple[Line, ...], system: str) -> dict[int, float]:
    return {line.k: line.correlation.r for line in lines if line.system == system and line.correlation}
