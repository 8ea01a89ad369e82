"""Is Relevance Propagated from Retriever to Generator in RAG? (Tian, Ganguly, Macdonald; ECIR 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from .file import DATA, Body, File, Keys, Number

EVALUATIONS = Path(__file__).resolve().parents[2]
RANKERS = {"BM25": "BM25", "BM25-r": "BM25 reversed", "MT5": "MonoT5", "MT5-r": "MonoT5 reversed"}


def utility() -> Iterator[File]:
    """Table 1: two years of TREC Deep Learning at two relevance thresholds, and MS MARCO's dev.small."""
    for year in ("2019", "2020"):
        base = yaml.safe_load((EVALUATIONS / f"utility/trec_dl_{year}.yaml").read_text(encoding="utf-8"))
        for relevant in (2, 3):
            systems = {name: dict(base["systems"][name]) for name in ("Rel", "BM25", "MonoT5", "NRel")}
            for name in ("BM25", "MonoT5"):
                path = f"{DATA}/trec_dl/runs_top100.tsv.gz"
                systems[name]["engine"] = {**systems[name]["engine"], "path": path}
            yield _utility(
                f"dl{year}_relevant_{relevant}",
                f"TREC Deep Learning {year}, passages of grade {relevant} or more relevant",
                f"../../collections/trec_dl_{year}.yaml",
                relevant,
                systems,
                f"DL{year[2:]}",
                {"topics": base["topics"]},
            )
    runs = {name: f"../../../../msmarco/{name.lower()}_dev_small.txt.gz" for name in ("BM25", "MonoT5")}
    systems = {name: {"profile": "engine", "engine": {"kind": "run-file", "path": path}} for name, path in runs.items()}
    collection = "../collections/msmarco_dev_small.yaml"
    yield _utility("dev_small", "MS MARCO's dev.small", collection, 1, systems, "dev_small", {})


def _utility(name: str, title: str, collection: str, relevant: int, systems: Body, of: str, more: Body) -> File:
    first = next(iter(systems))

    def place(one: Number) -> Keys | None:
        if one.set != of:
            return None
        if one.row == "0-shot":
            # It has no threshold in the table: it stands once, with the lowest.
            return ("expected", first, "P@0") if relevant < 3 else None
        if one.note != f"relevant={relevant}":
            return None
        return "expected", RANKERS.get(one.row, one.row), one.column

    return File(
        f"utility/table_1_{name}",
        ("001", "1"),
        f"Is relevance propagated from retriever to generator? Table 1: {title}.\n"
        "P@0 is the answer without documents, one for all rows. Needs MS MARCO's passages, BERT and a model: "
        "evaluations/utility/README.md says where they come from.",
        {
            "kind": "utility",
            "collection": collection,
            "utility": {
                "ks": [2, 5, 10, 15],
                "orders": ["rank", "reversed"],
                "relevant": relevant,
                "similarity": {"kind": "bert-score", "model": "bert-large-uncased", "layer": 18},
                "temperature": 0.3,
                "runs": 5,
            },
            "settings": {"generate": "llm", "model": {"name": "meta-llama/Meta-Llama-3-8B-Instruct"}},
            **more,
            "baseline": first,
            "systems": systems,
        },
        place,
    )
