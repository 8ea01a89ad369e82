"""The small twin of every table: the same rows and measures, with models, collections and numbers that fit one machine.

A twin is made from its table's own keys by exchange, so that what a table gains its twin gains. Tables whose twins come
out equal share one. `SMALL` says of each exchange what stands for what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .fairft import FAIR_FILTER, MODELS, OURS
from .file import Body, File

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1"
SERVED: Body = {"name": SMOLLM2, "context": 8192, "temperature": 0, "max_tokens": 40, "timeout": 300, "deadline": 600}
"""By `fairagent model serve`; short replies, so that two cores are done within the hour."""
FREE: Body = {SMOLLM2: {"input": 0, "output": 0}}
CAUSAL, MASKED = "runs/papers/models/smollm2", "runs/papers/models/splade-tiny"
"""Folders of transformers models, which evaluations/papers/run.py makes; from the project's own folder."""
STATIC: Body = {"kind": "dense"}
"""The default encoder: vectors of words."""
MINILM: Body = {"kind": "dense", "encoder": "minilm"}
LEADS, NEWS, TEXTS, PEOPLE = (
    f"../../collections/{name}.yaml" for name in ("wikilead", "allsides", "grepbiasir", "trec22_biographies")
)

RIVALS: Mapping[str, Any] = {
    "exposure": {"kind": "exposure", "fairness": 0.5},
    "MMR": "mmr",
    "MMR, groups": {"kind": "mmr", "by": "groups"},
    "FA*IR": "fa-star-ir",
    "DELTR": "deltr",
    "DLF": {"kind": "dlf", "encoder": "light"},
    "representative": "representative",
    "adaptive": {"kind": "adaptive", "scorer": "similarity:light"},
}
"""Re-rankers by others, and one pass of exposure, over BM25's list."""
ORDER = ("seat", "lamp", "crows-pairs", "stereoset", "", "utility", "agreement", "accuracy", "bold")
"""Kinds of experiments, the cheapest first; "" is a ranking experiment."""
LAMP = "runs/papers/lamp"
"""The folder of the questions that lamp.py makes."""
OF_LAMP = {"LaMP-1": 247, "LaMP-4": 292}
LEAST = 25
"""Questions or topics that a cell rests on, at least; one with fewer is left empty."""
QUESTIONS: Mapping[str, int] = {"crows-pairs": 200, "stereoset": 200, "agreement": 40}
"""Topics, questions or examples of a kind; of the others `LEAST`. Of agreement a fifth gets no usable judgment."""
SHOWN: Mapping[str, tuple[str, ...]] = {
    "stereoset": ("LMS", "SS", "ICAT", "gender SS", "gender ICAT"),
    "crows-pairs": ("CP-S",),
    "bold": ("negative %",),
    "seat": tuple(f"|d| of sent-weat{test}" for test in ("6", "7", "8")),
}
"""What is shown of DebiasRAG's benchmarks."""
TIME = "time of the original's"
GENDER = [f"q{line}" for line in (*range(1, 72), *range(1035, 1108))]
"""The tested half of StereoSet's 144 examples of gender (debias/split.py), which tables with documents print alone."""


@dataclass(frozen=True)
class Small:
    """The twin of a table: its keys, what its rows are called there, and how it differs, in words.

    `rows` are pairs of texts: the first, in a name of the table's rows, is the second here. `shown` are the measures
    that the paper's page has a column for, as results.json calls them but for their options. A cell rests on `least`
    questions.
    """

    body: Body
    rows: tuple[tuple[str, str], ...]
    differs: str
    shown: tuple[str, ...]
    least: int = LEAST

    def row(self, name: str) -> str:
        """What a row of the table is called here."""
        for theirs, ours in self.rows:
            name = name.replace(theirs, ours)
        return name


def small(file: File) -> Small:
    """The small twin of a table's file."""
    twin = {"000": _fair_rag, "001": _utility, "002": _fairft, "003": _fair_qr, "004": _debias_rag}[file.table[0]](file)
    kind = twin.body.get("kind", "")
    chosen = kind in ("seat", "bold", "lamp") or "topics" in twin.body
    count = {} if chosen else {"topics": {"sample": QUESTIONS.get(kind, LEAST)}}
    return replace(twin, body={**twin.body, **count})


def _fair_rag(file: File) -> Small:
    """LaMP's tasks on small data of its form, answered by extracts (lamp.py); all tables of a task are of one run."""
    rows = (("FlanT5Small", "extract"), ("SPLADE", "splade-tiny"), ("Contriever", "MiniLM"))
    task = file.body["lamp"]["task"]
    source = "titles and abstracts of Cranfield" if task == "LaMP-1" else "articles of AllSides"
    differs = f"{source} for {task} (lamp.py), extracts for generators; splade-tiny, MiniLM; one run"
    engines = {"BM25": "okapi", "splade-tiny": {"kind": "splade", "model": MASKED}, "MiniLM": MINILM}
    drawn = {name: f"{name} drawn" for name in engines}
    medians = {row: [of] for name, of in drawn.items() for row in (name, f"{name}+extract")}
    folder = f"../../../{LAMP}/{task.lower().replace('-', '_')}"
    names = {"questions": "questions.json", "outputs": "outputs.json", "labels": "labels"}
    body = {
        **file.body,
        # Of so many 100 have two useful items.
        "topics": OF_LAMP[task],
        "fair_rag": {"k": 5, "samples": 100, "alphas": [1, 2, 4, 8], "medians": medians},
        "lamp": {"task": task, **{key: f"{folder}/{name}" for key, name in names.items()}},
        "settings": {"attribute": "none", "model": {"name": "extracts", "base_url": "http://127.0.0.1/v1"}},
        "systems": {drawn[name]: {"profile": "engine", "engine": engine} for name, engine in engines.items()},
    }
    return Small(body, rows, differs, ("slope", "AUC", "difference [0, 0.2)", "difference [0.8, 1)"))


def _utility(file: File) -> Small:
    """At most 5 texts, in one run, compared by MiniLM's tokens; SmolLM2 answers where rows are few, else extracts."""
    own = file.body["utility"]
    asked = "Rel" not in file.body["systems"] or "scatter" in own
    engines = {"BM25": "bm25", "MonoT5": MINILM}
    systems = {
        name.replace("MonoT5", "MiniLM"): {"profile": "engine", "engine": engines.get(name, system["engine"])}
        for name, system in file.body["systems"].items()
    }
    ks = [k for k in own["ks"] if k in (2, 5)]
    drawing = {**own, "ks": ks, "relevant": 1, "similarity": {"kind": "minilm"}, "temperature": 0, "runs": 1}
    if "scatter" in own:
        drawing["scatter"] = [k for k in own["scatter"] if k in ks]
    drawing |= {"orders": ["rank"], "compat": ["authors"]} if asked else {"compat": ["ours"]}
    body = {
        "kind": "utility",
        "collection": TEXTS,
        "topics": {"sample": LEAST if asked else 100},
        "utility": drawing,
        "settings": {"generate": "llm", "model": SERVED} if asked else {"generate": {"sentences": 3}},
        "prices": FREE if asked else {},
        "baseline": file.body["baseline"],
        "systems": systems,
    }
    differs = (
        f"GrepBiasIR (6 judged texts a query) for MS MARCO, {'SmolLM2' if asked else 'extracts'} for 8B, MiniLM for "
        f"MonoT5 and BERTScore, one run{', rank order' if asked else ''}"
    )
    return Small(body, (("MonoT5", "MiniLM"),), differs, ("P@0", "U@2", "U@5"))


def _fairft(file: File) -> Small:
    """One model's rows, the same for all tables, so that they share a twin; the filters over one retriever."""
    rows = tuple((f"{model}, ", "SmolLM2, ") for model in MODELS)
    filtered = "SmolLM2, FairFilter-static vectors"
    systems: Body = {
        "SmolLM2, no": {"engine": "none"},
        "SmolLM2, BM25": {"engine": "bm25"},
        "SmolLM2, static vectors": {},
        f"{filtered}, first step": {"filter": {**FAIR_FILTER, "utility": False}},
        filtered: {"filter": FAIR_FILTER},
        f"{filtered}{OURS}": {"filter": {"kind": "fair"}},
    }
    body = {
        "kind": file.body["kind"],
        "collection": LEADS,
        "questions": file.body["questions"],
        "seed": file.body["seed"],
        "prices": FREE,
        "settings": {"context": {"documents": 3, "tokens": 300}, "model": SERVED},
        "systems": {name: {"profile": "engine", "engine": STATIC, **system} for name, system in systems.items()},
    }
    differs = (
        "SmolLM2 for all models (the paper's numbers are Llama3.2-1b's with the web), leads (wikilead) for the web and "
        "for Wikipedia, 300 tokens of them, static vectors for Contriever"
    )
    rows += (("Contriever", "static vectors"), ("FairFT-1B", "FairFT-Self"), (", K=3", ""))
    return Small(body, rows, differs, (file.body["kind"],))


def _fair_qr(file: File) -> Small:
    """Gender's rows on the track's biographies, asked of SmolLM2; the same by feedback; the rivals over BM25's list."""
    gender = {
        name: {key: value for key, value in system.items() if key not in ("model", "target", "dimensions")}
        for name, system in file.body["systems"].items()
        if "geography" not in name
    }
    by_words = {
        name.replace("gender", "feedback"): {**system, "refine": {"kind": "feedback", "weight": 1}}
        for name, system in gender.items()
        if name.startswith("FAIR-QR")
    }
    rivals: dict[str, Body] = {name: {"profile": "engine", "rerank": kind} for name, kind in RIVALS.items()}
    # Another query, re-ranked as deep, that knows no groups.
    rivals["RM3"] = {"profile": "engine", "expansion": {"documents": 20}, "depth": 20, "rerank": "original"}
    body = {
        **file.body,
        "collection": PEOPLE,
        "prices": FREE,
        # Keywords in JSON are longer than an answer.
        "settings": {"target": "trec", "model": {**SERVED, "max_tokens": 100}},
        "systems": {**gender, **by_words, **rivals, "agent": {}},
    }
    differs = "25 topics, one sentence a page, no geography; SmolLM2 for gpt-4o, static vectors for its vector search"
    return Small(body, (), differs, ("nDCG@20", "gender AWRF@20", "gender nDCG@20*AWRF@20"))


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
        body["settings"] = {"context": {"documents": 3, "tokens": 100 if "collection" in body else 150}}
        if file.table[1] == "6":
            body["topics"] = {"sample": LEAST}
        elif "collection" in body and body["kind"] == "stereoset" and "part" not in body["questions"]:
            body["topics"] = GENDER
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
    # An effect size is over the words of a test.
    shown = (TIME,) if file.table[1] == "6" else SHOWN[body["kind"]]
    return Small(body, (), differs, shown, 1 if body["kind"] == "seat" else LEAST)
