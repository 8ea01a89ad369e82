"""The first table of evaluations/README.md: one number of each published table, what is known here, why it differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tables import files
from tables.file import Keys

START, STOP = "<!-- papers: made by papers/generate.py -->\n", "<!-- /papers -->"
TITLE = """
The papers print 1,327 numbers, and each stands in one experiment file, as what is expected of a system (`expected`), or
as `published` with why nothing here measures it. One number of every table is shown here; the links lead to all.
No cell says more than what was run. `fairagent evaluate FILE --check-only` says what a file's systems lack on your
machine and what they would cost.

| table | paper | here | why different | all numbers |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One published table: what `shown` is of, the number's file and keys; `here` and `why` as they are printed."""

    table: tuple[str, str]
    title: str
    shown: str
    file: str
    keys: Keys
    here: str
    why: str


LAMP = "not run: needs LaMP, the generators, and the weights of SPLADE and Contriever"
OWN_BOUNDS = (
    "our labels and prompts; what the paper leaves open is in [differences](../docs/differences.md#towards-fair-rag)"
)
WEB = "not run: needs the models and pages of the web"
WIKIPEDIA = "not run: needs the models, and Wikipedia in passages"
TRAINED = ", and retrievers that are trained first"
CRAWL = "the paper's crawl is not published; prompts are ours ([answers](answers/README.md))"
DUMP = "the paper's dump is not named; prompts are ours ([answers](answers/README.md))"
HALF = "half of StereoSet's terms are tested, the other half is the avoid library ([debias](debias/README.md))"
UNNAMED = "its avoid set and settings are not printed; ours is from StereoSet ([debias](debias/README.md))"

GENDER = ("gender",)
ROWS = (
    Row(
        ("000", "1"),
        "Towards Fair RAG, Table 1",
        "BM25 on LaMP-1: AUC",
        "fair_rag/table_1_lamp_1",
        ("expected", "BM25", "AUC"),
        f"{LAMP}. On [wikilead](fair_rag/README.md) BM25 drawn at α=4: EE-R .392 (own order .401), EE-D .745",
        f"it does not say whose labels count; {OWN_BOUNDS}",
    ),
    Row(
        ("000", "2"),
        "Towards Fair RAG, Table 2",
        "BM25, Flan-T5-XXL, LaMP-4, EE-D below .2: difference of EU",
        "fair_rag/table_2_lamp_4",
        ("expected", "BM25+FlanT5XXL", "difference [0, 0.2)"),
        f"{LAMP}. On [wikilead](fair_rag/README.md), by extracts, .120 lower",
        OWN_BOUNDS,
    ),
    Row(
        ("001", "1"),
        "Relevance to utility, Table 1",
        "BM25, DL 2019, grade 2: U@5",
        "utility/table_1_dl2019_relevant_2",
        ("expected", "BM25", "U@5"),
        "not run: needs MS MARCO's passages, BERT, an 8B model. On [cranfield](utility/README.md), by extracts and "
        "MiniLM (not comparable), +.198",
        "the base or the instructed model is meant, it is not clear which; more in "
        "[differences](../docs/differences.md#is-relevance-propagated-from-retriever-to-generator)",
    ),
    Row(
        ("002", "3"),
        "FairFT, Table 3",
        "Llama3-8b, BM25: agreement",
        "fairft/table_3_agreement",
        ("expected", "Llama3-8b, BM25", "agreement"),
        WEB,
        CRAWL,
    ),
    Row(
        ("002", "4"),
        "FairFT, Table 4",
        "Llama3-8b, BM25: agreement",
        "fairft/table_4_agreement",
        ("expected", "Llama3-8b, BM25", "agreement"),
        WIKIPEDIA,
        DUMP,
    ),
    Row(
        ("002", "6"),
        "FairFT, Table 6",
        "Llama3-8b, FairFT-Self: agreement",
        "fairft/table_6_agreement",
        ("expected", "Llama3-8b, FairFT-Self", "agreement"),
        WEB + TRAINED,
        CRAWL,
    ),
    Row(
        ("002", "7"),
        "FairFT, Table 7",
        "Llama3-8b, FairFT-Self: agreement",
        "fairft/table_7_agreement",
        ("expected", "Llama3-8b, FairFT-Self", "agreement"),
        WIKIPEDIA + TRAINED,
        DUMP,
    ),
    Row(
        ("002", "8"),
        "FairFT, Table 8",
        "gpt-4o-mini, FairFT-1B: agreement",
        "fairft/table_8_agreement",
        ("expected", "gpt-4o-mini, FairFT-1B", "agreement"),
        WEB + TRAINED,
        CRAWL,
    ),
    Row(
        ("003", "Key results"),
        "FAIR-QR, key results",
        "gender: nDCG·AWRF",
        "fair_qr/key_results",
        ("expected", "FAIR-QR, gender", "gender", "nDCG@20*AWRF(unknown=ignore)@20"),
        "not run: needs [the track's corpus](trec_fair/README.md) and a model. On [wikilead](fair_qr/README.md) its "
        "loop without a model: 0.2599, the agent aimed at gender: 0.4678",
        "it does not say which topics, queries, geography and treatment of the unknown it is for",
    ),
    Row(
        ("004", "1"),
        "DebiasRAG, Table 1",
        "BB3-175B: Regard",
        "debias_rag/table_1",
        (
            "published",
            "no kind of experiment has BOLD, TG2, APS, Regard or HolisticBias; the systems are measured on StereoSet",
            "Regard",
            "DebiasRAG",
        ),
        "not measured: nothing here has these measures",
        "-",
    ),
    Row(
        ("004", "2"),
        "DebiasRAG, Table 2",
        "GPT, gender: ICAT",
        "debias_rag/table_2_stereoset",
        ("expected", "DebiasRAG", "gender", "ICAT"),
        "not run: needs GPT-2's weights",
        f"by its own LMS and SS it is 90.30; which GPT it is, is not said; {HALF}",
    ),
    Row(
        ("004", "3"),
        "DebiasRAG, Table 3",
        "Llama3-8b, gender: ICAT",
        "debias_rag/table_3_stereoset",
        ("expected", "DebiasRAG", "gender", "ICAT"),
        "not run: needs Llama 3's weights",
        HALF,
    ),
    Row(
        ("004", "4"),
        "DebiasRAG, Table 4",
        "original: SEAT-6",
        "debias_rag/table_4",
        ("expected", "original", "|d| of sent-weat6"),
        "not run: needs GPT-2's weights. [MiniLM's](stereotypes/seat.md) is 1.2938",
        "another model; its tests 7 and 8 are described as career and family, and are mathematics and science",
    ),
    Row(
        ("004", "6"),
        "DebiasRAG, Table 6",
        "Llama3-8b: time, of the original's",
        "debias_rag/table_6",
        (
            "published",
            "a time as a multiple of the original's is no measure; timings.csv of a run has each system's",
            "Llama3-8b",
            "DebiasRAG avoid+regular",
        ),
        "not run: needs Llama 3's weights",
        "depends on machine and server",
    ),
    Row(
        ("004", "7"),
        "DebiasRAG, Table 7",
        "GPT: CP-S",
        "debias_rag/table_7",
        ("expected", "DebiasRAG", "CP-S"),
        "not run: needs GPT-2's weights",
        UNNAMED,
    ),
    Row(
        ("004", "8"),
        "DebiasRAG, Table 8",
        "BERT, gender: ICAT",
        "debias_rag/table_8_stereoset",
        ("expected", "DebiasRAG", "gender", "ICAT"),
        "not run: needs BERT's weights",
        HALF,
    ),
    Row(
        ("004", "Fig 2"),
        "DebiasRAG, Figure 2",
        "Llama3-8b, gender: SS",
        "debias_rag/fig_2",
        ("expected", "DebiasRAG", "gender", "SS"),
        "not run: needs Llama 3's weights",
        f"it optimizes on questions of what it tests; {HALF}",
    ),
    Row(
        ("004", "Fig 4"),
        "DebiasRAG, Figure 4",
        "Llama3-8b, intersentence: SS",
        "debias_rag/fig_4_intersentence",
        ("expected", "DebiasRAG", "SS"),
        "not run: needs Llama 3's weights",
        HALF,
    ),
    Row(
        ("004", "Fig 5"),
        "DebiasRAG, Figure 5",
        "GPT, SentenceDebias: SS",
        "debias_rag/fig_5",
        (
            "published",
            "the method changes the model's weights, which are not at hand; name them in the model's place to "
            "measure them",
            "SentenceDebias",
            "overall SS",
        ),
        "not measured: needs the changed weights",
        "-",
    ),
)


def overview(numbers: Mapping[str, Mapping[Keys, str]]) -> str:
    """The table in Markdown; `numbers` are those of every file by their keys. KeyError where one shown is not there."""
    lines = []
    for row in ROWS:
        shown = f"{row.shown} {numbers[row.file][row.keys]}"
        links = ", ".join(
            f"[{file.name.partition('/')[2]}](papers/{file.name}.yaml)" for file in files() if file.table == row.table
        )
        lines.append(f"| {' | '.join((row.title, shown, row.here, row.why, links))} |")
    return TITLE + "\n".join(lines) + "\n\n"
