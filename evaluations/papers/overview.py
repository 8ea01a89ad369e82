"""The first table of evaluations/README.md: one number of each published table, what is known here, why it differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tables import files
from tables.file import Keys

START, STOP = "<!-- papers: made by papers/generate.py -->\n", "<!-- /papers -->"
TITLE = """
The papers print 1,327 numbers, and each stands in one experiment file, as what is expected of a system (`expected`), or
as `published` with why nothing here measures it. One number of every table is shown here; the links lead to all, and to
a file for each figure and question of which no number is printed. What a file guesses ends what it says of itself.
No cell says more than what was run. `fairagent evaluate FILE --check-only` says what a file's systems lack on your
machine and what they would cost.

| table | paper | here | why different | all numbers |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One published table: what `shown` is of, the number's file and keys; `here` and `why` as they are printed.

    Of a figure that prints no number there are no keys, and `shown` says what it shows.
    """

    table: tuple[str, str]
    title: str
    shown: str
    file: str
    keys: Keys
    here: str
    why: str


LAMP = "not run: needs LaMP, the generators, and the weights of SPLADE and Contriever"
OWN_BOUNDS = (
    "our labels and prompts; what the paper leaves open is in "
    "[differences](../docs/reference/differences.md#towards-fair-rag)"
)
WEB = "not run: needs the models and pages of the web"
WIKIPEDIA = "not run: needs the models, and Wikipedia in passages"
TRAINED = ", and retrievers that are trained first"
REPOSITORIES = "guessed: which repositories the models' names are"
CRAWL = (
    f"the paper's crawl is not published; the prompts are in our words ([answers](answers/README.md)); {REPOSITORIES}"
)
DUMP = f"the paper's dump is not named; the prompts are in our words ([answers](answers/README.md)); {REPOSITORIES}"
HALF = "half of StereoSet's terms are tested, the other half is the avoid library ([debias](debias/README.md))"
OF_LLAMA = f"{HALF}; guessed: the base model"
UNNAMED = (
    "its avoid set and settings are not printed; ours is from StereoSet ([debias](debias/README.md)); guessed: "
    "GPT-2, and "
    "DebiasRAG without documents"
)

GENDER = ("gender",)
ROWS = (
    Row(
        ("000", "1"),
        "Towards Fair RAG, Table 1",
        "BM25 on LaMP-1: AUC",
        "fair_rag/table_1_lamp_1",
        ("expected", "BM25", "AUC"),
        f"{LAMP}. On [wikilead](fair_rag/README.md) BM25 drawn at α=4: EE-R .392 (own order .401), EE-D .745",
        "guessed: medians over the four generators and three runs, since it does not say whose labels count; "
        f"{OWN_BOUNDS}",
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
        ("000", "Fig 3"),
        "Towards Fair RAG, Figure 3",
        "utility against disparity, query by query",
        "fair_rag/fig_3_lamp_4",
        (),
        LAMP,
        f"guessed: what it draws; {OWN_BOUNDS}",
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
        "[differences](../docs/reference/differences.md#is-relevance-propagated-from-retriever-to-generator)",
    ),
    Row(
        ("001", "Fig k"),
        "Relevance to utility, figures over k",
        "U and its correlation with nDCG@k, k = 1 to 15",
        "utility/fig_k_dl2019",
        (),
        "not run: needs MS MARCO's passages, BERT, an 8B model. [cranfield](utility/README.md) has its own",
        "guessed: the instructed model",
    ),
    Row(
        ("001", "Fig 4"),
        "Relevance to utility, Figure 4",
        "every topic's U against its nDCG@k, with lines",
        "utility/fig_4_dl2019",
        (),
        "not run: needs MS MARCO's passages, BERT, an 8B model",
        "guessed: the instructed model, and at which k it is drawn",
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
        "FairFT, Table 8 (question 3)",
        "gpt-4o-mini, FairFT-1B: agreement",
        "fairft/table_8_agreement",
        ("expected", "gpt-4o-mini, FairFT-1B", "agreement"),
        WEB + TRAINED,
        CRAWL,
    ),
    Row(
        ("002", "Fig k"),
        "FairFT, question 4",
        "K = 3, 5, 10 documents",
        "fairft/fig_k_agreement",
        (),
        WEB,
        CRAWL,
    ),
    Row(
        ("002", "Fig steps"),
        "FairFT, question 2",
        "FairFilter without its second step",
        "fairft/fig_steps_agreement",
        (),
        WEB,
        CRAWL,
    ),
    Row(
        ("002", "9"),
        "FairFT, Table 9 (question 5)",
        "a case: its documents and answers, side by side",
        "fairft/table_9_agreement",
        (),
        WEB + TRAINED,
        f"guessed: which question and model it is of; {CRAWL}",
    ),
    Row(
        ("002", "Ours both"),
        "FairFT, ours: the paper does not ask it",
        "FairFilter over what FairFT finds",
        "fairft/ours_both_agreement",
        (),
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
        "loop without a model, 20 re-ranked: 0.2581, the agent aimed at gender: 0.4678",
        "it does not say which topics, queries, geography and treatment of the unknown it is for, nor how deep it "
        "re-ranks; guessed: those here, and 20, with rows at 50, 100 and all",
    ),
    Row(
        ("004", "1"),
        "DebiasRAG, Table 1",
        "BB3-175B: Regard",
        "debias_rag/table_1_regard",
        ("expected", "DebiasRAG", "negative %"),
        "not run: needs BB3-175B, the benchmarks' openings and a classifier of regard. [A "
        "sample](stereotypes/README.md) "
        "of openings shows the way",
        "guessed: that the numbers are percentages of toxic or negative texts, which classifiers, what Prompting says",
    ),
    Row(
        ("004", "2"),
        "DebiasRAG, Table 2",
        "GPT, gender: ICAT",
        "debias_rag/table_2_stereoset",
        ("expected", "DebiasRAG", "gender", "ICAT"),
        "not run: needs GPT-2's weights",
        f"by its own LMS and SS it is 90.30; guessed: GPT-2, and DebiasRAG without documents; {HALF}",
    ),
    Row(
        ("004", "3"),
        "DebiasRAG, Table 3",
        "Llama3-8b, gender: ICAT",
        "debias_rag/table_3_stereoset",
        ("expected", "DebiasRAG", "gender", "ICAT"),
        "not run: needs Llama 3's weights",
        OF_LLAMA,
    ),
    Row(
        ("004", "4"),
        "DebiasRAG, Table 4",
        "original: SEAT-6",
        "debias_rag/table_4",
        ("expected", "original", "|d| of sent-weat6"),
        "not run: needs GPT-2's weights. [MiniLM's](stereotypes/seat.md) is 1.2938",
        "another model; guessed: GPT-2; its tests 7 and 8 are described as career and family, and are mathematics "
        "and science",
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
        "depends on machine and server; guessed: the base model",
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
        f"{HALF}; guessed: BERT base, uncased, and DebiasRAG without documents",
    ),
    Row(
        ("004", "Fig 2"),
        "DebiasRAG, Figure 2",
        "Llama3-8b, gender: SS",
        "debias_rag/fig_2",
        ("expected", "DebiasRAG", "gender", "SS"),
        "not run: needs Llama 3's weights",
        f"it optimizes on questions of what it tests, here on the other half; {OF_LLAMA}",
    ),
    Row(
        ("004", "Fig 3"),
        "DebiasRAG, Figure 3",
        "ICAT by the number of optimization questions",
        "debias_rag/fig_3",
        (),
        "not run: needs Llama 3's weights; [theta.py](debias/theta.py) searches",
        f"guessed: what it is over; {OF_LLAMA}",
    ),
    Row(
        ("004", "Fig 4"),
        "DebiasRAG, Figure 4",
        "Llama3-8b, intersentence: SS",
        "debias_rag/fig_4_intersentence",
        ("expected", "DebiasRAG", "SS"),
        "not run: needs Llama 3's weights",
        OF_LLAMA,
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
        shown = f"{row.shown} {numbers[row.file][row.keys]}" if row.keys else f"no number; {row.shown}"
        links = ", ".join(
            f"[{file.name.partition('/')[2]}](papers/{file.name}.yaml)" for file in files() if file.table == row.table
        )
        here = f"{row.here}. [With the smallest models](papers/SMALL.md)"
        lines.append(f"| {' | '.join((row.title, shown, here, row.why, links))} |")
    return TITLE + "\n".join(lines) + "\n\n"
