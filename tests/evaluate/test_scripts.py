"""The scripts under evaluations/ that make tables of runs or choose constants."""

from __future__ import annotations

import csv
import importlib.util
import lzma
import runpy
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fairagent.evaluate.run import FORMAT, write_head
from fairagent.llm.cache import ReplyCache
from fairagent.search.pipeline import open_site, prepare
from fairagent.search.rerank.similarity import GraphConfig
from fairagent.settings import Settings
from fairagent.types.search import FAIRNESS

EVALUATIONS = Path(__file__).resolve().parents[2] / "evaluations"


def loaded(name: str) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, EVALUATIONS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rivals = loaded("controller/rivals")


@pytest.fixture(scope="module")
def constants() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patched:
        # It asks for one thread a worker when it is loaded: not for the tests after this one.
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            patched.setenv(name, "1")
        yield loaded("controller/constants")


def test_the_defaults_are_what_was_chosen(constants: ModuleType) -> None:
    """As evaluations/controller/README.md prints the choice."""
    page = (EVALUATIONS / "controller" / "README.md").read_text(encoding="utf-8")
    settings = Settings()
    chosen = f": mix {settings.feedback.mix}, longest {settings.feedback.longest}, types {settings.types}"
    [choice] = [line for line in page.splitlines() if line.strip().startswith("the choice ")]
    assert choice.endswith(chosen)
    fixed = {name: values[0] for name, values in constants.FIXED.items()}
    assert fixed == {"dial": f"fairness {FAIRNESS:g}", "graph": GraphConfig().weight, "documents": 20}


def judged_run(folder: Path, products: Mapping[str, list[float]]) -> Path:
    """A run on "c" with nDCG 1 and AWRF of the product, and a topic that is not judged for the dimension."""
    folder.mkdir(parents=True)
    made = {"plan": {}, "excluded": {}, "fingerprint": {}, "format": FORMAT}
    write_head(folder, {**made, "provenance": {"collection": {"name": "c"}, "models": {}}})
    with (folder / "topics.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "system", "dimension", "measure", "value"])
        for system, values in products.items():
            for topic, value in enumerate(values):
                writer.writerow([f"t{topic:02}", system, "", "nDCG@20", 1])
                writer.writerow([f"t{topic:02}", system, "d", "AWRF(unknown=ignore)@20", value])
                writer.writerow([f"t{topic:02}", system, "d", "nDCG@20*AWRF(unknown=ignore)@20", value])
                writer.writerow([f"t{topic:02}", system, "d", "unlabeled@20", 9])
            writer.writerow(["t99", system, "", "nDCG@20", 0])
    return folder


def test_means_marks_and_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Twelve topics: a is .25 lower on each, which chance gives once in 2^11; b differs by turns.
    agent = [0.5] * 12
    low, turns = [0.25] * 12, [0.25, 0.75] * 6
    judged_run(tmp_path / "controller_trec22_biographies", {"a": low, "b": turns, "agent": agent})
    judged_run(tmp_path / "controller_allsides", {"a": agent, "b": agent, "agent": agent})
    judged_run(tmp_path / "controller_args_sigir19", {"b": [0.75] * 12, "agent": agent})
    aims = ["trec22_biographies", "allsides", "args_sigir19"]
    rivals.main(["--print", "--runs", str(tmp_path), "--only", *aims])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| nDCG@20 · AWRF@20 | trec22 (12) | allsides (12) | mean | args (12) |"
    # The oracle is in no mean, and marks stand where the difference from the agent is no chance.
    assert lines[2:5] == [
        "| a | 0.250- | 0.500 | 0.375 | not run |",
        "| b | 0.500 | 0.500 | 0.500 | 0.750+ |",
        "| agent | 0.500 | 0.500 | 0.500 | 0.500 |",
    ]
    head = "| agent less, all: 12 queries, 24 pairs of query and dimension | product | p | won/tied/lost |"
    [pooled] = [place for place, line in enumerate(lines) if line.startswith(head)]
    assert lines[pooled + 2].startswith("| a | +0.125 (")
    assert "12/12/0 | +0.000 (+0.000 to +0.000) | 1.0000 | +0.125" in lines[pooled + 2]
    assert "6/12/6" in lines[pooled + 3]
    oracles = next(place for place, line in enumerate(lines) if line.startswith("| agent less, oracles: 12 queries"))
    assert [line.split(" | ")[0] for line in lines[oracles + 2 :]] == ["| b"]


COMMAND: dict[str, Any] = runpy.run_path(str(EVALUATIONS / "unlabeled" / "deleted_labels.py"))
Deletion = COMMAND["Deletion"]


@pytest.mark.slow
@pytest.mark.shared
def test_the_agent_is_fair_by_the_labels_that_it_lost(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On BM25, twelve topics: unlabeled exposure stays the engine's own, and no interval misses the truth."""
    monkeypatch.chdir(tmp_path)
    site = open_site(EVALUATIONS / "collections" / "trec22_biographies.yaml", tmp_path / "index")
    prepare(site, lambda what, done: None)
    topics = COMMAND["counted"](site.collection, "gender")[::2][:12]
    chosen = [*(Deletion(part) for part in (0.3, 0.5, 0.8)), Deletion(0.5, "female")]
    assert set(chosen) < set(COMMAND["deletions"](site.collection, "gender"))
    for deletion in chosen:
        engine, agent = COMMAND["measure"](site, "gender", deletion, topics)
        assert (engine.unlabeled > 0).any()
        assert np.abs(agent.unlabeled - engine.unlabeled).max() <= 0.05
        assert agent.awrf.mean() >= engine.awrf.mean()
        for one in (engine, agent):
            assert one.covered == one.counted > 0
            assert (np.diff(one.ends) > 0).all()
        assert COMMAND["line"](deletion, engine, agent).startswith(str(deletion))


model = loaded("model/run")


@pytest.mark.parametrize("depth", ["", "_depth_20"])
def test_the_page_has_what_a_model_was_measured_to_buy(depth: str, capsys: pytest.CaptureFixture[str]) -> None:
    model.print_tables(model.read(EVALUATIONS / "model" / f"measured{depth}.csv"))
    assert capsys.readouterr().out.strip() in (EVALUATIONS / "model" / "README.md").read_text(encoding="utf-8")


def test_the_replies_that_are_shipped_are_one_models(tmp_path: Path) -> None:
    model.unpack(model.REPLIES, tmp_path / "replies")
    with closing(ReplyCache(tmp_path / "replies")) as cache:
        assert list(cache.stats().models) == [model.SMALL]
    model.pack(tmp_path / "replies", tmp_path / "again")
    again, shipped = (lzma.decompress(file.read_bytes()) for file in (tmp_path / "again", model.REPLIES))
    assert again == shipped


@pytest.mark.slow
@pytest.mark.vectors
@pytest.mark.shared
def test_a_replay_comes_to_what_was_measured(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = "run.py --replay --collections trec22_biographies --topics 5 --systems keywords passages"
    monkeypatch.setattr("sys.argv", command.split())
    model.main()
    assert capsys.readouterr().out.endswith("\n20 of 20 rows have the values that were measured\n")
