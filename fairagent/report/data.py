"""The topics of the page as one JSON object, which the page's script draws when a topic is opened.

What occurs often is written once: documents, keywords, sources, reasons, targets and the lists of labels are in tables,
and stand elsewhere as their number. Shares have four decimals. Every text is cleaned here, and the script shows it as
nothing but text.
"""

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fairagent.evaluate.outcome import GroupShares
from fairagent.evaluate.run import Run
from fairagent.report.names import money
from fairagent.report.text import gap_text
from fairagent.report.topics import Asked, Palette, Panel, ShownExchange, ShownHit, ShownStep, TopicView
from fairagent.types import exposure_rows
from fairagent.types.clean import printable

SNIPPETS = 1_500_000
"""Characters of all snippets of the page together, about."""
SHORTEST_SNIPPET = 60

Record = dict[str, Any]
Column = tuple[str, str]


def topics_json(
    run: Run, views: Sequence[TopicView], columns: Sequence[Column], colors: Palette, asked: Asked
) -> Markup:
    """All topics for a script element: nothing in it ends that element."""
    data = _Tables(colors)
    topics = [_topic(view, columns, data, asked) for view in views]
    whole = {
        "ranked": not run.kind.classes,
        "baseline": run.systems.index(run.baseline),
        "documents": data.documents,
        "snippets": cut(data.snippets),
        "scales": list(data.scales),
        "texts": list(data.texts),
        "topics": topics,
    }
    text = json.dumps(_clean(whole), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


class _Tables:
    """What is written once, in the order of its first use."""

    def __init__(self, colors: Palette) -> None:
        self.documents: list[Any] = []
        self.snippets: list[str] = []
        self.scales: dict[tuple[Any, ...], int] = {}
        self.texts: dict[str, int] = {}
        self._places: dict[object, int] = {}
        self._colors = colors

    def text(self, text: str | None) -> int | None:
        """The number of a text that occurs often; None where there is none."""
        return self.texts.setdefault(text, len(self.texts)) if text else None

    def document(self, hit: ShownHit) -> int:
        """The number of a document: its title, its groups and the beginning of its text."""
        title = "".join(text for text, _ in hit.title)
        place = self._places.setdefault((title, hit.snippet, hit.chips), len(self.documents))
        if place == len(self.documents):
            self.documents.append([title, [[chip.color, chip.text] for chip in hit.chips]])
            self.snippets.append(hit.snippet)
        return place

    def exposure(self, exposure: GroupShares) -> list[Any]:
        """The dimension with its labels, colors and target as a number; the shares; what has no label (its target)."""
        numbers = [self._colors.get((exposure.dimension, label)) for label in exposure.labels]
        target = [_short(share) for share in exposure.target]
        scale = (exposure.dimension, tuple(exposure.labels), tuple(numbers), tuple(target))
        place = self.scales.setdefault(scale, len(self.scales))
        *known, unknown = exposure_rows(exposure)
        due = [] if unknown.target is None else [_short(unknown.target)]
        return [place, [_short(row.share) for row in known], _short(unknown.share), *due]


def _topic(view: TopicView, columns: Sequence[Column], data: _Tables, asked: Asked) -> Record:
    return {
        "id": view.id,
        "query": view.query,
        "excluded": view.excluded,
        "panels": [
            _panel(panel, view.query, columns, data, asked.get((view.id, panel.name), ())) for panel in view.panels
        ],
    }


def _panel(
    panel: Panel, query: str, columns: Sequence[Column], data: _Tables, asked: Sequence[ShownExchange]
) -> Record:
    outcome = panel.outcome
    values = [outcome.values.get(dimension, {}).get(measure) for dimension, measure in columns]
    answer = outcome.answer
    tokens = [outcome.input_tokens, outcome.output_tokens, money(outcome.cost)] if outcome.calls else []
    found = {
        "system": panel.system,
        "values": [None if value is None else round(value, 4) for value in values],
        "gains": [None if gain is None else round(gain, 6) for gain in panel.gains],
        "failed": outcome.failed,
        "query": outcome.query if outcome.query != query else None,
        "answer": answer and [answer.text, answer.graded_by, list(answer.removed)],
        "steps": [_step(step, data) for step in panel.steps],
        "stopped": data.text(outcome.stopped),
        "took": [outcome.calls, *tokens],
        "exposures": [data.exposure(exposure) for exposure in panel.exposures],
        "hits": [_hit(hit, data) for hit in panel.hits],
        "hidden": panel.hidden or None,
        "asked": _asked(asked, data),
    }
    return _told(found)


def _asked(exchanges: Sequence[ShownExchange], data: _Tables) -> list[Any]:
    """Each exchange: its template, the messages (role, text), the reply, what went wrong, tokens in and out."""
    return [
        [
            one.prompt,
            [[role, data.text(text)] for role, text in one.messages],
            one.reply,
            list(one.faults),
            one.input_tokens,
            one.output_tokens,
        ]
        for one in exchanges
    ]


def _hit(hit: ShownHit, data: _Tables) -> list[Any]:
    """The document, whether it is relevant, how far it rose, and from where to where its title has keywords."""
    marks, at = [], 0
    for text, marked in hit.title:
        marks += [at, at + len(text)] if marked else []
        at += len(text)
    return [data.document(hit), int(hit.relevant), hit.moved, *marks]


def _step(step: ShownStep, data: _Tables) -> Record:
    record = step.record
    found = {
        "source": data.text(record.source),
        "aim": data.text(record.aim),
        "was": step.aim and [_short(share) for share in step.aim[1:]],
        "terms": [[data.text(text), f"{weight:.2g}"] for text, weight in step.terms],
        "more": step.more or None,
        "dropped": list(record.dropped),
        "refused": list(record.refused),
        "why": data.text(record.why),
        "weights": [[data.text(group), f"{weight:.2f}"] for group, weight in record.weights],
        "reason": data.text(record.reason),
        "gap": gap_text(record.gap),
        "discarded": not record.accepted,
        "worse": list(record.worse),
        "entered": record.entered or None,
        "exposures": [data.exposure(exposure) for exposure in step.exposures],
    }
    return _told(found)


def cut(snippets: list[str]) -> list[str]:
    """The snippets, so short that the page stays a page; none where too little would be left of them."""
    length = SNIPPETS // max(1, len(snippets))
    return [text[:length] for text in snippets] if length >= SHORTEST_SNIPPET else []


def _told(found: Record) -> Record:
    """What there is of it; a number that is 0 is there."""
    return {key: value for key, value in found.items() if value or type(value) is int}


def _short(share: float) -> float:
    """Four decimals are more than is drawn; what is there does not become nothing."""
    return round(share, 4) or (0.0001 if share > 0 else 0)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _clean(part) for key, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list | tuple) else value
