"""Is Relevance Propagated from Retriever to Generator in RAG? (Tian, Ganguly, Macdonald; ECIR 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from .file import DATA, Body, File, Keys, Number, without_numbers

EVALUATIONS = Path(__file__).resolve().parents[2]
PROMPTS = (
    "The answer prompt asks what the paper's does and no more (prompts/papers), in our words; `our prompt` is ours."
)
NEEDS = "Needs MS MARCO's passages, BERT and a model: evaluations/utility/README.md says where they come from."
RANKERS = {"BM25": "BM25", "BM25-r": "BM25 reversed", "MT5": "MonoT5", "MT5-r": "MonoT5 reversed"}


def utility() -> Iterator[File]:
    """Table 1: two years of TREC Deep Learning at two relevance thresholds, MS MARCO's dev.small; the figures."""
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
        for figure, title, shown in FIGURES:
            yield _figure(figure, title, year, base, shown)
    runs = {name: f"../../../../msmarco/{name.lower()}_dev_small.txt.gz" for name in ("BM25", "MonoT5")}
    systems = {name: {"profile": "engine", "engine": {"kind": "run-file", "path": path}} for name, path in runs.items()}
    collection = "../collections/msmarco_dev_small.yaml"
    yield _utility("dev_small", "MS MARCO's dev.small", collection, 1, systems, "dev_small", {})


FIGURES: tuple[tuple[str, str, Body], ...] = (
    ("k", "utility, and its correlation with nDCG@k, over k = 1 to 15", {"ks": list(range(1, 16))}),
    ("4", "every topic's utility against its nDCG@k, with lines of least squares", {"ks": [5, 10], "scatter": [5, 10]}),
)
"""The figures, of which no number is printed: what they are called, what they show, and keys of `utility:`."""
MODEL = (
    "That the instructed model is meant, which the paper's code runs and its footnote does not; its repository's "
    "name, and "
    "that of BERT."
)


def _figure(figure: str, title: str, year: str, base: Body, shown: Body) -> File:
    runs = f"{DATA}/trec_dl/runs_top100.tsv.gz"
    systems = {name: dict(base["systems"][name]) for name in ("Rel", "BM25", "MonoT5", "NRel")}
    for name in ("BM25", "MonoT5"):
        systems[name]["engine"] = {**systems[name]["engine"], "path": runs}
    what = "Figure 4" if figure == "4" else "the figures over k"
    made = _utility(
        "",
        f"TREC Deep Learning {year}",
        f"../../collections/trec_dl_{year}.yaml",
        2,
        systems,
        "",
        {"topics": base["topics"]},
    )
    return File(
        f"utility/fig_{figure}_dl{year}",
        ("001", f"Fig {figure}"),
        f"Is relevance propagated from retriever to generator? {what.capitalize()}, TREC Deep Learning {year}: "
        f"{title}; on "
        f"the page of the run, its numbers in utility.csv.\n{PROMPTS}\n{NEEDS}",
        {**made.body, "utility": {**made.body["utility"], **shown}},
        without_numbers,
        MODEL + (" At which k Figure 4 is drawn." if figure == "4" else ""),
    )


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
        f"P@0 is the answer without documents, one for all rows of a prompt. {PROMPTS}\n{NEEDS}",
        {
            "kind": "utility",
            "collection": collection,
            "utility": {
                "ks": [2, 5, 10, 15],
                "orders": ["rank", "reversed"],
                "compat": ["authors", "ours"],
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
        MODEL,
    )
