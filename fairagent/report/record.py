"""A search as plain values for JSON: the same facts as the tables and the story, none left out."""

from __future__ import annotations

import json
import math
from typing import Any

from fairagent.types import Exposure, SearchResult, Step, Usage

Record = dict[str, Any]


def to_json(record: Record) -> str:
    """`record` as JSON in ASCII; what is not finite (the gap of a ranking without a labeled document) becomes null.

    >>> print(to_json({"gap": float("inf")}))
    {
      "gap": null
    }
    """
    return json.dumps(_finite(record), indent=2, allow_nan=False)


def result_record(result: SearchResult) -> Record:
    """A search's ranking, exposure before and after, and steps. Shares are fractions, gaps in nats, ranks from 1."""
    trace = result.trace
    before, after = trace.steps[0], trace
    return {
        "query": {"text": result.query.text, "topic": result.query.id or None},
        "hits": [
            {"rank": hit.rank, "id": hit.id, "title": hit.title, "score": hit.score, "groups": _plain(hit.groups)}
            for hit in result.hits
        ],
        "targets": dict(zip((exposure.dimension for exposure in after.exposures), trace.targets, strict=True)),
        "oracle": trace.oracle,
        "exposure": {
            "before": [_exposure(exposure) for exposure in before.exposures],
            "after": [_exposure(exposure) for exposure in after.exposures],
        },
        "gap": {"before": before.gap, "after": after.gap},
        "steps": [_step(step) for step in trace.steps],
        "stopped": trace.stopped,
        "candidates": trace.candidates,
        "reranker": trace.reranker,
        "usage": _usage(trace.usage),
        "seconds": {
            "all": trace.seconds,
            "engine": trace.engine_seconds,
            "model": trace.usage.seconds,
            "own": max(0.0, trace.seconds - trace.engine_seconds - trace.usage.seconds),
        },
    }


def _step(step: Step) -> Record:
    return {
        "source": step.source,
        "aim": {"dimension": step.aim.dimension, "label": step.aim.label} if step.aim else None,
        "added": [{"text": term.text, "weight": term.weight} for term in step.added],
        "dropped": list(step.dropped),
        "retrieved": len(step.ranking),
        "exposure": [_exposure(exposure) for exposure in step.exposures],
        "gap": step.gap,
        "accepted": step.accepted,
        "usage": _usage(step.usage),
    }


def _exposure(exposure: Exposure) -> Record:
    rows = zip(exposure.labels, exposure.shares.tolist(), exposure.target.tolist(), strict=True)
    return {
        "dimension": exposure.dimension,
        "groups": [{"label": label, "share": share, "target": target} for label, share, target in rows],
        "unknown": exposure.unknown,
        "divergence": exposure.divergence,
    }


def _usage(usage: Usage) -> Record:
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost,
    }


def _plain(groups: Any) -> Record:
    return {dimension: dict(shares) for dimension, shares in groups.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
