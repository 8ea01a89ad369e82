"""Models and encoders alone, without retrieval and without a collection: StereoSet, CrowS-Pairs and SEAT."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from evaluate import words
from fairagent.errors import SettingsError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Run
from fairagent.evaluate.workers import threads
from fairagent.guests.local.likelihood import CausalModel, MaskedModel
from fairagent.guests.testing import LoopbackServer
from fairagent.llm.likelihood import EndpointModel
from fairagent.papers.debias_rag.benchmarks.items import read_stereoset
from fairagent.papers.debias_rag.benchmarks.scorers import CausalScorer, Likelihoods, MaskedScorer
from fairagent.report.page import page
from fairagent.retrieve.encoders import Embeddings
from fairagent.settings import SelfDebiasSettings

from . import bench

pytestmark = pytest.mark.usefixtures("no_variables")
SYSTEMS = "systems: {alone: {profile: engine, engine: none}}\n"


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_next_sentence(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_causal(tmp_path_factory.mktemp("causal"))


def experiment(folder: Path, kind: str, data: Path, more: str = "", systems: str = SYSTEMS) -> Path:
    file = folder / "experiment.yaml"
    file.write_text(f"kind: {kind}\nname: alone\nquestions: {{path: {data.name}{more}}}\n{systems}", encoding="utf-8")
    return file


def overall(run: Run) -> dict[str, float]:
    rows = run.kind.set_rows(run)  # type: ignore[attr-defined]
    return next(dict(row.values) for _, row in rows if (row.part, row.kind) == ("overall", "overall"))


def test_stereoset_by_a_masked_model(tmp_path: Path, masked: Path) -> None:
    data = bench.write_stereoset(tmp_path / "dev.jsonl")
    more = f", likelihoods: {{kind: masked, name: {masked}}}"
    run = words.run(experiment(tmp_path, "stereoset", data, more), tmp_path / "run")
    assert run.collection == "no collection"
    scorer = MaskedScorer(MaskedModel(str(masked)))
    scores = np.array([scorer.score(one).scores for one in read_stereoset(data).values()])
    # Two examples a target term, so that the mean over terms is that over examples.
    assert overall(run)["SS"] == pytest.approx(100 * (scores[:, 0] > scores[:, 1]).mean())
    text = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert f"by likelihoods of the local masked model {masked}" in text
    assert "50 is best" in text
    part = words.run(
        experiment(tmp_path, "stereoset", data, f"{more}, part: intrasentence"), tmp_path / "part", limit=2
    )
    assert {row.part for _, row in part.kind.set_rows(part)} == {"intrasentence", "overall"}  # type: ignore[attr-defined]


def test_likelihoods_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihoods = Likelihoods(kind="server", name="tiny", base_url="http://127.0.0.1:9/v1")
    scorer = likelihoods.open()
    assert isinstance(scorer, CausalScorer)
    assert isinstance(scorer.model, EndpointModel)
    assert (scorer.model.name, scorer.model.endpoint.host) == ("tiny", "127.0.0.1:9")
    assert likelihoods.way == "likelihoods of the model tiny at a server"
    scorer.model.close()


def test_through_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bench.write_crows_pairs(tmp_path / "pairs.csv")
    systems = f"cache: ''\nsettings: {{model: {{name: tiny}}}}\n{SYSTEMS}"
    with LoopbackServer(bench.model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        checked = check_experiment(experiment(tmp_path, "crows-pairs", data, systems=systems))
        with threads(1) as workers:
            run = run_experiment(checked, tmp_path / "run", workers)
        assert len(server.requests) == 3
    assert overall(run)["CP-S"] == 100.0
    assert run.kind.way == "forced choice, no likelihoods"  # type: ignore[attr-defined]


def test_a_system_that_searches_needs_a_collection(tmp_path: Path) -> None:
    data = bench.write_stereoset(tmp_path / "dev.jsonl")
    systems = "systems: {found: {profile: engine, engine: words, model: {name: tiny}}}\n"
    with pytest.raises(SettingsError, match="collection: is missing"):
        check_experiment(experiment(tmp_path, "stereoset", data, systems=systems), environ={"OPENAI_API_KEY": "none"})


# --- SEAT -----------------------------------------------------------------------------------------------------------

SETS = {
    "Men": ["John", "Paul", "Mike"],
    "Women": ["Amy", "Lisa", "Sarah"],
    "Career": ["executive", "salary"],
    "Family": ["home", "children"],
}


class Letters:
    """Vectors of a text's letters; `power` tells encoders apart."""

    def __init__(self, power: float) -> None:
        self.name, self.power = f"letters {power}", power

    def documents(self, texts: list[str]) -> Embeddings:
        rows = [[text.lower().count(chr(letter)) ** self.power for letter in range(97, 123)] for text in texts]
        return np.array(rows, dtype=np.float32)


def seat(folder: Path, more: str = "", engine: str = "{kind: dense, encoder: two}") -> Path:
    names = ({"category": name, "examples": texts} for name, texts in SETS.items())
    test = dict(zip(("targ1", "targ2", "attr1", "attr2"), names, strict=True))
    (folder / "careers.jsonl").write_text(json.dumps(test), encoding="utf-8")
    file = folder / "seat.yaml"
    file.write_text(
        f"kind: seat\nname: associations\nseat: {{path: careers.jsonl{more}}}\n"
        f"systems:\n  one: {{profile: engine, engine: {{kind: dense, encoder: one}}}}\n"
        f"  two: {{profile: engine, engine: {engine}}}\n",
        encoding="utf-8",
    )
    return file


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairagent.papers.debias_rag.benchmarks import seat as kind

    monkeypatch.setattr(kind, "open_encoder", lambda name, device: Letters({"one": 1.0, "two": 2.0}[name]))


def test_seat_compares_encoders(letters: None, tmp_path: Path) -> None:
    run = words.run(seat(tmp_path, ", tests: all"), tmp_path / "run")
    assert (run.collection, run.measures, run.systems) == ("careers.jsonl", ("|d|",), ("one", "two"))
    lines = list(csv.DictReader((tmp_path / "run" / "seat.csv").read_text(encoding="utf-8").splitlines()))
    assert [(line["system"], line["test"], line["partitions"]) for line in lines] == [
        ("one", "careers", "all"),
        ("two", "careers", "all"),
    ]
    means = {row.system: row.mean for row in run.comparisons}
    assert means == {line["system"]: abs(float(line["d"])) for line in lines}
    assert means["one"] != means["two"]
    text = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert "Men/Women, Career/Family" in text
    assert "one: effect sizes" in page(run)


@pytest.mark.parametrize(
    ("more", "engine", "message"),
    [
        ("", "{kind: dense, encoder: two}", "has no test 'sent-weat6'; there are: careers"),
        (", tests: all", "words", "systems.two.engine: is 'words'; SEAT tests encoders"),
        (", tests: all, samples: 1", "{kind: dense, encoder: two}", "seat.samples: Input should be greater than"),
    ],
)
def test_faults_of_a_seat_file(letters: None, tmp_path: Path, more: str, engine: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_experiment(seat(tmp_path, more, engine), environ={})


def test_rivals_change_the_likelihoods_and_say_so(tmp_path: Path, causal: Path) -> None:
    data = bench.write_stereoset(tmp_path / "dev.jsonl")
    found = {}
    for name, rival in (
        ("plain", ""),
        ("prompting", ", instruction: The good judge is a woman."),
        ("self-debias", ", self_debias: {decay: 50, kinds: [gender, religion]}"),
    ):
        more = f", likelihoods: {{kind: causal, name: {causal}{rival}}}"
        folder = tmp_path / name
        words.run(experiment(tmp_path, "stereoset", data, more), folder)
        lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
        found[name] = [line["record"]["scores"] for line in lines if line.get("record")]
        told = (folder / "results.txt").read_text(encoding="utf-8")
        assert ("Self-Debias" in told, "with an instruction" in told) == (name == "self-debias", name == "prompting")
    examples = list(read_stereoset(data).values())
    scorer = CausalScorer(CausalModel(str(causal)))
    expected = [scorer.score(one, "The good judge is a woman.").scores for one in examples]
    assert np.allclose(sorted(found["prompting"]), sorted(one.tolist() for one in expected))
    assert not np.allclose(sorted(found["plain"]), sorted(found["prompting"]))
    assert not np.allclose(sorted(found["plain"]), sorted(found["self-debias"]))
    with pytest.raises(SettingsError, match="needs all of a model's probabilities"):
        Likelihoods(kind="masked", name="bert", self_debias=SelfDebiasSettings()).open()


def test_a_sample_of_examples_has_its_share_of_each_bias_type(tmp_path: Path, causal: Path) -> None:
    data = bench.write_stereoset(tmp_path / "dev.jsonl")
    more = f", likelihoods: {{kind: causal, name: {causal}}}"
    file = experiment(tmp_path, "stereoset", data, more, f"topics: {{sample: 2}}\nseed: 3\n{SYSTEMS}")
    examples = read_stereoset(data)
    assert sorted(examples[id].kind for id in check_experiment(file).plan.topics) == ["gender", "profession"]
    # The same by a limit; of three, 1.5 each, the class that is first in the alphabet has two.
    file = experiment(tmp_path, "stereoset", data, more, f"seed: 3\n{SYSTEMS}")
    kinds = [examples[id].kind for id in check_experiment(file, limit=2).plan.topics]
    assert sorted(kinds) == ["gender", "profession"]
    kinds = [examples[id].kind for id in check_experiment(file, limit=3).plan.topics]
    assert sorted(kinds) == ["gender", "gender", "profession"]
