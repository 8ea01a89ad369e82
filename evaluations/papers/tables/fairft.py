"""The Other Side of the Coin: FairFT and FairFilter (arXiv 2504.12323)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from .file import DATA, Body, File, Keys, Number, without_numbers

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
OURS = ", our prompts"
"""Ends a system of FairFilter with our templates; all others ask the paper's two questions and no more."""
FAIR_FILTER: Body = {"kind": "fair", "compat": "authors"}
OF_BM25, OF_CONTRIEVER = (
    ("FairFilter-BM25", f"FairFilter-BM25{OURS}"),
    ("FairFilter-Contriever", f"FairFilter-Contriever{OURS}"),
)
FILTERED = ("no", "BM25", *OF_BM25, "Contriever", *OF_CONTRIEVER, *TRAINED)


def fairft() -> Iterator[File]:
    """Tables 3, 4, 6, 7 and 8, and what further questions ask, each as agreement (fairness) and accuracy (utility)."""
    for table, source, models, columns in (
        ("3", "web", tuple(MODELS), RETRIEVED),
        ("4", "wikipedia", tuple(MODELS), RETRIEVED),
        ("6", "web", (LLAMA_1B, MISTRAL, LLAMA_8B), FILTERED),
        ("7", "wikipedia", (LLAMA_1B, MISTRAL, LLAMA_8B), FILTERED),
        ("8", "web", LARGE, ("no", "Contriever", *OF_CONTRIEVER, "FairFT-1B")),
    ):
        systems = {
            f"{model}, {column}": {**_retrieval(model, column), "model": {"name": MODELS[model]}}
            for model in models
            for column in columns
            # The 1B model's own retriever is FairFT-1B: the paper prints it once.
            if (model, column) != (LLAMA_1B, "FairFT-1B")
        }
        for kind in TESTS:
            yield _file(f"table_{table}", ("002", table), f"Table {table}", kind, source, systems, table)
    for name, title, systems, guess in _further():
        for kind in TESTS:
            yield _file(f"fig_{name}", ("002", f"Fig {name}"), title, kind, "web", systems, guess=guess)


def _file(
    name: str,
    table: tuple[str, str],
    title: str,
    kind: str,
    source: str,
    systems: Body,
    printed: str = "",
    guess: str = "",
) -> File:
    """One file; it has numbers where they are `printed`."""
    trained = any("runs/" in str(system["engine"]) for system in systems.values())
    models = {system["model"]["name"] for system in systems.values()}
    documents = "Three documents; " if printed else ""
    filtered = any("filter" in system for system in systems.values())
    return File(
        f"fairft/{name}_{kind}",
        table,
        f"The other side of the coin (FairFT, FairFilter), {title}, source {source}: {ABOUT[kind]}.\n"
        f"{documents}`no` answers without any.{QUESTIONS if filtered else ''}\n{_needs(source, trained)}",
        {
            "kind": kind,
            "collection": f"../collections/{source}.yaml",
            "questions": {"path": TESTS[kind]},
            "seed": 1,
            "prices": {name: price for name, price in PRICES.items() if name in models},
            "settings": {"context": {"documents": 3, "tokens": 2000}},
            "systems": systems,
        },
        (lambda one: _fairft_place(one, kind)) if printed else without_numbers,
        " ".join([NAMES, *([PRICE] if models & PRICES.keys() else []), *([guess] if guess else [])]),
    )


QUESTIONS = (
    " FairFilter asks the paper's two questions and no more (prompts/papers), in our words; with `our prompts` the "
    "default templates, which add criteria."
)
NAMES = (
    "The models' repositories and versions are taken from their names, the instructed ones; glm's names are its API's."
)
PRICE = "The price of gpt-4o-mini is that of its first public list, .15 and .60 dollars for a million tokens."
UNKNOWN = "Which of the paper's third and fifth questions this answers: what they ask was not at hand."


def _further() -> Iterator[tuple[str, str, Body, str]]:
    """What further questions ask, of which no number was read: name, title, systems, and what is guessed."""
    small = (LLAMA_1B, MISTRAL, LLAMA_8B)

    def system(model: str, column: str, **more: Any) -> dict[str, Any]:
        return {**_retrieval(model, column), "model": {"name": MODELS[model]}, **more}

    swept = {f"{model}, no": system(model, "no") for model in small}
    for model, column, count in product(small, ("BM25", "Contriever", *OF_CONTRIEVER), (3, 5, 10)):
        context = {"documents": count, "tokens": 6000}
        swept[f"{model}, {column}, K={count}"] = system(model, column, context=context)
    yield "k", "question 4, K = 3, 5 and 10 documents", swept, ""
    steps = {}
    for model, column in product(small, ("BM25", "Contriever")):
        steps[f"{model}, {column}"] = system(model, column)
        for prompts, filtered in (("", FAIR_FILTER), (OURS, {"kind": "fair"})):
            first = {**filtered, "utility": False}
            steps[f"{model}, FairFilter-{column}, first step{prompts}"] = system(model, column, filter=first)
            steps[f"{model}, FairFilter-{column}{prompts}"] = system(model, f"FairFilter-{column}{prompts}")
    yield "steps", "question 2, FairFilter without its second step (called Prompt)", steps, ""
    both = {}
    for model, column in product(
        small, ("Contriever", *OF_CONTRIEVER, "FairFT-Self", "FairFilter-FairFT-Self", f"FairFilter-FairFT-Self{OURS}")
    ):
        both[f"{model}, {column}"] = system(model, column)
    yield "both", "question 3 or 5, both methods together: FairFilter over what FairFT finds", both, UNKNOWN
    transfer = {}
    for model, column in product((MISTRAL, LLAMA_8B), ("Contriever", "FairFT-Self", "FairFT-1B")):
        transfer[f"{model}, {column}"] = system(model, column)
    yield "transfer", "question 3 or 5, a retriever trained by another model's signal", transfer, UNKNOWN


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
    filtered: dict[str, Any] = {}
    if column.startswith("FairFilter-"):
        filtered = {"filter": {"kind": "fair"} if column.endswith(OURS) else FAIR_FILTER}
    engine: Any = {
        "no": "none",
        "BM25": "bm25",
        "Contriever": {"kind": "dense", "encoder": CONTRIEVER},
        "FairFT-Self": {"kind": "dense", "encoder": f"runs/fairft-self-{model}/model"},
        "FairFT-1B": {"kind": "dense", "encoder": "runs/fairft-1b/model"},
    }[column.removeprefix("FairFilter-").removesuffix(OURS)]
    return {"profile": "engine", "engine": engine, **filtered}


def _fairft_place(one: Number, kind: str) -> Keys | None:
    system = f"{one.row}, {one.column}"
    if (one.note == "utility") != (kind == "accuracy"):
        return None
    return "expected", system, *(() if one.note in ("utility", "overall") else (one.note,)), kind
