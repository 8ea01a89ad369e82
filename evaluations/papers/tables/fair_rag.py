"""Towards Fair RAG (Kim, Diaz; ICTIR 2025)."""

from __future__ import annotations

from collections.abc import Iterator

from .file import Body, File, without_numbers

GENERATORS = {
    "FlanT5Small": "google/flan-t5-small",
    "FlanT5Base": "google/flan-t5-base",
    "FlanT5XXL": "google/flan-t5-xxl",
    "FlanUL2": "google/flan-ul2",
}
SCORERS: Body = {
    "BM25": "okapi",
    "SPLADE": {"kind": "splade", "model": "naver/splade-cocondenser-ensembledistil"},
    "Contriever": {"kind": "dense", "encoder": "facebook/contriever-msmarco"},
}
INTERVALS = {"[0,.2)": "[0, 0.2)", "[.2,.4)": "[0.2, 0.4)", "[.4,.6)": "[0.4, 0.6)", "[.6,.8)": "[0.6, 0.8)"}
INTERVALS["[.8,1)"] = "[0.8, 1)"


RUNS = 3
NAMES = (
    "The repositories of the retrievers' and generators' weights are taken to be those of their names; the paper "
    "names the "
    "models alone."
)


FIGURES: dict[str, tuple[str, Body, str]] = {
    "3": (
        "utility (normalized EU) against disparity (EE-D), query by query; topics.csv has every query",
        {},
        "That the figure is of these two measures, and that 100 queries show it.",
    ),
    "4": (
        "utility (normalized EU) against ranking quality (EE-R), and both against disparity, over alpha",
        {},
        "What the figure draws: curves of means, a mark an alpha.",
    ),
    "5": (
        "how unevenly answers rest on items (EAE-D) against how unevenly these are shown (EE-D), and the rate at which "
        "they rest on them (EAR)",
        {"settings": {"attribute": {"kind": "nli", "encoder": "FacebookAI/roberta-large-mnli"}}},
        "What the panels draw but for EAE-D, and its bounds: those given the rate.",
    ),
}
"""Figure -> what it shows, keys of its file, and what is guessed."""
QUERIES: dict[str, Body] = {"3": {"queries": 100}}


def fair_rag() -> Iterator[File]:
    """Tables 1 and 2, and Figures 3 to 5, each for two tasks of LaMP."""
    for task in ("LaMP-1", "LaMP-4"):
        folder = task.lower().replace("-", "_")
        files = {"questions": "dev_questions.json", "outputs": "dev_outputs.json", "labels": "labels"}
        shared: Body = {
            "kind": "lamp",
            "seed": 42,
            "topics": 1000,
            "fair_rag": {"k": 5, "samples": 100, "alphas": [1, 2, 4, 8]},
            "lamp": {"task": task, **{key: f"{folder}/{name}" for key, name in files.items()}},
            "settings": {"attribute": "none"},
        }
        get = (
            f"\nFetch the user-based dev split of LaMP to {folder}/ beside this file, serve the generators, and make "
            "the labels: `fairagent labels` with this file."
        )
        drawn = {
            f"{scorer}+{name} drawn": {"profile": "engine", "engine": engine, "model": {"name": model}}
            for scorer, engine in SCORERS.items()
            for name, model in GENERATORS.items()
        }
        of_retriever = {one: [name for name in drawn if name.startswith(f"{one}+")] for one in SCORERS}
        yield File(
            f"fair_rag/table_1_{folder}",
            ("000", "1"),
            f"Towards Fair RAG, Table 1, {task}: how ranking quality (EE-R) rises with disparity (EE-D). Its rows "
            "name no "
            f"generator, though labels are a generator's: here each is the median over four generators and {RUNS} runs."
            f"{get}",
            _medians(shared, of_retriever, drawn),
            lambda one, task=task: ("expected", one.row, one.column) if one.set == task else None,  # type: ignore[misc]
            f"That rows are medians over generators, and the number of runs. {NAMES}",
        )
        yield File(
            f"fair_rag/table_2_{folder}",
            ("000", "2"),
            f"Towards Fair RAG, Table 2, {task}: normalized EU of the engine's own order, and by how much that of "
            "drawn rankings differs from it in each interval of disparity (EE-D). A question counts where every "
            "generator has two useful items for it; keep one generator's systems to have its own questions. Each row "
            "is "
            f"the median over {RUNS} runs; `runs: 1` costs a third.{get}",
            _medians(shared, {name.removesuffix(" drawn"): [name] for name in drawn}, drawn),
            lambda one, task=task: ("expected", one.row, _of_intervals(one.column)) if one.set == task else None,  # type: ignore[misc]
            f"The number of runs. {NAMES}",
        )
        for figure, (what, more, guess) in FIGURES.items():
            yield File(
                f"fair_rag/fig_{figure}_{folder}",
                ("000", f"Fig {figure}"),
                f"Towards Fair RAG, Figure {figure}, {task}: {what}, on the page of the run.{get}",
                {
                    **shared,
                    **more,
                    "fair_rag": {**shared["fair_rag"], **QUERIES.get(figure, {})},
                    "systems": _named(drawn),
                },
                without_numbers,
                f"{guess} {NAMES}",
            )


def _medians(shared: Body, wanted: Body, systems: Body) -> Body:
    """The file's keys with rows that are medians."""
    drawing = {**shared["fair_rag"], "runs": RUNS, "medians": wanted}
    return {**shared, "fair_rag": drawing, "systems": systems}


def _named(drawn: Body) -> Body:
    return {name.removesuffix(" drawn"): system for name, system in drawn.items()}


def _of_intervals(column: str) -> str:
    if column == "baseline normalized EU":
        return "normalized EU"
    return f"difference {INTERVALS[column.removeprefix('difference ')]}"
