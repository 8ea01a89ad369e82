"""Towards Fair RAG (Kim, Diaz; ICTIR 2025)."""

from __future__ import annotations

from collections.abc import Iterator

from .file import Body, File

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


def fair_rag() -> Iterator[File]:
    """Tables 1 and 2, each for two tasks of LaMP."""
    for task in ("LaMP-1", "LaMP-4"):
        folder = task.lower().replace("-", "_")
        files = {"questions": "dev_questions.json", "outputs": "dev_outputs.json", "labels": "labels"}
        shared: Body = {
            "kind": "lamp",
            "seed": 42,
            "topics": 1000,
            "fair_rag": {"k": 5, "samples": 100, "alphas": [1, 2, 4, 8]},
            "lamp": {"task": task, **{key: f"{folder}/{name}" for key, name in files.items()}},
        }
        get = (
            f"\nFetch the user-based dev split of LaMP to {folder}/ beside this file, serve the generators, and make "
            "the labels: `fairagent labels` with this file."
        )
        yield File(
            f"fair_rag/table_1_{folder}",
            ("000", "1"),
            f"Towards Fair RAG, Table 1, {task}: how ranking quality (EE-R) rises with disparity (EE-D). Its rows name "
            f"no generator, though labels are a generator's: here Flan-T5-XXL's.{get}",
            {
                **shared,
                "settings": {"attribute": "none", "model": {"name": GENERATORS["FlanT5XXL"]}},
                "systems": {name: {"profile": "engine", "engine": engine} for name, engine in SCORERS.items()},
            },
            lambda one, task=task: ("expected", one.row, one.column) if one.set == task else None,  # type: ignore[misc]
        )
        yield File(
            f"fair_rag/table_2_{folder}",
            ("000", "2"),
            f"Towards Fair RAG, Table 2, {task}: normalized EU of the engine's own order, and by how much that of "
            "drawn rankings differs from it in each interval of disparity (EE-D). A question counts where every "
            f"generator has two useful items for it; keep one generator's systems to have its own questions.{get}",
            {
                **shared,
                "settings": {"attribute": "none"},
                "systems": {
                    f"{scorer}+{name}": {"profile": "engine", "engine": engine, "model": {"name": model}}
                    for scorer, engine in SCORERS.items()
                    for name, model in GENERATORS.items()
                },
            },
            lambda one, task=task: ("expected", one.row, _of_intervals(one.column)) if one.set == task else None,  # type: ignore[misc]
        )


def _of_intervals(column: str) -> str:
    if column == "baseline normalized EU":
        return "normalized EU"
    return f"difference {INTERVALS[column.removeprefix('difference ')]}"
