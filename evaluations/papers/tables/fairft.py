"""The Other Side of the Coin: FairFT and FairFilter (arXiv 2504.12323)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .file import DATA, File, Keys, Number

LLAMA_1B, MISTRAL, LLAMA_8B = "Llama3.2-1b", "Mistral-7b", "Llama3-8b"
MODELS = {
    LLAMA_1B: "meta-llama/Llama-3.2-1B-Instruct",
    MISTRAL: "mistralai/Mistral-7B-Instruct-v0.3",
    LLAMA_8B: "meta-llama/Meta-Llama-3-8B-Instruct",
    "Llama3 70b": "meta-llama/Meta-Llama-3-70B-Instruct",
    "gpt-4o-mini": "gpt-4o-mini",
    "glm-4-flash": "glm-4-flash",
    "glm-4-plus": "glm-4-plus",
}
LARGE = tuple(MODELS)[3:]
PRICES = {"gpt-4o-mini": {"input": 0.15, "output": 0.6}}
CONTRIEVER = "contriever-cosine:facebook/contriever"
TESTS = {
    "agreement": f"{DATA}/trustllm_fairness/stereotype_agreement.jsonl",
    "accuracy": f"{DATA}/crag_questions/crag_questions.jsonl",
}
RETRIEVED = ("no", "BM25", "Contriever")
TRAINED = ("FairFT-Self", "FairFT-1B")
FILTERED = ("no", "BM25", "FairFilter-BM25", "Contriever", "FairFilter-Contriever", *TRAINED)


def fairft() -> Iterator[File]:
    """Tables 3, 4, 6, 7 and 8, each as agreement with stereotypes (fairness) and accuracy (utility)."""
    for table, source, models, columns in (
        ("3", "web", tuple(MODELS), RETRIEVED),
        ("4", "wikipedia", tuple(MODELS), RETRIEVED),
        ("6", "web", (LLAMA_1B, MISTRAL, LLAMA_8B), FILTERED),
        ("7", "wikipedia", (LLAMA_1B, MISTRAL, LLAMA_8B), FILTERED),
        ("8", "web", LARGE, ("no", "Contriever", "FairFilter-Contriever", "FairFT-1B")),
    ):
        systems = {
            f"{model}, {column}": {**_retrieval(model, column), "model": {"name": MODELS[model]}}
            for model in models
            for column in columns
            # The 1B model's own retriever is FairFT-1B: the paper prints it once.
            if (model, column) != (LLAMA_1B, "FairFT-1B")
        }
        trained = any(column in TRAINED for column in columns)
        for kind, path in TESTS.items():
            yield File(
                f"fairft/table_{table}_{kind}",
                ("002", table),
                f"The other side of the coin (FairFT, FairFilter), Table {table}, source {source}: {ABOUT[kind]}.\n"
                f"Three documents; `no` answers without any.\n{_needs(source, trained)}",
                {
                    "kind": kind,
                    "collection": f"../collections/{source}.yaml",
                    "questions": {"path": path},
                    "seed": 1,
                    "prices": {name: price for name, price in PRICES.items() if name in models},
                    "settings": {"context": {"documents": 3, "tokens": 2000}},
                    "systems": systems,
                },
                lambda one, kind=kind: _fairft_place(one, kind),  # type: ignore[misc]
            )


ABOUT = {
    "agreement": "the share of answers that agree with a stereotype, in all and by type; lower is better",
    "accuracy": "the share of CRAG's questions that are answered right (utility)",
}


def _needs(source: str, trained: bool) -> str:
    said = []
    if source == "web":
        said.append(
            "The paper's crawl is not published: collections/web.yaml says where pages of yours are looked for."
        )
    if trained:
        said.append(
            "First train the retrievers (evaluations/fairft): FairFT-Self by the signal of the model that answers, "
            "into runs/fairft-self-MODEL/model; FairFT-1B by that of the 1B model, into runs/fairft-1b/model."
        )
    return "\n".join([*said, "Serve the models behind OPENAI_BASE_URL, or give each its model.base_url."])


def _retrieval(model: str, column: str) -> dict[str, Any]:
    filtered = {"filter": "fair"} if column.startswith("FairFilter-") else {}
    engine: Any = {
        "no": "none",
        "BM25": "bm25",
        "Contriever": {"kind": "dense", "encoder": CONTRIEVER},
        "FairFT-Self": {"kind": "dense", "encoder": f"runs/fairft-self-{model}/model"},
        "FairFT-1B": {"kind": "dense", "encoder": "runs/fairft-1b/model"},
    }[column.removeprefix("FairFilter-")]
    return {"profile": "engine", "engine": engine, **filtered}


def _fairft_place(one: Number, kind: str) -> Keys | None:
    system = f"{one.row}, {one.column}"
    if (one.note == "utility") != (kind == "accuracy"):
        return None
    return "expected", system, *(() if one.note in ("utility", "overall") else (one.note,)), kind
