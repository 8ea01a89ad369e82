"""What a test imports of packages that are not installed, read off its syntax: such tests are skipped.

Nothing is found out by trying: an import that fails in a test, or in the core, is an error. Names are followed from the
test and its fixtures through the tests' own modules; in a module of fairagent that these import from only its own
imports count, so that a heavy import that creeps into the core makes tests fail. A test that uses an extra through
settings alone says so itself, with `pytest.importorskip`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fairagent.storage.packages import module_of

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
LEFT_OUT = ("docs", "local", "pyterrier", "test")
"""Extras that `make test` does not install either: tests say themselves what they need of them; and what runs tests."""
NEVER_IMPORTED = ("scipy-stubs", "types-pyyaml", "import-linter", "opentelemetry-sdk")
"""Packages that no test imports under a name of their own: types, commands, parts of another package's module."""
BROUGHT = {"starlette": "studio", "pandas": "parquet", "huggingface_hub": "dense", "jnius_config": "lucene"}
"""Modules that come with an extra's packages -> the extra."""
IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Name = tuple[Path, str]
"""A name of a module's file; "" is all that happens while it is imported."""


@cache
def absent() -> dict[str, str]:
    """Module that is not installed -> the extra that brings it, as pyproject.toml has them."""
    modules = BROUGHT | {module_of(package): extra for package, extra in packages().items()}
    return {module: extra for module, extra in modules.items() if find_spec(module) is None}


def packages() -> dict[str, str]:
    """Package that tests may import -> its extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {extra: listed for extra, listed in project["optional-dependencies"].items() if extra not in LEFT_OUT}
    names = {re.split(r"[\[><=]", line)[0]: extra for extra, listed in extras.items() for line in listed}
    return {name: extra for name, extra in names.items() if name not in ("fairagent", *NEVER_IMPORTED)}


@dataclass(slots=True)
class Statement:
    """One statement of a module: the names that it uses, the packages that it imports, and what from our own files."""

    uses: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    links: set[Name] = field(default_factory=set)


@dataclass(slots=True)
class Module:
    """A module's statements: all by the names that they bind, and those that run while it is imported."""

    bound: dict[str, list[Statement]] = field(default_factory=dict)
    at_import: Statement = field(default_factory=Statement)


@cache
def module(path: Path) -> Module:
    """The module in a file."""
    read = Module()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, IMPORTS):
            # Each name by itself: who uses one of them does not need the others.
            for alias in node.names:
                statement = _statement([node], path, only=alias)
                read.bound.setdefault(alias.asname or alias.name.partition(".")[0], []).append(statement)
        else:
            statement = _statement(ast.walk(node), path)
            for name in _bound(node):
                read.bound.setdefault(name, []).append(statement)
        for part in _running(node):
            now = _statement([part], path, at_import=True)
            read.at_import.packages |= now.packages
            read.at_import.links |= now.links
    return read


def needs(names: Iterable[Name]) -> set[str]:
    """The absent modules that these names need, whether they are used or only imported with their module."""
    return {module for name in names for module in _needs(name)} if absent() else set()


@cache
def _needs(wanted: Name) -> set[str]:
    found: set[str] = set()
    todo = [((wanted[0], ""), 0), (wanted, 0)]
    seen: set[Name] = set()
    while todo:
        one, depth = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        path, name = one
        ours = module(path)
        package = path.parent / "__init__.py"
        if not name and package.is_file():
            todo.append(((package, ""), depth + 1))
        # Of a module that is imported whole, such as `words` in `words.run`, what is used counts.
        base, _, attribute = name.partition(".")
        for statement in [ours.at_import] if not name else ours.bound.get(base, []):
            found |= statement.packages & absent().keys()
            todo += [((path, used), depth) for used in statement.uses]
            for file, linked in statement.links:
                link = (file, linked or attribute)
                # From a module of the package only what it passes on under its own name.
                if _of_tests(path) or (path.name == "__init__.py" and name and depth < 2):
                    todo += [(link, depth + 1), ((link[0], ""), depth + 1)]
    return found


@cache
def _of_tests(path: Path) -> bool:
    return TESTS in path.parents


def reason(modules: Iterable[str]) -> str:
    """Why a test is skipped."""
    extras: dict[str, list[str]] = {}
    for name in sorted(modules):
        extras.setdefault(absent()[name], []).append(name)
    return "; ".join(f"needs the extra {extra} ({', '.join(names)})" for extra, names in sorted(extras.items()))


def _statement(
    nodes: Iterable[ast.AST], path: Path, only: ast.alias | None = None, at_import: bool = False
) -> Statement:
    found = Statement()
    for node in nodes:
        if isinstance(node, ast.Name):
            found.uses.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.uses.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Import):
            for alias in [only] if only else node.names:
                found.packages.add(alias.name.partition(".")[0])
                if file := _file(alias.name, path):
                    found.links.add((file, ""))
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, path)
            found.packages.add(base.partition(".")[0])
            for alias in [only] if only else node.names:
                if inner := _file(f"{base}.{alias.name}", path):
                    found.links.add((inner, ""))
                elif file := _file(base, path):
                    found.links.add((file, "" if at_import else alias.name))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "expect_installed" and at_import:
            found.packages.add(module_of(ast.literal_eval(node.args[0])))
    return found


def _running(node: ast.stmt) -> Iterator[ast.AST]:
    """What of a statement runs while its module is imported: not what functions and classes hold."""
    todo: list[ast.AST] = [node]
    while todo:
        one = todo.pop()
        yield one
        if not isinstance(one, DEFINITIONS):
            todo += ast.iter_child_nodes(one)


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, DEFINITIONS):
        return {node.name}
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    """The module that names are imported from; within tests a folder is a package of the folder `tests`."""
    if not node.level:
        return node.module or ""
    base = ROOT if ROOT / "fairagent" in path.parents else TESTS
    folder = path.parents[node.level - 1].relative_to(base)
    return ".".join((*folder.parts, *filter(None, [node.module])))


@cache
def _file(name: str, importer: Path) -> Path | None:
    """The file of a module of ours: of fairagent, or of the tests."""
    places = [ROOT] if name.partition(".")[0] == "fairagent" else [TESTS, importer.parent]
    for place in places:
        whole = place.joinpath(*name.split("."))
        for file in (whole.with_suffix(".py"), whole / "__init__.py"):
            if file.is_file():
                return file
    return None
