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


def fair_qr() -> Iterator[File]:
    """The key results."""
    paper: Body = {"profile": "fair-qr", "target": "trec", "model": {"name": "gpt-4o"}}
    yield File(
        "fair_qr/key_results",
        ("003", "Key results"),
        "FAIR-QR (arXiv 2503.21092) on the real track. The paper calls .7661 the highest AWRF of geography, above "
        "which its own BM25 lies (.7895); it does not name its vectors' model.\n"
        "evaluations/trec_fair/README.md says where the data are.",
        {
            "collection": "../../collections/trec_fair_2022.yaml",
            "seed": 1,
            "baseline": "BM25",
            "prices": {"gpt-4o": {"input": 2.5, "output": 10}},
            "systems": {
                "BM25": {"profile": "engine"},
                "dense": {"profile": "engine", "engine": "dense"},
                "FAIR-QR, gender": {**paper, "dimensions": ["gender"]},
                "FAIR-QR, geography": {**paper, "dimensions": ["sub-geo"]},
                "FAIR-QR, gender, not re-ranked": {
                    **paper,
                    "dimensions": ["gender"],
                    "rerank": {"kind": "fused", "refined": 1},
                },
            },
        },
        lambda one: ("expected", *FAIR_QR[one.set, one.row]),
        "Topics, queries, the target, how the unknown count (`ignore`), and the model's version and price.",
    )
