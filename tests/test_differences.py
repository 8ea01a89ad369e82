"""docs/reference/differences.md: every test and golden file that it names is there, and every option is accepted."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from collecting import faults
from pydantic import TypeAdapter

from fairagent.evaluate.check import LEAST
from fairagent.evaluate.kind import kind_class
from fairagent.measures import parse_measure
from fairagent.papers.fairft.settings import FairFTFile
from fairagent.settings import Settings, lay, validate

TESTS = Path(__file__).resolve().parent
PAGE = (TESTS.parent / "docs" / "reference" / "differences.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| what |")
]
FAIRFT = {
    "name": "mine",
    "collection": "c.yaml",
    "examples": {"path": "q.jsonl"},
    "retriever": {"model": "m"},
    "signal": {"model": "m"},
}
"""The least that a file of FairFT holds."""
CALL = re.compile(r"([\w.]+)\.(\w+)\((?:(\w+)=(.+))?\)")


def named_tests_exist(*row: str) -> None:
    *_, tests = row
    assert len(row) == 5
    for named in tests.split("; "):
        if named.startswith("golden: "):
            assert list((TESTS / "golden" / "files").rglob(named.removeprefix("golden: ")))
        else:
            file, _, name = named.partition("::")
            assert name in functions(file), named


@cache
def functions(file: str) -> set[str]:
    """The functions of a test file, which need not be importable here."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_tests_of_a_row_are_there() -> None:
    assert faults(named_tests_exist, map(tuple, ROWS)) == []


def test_an_option_is_accepted() -> None:
    assert faults(accept, (option for row in ROWS for option in re.findall(r"`([^`]+)`", row[3]))) == []


def accept(option: str) -> None:
    """Raise where the option is none: of a measure, of Python, of an experiment, of FairFT or of the settings."""
    if "@" in option:
        parse_measure(option)
    elif call := CALL.fullmatch(option):
        module, name, parameter, value = call.groups()
        function: Any = getattr(import_module(f"fairagent.{module}"), name)
        if parameter:
            assert parameter in inspect.signature(function).parameters
            kind = get_type_hints(function.__init__ if inspect.isclass(function) else function)[parameter]
            TypeAdapter(kind).validate_python(ast.literal_eval(value), strict=True)
    else:
        values = yaml.safe_load(option if option.startswith("{") else f"{{{option}}}")
        if option.startswith("{"):
            validate(kind_class(values["kind"]), LEAST | values, "page")
        elif "training" in values or "retriever" in values:
            validate(FairFTFile, FAIRFT | values, "page")
        else:
            validate(Settings, lay(values), "page")
