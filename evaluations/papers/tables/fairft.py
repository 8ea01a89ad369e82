"""The Other Side of the Coin: FairFT and FairFilter (arXiv 2504.12323)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
TRAINERS = {LLAMA_1B: ("1b", 1e-5), MISTRAL: ("mistral-7b", 1e-6), LLAMA_8B: ("8b", 1e-6)}
"""Model whose signal a retriever learns from -> the name of its training, and the learning rate."""
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
    """Tables 3, 4, 6, 7 and 8, and further questions, each as agreement (fairness) and accuracy (utility); Table 9."""
    for table, source, models, columns in (
        ("3", "web", tuple(MODELS), RETRIEVED),
        ("4", "wikipedia", tuple(MODELS), RETRIEVED),
        ("6", "web", (LLAMA_1B, MISTRAL, LLAMA_8B), FILTERED),
        ("7", "wikipedia", (LLAMA_1B, MISTRAL, LLAMA_8B), FILTERED),
        ("8", "web", LARGE, ("no", "Contriever", *OF_CONTRIEVER, "FairFT-1B")),
    ):
        systems = {
            f"{model}, {column}": _system(model, column, source)
            for model in models
            for column in columns
            # The 1B model's own retriever is FairFT-1B: the paper prints it once.
            if (model, column) != (LLAMA_1B, "FairFT-1B")
        }
        for kind in TESTS:
            title = f"Table {table}{' (question 3: large models)' if table == '8' else ''}"
            yield _file(f"table_{table}", ("002", table), title, kind, source, systems, table)
    for name, table, title, systems in _further():
        for kind in TESTS:
            yield _file(name, ("002", table), title, kind, "web", systems)
    yield _case_study()


def trainings() -> Iterator[File]:
    """The training of every retriever of Tables 6 to 9, by the signal of each model and for each source."""
    for source, (model, (name, rate)) in product(("web", "wikipedia"), TRAINERS.items()):
        others = {LLAMA_1B: ", FairFT-1B of the other models", LLAMA_8B: ", FairFT-8B of others"}.get(model, "")
        yield File(
            f"fairft/train/{name}_{source}",
            ("002", "training"),
            f"The other side of the coin (FairFT), the retriever FairFT-Self of {model}{others}; source {source}: "
            f"Contriever learns from the likelihood of the fair answer that {model} gives.\n{SOURCES[source]}\n"
            "Both models are on this machine, with a GPU; with a server that tells log-probabilities (vLLM) write in "
            "the place of model, dtype and batch: endpoint: {name: ..., base_url: ...}.",
            {
                "name": _training(model, source),
                "collection": f"../../collections/{source}.yaml",
                "examples": {
                    "path": f"../{DATA}/trustllm_fairness/stereotype_recognition.jsonl",
                    "format": "recognition",
                    "held_out": 0.1,
                },
                "test": [{"path": f"../{TESTS['agreement']}", "fields": ["prompt", "sentence"]}],
                "retriever": {"model": "facebook/contriever", "towers": "both", "dtype": "bfloat16", "batch": 256},
                "signal": {"model": MODELS[model], "chat": True, "dtype": "bfloat16", "batch": 20, "tokens": 512},
                "training": {"documents": 20, "gamma": 0.1, "beta": 0.1, "rate": rate, "batch": 20, "epochs": 5},
            },
            without_numbers,
            "The number of epochs, which its code has and the text does not; that a tenth of the questions is held "
            f"out, and says which weights are kept. {NAMES.partition(';')[0]}.",
        )


SOURCES = {
    "web": "The paper's crawl is not published: collections/web.yaml says where pages of yours are looked for.",
    "wikipedia": "A twentieth of Wikipedia as in the paper, which names no dump: of the articles of TREC's Fair "
    "Ranking track of 2022 (collections/wikipedia.yaml).",
}


def _training(model: str, source: str) -> str:
    """The name of a training, which is that of its run's folder."""
    return f"fairft-{TRAINERS[model][0]}-{source}"


def _case_study() -> File:
    """Table 9: single questions with their documents and answers."""
    columns = ("Contriever", "FairFilter-Contriever", "FairFT-Self")
    systems = {f"{LLAMA_8B}, {column}": _system(LLAMA_8B, column, "web") for column in columns}
    title = "Table 9 (question 5: a case study), documents and answers of conventional RAG, FairFilter and FairFT"
    guess = "Which question and model the case is of: the first three questions, and the 8B model."
    made = _file("table_9", ("002", "9"), title, "agreement", "web", systems, guess=guess)
    return replace(made, body={**made.body, "topics": 3, "cases": ["q1", "q2", "q3"]})


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
    searched = str([system["engine"] for system in systems.values()])
    trained = [name for model, (name, _) in TRAINERS.items() if f"{_training(model, source)}/model" in searched]
    models = {system["model"]["name"] for system in systems.values()}
    documents = "Three documents; " if printed else ""
    without = f"{documents}`no` answers without any." if any(one.endswith(", no") for one in systems) else ""
    if any("filter" in system for system in systems.values()):
        without += QUESTIONS + (OF_OURS if any(OURS in one for one in systems) else ".")
    return File(
        f"fairft/{name}_{kind}",
        table,
        f"The other side of the coin (FairFT, FairFilter), {title}, source {source}: {ABOUT[kind]}.\n"
        f"{without.strip()}\n{_needs(source, trained, name)}",
        {
            "kind": kind,
            "collection": f"../collections/{source}.yaml",
            "questions": {"path": TESTS[kind]},
            **({"trainings": [f"train/{one}_{source}.yaml" for one in trained]} if trained else {}),
            "seed": 1,
            "prices": {name: price for name, price in PRICES.items() if name in models},
            "settings": {"context": {"documents": 3, "tokens": 2000}},
            "systems": systems,
        },
        (lambda one: _fairft_place(one, kind)) if printed else without_numbers,
        " ".join([NAMES, *([PRICE] if models & PRICES.keys() else []), *([guess] if guess else [])]),
    )


QUESTIONS = " FairFilter asks the paper's two questions and no more (prompts/papers), in our words"
OF_OURS = "; with `our prompts` the default templates, which add criteria."
NAMES = (
    "The models' repositories and versions are taken from their names, the instructed ones; glm's names are its API's."
)
PRICE = "The price of gpt-4o-mini is that of its first public list, .15 and .60 dollars for a million tokens."


def _further() -> Iterator[tuple[str, str, str, Body]]:
    """Further questions, the paper's and one of ours, of which no number was read: name, table, title and systems."""
    small = (LLAMA_1B, MISTRAL, LLAMA_8B)

    swept = {f"{model}, no": _system(model, "no") for model in small}
    for model, column, count in product(small, ("BM25", "Contriever", *OF_CONTRIEVER), (3, 5, 10)):
        context = {"documents": count, "tokens": 6000}
        swept[f"{model}, {column}, K={count}"] = _system(model, column, context=context)
    yield "fig_k", "Fig k", "question 4, K = 3, 5 and 10 documents", swept
    steps = {}
    for model, column in product(small, ("BM25", "Contriever")):
        steps[f"{model}, {column}"] = _system(model, column)
        for prompts, filtered in (("", FAIR_FILTER), (OURS, {"kind": "fair"})):
            first = {**filtered, "utility": False}
            steps[f"{model}, FairFilter-{column}, first step{prompts}"] = _system(model, column, filter=first)
            steps[f"{model}, FairFilter-{column}{prompts}"] = _system(model, f"FairFilter-{column}{prompts}")
    yield "fig_steps", "Fig steps", "question 2, FairFilter without its second step (called Prompt)", steps
    both = {}
    for model, column in product(
        small, ("Contriever", *OF_CONTRIEVER, "FairFT-Self", "FairFilter-FairFT-Self", f"FairFilter-FairFT-Self{OURS}")
    ):
        both[f"{model}, {column}"] = _system(model, column)
    title = "a question of ours that the paper does not ask, both methods together: FairFilter over what FairFT finds"
    yield "ours_both", "Ours both", title, both


ABOUT = {
    "agreement": "the share of answers that agree with a stereotype, in all and by type; lower is better",
    "accuracy": "the share of CRAG's questions that are answered right (utility)",
}


def _needs(source: str, trained: Sequence[str], name: str) -> str:
    said = [SOURCES[source]]
    if trained:
        files = " ".join(f"{name}_{kind}.yaml" for kind in (TESTS if name != "table_9" else ("agreement",)))
        said.append(
            f"From the training of its retrievers to one table of fairness and utility: fairagent fairft run {files} "
            "in this folder. FairFT-Self learns from the model that answers, FairFT-1B from the 1B model."
        )
    return "\n".join([*said, "Serve the models behind OPENAI_BASE_URL, or give each its model.base_url."])


def _system(model: str, column: str, source: str = "web", **more: Any) -> dict[str, Any]:
    """One system's settings: the model, and what it is given."""
    filtered: dict[str, Any] = {}
    if column.startswith("FairFilter-"):
        filtered = {"filter": {"kind": "fair"} if column.endswith(OURS) else FAIR_FILTER}
    engine: Any = {
        "no": "none",
        "BM25": "bm25",
        "Contriever": {"kind": "dense", "encoder": CONTRIEVER},
        "FairFT-Self": {"kind": "dense", "encoder": _trained(model, source)},
        "FairFT-1B": {"kind": "dense", "encoder": _trained(LLAMA_1B, source)},
    }[column.removeprefix("FairFilter-").removesuffix(OURS)]
    return {"profile": "engine", "engine": engine, **filtered, "model": {"name": MODELS[model]}, **more}


def _trained(model: str, source: str) -> str:
    """The retriever that one of the models trains; none of the large ones does."""
    return f"runs/{_training(model, source)}/model" if model in TRAINERS else ""


def _fairft_place(one: Number, kind: str) -> Keys | None:
    system = f"{one.row}, {one.column}"
    if (one.note == "utility") != (kind == "accuracy"):
        return None
    return "expected", system, *(() if one.note in ("utility", "overall") else (one.note,)), kind
