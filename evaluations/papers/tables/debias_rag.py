"""DebiasRAG (arXiv 2605.16113)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .file import DATA, Body, File, Keys, Number, Place, without_numbers

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

BB3, WRITER = "facebook/blenderbot3-175B", "http://127.0.0.1:8720/v1"
"""The model, and evaluations/debias/serve_transformers.py."""
RIVALS: Body = {
    "Base": ALONE,
    "Prompting": {**ALONE, "prompts": "../../debias/prompting"},
    "Self-Debias": {**ALONE, "model": {"name": f"{BB3}, Self-Debias"}},
    "DebiasRAG": {**ALONE, "debias": LIBRARY},
}
"""Table 1's."""
TOXIC: Body = {
    "kind": "transformers",
    "name": "s-nlp/roberta_toxicity_classifier",
    "labels": {"toxic": "negative", "neutral": "neutral"},
}
REGARD: Body = {"kind": "transformers", "name": "sasha/regardv3"}
OPENINGS: Mapping[str, tuple[str, Body]] = {
    "BOLD": ("BOLD", TOXIC),
    "TG2": ("ToxiGen v2", TOXIC),
    "APS": ("AdvPromptSet", TOXIC),
    "Regard": ("Regard's templates", REGARD),
    "HBR": ("HolisticBiasR", REGARD),
}
"""Row of Table 1 -> the benchmark whose openings are continued, and who says how."""

GPT: Body = {"likelihoods": {"kind": "causal", "name": "openai-community/gpt2"}}
BERT: Body = {"likelihoods": {"kind": "masked", "name": "google-bert/bert-base-uncased"}}
LLAMA: Body = {"likelihoods": {"kind": "causal", "name": "meta-llama/Meta-Llama-3-8B"}}
ENCODER: Body = {"kind": "dense", "encoder": "openai-community/gpt2"}

SETS = {"stereoset": "../../debias/split/test.jsonl", "crows-pairs": f"{DATA}/crows_pairs/crows_pairs.jsonl"}
SAID = {"stereoset": "StereoSet; SS of 50 is fair", "crows-pairs": "CrowS-Pairs; CP-S of 50 is fair"}
SPLIT = (
    "First write the avoid library and the half of StereoSet that is tested, which the paper does not set apart: "
    "python evaluations/debias/split.py STEREOSET_FOLDER evaluations/debias/split"
)

OF_GPT = "Which GPT it is: GPT-2 here."
OF_BERT = "Which BERT it is: the base one, uncased."
OF_LLAMA = "That the base model is meant, and wikilead for the documents."
NO_DOCUMENTS = "That DebiasRAG answers without documents, since the table has no row of plain retrieval."
SEARCH = (
    "\nThe weights that a search over questions finds: python evaluations/debias/theta.py "
    "evaluations/papers/debias_rag/{}.yaml"
)
SEARCHED = (
    "That theta is searched on a grid for the highest ICAT on questions of one half of the terms; the paper does not "
    "set "
    f"them apart. {OF_LLAMA}"
)

WEIGHTS = (
    "the method changes the model's weights, which are not at hand; name them in the model's place to measure them"
)
PROGRAM = "another program's retrieval"
THETA = (
    "theta found by a search over questions is no setting of a system; python evaluations/debias/theta.py finds it "
    "with "
    "this file"
)
TIME = "a time as a multiple of the original's is no measure; timings.csv of a run has each system's"
IN_TIME = "how much longer an answer takes; its systems are put to StereoSet"


def debias_rag() -> Iterator[File]:
    """Tables 1 to 8 (of 5 there is no number) and the figures with numbers."""
    both = ("stereoset", "crows-pairs")
    for row, (benchmark, classifier) in OPENINGS.items():
        yield _openings(row, benchmark, classifier)
    for kind in both:
        yield _file(f"table_2_{kind}", "2", kind, ORIGINAL, GPT, _measured(kind), guess=f"{OF_GPT} {NO_DOCUMENTS}")
        yield _file(f"table_3_{kind}", "3", kind, WITH_DOCUMENTS, LLAMA, _measured(kind), guess=OF_LLAMA)
    yield File(
        "debias_rag/table_4",
        ("004", "4"),
        "DebiasRAG (arXiv 2605.16113), Table 4: SEAT's six tests of gender, |d| (0 is fair). The paper does not name "
        f"the model; it seems to be GPT-2. Under DebiasRAG every text is read after the contexts made for it.\n{SPLIT}",
        {
            "kind": "seat",
            "seat": {"path": f"{DATA}/seat/seat.jsonl"},
            "systems": {
                "original": {"profile": "engine", "engine": ENCODER},
                "DebiasRAG": {"profile": "engine", "engine": ENCODER, "debias": LIBRARY},
            },
        },
        _of_seat,
        "That the model is GPT-2, by the mean of its last layer, and that DebiasRAG's contexts stand before every "
        "text.",
    )
    yield _file("table_6", "6", "stereoset", TIMED, LLAMA, _unmeasured(TIME), said=IN_TIME, guess=OF_LLAMA)
    others = {"langchain": PROGRAM, "LlamaIndex": PROGRAM}
    yield _file(
        "table_7", "7", "crows-pairs", ORIGINAL, GPT, _measured("crows-pairs", others), guess=f"{OF_GPT} {NO_DOCUMENTS}"
    )
    for kind in both:
        measured = _measured(kind, {"DPCE": WEIGHTS, "ADEPT": WEIGHTS})
        yield _file(f"table_8_{kind}", "8", kind, ORIGINAL, BERT, measured, guess=f"{OF_BERT} {NO_DOCUMENTS}")
    optimized = _measured("stereoset", {"DebiasRAG optimized": THETA})
    yield _file(
        "fig_2", "Fig 2", "stereoset", WITH_DOCUMENTS, LLAMA, optimized, more=SEARCH.format("fig_2"), guess=SEARCHED
    )
    yield _file(
        *("fig_3", "Fig 3", "stereoset", WITH_DOCUMENTS, LLAMA, without_numbers),
        more=SEARCH.format("fig_3") + " --questions 3 10 20 30 40 50 60",
        guess=f"That the figure is over the number of optimization questions. {SEARCHED}",
    )
    for part in ("intersentence", "intrasentence"):
        yield _file(
            f"fig_4_{part}",
            "Fig 4",
            "stereoset",
            WITH_DOCUMENTS,
            {"part": part, **LLAMA},
            _of_part(part),
            guess=OF_LLAMA,
        )
    tuned = _measured("stereoset", {"SentenceDebias": WEIGHTS, "AdapterTune": WEIGHTS})
    yield _file("fig_5", "Fig 5", "stereoset", ORIGINAL, GPT, tuned, guess=f"{OF_GPT} {NO_DOCUMENTS}")


def _openings(row: str, benchmark: str, classifier: Body) -> File:
    """One row of Table 1: its systems write on from a benchmark's openings."""
    name = f"table_1_{row.lower()}"
    return File(
        f"debias_rag/{name}",
        ("004", "1"),
        f"DebiasRAG (arXiv 2605.16113), Table 1, {row}: how often a text that a model writes on speaks ill of "
        "people, in "
        f"percent, after the openings of {benchmark}. Put them into openings/{row.lower()}/ beside this file, in "
        "BOLD's "
        f"format (see the README of fairagent/papers/debias_rag).\n{SPLIT}",
        {
            "kind": "bold",
            "questions": {"path": f"openings/{row.lower()}"},
            "regard": classifier,
            "seed": 1,
            "settings": {"model": {"name": BB3, "base_url": WRITER}, "context": {"documents": 3, "tokens": 400}},
            "systems": RIVALS,
        },
        lambda one: ("expected", one.column, "negative %") if one.row == row else None,
        "That the table has ROBBIE's benchmarks (Esiobu et al., EMNLP 2023) and its percentages of toxic (BOLD, TG2, "
        "APS) or "
        "negative (Regard, HBR) texts; the classifiers; the words of Prompting and the values of Self-Debias; "
        "DebiasRAG "
        "without documents. BB3-175B is handed out on request: evaluations/debias/serve_transformers.py serves "
        "a folder of yours, as it is and under Self-Debias.",
    )


def _file(
    name: str,
    table: str,
    kind: str,
    systems: Body,
    questions: Body,
    place: Place,
    said: str = "",
    more: str = "",
    guess: str = "",
) -> File:
    """One table: sentences are chosen by the likelihoods that `questions` names."""
    where = f"Figure {table[4:]}" if table.startswith("Fig") else f"Table {table}"
    searches = any(system.get("engine") != "none" for system in systems.values())
    return File(
        f"debias_rag/{name.replace('-', '_')}",
        ("004", table),
        f"DebiasRAG (arXiv 2605.16113), {where}: {said or SAID[kind]}.\n{SPLIT}{more}",
        {
            "kind": kind,
            **({"collection": "../../collections/wikilead.yaml"} if searches else {}),
            "questions": {"path": SETS[kind], **questions},
            "seed": 1,
            "settings": {"context": {"documents": 3, "tokens": 400}},
            "systems": systems,
        },
        place,
        guess,
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
    if one.column == "Dropout":
        return "published", WEIGHTS, one.column, test
    return "expected", one.column, f"|d| of {test}"
