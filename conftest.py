"""Tests, and examples in docstrings, that import a package of an extra which is not installed are skipped.

See tests/lacking.py.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))

from lacking import Name, needs, reason


class Lacking(pytest.File):
    """A file that cannot be imported here."""

    def collect(self) -> list[pytest.Item]:
        """Nothing: it is skipped."""
        pytest.skip(reason(needs([(self.path, "")])), allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, Any, Any]:
    """A file that imports what is not there is not imported."""
    collectors = yield
    if collectors and file_path.suffix == ".py" and needs([(file_path, "")]):
        return [Lacking.from_parent(parent, path=file_path)]
    return collectors


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that imports what is not there, itself or by its fixtures, is skipped."""
    for item in items:
        if modules := needs(_names(item)):
            item.add_marker(pytest.mark.skip(reason=reason(modules)))


def _names(item: pytest.Item) -> list[Name]:
    if isinstance(item, pytest.Function):
        names = [(item.path, item.cls.__name__ if item.cls else item.originalname)]
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            code = definitions[-1].func.__code__
            names.append((Path(code.co_filename), definitions[-1].func.__name__))
        return [(path, name) for path, name in names if "site-packages" not in path.parts]
    examples = getattr(getattr(item, "dtest", None), "examples", ())
    used = (node.id for one in examples for node in ast.walk(ast.parse(one.source)) if isinstance(node, ast.Name))
    return [(item.path, name) for name in (item.name.rpartition(".")[2], *used)]
