"""A run as one HTML page that needs nothing else: no network, no fonts, no other file.

Its tables and plots are read without a script; topics are data that its script draws (`fairagent.report.topics`).

The page's Content-Security-Policy allows one style sheet and one script, by their hashes, and nothing from anywhere.
Whatever comes from outside (queries, titles, keywords, names, messages) is text and never markup. The same run gives
the same bytes: times are not on it, they differ from run to run and stand in timings.csv.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic_core import to_jsonable_python

from fairagent.evaluate.findings import change_of, findings
from fairagent.evaluate.fingerprint import leaves
from fairagent.evaluate.outcome import GroupShares
from fairagent.evaluate.results import (
    alarms_of,
    columns,
    cost_table,
    marked,
    means_table,
    measure_tables,
    notes,
    published_tables,
    results_table,
)
from fairagent.evaluate.run import MeanExposure, Run
from fairagent.evaluate.tables import LinePlot, Note, p_phrase
from fairagent.evaluate.thresholds import thresholds_table
from fairagent.measures.parse import labels_of, short_labels
from fairagent.report import plots, text, topics
from fairagent.report.topics import GroupBar, Palette
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS, part_class
from fairagent.storage.files import write_whole
from fairagent.types.clean import printable
from fairagent.types.common import counted

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("colors.css", "groups.css", "page.css")
GROUP_COLORS = 12
"""How many colors for groups the style sheet has; more groups use them again."""


def write_page(run: Run, path: Path) -> None:
    """Write `run` as a page to `path`, which appears whole or not at all."""
    write_whole(path, page(run))


def page(run: Run) -> str:
    """`run` as the text of an HTML page."""
    colors, views = topics.palette(run), topics.topic_views(run)
    best = findings(run)
    own = run.of_kind.page
    shown = [column for column in columns(run) if not run.kind.classes or column[0] in run.compared_in]
    name: Any = templates().get_template("macros.html").module.system_name  # type: ignore[attr-defined]
    names = {one: name(run, place) for place, own in enumerate(run.systems) for one in (own, marked(run, own))}
    style, script = "".join(map(template, STYLES)), template("topics.js") + template("page.js")
    # Paragraphs are set apart by blank lines; other line breaks are those of the file.
    about = re.split(r"\n\s*\n", str(run.provenance.get("about") or "").strip())
    return (
        templates()
        .get_template("page.html")
        .render(
            run=run,
            style=Markup(style),
            script=Markup(script),
            # Nothing may load or run but this style sheet and this script.
            policy=f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
            "base-uri 'none'; form-action 'none'",
            short=labels_of(run.measures),
            heads=short_labels(run.measures),
            counted=run.counted_topics,
            alarms=alarms_of(run),
            findings=best,
            changes={one.dimension: change_of(run, one) for one in best},
            finding_bars={
                one.dimension: [_mean_bar(one.dimension, m, colors) for m in one.exposures or ()] for one in best
            },
            means=means_table(run) if columns(run) else None,
            measure_tables=measure_tables(run),
            costs=cost_table(run),
            notes=list(notes(run, details=True)),
            definitions=run.definitions,
            answered=sum(outcome.failed is None for outcome in run.outcomes),
            about=[" ".join(lines.split()) for lines in about if lines],
            compared_in=[dimension or run.kind.overall for dimension in run.compared_in],
            exposures={dimension: run.mean_exposures(dimension) for dimension in run.dimensions},
            own=own,
            thresholds=thresholds_table(run) if run.thresholds else None,
            published=published_tables(run),
            all_numbers=results_table(run),
            markers=plots.MARKERS,
            own_parts=[
                (drawn, list(parts)) for drawn, parts in groupby(own.parts, lambda one: isinstance(one, LinePlot))
            ]
            if own
            else [],
            html=lambda table: Markup(printable(table.html(names))),
            plots=_plots(run),
            # The best of the first dimension, or the first beside the baseline.
            shown_system=run.systems.index(best[0].best.system) if best else min(1, len(run.systems) - 1),
            topics=views,
            columns=shown,
            data=topics.topics_json(run, views, shown, colors),
            colors=colors,
            provenance=Provenance.of(run.provenance),
            failed=[outcome for outcome in run.outcomes if outcome.failed is not None],
        )
    )


def _mean_bar(dimension: str, mean: MeanExposure, colors: Palette) -> GroupBar:
    known = tuple(mean.shares.tolist()), tuple(mean.target.tolist())
    shares = GroupShares(dimension, mean.labels, *known, mean.unknown, unknown_target=mean.unknown_target)
    return topics.exposure_bar(shares, colors)


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
        "signed": text.signed,
        "p_phrase": p_phrase,
        "counted": counted,
        "listed": text.listed,
        "value": "{:.3f}".format,
        "share": lambda share: "–" if share is None else f"{share:.1%}",
    }
    environment.globals |= {
        "color_number": plots.color_number,
        "marker_number": plots.marker_number,
        "group_colors": GROUP_COLORS,
        "line_plot": plots.line_plot,
        "shown_rows": plots.shown_rows,
        "is_note": lambda value: isinstance(value, Note),
        "is_mapping": lambda value: isinstance(value, Mapping),
        "is_sequence": lambda value: isinstance(value, list | tuple),
    }
    return environment


def digest(content: str) -> str:
    """The hash by which a Content-Security-Policy knows an inline style sheet or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _plots(run: Run) -> dict[str, dict[str, Markup]]:
    """Every plot: kind -> dimension -> SVG."""
    short = labels_of(run.measures)
    drawn: dict[str, dict[str, Markup]] = {"trade_off": {}, "exposure": {}}
    for dimension in run.compared_in:
        if found := plots.trade_off(run, dimension):
            (relevance, fairness), points = found
            axes = short[relevance], short[fairness]
            drawn["trade_off"][dimension] = plots.trade_off_plot(points, run.systems, axes)
        if means := run.mean_exposures(dimension):
            drawn["exposure"][dimension] = plots.exposure_plot(means, run.systems)
    return drawn


# --- provenance -----------------------------------------------------------------------------------------------------

UNSET = object()


@dataclass(frozen=True, slots=True)
class Provenance:
    """`own` is what each system has otherwise than by default, by dotted keys; `rest` what is not of a system."""

    rest: Mapping[str, object]
    own: Mapping[str, Mapping[str, object]]

    @classmethod
    def of(cls, recorded: Mapping[str, object]) -> Provenance:
        """What was recorded of a run.

        >>> record = Provenance.of({"seed": 1, "systems": {"A": {"settings": {"n": 5, "loop": {"kind": "none"}}}}})
        >>> record.rest, record.own
        ({'seed': 1}, {'A': {'n': 5, 'loop.kind': 'none'}})
        """
        systems = recorded.get("systems")
        if not isinstance(systems, Mapping):
            return cls(recorded, {})
        rest = {key: value for key, value in recorded.items() if key != "systems"}
        return cls(rest, {name: dict(_differences(record)) for name, record in systems.items()})


def _differences(record: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The settings that differ from the defaults, each under its place (`loop.kind`), then what else there is."""
    settings = record.get("settings", {})
    usual: dict[str, Any] = Settings().model_dump(mode="json")
    for slot in SLOTS:
        # The defaults of a part are its own kind's, but for the kind where that is another; a target may not be set.
        kind, own = ((part or {}).get("kind") for part in (settings.get(slot), usual[slot]))
        if kind != own:
            usual[slot] = _of_kind(slot, str(kind))
    defaults = dict(leaves(usual))
    yield from ((key, value) for key, value in leaves(settings) if defaults.get(key, UNSET) != value)
    for key in (one for one in record if one != "settings"):
        yield from leaves(record[key], key)


def _of_kind(slot: str, kind: str) -> dict[str, Any]:
    """The defaults of the fields of a part that have any; none where the package that brings it is not here."""
    try:
        fields = part_class(slot, kind).model_fields
    except ValueError:
        return {}
    usual = {name: one for name, one in fields.items() if name != "kind" and not one.is_required()}
    return {name: to_jsonable_python(one.get_default(call_default_factory=True)) for name, one in usual.items()}
