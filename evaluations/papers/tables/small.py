"""The small twin of every table: the same rows and measures, with models, collections and numbers that fit one machine.

A twin is made from its table's own keys by exchange, so that what a table gains its twin gains. Tables whose twins come
out equal share one. `SMALL` says of each exchange what stands for what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .fair_rag import GENERATORS
from .fairft import MODELS
from .file import Body, File

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1"
SERVED: Body = {"name": SMOLLM2, "context": 8192, "temperature": 0, "max_tokens": 40, "timeout": 300, "deadline": 600}
"""By `fairagent model serve`; short replies, so that two cores are done within the hour."""
FREE: Body = {SMOLLM2: {"input": 0, "output": 0}}
CAUSAL, MASKED = "runs/papers/models/smollm2", "runs/papers/models/splade-tiny"
"""Folders of transformers models, which evaluations/papers/small.py makes; from the project's own folder."""
STATIC: Body = {"kind": "dense"}
"""The default encoder: vectors of words."""
MINILM: Body = {"kind": "dense", "encoder": "minilm"}
LEADS, NEWS, TEXTS = (f"../../collections/{name}.yaml" for name in ("wikilead", "allsides", "grepbiasir"))

ORDER = ("seat", "fair-rag", "crows-pairs", "stereoset", "", "utility", "agreement", "accuracy", "bold")
"""Kinds of experiments, the cheapest first; "" is a ranking experiment."""
QUESTIONS: Mapping[str, int] = {"fair-rag": 20, "crows-pairs": 20}
"""Topics, questions or examples of a kind; of the others ten."""
LEFT_OUT = ("FairFT-", "our prompts", "K=10")
"""In the names of FairFT's rows that have no place in the hour: those whose retrievers are trained first, of FairFilter
those by our prompts (the others are by prompts that ask as the paper's do), and the most documents."""


@dataclass(frozen=True)
class Small:
    """The twin of a table: its keys, what its rows are called there, and how it differs, in words.

    `rows` are pairs of texts: the first, in a name of the table's rows, is the second here. Rows with one of `others`
    in their names are of models that are not exchanged again.
    """

    body: Body
    rows: tuple[tuple[str, str], ...]
    differs: str
    others: tuple[str, ...] = ()

    def row(self, name: str) -> str:
        """What a row of the table is called here."""
        for theirs, ours in self.rows:
            name = name.replace(theirs, ours)
        return name


def small(file: File) -> Small:
    """The small twin of a table's file."""
    twin = {"000": _fair_rag, "001": _utility, "002": _fairft, "003": _fair_qr, "004": _debias_rag}[file.table[0]](file)
    kind = twin.body.get("kind", "")
    own = kind in ("seat", "bold") or "cases" in twin.body
    count = {} if own else {"topics": {"sample": QUESTIONS.get(kind, 10)}}
    return replace(twin, body={**twin.body, **count})


def _fair_rag(file: File) -> Small:
    """Rankings of one generator's rows are drawn; what was judged relevant is useful, answers are extracts."""
    rows = (("FlanT5Small", "extract"), ("SPLADE", "splade-tiny"), ("Contriever", "MiniLM"))
    differs = "GrepBiasIR for LaMP, judgments for labels, extracts for generators; splade-tiny, MiniLM"
    twin = Small({}, rows, differs, tuple(name for name in GENERATORS if name != "FlanT5Small"))
    engines = {"BM25": "bm25", "SPLADE": {"kind": "splade", "model": MASKED}, "Contriever": MINILM}
    kept = [name for name in file.body["systems"] if "FlanT5Small" in name]
    systems = {twin.row(name): {"profile": "engine", "engine": engines[name.partition("+")[0]]} for name in kept}
    drawing = {**file.body["fair_rag"], "pool": 100}
    if "runs" in drawing:
        drawing["runs"] = 1
        medians = {
            twin.row(name): [twin.row(one) for one in of if one in kept] for name, of in drawing["medians"].items()
        }
        drawing["medians"] = {name: of for name, of in medians.items() if of}
    body = {
        "kind": "fair-rag",
        "collection": TEXTS,
        "seed": file.body["seed"],
        "fair_rag": drawing,
        "settings": {"generate": {"sentences": 3}},
        "systems": systems,
    }
    return replace(twin, body=body)


def _utility(file: File) -> Small:
    """Answers of SmolLM2 from at most 5 texts, in one run, compared by MiniLM's tokens."""
    own = file.body["utility"]
    engines = {"BM25": "bm25", "MonoT5": MINILM}
    systems = {
        name.replace("MonoT5", "MiniLM"): {"profile": "engine", "engine": engines.get(name, system["engine"])}
        for name, system in file.body["systems"].items()
    }
    ks = [k for k in own["ks"] if k in (2, 5)]
    drawing = {**own, "ks": ks, "relevant": 1, "similarity": {"kind": "minilm"}, "temperature": 0, "runs": 1}
    if "scatter" in own:
        drawing["scatter"] = [k for k in own["scatter"] if k in ks]
    if "compat" in own:
        drawing["compat"] = ["authors"]
    body = {
        "kind": "utility",
        "collection": TEXTS,
        "utility": drawing,
        "settings": {"generate": "llm", "model": SERVED},
        "prices": FREE,
        "baseline": file.body["baseline"],
        "systems": systems,
    }
    differs = (
        "GrepBiasIR (6 judged texts a query) for MS MARCO, SmolLM2 for 8B, MiniLM for MonoT5 and BERTScore, one run"
    )
    return Small(body, (("MonoT5", "MiniLM"),), differs)


def _fairft(file: File) -> Small:
    """The rows of the first model, in whose place SmolLM2 stands, but those that are left out."""
    names = list(file.body["systems"])
    first = names[0].partition(", ")[0]
    rows = ((f"{first}, ", "SmolLM2, "), ("Contriever", "static vectors"))
    web = "web" in file.body["collection"]
    source = "news (AllSides) for web pages" if web else "leads (wikilead) for Wikipedia"
    differs = f"{source}, SmolLM2 for all models, static vectors for Contriever"
    twin = Small({}, rows, differs, tuple(model for model in MODELS if model != first))
    systems: dict[str, Any] = {}
    for name, system in file.body["systems"].items():
        if name.startswith(f"{first}, ") and not any(part in name for part in LEFT_OUT):
            dense = isinstance(system["engine"], dict)
            own = {key: value for key, value in system.items() if key != "model"}
            systems[twin.row(name)] = {**own, "engine": STATIC if dense else system["engine"]}
    body = {
        **{key: value for key, value in file.body.items() if key != "trainings"},
        "collection": NEWS if web else LEADS,
        "prices": FREE,
        "settings": {**file.body["settings"], "model": SERVED},
        "systems": systems,
    }
    return replace(twin, body=body)


def _fair_qr(file: File) -> Small:
    """The same systems on wikilead, asked of SmolLM2."""
    systems = {}
    for name, system in file.body["systems"].items():
        own = {key: value for key, value in system.items() if key != "model"}
        if own.get("dimensions") == ["sub-geo"]:
            own["dimensions"] = ["region"]
        systems[name] = own
    # Keywords in JSON are longer than an answer.
    settings = {"model": {**SERVED, "max_tokens": 200}}
    body = {**file.body, "collection": LEADS, "prices": FREE, "settings": settings, "systems": systems}
    return Small(body, (("sub-geo", "region"),), "wikilead for the track's Wikipedia, SmolLM2 for gpt-4o")


def _debias_rag(file: File) -> Small:
    """Likelihoods by SmolLM2, or by splade-tiny's masked head; texts by SmolLM2; sizes by MiniLM."""
    body = dict(file.body)
    if "likelihoods" in body.get("questions", {}):
        kind = body["questions"]["likelihoods"]["kind"]
        name = CAUSAL if kind == "causal" else MASKED
        body["questions"] = {**body["questions"], "likelihoods": {"kind": kind, "name": name}}
        if kind == "masked" and body["kind"] == "stereoset":
            # Intersentence examples need a head for next sentences as well.
            body["questions"]["part"] = "intrasentence"
        body["settings"] = {"context": {"documents": 3, "tokens": 150}}
        differs = (
            "SmolLM2's likelihoods" if kind == "causal" else "the masked head of splade-tiny, not trained to fill in"
        )
    elif body["kind"] == "bold":
        body["questions"] = {"path": "../../stereotypes/openings"}
        body.pop("regard")
        own = body["settings"]["model"]
        model = {**own, "name": CAUSAL, "max_tokens": 15, "temperature": 0, "timeout": 300, "deadline": 600}
        body["settings"] = {**body["settings"], "model": model}
        ruled = body["systems"]["Self-Debias"]["model"]["name"].replace(own["name"], CAUSAL)
        body["systems"] = {
            **body["systems"],
            "Self-Debias": {**body["systems"]["Self-Debias"], "model": {"name": ruled}},
        }
        differs = "SmolLM2 for BB3-175B, 12 made-up openings, a list of words for the classifier"
    else:
        body["systems"] = {name: {**system, "engine": MINILM} for name, system in body["systems"].items()}
        differs = "MiniLM"
    return Small(body, (), differs)
