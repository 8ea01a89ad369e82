"""A run as one HTML page that needs nothing else: no network, no fonts, no other file.

Its tables and plots are read without a script; topics are data that its script draws (`fairagent.report.data`).

The page's Content-Security-Policy allows one style sheet and one script, by their hashes, and nothing from anywhere.
Whatever comes from outside (queries, titles, keywords, names, messages) is text and never markup. The same run gives
the same bytes. Where a model is asked, times are not on it: they differ from run to run, and stand in timings.csv.
Where none is asked, they are what a system costs, and on the page.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fairagent.evaluate.outcome import GroupShares
from fairagent.evaluate.results import alarms_of, columns, not_judged, published_tables, results_table
from fairagent.evaluate.run import TRANSCRIPT, MeanExposure, Run
from fairagent.evaluate.tables import SIGNIFICANT, LinePlot, Note, Table
from fairagent.evaluate.thresholds import thresholds_table
from fairagent.report import names
from fairagent.report.data import topics_json
from fairagent.report.names import Provenance
from fairagent.report.plots import (
    MARKERS,
    color_number,
    cost_plot,
    exposure_plot,
    gains_plot,
    gap_plot,
    line_plot,
    marker_number,
    shown_rows,
    trade_off_plot,
)
from fairagent.report.results import Finding, efforts, findings, result_tables
from fairagent.report.series import (
    CostTradeOff,
    Currency,
    cost_trade_off,
    gains,
    gap_paths,
    main_measure,
    trade_off,
    trade_off_measures,
)
from fairagent.report.text import gap_text, percent
from fairagent.report.topics import Asked, exposure_bar, extremes, palette, shown_exchanges, topic_views
from fairagent.storage.files import write_whole
from fairagent.types.clean import printable
from fairagent.types.common import counted

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("colors.css", "groups.css", "page.css")
GROUP_COLORS = 12
"""How many colors for groups the style sheet has; more groups use them again."""


def write_page(run: Run, path: Path) -> None:
    """Write `run` as a page to `path`, which appears whole or not at all; with the transcript beside it, if any."""
    write_whole(path, page(run, shown_exchanges(path.with_name(TRANSCRIPT))))


def page(run: Run, asked: Asked | None = None) -> str:
    """`run` as the text of an HTML page, with what models were asked (see `shown_exchanges`)."""
    colors = palette(run)
    views = topic_views(run, colors)
    found = findings(run)
    counted = run.counted_topics
    cost = cost_trade_off(run)
    own = run.kind.page(run)
    shown = [column for column in columns(run) if not run.kind.classes or column[0] in run.compared_in]
    name: Any = templates().get_template("macros.html").module.system_name  # type: ignore[attr-defined]
    style, script = "".join(map(template, STYLES)), template("topics.js") + template("page.js")
    return (
        templates()
        .get_template("page.html")
        .render(
            run=run,
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            short=names.short_names(run.measures),
            counted=counted,
            alarms=alarms_of(run),
            findings=found,
            finding_bars={finding.dimension: _finding_bars(finding, colors) for finding in found},
            tables=result_tables(run),
            efforts=efforts(run),
            not_judged=not_judged(run),
            definitions=run.definitions,
            answered=sum(outcome.failed is None for outcome in run.outcomes),
            significant=SIGNIFICANT,
            about=_paragraphs(str(run.provenance.get("about") or "")),
            compared_in=[dimension or run.kind.overall for dimension in run.compared_in],
            exposures={dimension: run.mean_exposures(dimension) for dimension in run.dimensions},
            gap_paths=gap_paths(run),
            cost=cost,
            own=own,
            thresholds=thresholds_table(run) if run.thresholds else None,
            published=published_tables(run),
            all_numbers=results_table(run),
            markers=MARKERS,
            own_parts=[(drawn, list(parts)) for drawn, parts in groupby(own.parts, _is_plot)] if own else [],
            html=partial(_html, names={system: name(run, place) for place, system in enumerate(run.systems)}),
            timed=cost is not None and cost.currency is Currency.MILLISECONDS,
            plots=_plots(run, cost),
            extremes=_extremes(run, views),
            shown_system=_shown_system(run, found),
            topics=views,
            columns=shown,
            data=topics_json(run, views, shown, colors, asked or {}),
            colors=colors,
            provenance=Provenance.of(run.provenance),
            failed=[outcome for outcome in run.outcomes if outcome.failed is not None],
        )
    )


def _paragraphs(text: str) -> list[str]:
    r"""The paragraphs of a text, which blank lines set apart, without the line breaks of the file that it stood in.

    >>> _paragraphs("One,\ntwo.\n\nThree.\n")
    ['One, two.', 'Three.']
    """
    return [" ".join(lines.split()) for lines in re.split(r"\n\s*\n", text.strip()) if lines]


@cache
def template(name: str) -> str:
    """The text of a file beside the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def templates() -> Environment:
    """The templates, which write whatever comes from outside as text."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {
        "signed": names.signed,
        "p": names.p_text,
        "p_phrase": names.p_phrase,
        "money": names.money,
        "counted": counted,
        "listed": names.listed,
        "percent": percent,
        "gap": gap_text,
        "value": "{:.3f}".format,
    }
    environment.globals |= {
        "color_number": color_number,
        "marker_number": marker_number,
        "group_colors": GROUP_COLORS,
        "place": _place,
        "line_plot": line_plot,
        "shown_rows": shown_rows,
        "is_note": partial(_is, kind=Note),
        "is_mapping": partial(_is, kind=Mapping),
        "is_sequence": partial(_is, kind=(list, tuple)),
    }
    return environment


def _is_plot(part: object) -> bool:
    return isinstance(part, LinePlot)


def _html(table: Table, names: dict[str, Markup]) -> Markup:
    return Markup(printable(table.html(names)))


def _is(value: object, kind: Any) -> bool:
    return isinstance(value, kind)


def _policy(style: str, script: str) -> str:
    """Nothing may load or run but this style sheet and this script."""
    return (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """The hash by which a Content-Security-Policy knows an inline style sheet or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _place(value: float, scale: tuple[float, float], width: float) -> str:
    """Where `value` of `scale` lies in `width` pixels."""
    low, high = scale
    return f"{(value - low) / ((high - low) or 1) * width:.1f}"


def _plots(run: Run, cost: CostTradeOff | None) -> dict[str, dict[Any, Markup]]:
    """Every plot: kind -> dimension (or number of the system) -> SVG."""
    short = names.short_names(run.measures)
    drawn: dict[str, dict[Any, Markup]] = {"trade_off": {}, "cost": {}, "exposure": {}, "gap": {}, "gains": {}}
    for dimension in run.compared_in:
        if measures := trade_off_measures(run, dimension):
            axes = (short[measures[0]], short[measures[1]])
            drawn["trade_off"][dimension] = trade_off_plot(trade_off(run, dimension), run.systems, axes)
        if means := run.mean_exposures(dimension):
            drawn["exposure"][dimension] = exposure_plot(means, run.systems)
        measure = main_measure(run, dimension)
        if cost and measure and dimension in cost.points:
            axes = (cost.currency.value, short[measure])
            drawn["cost"][dimension] = cost_plot(cost.points[dimension], run.systems, axes)
        gained = gains(run, dimension, measure) if measure else {}
        if any(gained.values()):
            by_system = {run.systems.index(system): tuple(of.values()) for system, of in gained.items()}
            drawn["gains"][dimension] = gains_plot(by_system, run.systems)
    paths = gap_paths(run)
    highest = max((float(path.gaps.max()) for path in paths if path.gaps.size), default=1.0)
    for path in paths:
        if path.gaps.size:
            plot = gap_plot(path, run.systems[path.system], 1.05 * highest or 1.0)
            drawn["gap"][path.system] = plot
    return drawn


def _finding_bars(finding: Finding, colors: Any) -> tuple[Any, ...]:
    return tuple(exposure_bar(_shares(finding.dimension, mean), colors) for mean in finding.exposures or ())


def _shares(dimension: str, mean: MeanExposure) -> GroupShares:
    known = tuple(mean.shares.tolist()), tuple(mean.target.tolist())
    return GroupShares(dimension, mean.labels, *known, mean.unknown, unknown_target=mean.unknown_target)


def _shown_system(run: Run, found: tuple[Finding, ...]) -> int:
    """The system whose topics are shown at first: the best of the first dimension, or the first beside the baseline."""
    if found:
        return run.systems.index(found[0].best.system)
    return min(1, len(run.systems) - 1)


def _extremes(run: Run, views: Any) -> dict[str, Any]:
    """Dimension -> (measure, [(system, best topics, worst topics)])."""
    listed: dict[str, Any] = {}
    # An answer is right or wrong: none gains more than another.
    for dimension in () if run.kind.classes else run.dimensions:
        if measure := main_measure(run, dimension):
            by_system = [
                (number, system, *extremes(run, views, dimension, measure, system))
                for number, system in enumerate(run.systems)
                if system != run.baseline
            ]
            listed[dimension] = (measure, [entry for entry in by_system if entry[2] or entry[3]])
    return listed
