"""One way in and one way out: files are parsed in fairagent/intake alone, and text is printed by two modules alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from test_layers import FILES, ROOT

PARSERS = {
    *(f"yaml.{name}" for name in ("load", "safe_load", "full_load", "load_all", "safe_load_all", "parse", "compose")),
    *("json.load", "json.loads", "json.JSONDecoder", "pickle.load", "pickle.loads", "marshal.loads", "eval", "exec"),
    *("np.load", "np.fromfile", "np.memmap", "np.loadtxt", "np.genfromtxt", "gzip.decompress", "zlib.decompress"),
}
PRINTERS = {"print", "typer.echo", "click.echo", "sys.stdout.write", "sys.stderr.write", "Console", "rich.print"}

MAY_PARSE = {
    "intake/json_text.py": {"json.JSONDecoder"},
    "intake/yaml_text.py": {"yaml.load", "yaml.compose", "yaml.parse"},
    "intake/arrays.py": {"np.memmap", "np.fromfile"},
    # What Java's Jackson has written of Lucene's own objects.
    "retrieve/anserini/documents.py": {"json.loads"},
    "retrieve/anserini/index.py": {"json.loads"},
    # The table that this package brings.
    "retrieve/light/words.py": {"np.load"},
    # A test's server reads what this library has sent.
    "testing/server.py": {"json.loads"},
}
MAY_PRINT = {
    "cli/terminal.py": {"typer.echo"},
}


def called(source: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything that the source calls."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def against(names: set[str], source: str) -> list[str]:
    return [f"line {line}: {name}" for line, name in called(source) if name in names]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_strangers_files_come_in_and_text_goes_out_one_way(path) -> None:
    place, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    assert against(PARSERS - MAY_PARSE.get(place, set()), source) == [], "read it through fairagent/intake"
    assert against(PRINTERS - MAY_PRINT.get(place, set()), source) == [], "print it by fairagent/cli/terminal.py"


def test_what_may_is_what_does() -> None:
    for place, names in {**MAY_PARSE, **MAY_PRINT}.items():
        found = {name for _, name in called((ROOT / place).read_text(encoding="utf-8"))}
        assert names <= found, place


@pytest.mark.parametrize(
    "source", ["json.loads(x)", "import json\njson.load(open(x))", "a = yaml.safe_load(t)", "np.load(p)", "eval(t)"]
)
def test_the_check_finds_a_parser(source: str) -> None:
    assert against(PARSERS, source)


@pytest.mark.parametrize("source", ["print(x)", "typer.echo(x)", "Console(stderr=True).print(x)"])
def test_the_check_finds_a_printer(source: str) -> None:
    assert against(PRINTERS, source)
