"""Inside evaluate: the engine knows no kind, no kind knows another, and what they share knows neither."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from test_layers import imported

import fairagent.evaluate
from fairagent.evaluate.engine.reading import shipped

ROOT = Path(fairagent.evaluate.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
LONGEST = 350
HERE = "fairagent.evaluate."


def layer(name: str) -> str:
    """What a module of evaluate belongs to: engine, the folder of a kind, or what kinds share."""
    parts = name.removeprefix(HERE).split(".")
    return parts[1] if parts[0] == "kinds" and len(parts) > 1 else "engine" if parts[0] == "engine" else "shared"


def against(here: str, source: str) -> list[str]:
    """The imports, wherever they stand, that a module of this layer may not have."""
    allowed = {"engine": {"engine"}, "shared": {"engine", "shared"}}.get(here, {"engine", "shared", here})
    found = [name for _, name in imported(ast.walk(ast.parse(source))) if name.startswith(HERE)]
    return [name for name in found if layer(name) not in allowed]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_keeps_to_its_layer(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    name = HERE + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    assert against(layer(name), source) == []
    assert len(source.splitlines()) <= LONGEST


@pytest.mark.parametrize(
    ("here", "source"),
    [
        ("engine", "from fairagent.evaluate.kinds.ranking.kind import RankingKind"),
        ("engine", "def f():\n    import fairagent.evaluate.kinds.utility.trial"),
        ("engine", "from fairagent.evaluate.judging import Judge"),
        ("shared", "from fairagent.evaluate.kinds.ranking.kind import RankingKind"),
        ("utility", "from fairagent.evaluate.kinds.fair_rag.drawing import rankings"),
    ],
)
def test_the_check_finds_what_goes_against_them(here: str, source: str) -> None:
    assert against(here, source)


def test_every_folder_of_kinds_is_found() -> None:
    folders = {path.name for path in (ROOT / "kinds").iterdir() if (path / "__init__.py").exists()}
    assert {place.split(".")[3] for place in shipped().values()} == folders
    assert list(shipped()) == sorted(shipped(), key=lambda name: shipped()[name].split(".")[3])
    assert "ranking" in shipped()
