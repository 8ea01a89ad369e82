"""The engines as parts: a collection without documents, searched in an index that Anserini has built."""

import json
import shutil
from pathlib import Path

import pytest
from anserini_indexes import joined
from typer.testing import CliRunner

from fairagent import open_agent
from fairagent.cli import app
from fairagent.errors import BackendUnavailable
from fairagent.guests.lucene.config import LuceneConfig

from .conftest import IDS, WEIGHTS

LABELS = ("female", "male", "")
COLLECTION = """\
name: elsewhere
topics: {path: topics.jsonl}
qrels: {path: qrels.tsv}
groups: {path: groups.tsv, dimensions: {gender: {}}}
population: {gender: {female: 0.5, male: 0.5}}
"""


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection that names no documents, and a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = "".join(f"{id}\t{LABELS[n % 3]}\n" for n, id in enumerate(IDS))
    (tmp_path / "groups.tsv").write_text("id\tgender\n" + rows)
    (tmp_path / "topics.jsonl").write_text(
        '{"id": "T1", "query": "lawyers of Bonn"}\n{"id": "T2", "query": "judges"}\n'
    )
    (tmp_path / "qrels.tsv").write_text("T1 0 d00 1\nT2 0 d05 1\n")
    (tmp_path / "collection.yaml").write_text(COLLECTION)
    return tmp_path / "collection.yaml"


def test_the_whole_agent(built, collection):
    agent = open_agent(collection, engine={"kind": "lucene", "index": str(built / "full")}, profile="offline", n=4)
    result = agent.search("lawyers of Bonn")
    assert (len(result.hits), result.trace.engine) == (4, "lucene")
    assert any(hit.groups["gender"] for hit in result.hits)


def test_impacts_with_the_terms_of_another_index(built, collection):
    engine = {"kind": "lucene-impact", "index": str(built / "impact"), "texts": str(built / "full")}
    agent = open_agent(collection, engine=engine, profile="offline", n=3)
    result = agent.search("lawyer judge")
    assert len(result.hits) == 3
    best = max(weights["lawyer"] + weights["judge"] for weights in WEIGHTS)
    assert agent.retriever.search(result.query, 1).scores.tolist() == [best]


def test_the_command_line(built, collection):
    def run(command: str, index: str, *more: str) -> str:
        chosen = ["-c", str(collection), "--set", f"engine={{kind: lucene, index: {built / index}}}"]
        done = CliRunner().invoke(app, [*command.split(), *chosen, *more])
        assert (done.exit_code, index) in ((0, "full"), (3, "hnsw")), done.output
        return " ".join(done.stdout.split())

    assert "elsewhere is searched where it is: 12 documents at" in run("index", "full")
    assert json.loads(run("index --json", "full"))["holds"].endswith("full; texts, terms from document vectors")
    assert len(json.loads(run("search judges --json", "full", "--set", "profile=engine", "--n", "2"))["hits"]) == 2
    assert "12 documents at" in run("doctor", "full")
    assert "is of embeddings" in run("doctor", "hnsw")


def test_an_experiment_notices_another_index(built, collection, tmp_path):
    index = Path(shutil.copytree(built / "full-0", tmp_path / "index"))
    engine = "engine: {kind: lucene, index: index}"
    (tmp_path / "experiment.yaml").write_text(
        "name: built\ncollection: collection.yaml\nmeasures: [nDCG@3, AWRF@3]\n"
        f"systems:\n  plain: {{profile: engine, {engine}}}\n  agent: {{profile: offline, {engine}}}\n"
    )
    asked = ["evaluate", str(tmp_path / "experiment.yaml"), "--run", str(tmp_path / "run")]
    for _ in range(2):
        done = CliRunner().invoke(app, asked)
        assert done.exit_code == 0, done.output
    joined(index, built / "full-1")
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code != 0
    assert "engine.index" in refused.output


def test_prebuilt_indexes_by_name(built, collection, tmp_path, monkeypatch):
    """`fairagent index` downloads one; from then on the name stands for its folder."""
    from pyserini import util

    part = LuceneConfig(index="cacm")
    assert part.relative_to(tmp_path) == part
    assert LuceneConfig(index="elsewhere").relative_to(tmp_path).index == str(tmp_path / "elsewhere")
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    engine = {"kind": "lucene", "index": "cacm"}
    with pytest.raises(BackendUnavailable, match="which `fairagent index` downloads"):
        open_agent(collection, engine=engine, profile="engine")

    def fetch(url, **asked):
        target = tmp_path / "cache" / "indexes" / f"{url.split('/')[-1].removesuffix('.tar.gz')}.{asked['md5']}"
        return str(target if target.exists() else shutil.copytree(built / "full", target))

    monkeypatch.setattr(util, "download_and_unpack_index", fetch)
    done = CliRunner().invoke(app, ["index", "-c", str(collection), "--set", "engine={kind: lucene, index: cacm}"])
    assert done.exit_code == 0, done.output
    assert len(open_agent(collection, engine=engine, profile="engine", n=2).search("judges").hits) == 2
