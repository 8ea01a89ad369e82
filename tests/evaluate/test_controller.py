"""The files under evaluations/controller are right: the default agent beside what could explain its gain."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiment_files import read_file

from fairagent.settings import Settings, read_yaml

FILES = sorted((Path(__file__).resolve().parents[2] / "evaluations" / "controller").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_files_are_right(file: Path) -> None:
    described, systems = read_file(file)
    assert systems.keys() == described.systems.keys()
    assert described.baseline in systems
    assert described.about
    assert (file.parent / described.collection).is_file()
    # Settings were chosen on the other half.
    assert described.topics == "test"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_systems_are_what_they_are_called(file: Path) -> None:
    _, systems = read_file(file)
    chosen = {name: plan.settings for name, plan in systems.items()}
    assert (chosen["agent"].loop, chosen["agent"].rerank) == (Settings().loop, Settings().rerank)
    assert chosen["agent"].engine.kind in ("auto", "fused")
    for name in ("BM25", "BM25+RM3", "dense", "fused"):
        assert not chosen[name].sees_groups, name
    loops = {name: settings.loop.kind for name, settings in chosen.items() if settings.loops}
    assert {name for name, kind in loops.items() if kind == "fair-qr"} == {"FAIR-QR by feedback", "FAIR-QR, depth 20"}
    assert {name for name, kind in loops.items() if kind == "controller"} == {
        name for name in chosen if "agent" in name or name == "controller alone"
    }
    # No row asks a language model.
    assert not any(plan.asks for plan in systems.values())


def test_the_files_differ_in_collection_and_dimensions_alone() -> None:
    files = [read_yaml(file) for file in FILES]
    assert len(files) == 9
    assert all(one["systems"] == files[0]["systems"] for one in files)
    assert len({(one["collection"], *one.get("dimensions", ())) for one in files}) == 9
