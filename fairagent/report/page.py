"""A run as one HTML page that needs nothing else: no network, no fonts, no other file; and results in notebooks.

The page's tables and plots are read without a script; topics are one JSON object that its script draws.

Its Content-Security-Policy allows one style sheet and one script, by their hashes, and nothing from anywhere. Whatever
comes from outside (queries, titles, keywords, names, messages) is text and never markup. The same run gives the same
bytes: times are not on it, they differ from run to run and stand in timings.csv.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic_core import to_jsonable_python

from fairagent.evaluate.findings import change_of, findings, main_measure
from fairagent.evaluate.fingerprint import leaves
from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome, StepRecord
from fairagent.evaluate.results import (
    alarms_of,
    cost_table,
    marked,
    means_table,
    measure_tables,
    notes,
    published_tables,
    results_table,
)
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import LinePlot, Note, p_phrase
from fairagent.evaluate.thresholds import thresholds_table
from fairagent.measures.parse import labels_of, short_labels
from fairagent.report import plots, text
from fairagent.report.story import CUT_OFF, TOPIC_WORDS_SHOWN
from fairagent.report.text import gap_text
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS, part_class
from fairagent.storage.files import write_whole
from fairagent.types import AnswerResult, Exposure, SearchResult, exposure_rows
from fairagent.types.change import percent
from fairagent.types.clean import in_line, printable
from fairagent.types.common import counted, dollars

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("colors.css", "groups.css", "page.css")
GROUP_COLORS = 12
"""How many colors for groups the style sheet has; more groups use them again."""

Palette = Mapping[tuple[str, str], int]
"""(dimension, label) -> the number of its color."""
Record = dict[str, Any]


def write_page(run: Results, path: Path) -> None:
    """Write `run` as a page to `path`, which appears whole or not at all."""
    write_whole(path, page(run))


def page(run: Results) -> str:
    """`run` as the text of an HTML page."""
    colors, views = palette(run), topic_views(run)
    best, section = findings(run), run.of_kind.page
    columns = [column for column in run.columns if not run.kind.classes or column[0] in run.compared_in]
    name: Any = templates().get_template("macros.html").module.system_name  # type: ignore[attr-defined]
    names = {one: name(run, place) for place, plain in enumerate(run.systems) for one in (plain, marked(run, plain))}
    style, script = "".join(map(template, STYLES)), template("topics.js") + template("page.js")
    # Paragraphs are set apart by blank lines; other line breaks are those of the file.
    about = re.split(r"\n\s*\n", str(run.provenance.get("about") or "").strip())
    made: Any = run.provenance.get("systems")
    short, drawn = labels_of(run.measures), dict[str, dict[str, Markup]](trade_off={}, exposure={})
    for dimension in run.compared_in:
        if between := plots.trade_off(run, dimension):
            (relevance, fairness), points = between
            axes = short[relevance], short[fairness]
            drawn["trade_off"][dimension] = plots.trade_off_plot(points, run.systems, axes)
        if exposed := run.mean_exposures(dimension):
            drawn["exposure"][dimension] = plots.exposure_plot(exposed, run.systems)
    bars: dict[str, list[GroupBar]] = {one.dimension: [] for one in best}
    for one in best:
        for mean in one.exposures or ():
            known = tuple(mean.shares.tolist()), tuple(mean.target.tolist())
            shares = GroupShares(one.dimension, mean.labels, *known, mean.unknown, unknown_target=mean.unknown_target)
            bars[one.dimension].append(exposure_bar(shares, colors))
    parts = groupby(section.parts, lambda one: isinstance(one, LinePlot)) if section else ()
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
            short=short,
            heads=short_labels(run.measures),
            counted=run.counted_topics,
            alarms=alarms_of(run),
            findings=best,
            changes={one.dimension: change_of(run, one) for one in best},
            finding_bars=bars,
            means=means_table(run) if run.columns else None,
            measure_tables=measure_tables(run),
            costs=cost_table(run),
            notes=list(notes(run, details=True)),
            definitions={name: one.definition for name, one in run.measured.items() if one.definition},
            answered=sum(outcome.failed is None for outcome in run.outcomes),
            about=[" ".join(lines.split()) for lines in about if lines],
            compared_in=[dimension or run.kind.overall for dimension in run.compared_in],
            exposures={dimension: run.mean_exposures(dimension) for dimension in run.dimensions},
            own=section,
            own_parts=[(plotted, list(group)) for plotted, group in parts],
            thresholds=thresholds_table(run) if run.thresholds else None,
            published=published_tables(run),
            all_numbers=results_table(run),
            markers=plots.MARKERS,
            html=lambda table: Markup(printable(table.html(names))),
            plots=drawn,
            # The best of the first dimension, or the first beside the baseline.
            shown_system=run.systems.index(best[0].best.system) if best else min(1, len(run.systems) - 1),
            topics=views,
            columns=columns,
            data=topics_json(run, views, columns, colors),
            colors=colors,
            provenance={key: value for key, value in run.provenance.items() if key != "systems"},
            own_settings={name: dict(_own_settings(record)) for name, record in (made or {}).items()},
            failed=[outcome for outcome in run.outcomes if outcome.failed is not None],
        )
    )


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


def _own_settings(record: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """What a system has otherwise than by default, each under its place (`loop.kind`), then what else there is."""
    settings = record.get("settings", {})
    usual: dict[str, Any] = Settings().model_dump(mode="json")
    for slot in SLOTS:
        # The defaults of a part are its own kind's, but for the kind where that is another; a target may not be set.
        kind, default = ((part or {}).get("kind") for part in (settings.get(slot), usual[slot]))
        if kind != default:
            usual[slot] = {}
            try:
                fields = part_class(slot, str(kind)).model_fields
            except ValueError:  # the package that brings it is not here
                continue
            for name, field in fields.items():
                if name != "kind" and not field.is_required():
                    usual[slot][name] = to_jsonable_python(field.get_default(call_default_factory=True))
    defaults = dict(leaves(usual))
    yield from ((key, value) for key, value in leaves(settings) if key not in defaults or defaults[key] != value)
    for key in (one for one in record if one != "settings"):
        yield from leaves(record[key], key)


# --- groups ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupBar:
    """The groups of one dimension as parts of one bar, above their targets: (color, SVG path) and all in words."""

    dimension: str
    parts: tuple[tuple[int | None, str], ...]
    words: str


def palette(run: Results) -> Palette:
    """Every group's color number, the dimensions' labels one after the other."""
    groups = dict.fromkeys(
        (exposure.dimension, label)
        for outcome in run.outcomes
        for exposure in (*outcome.exposures, *(e for step in outcome.steps for e in step.exposures))
        for label in exposure.labels
    )
    order = {dimension: place for place, dimension in enumerate(run.dimensions)}
    ordered = sorted(groups, key=lambda group: order.get(group[0], len(order)))
    return {group: number for number, group in enumerate(ordered)}


def chips(groups: Mapping[str, Mapping[str, float]], colors: Palette) -> tuple[tuple[int | None, str], ...]:
    """Color and text of the groups that a document belongs to (dimension -> label -> share), shares that differ too."""
    return tuple(
        (colors.get((dimension, label)), f"{label} {percent(share)}" if len(set(shares.values())) > 1 else label)
        for dimension, shares in groups.items()
        for label, share in shares.items()
    )


def exposure_bar(exposure: GroupShares, colors: Palette) -> GroupBar:
    """One dimension's shares (above) and targets (below, thin) as a bar of 100 x 10, last what has no label."""

    def rectangle(left: float, width: float, top: str, height: str) -> str:
        # Nothing where it would not be seen.
        return "" if width < 0.0005 else f"M{100 * left:.4g} {top}h{100 * width:.4g}v{height}h-{100 * width:.4g}z"

    parts: list[tuple[int | None, str]] = []
    share_from = target_from = 0.0
    rows = exposure_rows(exposure)
    of_known = 1 - exposure.unknown
    due_known = of_known if exposure.unknown_target is None else 1 - exposure.unknown_target
    for place, (label, share, target) in enumerate(rows):
        is_known = place < len(exposure.labels)
        width, due = (share * of_known, (target or 0) * due_known) if is_known else (share, target or 0)
        if drawn := rectangle(share_from, width, "0", "6.5") + rectangle(target_from, due, "8", "2"):
            parts.append((colors.get((exposure.dimension, label)) if is_known else None, drawn))
        share_from, target_from = share_from + width, target_from + due
    words = ", ".join(
        f"{label} {percent(share)}" + ("" if target is None else f" (target {percent(target)})")
        for label, share, target in rows
        if share or target
    )
    return GroupBar(exposure.dimension, tuple(parts), f"{exposure.dimension}: {words}")


def html_of(result: SearchResult | AnswerResult) -> str:
    """A result as HTML that stands in a notebook: its styles hold inside it alone, and it has no script."""
    named: list[tuple[str, Sequence[Exposure]]] = []
    if isinstance(result, SearchResult):
        trace, answer_text, numbered = result.trace, None, "rank"
        named = [("before", trace.steps[0].exposures), ("after", trace.exposures)]
        verdict = "".join(f"{change}. " for change in trace.changes)
        facts = f"{verdict}gap {gap_text(trace.steps[0].gap)} → {gap_text(trace.gap)}; {trace.stopped}"
        lines = [(hit.rank, hit, False) for hit in result.hits]
    else:
        answer, numbered, facts = result.answer, "source", f"answered by {result.answer.source}"
        answer_text = f"{answer.text}{CUT_OFF}" if answer.truncated else answer.text
        lines = [(number, hit, number in answer.cited) for number, hit in enumerate(result.context, start=1)]
        if one := result.attribution:
            named = [("read", one.retrieved), (one.called, one.exposures)]
    groups = [(exposure.dimension, label) for exposure in (named[-1][1] if named else ()) for label in exposure.labels]
    colors: Palette = {group: number for number, group in enumerate(groups)}
    # A row a dimension, with a bar for each ranking.
    rows = []
    for exposures in zip(*(exposures for _, exposures in named), strict=True):
        pairs = zip(named, exposures, strict=True)
        bars = [(name, exposure_bar(GroupShares.of(exposure), colors)) for (name, _), exposure in pairs]
        rows.append((printable(exposures[0].dimension), bars))
    # Colors and groups as on the page, inside the result's own element.
    inside = "".join(map(template, ("groups.css", "notebook.css")))
    return (
        templates()
        .get_template("notebook.html")
        .render(
            style=Markup(template("colors.css").replace(":root", ".fairagent") + f".fairagent {{ {inside} }}"),
            query=result.query.text,
            facts=facts,
            answer=answer_text,
            numbered=numbered,
            lines=[(number, in_line(hit.name), chips(hit.groups, colors), cited) for number, hit, cited in lines],
            rows=rows,
            colors=colors,
        )
    )


# --- topics ---------------------------------------------------------------------------------------------------------

STEP_GROUPS = 24
"""With more groups than that in all dimensions, a step shows only the dimension that it was for."""
ROWS = 8_000
"""How many lines all rankings of the page may have together, so that it stays a page."""
PANELS = 600
"""How many answers to questions the page may show."""
FEWEST_HITS, MOST_HITS = 10, 50
SNIPPETS = 1_500_000
"""Characters of all snippets of the page together, about."""
SHORTEST_SNIPPET = 60


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic: number of the system -> its outcome (the baseline's first), and its gains by dimension."""

    number: int
    id: str
    query: str
    excluded: str | None
    outcomes: Mapping[int, Outcome]
    gains: Mapping[int, tuple[float | None, ...]]


def topic_views(run: Results) -> tuple[TopicView, ...]:
    """All topics in the order of the run (of questions the first), then those excluded before anything ran."""
    by_topic = run.by_topic
    if run.kind.classes:
        by_topic = dict(islice(by_topic.items(), max(1, PANELS // len(run.systems))))
    measures = [main_measure(run, dimension) for dimension in run.compared_in]
    gained = [gains(run, d, m) if m else {} for d, m in zip(run.compared_in, measures, strict=True)]
    views = []
    order = sorted(range(len(run.systems)), key=lambda number: run.systems[number] != run.baseline)
    unseen = [] if run.kind.classes else [topic for topic in run.excluded if topic not in by_topic]
    for number, topic in enumerate([*by_topic, *unseen], start=1):
        of_topic = by_topic.get(topic, {})
        outcomes = {system: of_topic[name] for system in order if (name := run.systems[system]) in of_topic}
        of_system = {
            system: tuple(of_dimension.get(one.system, {}).get(topic) for of_dimension in gained)
            for system, one in outcomes.items()
        }
        query = next((outcome.query for outcome in of_topic.values()), "")
        views.append(TopicView(number, topic, query, run.excluded.get(topic), outcomes, of_system))
    return tuple(views)


def gains(run: Results, dimension: str, measure: str) -> dict[str, dict[str, float]]:
    """System -> topic -> by how much it is better than the baseline, where both have a value."""
    gained: dict[str, dict[str, float]] = {system: {} for system in run.systems if system != run.baseline}
    for topic in run.counted_topics:
        values = {name: one.values.get(dimension, {}).get(measure) for name, one in run.by_topic[topic].items()}
        base = values[run.baseline]
        for system, of_system in gained.items():
            value = values[system]
            if base is not None and value is not None:
                of_system[topic] = run.gain(measure, value, base)
    return gained


def topics_json(
    run: Results, views: Sequence[TopicView], columns: Sequence[tuple[str, str]], colors: Palette
) -> Markup:
    """All topics for a script element: nothing in it ends that element."""
    tables = TopicTables(colors, min(MOST_HITS, max(FEWEST_HITS, ROWS // max(1, len(run.outcomes)))))
    topics = [
        {
            "id": view.id,
            "query": view.query,
            "excluded": view.excluded,
            "panels": [tables.panel(view, system, columns, run.baseline) for system in view.outcomes],
        }
        for view in views
    ]
    whole = {
        "ranked": not run.kind.classes,
        "baseline": run.systems.index(run.baseline),
        "documents": tables.documents,
        "snippets": cut(tables.snippets),
        "scales": list(tables.scales),
        "texts": list(tables.texts),
        "topics": topics,
    }
    return Markup(json.dumps(_clean(whole), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


class TopicTables:
    """What is written once, in the order of its first use, and stands elsewhere as its number.

    Shares have four decimals; of a ranking the first `most` documents are shown.
    """

    def __init__(self, colors: Palette, most: int = MOST_HITS) -> None:
        self.documents: list[Any] = []
        self.snippets: list[str] = []
        self.scales: dict[tuple[Any, ...], int] = {}
        self.texts: dict[str, int] = {}
        self._places: dict[object, int] = {}
        self._colors = colors
        self._most = most

    def _text(self, text: str | None) -> int | None:
        """The number of a text that occurs often; None where there is none."""
        return self.texts.setdefault(text, len(self.texts)) if text else None

    def _exposure(self, exposure: GroupShares) -> list[Any]:
        """The dimension with its labels, colors and target as a number; the shares; what has no label (its target)."""
        numbers = tuple(self._colors.get((exposure.dimension, label)) for label in exposure.labels)
        scale = (exposure.dimension, tuple(exposure.labels), numbers, tuple(map(_short, exposure.target)))
        place = self.scales.setdefault(scale, len(self.scales))
        *known, unknown = exposure_rows(exposure)
        due = [] if unknown.target is None else [_short(unknown.target)]
        return [place, [_short(row.share) for row in known], _short(unknown.share), *due]

    def panel(self, view: TopicView, system: int, columns: Sequence[tuple[str, str]], baseline: str) -> Record:
        """One system on one topic: its values and gains, the story of its ranking, and the ranking."""
        outcome, answer = view.outcomes[system], view.outcomes[system].answer
        values = [outcome.values.get(dimension, {}).get(measure) for dimension, measure in columns]
        tokens = [outcome.input_tokens, outcome.output_tokens, dollars(outcome.cost)] if outcome.calls else []
        before = next((one.hits for one in view.outcomes.values() if one.system == baseline), ())
        ranks = {hit.id: rank for rank, hit in enumerate(before, start=1)}
        hits = enumerate(outcome.hits[: self._most], start=1)
        return _filled(
            {
                "system": system,
                "values": [None if value is None else round(value, 4) for value in values],
                "gains": [None if gain is None else round(gain, 6) for gain in view.gains[system]],
                "failed": outcome.failed,
                "query": outcome.query if outcome.query != view.query else None,
                "answer": answer and [answer.text, answer.graded_by, list(answer.removed)],
                "steps": list(self._steps(outcome.steps)),
                "stopped": self._text(outcome.stopped),
                "took": [outcome.calls, *tokens],
                "exposures": [self._exposure(exposure) for exposure in outcome.exposures],
                "hits": [self._hit(hit, rank, ranks.get(hit.id)) for rank, hit in hits],
                "hidden": max(0, len(outcome.hits) - self._most) or None,
            }
        )

    def _hit(self, hit: HitRecord, rank: int, before: int | None) -> list[Any]:
        """The document, whether it is relevant, and how far it rose."""
        title, groups = hit.title or hit.id, chips(hit.groups, self._colors)
        place = self._places.setdefault((title, hit.snippet, groups), len(self.documents))
        if place == len(self.documents):
            self.documents.append([title, list(map(list, groups))])
            self.snippets.append(hit.snippet)
        return [place, int(hit.relevant), None if before is None else before - rank]

    def _steps(self, steps: Sequence[StepRecord]) -> Iterable[Record]:
        """The steps of a story; "was" is what became of the group that a step was for: its share, then, and target."""
        reached: StepRecord | None = None
        for step in steps:
            refined = reached is not None and step.aim is not None
            terms = step.terms if refined else step.terms[:TOPIC_WORDS_SHOWN]
            # Share before, share after and target of the step's group, named as `fairagent.types.Group` prints itself.
            pairs = zip(reached.exposures, step.exposures, strict=False) if reached else ()
            was = next(
                (
                    (one.shares[place], now.shares[place], one.target[place])
                    for one, now in pairs
                    for place, label in enumerate(one.labels)
                    if step.aim == f"{label} ({one.dimension})"
                ),
                None,
            )
            few = sum(len(each.labels) for each in step.exposures) <= STEP_GROUPS
            exposures = [
                self._exposure(one)
                for one in ([] if refined and not terms else step.exposures)
                if few or (step.aim or "").endswith(f" ({one.dimension})")
            ]
            yield _filled(
                {
                    "source": self._text(step.source),
                    "aim": self._text(step.aim),
                    "was": was and list(map(_short, was)),
                    "terms": [[self._text(term), f"{weight:.2g}"] for term, weight in terms],
                    "more": len(step.terms) - len(terms) or None,
                    "dropped": list(step.dropped),
                    "refused": list(step.refused),
                    "proposed": f"{step.usable} of {step.proposed}" if step.proposed else None,
                    "why": self._text(step.why),
                    "reason": self._text(step.reason),
                    "gap": gap_text(step.gap),
                    "discarded": not step.accepted,
                    "worse": list(step.worse),
                    "entered": step.entered or None,
                    "exposures": exposures,
                }
            )
            reached = step if step.accepted else reached


def cut(snippets: list[str]) -> list[str]:
    """The snippets, so short that the page stays a page; none where too little would be left of them."""
    length = SNIPPETS // max(1, len(snippets))
    return [snippet[:length] for snippet in snippets] if length >= SHORTEST_SNIPPET else []


def _filled(record: Record) -> Record:
    """What there is of it; a number that is 0 is there."""
    return {key: value for key, value in record.items() if value or type(value) is int}


def _short(share: float) -> float:
    """Four decimals are more than is drawn; what is there does not become nothing."""
    return round(share, 4) or (0.0001 if share > 0 else 0)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _clean(part) for key, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list | tuple) else value
