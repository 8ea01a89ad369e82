"""The simplest explanations of what an agent reaches: systems that stand in every table beside it."""

from typing import Any

PLAIN: dict[str, Any] = {"profile": "engine", "engine": "auto"}
FUSED = "BM25 + vectors"
BASELINES: dict[str, dict[str, Any]] = {
    FUSED: PLAIN,
    "labeled first": {"profile": "labeled", "engine": "auto"},
    "exposure": {**PLAIN, "rerank": {"kind": "exposure", "fairness": 0.5}},
    # Passes over what has no label: how much of a gain that alone explains.
    "exposure+labeled": {
        **PLAIN,
        "rerank": {"kind": "exposure", "fairness": 0.5, "unlabeled": 0.5},
        "unknown": "ignore",
    },
    "no loop": {"loop": "none"},
}
"""Name -> settings: the agent's engine alone, its documents with a label first, one pass of exposure, without and with
a loss of relevance for what has no label, and the agent's re-rankers without its loop."""
SYSTEMS: dict[str, dict[str, Any]] = {
    "BM25": {"profile": "engine"},
    **BASELINES,
    "FAIR-QR": {"profile": "fair-qr", "refine": {"kind": "feedback", "weight": 1}},
    "agent": {},
}
"""What a comparison that asks no model begins with."""
LEGEND = (
    "labeled first: what has a label, in the engine's order. exposure: one pass over the engine's list (fairness .5); "
    "+labeled: which also takes .5 of relevance from what has no label. no loop: the agent's re-rankers alone. "
    "FAIR-QR: the paper's loop, with keywords from documents."
)
