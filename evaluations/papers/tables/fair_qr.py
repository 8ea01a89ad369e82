"""FAIR-QR (arXiv 2503.21092)."""

from __future__ import annotations

from collections.abc import Iterator

from .file import Body, File, Keys

AWRF = "AWRF(unknown=ignore)@20"
FAIR_QR: dict[tuple[str, str], Keys] = {
    ("BM25", "nDCG@20"): ("BM25", "nDCG@20"),
    ("BM25", "AWRF gender"): ("BM25", "gender", AWRF),
    ("BM25", "AWRF geo"): ("BM25", "sub-geo", AWRF),
    ("Vector Search", "nDCG@20"): ("dense", "nDCG@20"),
    ("FAIR-QR", "nDCG@20 (gender)"): ("FAIR-QR, gender", "nDCG@20"),
    ("FAIR-QR", "nDCG*AWRF gender"): ("FAIR-QR, gender", "gender", f"nDCG@20*{AWRF}"),
    ("FAIR-QR", 'AWRF geo ("highest"; contradicts BM25 .7895)'): ("FAIR-QR, geography", "sub-geo", AWRF),
    ("FAIR-QR without re-ranking", "nDCG@20 (gender)"): ("FAIR-QR, gender, not re-ranked", "nDCG@20"),
}


PAPER: Body = {"target": "trec", "model": {"name": "gpt-4o"}}
DEEPER: dict[str, Body] = {
    "depth 50": {"profile": "fair-qr", "loop": {"rerank_depth": 50}},
    "depth 100": {"profile": "fair-qr", "loop": {"rerank_depth": 100}},
    "all": {"profile": "fair-qr-deep"},
}
"""What else may be re-ranked: the profile `fair-qr` takes the first 20."""


def _by_depth(name: str, dimension: str) -> dict[str, Body]:
    """The row of a dimension at the profile's depth, which has the paper's numbers, and at the others."""
    rows = {name: {"profile": "fair-qr", **PAPER, "dimensions": [dimension]}}
    rows |= {f"{name}, {depth}": {**deeper, **PAPER, "dimensions": [dimension]} for depth, deeper in DEEPER.items()}
    return rows


def fair_qr() -> Iterator[File]:
    """The key results."""
    yield File(
        "fair_qr/key_results",
        ("003", "Key results"),
        "FAIR-QR (arXiv 2503.21092) on the real track. The paper calls .7661 the highest AWRF of geography, above "
        "which its own BM25 lies (.7895); it does not name its vectors' model. Candidates are the first 20 of the "
        "refined list, and in further rows the first 50, the first 100 and all of it: nothing of the engine's own list "
        "is added. What is not re-ranked has no depth.\n"
        "evaluations/trec_fair/README.md says where the data are.",
        {
            "collection": "../../collections/trec_fair_2022.yaml",
            "seed": 1,
            "baseline": "BM25",
            "prices": {"gpt-4o": {"input": 2.5, "output": 10}},
            "systems": {
                "BM25": {"profile": "engine"},
                "dense": {"profile": "engine", "engine": "dense"},
                **_by_depth("FAIR-QR, gender", "gender"),
                **_by_depth("FAIR-QR, geography", "sub-geo"),
                "FAIR-QR, gender, not re-ranked": {
                    "profile": "fair-qr",
                    **PAPER,
                    "dimensions": ["gender"],
                    "rerank": {"kind": "fused", "refined": 1},
                },
            },
        },
        lambda one: ("expected", *FAIR_QR[one.set, one.row]),
        "Topics, queries, the target, how the unknown count (`ignore`), the model's version and price, and how deep it "
        "re-ranks: the numbers stand at 20, where its pattern shows without a model (evaluations/fair_qr).",
    )
