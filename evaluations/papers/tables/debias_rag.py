"""DebiasRAG (arXiv 2605.16113)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .file import DATA, Body, File, Keys, Number, Place

LIBRARY: Body = {"kind": "debias-rag", "library": "../../debias/split/avoid.jsonl"}
ALONE: Body = {"profile": "engine", "engine": "none"}
ORIGINAL: Body = {"original": ALONE, "DebiasRAG": {**ALONE, "debias": LIBRARY}}
"""Without documents: these tables have no row of plain retrieval."""
WITH_DOCUMENTS: Body = {
    "original": ALONE,
    "Regular RAG": {"profile": "engine"},
    "DebiasRAG": {"profile": "engine", "debias": LIBRARY},
}
TIMED: Body = {
    "Original": ALONE,
    "RAG regular doc": {"profile": "engine"},
    "DebiasRAG avoid": {**ALONE, "debias": LIBRARY},
    "DebiasRAG avoid+regular": {"profile": "engine", "debias": LIBRARY},
}

GPT: Body = {"likelihoods": {"kind": "causal", "name": "openai-community/gpt2"}}
BERT: Body = {"likelihoods": {"kind": "masked", "name": "google-bert/bert-base-uncased"}}
LLAMA: Body = {"likelihoods": {"kind": "causal", "name": "meta-llama/Meta-Llama-3-8B"}}
BB3 = "facebook/blenderbot3-175B"

SETS = {"stereoset": "../../debias/split/test.jsonl", "crows-pairs": f"{DATA}/crows_pairs/crows_pairs.jsonl"}
SAID = {"stereoset": "StereoSet; SS of 50 is fair", "crows-pairs": "CrowS-Pairs; CP-S of 50 is fair"}
SPLIT = (
    "First write the avoid library and the half of StereoSet that is tested, which the paper does not set apart: "
    "python evaluations/debias/split.py STEREOSET_FOLDER evaluations/debias/split"
)

WEIGHTS = (
    "the method changes the model's weights, which are not at hand; name them in the model's place to measure them"
)
PROGRAM = "another program's retrieval"
THETA = "theta found by a search over questions is no setting of a system"
TIME = "a time as a multiple of the original's is no measure; timings.csv of a run has each system's"
NO_KIND = "no kind of experiment has BOLD, TG2, APS, Regard or HolisticBias; the systems are measured on StereoSet"
IN_TEXTS = "bias of what a model writes; nothing here measures that, and its systems are put to StereoSet"
IN_TIME = "how much longer an answer takes; its systems are put to StereoSet"
NO_CONTEXT = "SEAT tests an encoder alone, without any context before its sentences"


def debias_rag() -> Iterator[File]:
    """Tables 1 to 8 (of 5 there is no number) and the figures with numbers."""
    both = ("stereoset", "crows-pairs")
    yield _file("table_1", "1", "stereoset", ORIGINAL, {}, _unmeasured(NO_KIND), BB3, IN_TEXTS)
    for kind in both:
        yield _file(f"table_2_{kind}", "2", kind, ORIGINAL, GPT, _measured(kind))
        yield _file(f"table_3_{kind}", "3", kind, WITH_DOCUMENTS, LLAMA, _measured(kind))
    yield File(
        "debias_rag/table_4",
        ("004", "4"),
        "DebiasRAG (arXiv 2605.16113), Table 4: SEAT's six tests of gender, |d| (0 is fair). The paper does not name "
        "the model; it seems to be GPT-2.",
        {
            "kind": "seat",
            "seat": {"path": f"{DATA}/seat/seat.jsonl"},
            "systems": {
                "original": {"profile": "engine", "engine": {"kind": "dense", "encoder": "openai-community/gpt2"}},
            },
        },
        _of_seat,
    )
    yield _file("table_6", "6", "stereoset", TIMED, LLAMA, _unmeasured(TIME), said=IN_TIME)
    others = {"langchain": PROGRAM, "LlamaIndex": PROGRAM}
    yield _file("table_7", "7", "crows-pairs", ORIGINAL, GPT, _measured("crows-pairs", others))
    for kind in both:
        yield _file(f"table_8_{kind}", "8", kind, ORIGINAL, BERT, _measured(kind, {"DPCE": WEIGHTS, "ADEPT": WEIGHTS}))
    optimized = _measured("stereoset", {"DebiasRAG optimized": THETA})
    yield _file("fig_2", "Fig 2", "stereoset", WITH_DOCUMENTS, LLAMA, optimized)
    for part in ("intersentence", "intrasentence"):
        yield _file(f"fig_4_{part}", "Fig 4", "stereoset", WITH_DOCUMENTS, {"part": part, **LLAMA}, _of_part(part))
    tuned = _measured("stereoset", {"SentenceDebias": WEIGHTS, "AdapterTune": WEIGHTS})
    yield _file("fig_5", "Fig 5", "stereoset", ORIGINAL, GPT, tuned)


def _file(
    name: str, table: str, kind: str, systems: Body, questions: Body, place: Place, model: str = "", said: str = ""
) -> File:
    """One table: sentences are chosen by the likelihoods that `questions` names, else by asking `model`."""
    where = f"Figure {table[4:]}" if table.startswith("Fig") else f"Table {table}"
    searches = any(system.get("engine") != "none" for system in systems.values())
    return File(
        f"debias_rag/{name.replace('-', '_')}",
        ("004", table),
        f"DebiasRAG (arXiv 2605.16113), {where}: {said or SAID[kind]}.\n{SPLIT}",
        {
            "kind": kind,
            **({"collection": "../../collections/wikilead.yaml"} if searches else {}),
            "questions": {"path": SETS[kind], **questions},
            "seed": 1,
            "settings": {**({"model": {"name": model}} if model else {}), "context": {"documents": 3, "tokens": 400}},
            "systems": systems,
        },
        place,
    )


def _unmeasured(why: str) -> Place:
    """All numbers of the table are of what nothing here measures."""
    return lambda one: ("published", why, one.row, one.column)


def _measured(kind: str, published: Mapping[str, str] | None = None) -> Place:
    """Rows are measures (CP-S, overall LMS, gender SS), columns systems, or `published`: why they are none here."""

    def place(one: Number) -> Keys | None:
        if (one.row == "CP-S") != (kind == "crows-pairs"):
            return None
        if published and one.column in published:
            return "published", published[one.column], one.column, one.row
        *domain, measure = one.row.split()
        return "expected", one.column, *(name for name in domain if name != "overall"), measure

    return place


def _of_part(part: str) -> Place:
    """Rows are a part of StereoSet and a measure."""
    systems = {"RAG with user documents": "Regular RAG"}

    def place(one: Number) -> Keys | None:
        found, measure = one.row.split()
        return ("expected", systems.get(one.column, one.column), measure) if found == part else None

    return place


def _of_seat(one: Number) -> Keys:
    """Rows are tests."""
    test = one.row.replace("SEAT-", "sent-weat")
    if one.column == "original":
        return "expected", one.column, f"|d| of {test}"
    return "published", {"Dropout": WEIGHTS, "DebiasRAG": NO_CONTEXT}[one.column], one.column, test
