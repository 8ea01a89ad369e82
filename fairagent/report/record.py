"""A search, or an answer, as plain values for JSON: the same facts as the tables and the story, none left out."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fairagent.errors import BackendUnavailable
from fairagent.storage.packages import is_installed
from fairagent.types import AnswerResult, Exposure, Hit, Removal, SearchResult, Step, Usage, exposure_rows

PlainRecord = dict[str, Any]
LONGEST_TEXT = 2000
"""Characters of a hit's text in a record."""


def to_json(record: PlainRecord) -> str:
    """`record` as JSON in ASCII; what is not finite (the gap of a ranking without a labeled document) becomes null."""
    return json.dumps(_finite(record), indent=2, allow_nan=False)


def result_record(result: SearchResult, steps: bool = True) -> PlainRecord:
    """A search's ranking, exposure before and after, and `steps`. Shares are fractions, gaps in nats, ranks from 1."""
    trace = result.trace
    before, after = trace.steps[0], trace
    return {
        "collection": trace.collection,
        "query": {"text": result.query.text, "topic": result.query.id or None},
        "profile": trace.profile or None,
        "engine": trace.engine,
        "hits": [hit_record(hit) for hit in result.hits],
        "targets": dict(zip((exposure.dimension for exposure in after.exposures), trace.targets, strict=True)),
        "oracle": trace.oracle,
        "exposure": {
            "before": [exposure_record(exposure) for exposure in before.exposures],
            "after": [exposure_record(exposure) for exposure in after.exposures],
        },
        "changes": [one.record() for one in trace.changes],
        "gap": {"before": before.gap, "after": after.gap},
        "relevance": trace.relevance,
        "relevance_kept": trace.relevance_kept,
        "fairness": trace.fairness,
        "objective": {"relevance": trace.relevance, "fairness": trace.fairness, "value": trace.objective},
        "steps": [step_record(step) for step in trace.steps if steps],
        "stopped": trace.stopped,
        "entered": {"candidates": sum(step.entered for step in trace.steps), "served": trace.entered},
        "notes": list(trace.notes),
        "alarms": list(map(str, trace.alarms)),
        "candidates": trace.candidates,
        "reranker": trace.reranker,
        "draw": trace.draw and asdict(trace.draw),
        "usage": usage_record(trace.usage),
        "seconds": {
            "all": trace.seconds,
            "engine": trace.engine_seconds,
            "model": trace.usage.seconds,
            "own": max(0.0, trace.seconds - trace.engine_seconds - trace.usage.seconds),
        },
    }


def answer_record(result: AnswerResult) -> PlainRecord:
    """An answer, its context as it is numbered, what it rests on, what a filter did, and its search."""
    answer, filtered, attribution, debiased = result.answer, result.filtered, result.attribution, result.debiased
    exposures, revision = result.exposures, result.answer.revision
    weights = attribution.weights.tolist() if attribution else [None] * len(result.context)
    gaps = {"context": exposures.context_gap, "cited": exposures.cited_gap} if exposures.context else {}
    gaps |= {} if exposures.least_gap is None else {"least": exposures.least_gap}
    return {
        "collection": result.search.trace.collection,
        "answer": answer.text,
        "truncated": answer.truncated,
        "abstains": answer.abstains,
        "source": answer.source,
        "cited": list(answer.cited),
        "context": [
            {"number": number, **hit_record(hit), "cited": number in answer.cited, "weight": weight}
            for number, (hit, weight) in enumerate(zip(result.context, weights, strict=True), start=1)
        ],
        "attribution": attribution and attribution.kind,
        "exposure": attribution
        and {
            "retrieved": [exposure_record(exposure) for exposure in attribution.retrieved],
            "attributed": [exposure_record(exposure) for exposure in attribution.exposures],
        },
        # The exposure of the context and the citations, with the gap of each and of the ranking, and a second pass.
        "citations": {
            "exposure": {
                "context": [exposure_record(one) for one in exposures.context],
                "cited": [exposure_record(one) for one in exposures.cited],
            },
            "gap": {"ranking": result.search.trace.gap, **gaps},
            "support": result.support,
            "revised": result.revised,
            "revision": revision and asdict(revision),
            "given": result.aimed and {**asdict(result.aimed), "text": str(result.aimed)},
            "uncited": _removals(result.uncited),
        },
        "verdicts": filtered and [asdict(verdict) for verdict in filtered.verdicts],
        "removed": _removals(result.removed),
        "debiasing": debiased
        and {
            "class": debiased.bias_class or None,
            **{name: list(getattr(debiased, name)) for name in ("avoided", "made", "survived", "placed", "dropped")},
            "theta": {"before": list(debiased.theta_before), "after": list(debiased.theta_after)},
            "scores": list(debiased.scores),
            "notes": list(debiased.notes),
        },
        "notes": [*result.notes, *answer.notes, *(attribution.notes if attribution else ())],
        "alarms": list(map(str, result.alarms)),
        "usage": usage_record(result.usage),
        "seconds": result.seconds,
        "search": result_record(result.search),
    }


def _removals(removed: Sequence[Removal]) -> list[PlainRecord]:
    return [
        {"dimension": one.group.dimension, "label": one.group.label, "seen": one.seen, "share": one.share}
        for one in removed
    ]


def hit_record(hit: Hit) -> PlainRecord:
    """One line of a ranking, with the first `LONGEST_TEXT` characters of its text."""
    groups = {dimension: dict(shares) for dimension, shares in hit.groups.items()}
    line = {name: getattr(hit, name) for name in ("rank", "id", "name", "title", "snippet", "score")}
    return {**line, "groups": groups, "text": hit.text[:LONGEST_TEXT], "columns": {**hit.columns}}


def record_of(result: SearchResult | AnswerResult) -> PlainRecord:
    """The record of whichever it is."""
    return answer_record(result) if isinstance(result, AnswerResult) else result_record(result)


def frame_of(result: SearchResult | AnswerResult) -> Any:
    """A pandas DataFrame of the hits; see `Recorded.to_frame`."""
    if not is_installed("pandas"):
        raise BackendUnavailable("to_frame makes a DataFrame of pandas, which is not installed: pip install pandas")
    from pandas import DataFrame

    about, rows = ["rank", "id", "score", "title", "text"], []
    for hit in result.context if isinstance(result, AnswerResult) else result.hits:
        groups = {dimension: ", ".join(shares) or None for dimension, shares in hit.groups.items()}
        rows.append({**groups, **hit.columns, **{name: getattr(hit, name) for name in about}})
    return DataFrame(rows, columns=list(dict.fromkeys([*about, *(name for row in rows for name in row)])))


def step_record(step: Step) -> PlainRecord:
    """One step of a search."""
    return {
        "source": step.source,
        "aim": {"dimension": step.aim.dimension, "label": step.aim.label} if step.aim else None,
        "why": step.why or None,
        "reason": step.reason or None,
        "notes": list(step.notes),
        "added": [{"text": term.text, "weight": term.weight} for term in step.added],
        "dropped": list(step.dropped),
        "refused": list(step.refused),
        "proposed": step.proposals.made,
        "usable": step.proposals.usable,
        "retrieved": len(step.ranking),
        "exposure": [exposure_record(exposure) for exposure in step.exposures],
        "gap": step.gap,
        "was": step.was,
        "objective": dict(zip(("before", "after"), step.objectives, strict=False)) or None,
        "accepted": step.accepted,
        "worse": list(step.worse),
        "entered": step.entered,
        "usage": usage_record(step.usage),
    }


def exposure_record(exposure: Exposure) -> PlainRecord:
    """What one dimension's groups get, and should get."""
    *known, unknown = exposure_rows(exposure)
    return {
        "dimension": exposure.dimension,
        "groups": [{"label": label, "share": share, "target": target} for label, share, target in known],
        "unknown": unknown.share,
        "unknown_target": unknown.target,
        "divergence": exposure.divergence,
        "importance": exposure.importance,
    }


def usage_record(usage: Usage) -> PlainRecord:
    """Calls, tokens and cost in dollars, None where it is not known."""
    return {name: getattr(usage, name) for name in ("calls", "input_tokens", "output_tokens", "cost")}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
