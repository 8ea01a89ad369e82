"""The engines as parts: a collection without documents, searched in an index that Anserini has built."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from anserini_indexes import joined
from typer.testing import CliRunner

from fairagent import open_agent
from fairagent.cli import app
from fairagent.errors import BackendUnavailable, SettingsError
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


def test_a_refiner_without_terms_says_what_to_do(built, collection):
    engine = {"kind": "lucene", "index": str(built / "bare")}
    with pytest.raises(SettingsError, match=r"neither document vectors nor texts\. Build it with -storeDocvectors"):
        open_agent(collection, engine=engine, profile="offline", loop="fair-qr", refine="feedback")
    # The loop that widens needs none.
    assert len(open_agent(collection, engine=engine, profile="offline", n=3).search("judges").hits) == 3


def test_impacts_with_the_terms_of_another_index(built, collection):
    engine = {"kind": "lucene-impact", "index": str(built / "impact"), "texts": str(built / "full")}
    agent = open_agent(collection, engine=engine, profile="offline", n=3)
    result = agent.search("lawyer judge")
    assert len(result.hits) == 3
    best = max(weights["lawyer"] + weights["judge"] for weights in WEIGHTS)
    assert agent.retriever.search(result.query, 1).scores.tolist() == [best]


def test_the_command_line(built, collection):
    asked = ["-c", str(collection), "--set", f"engine={{kind: lucene, index: {built / 'full'}}}"]
    run = CliRunner()
    indexed = run.invoke(app, ["index", *asked])
    assert indexed.exit_code == 0, indexed.output
    assert "elsewhere is searched where it is: 12 documents at" in indexed.stdout
    found = run.invoke(app, ["index", *asked, "--json"])
    assert json.loads(found.stdout)["holds"].endswith("full; texts, terms from document vectors")
    searched = run.invoke(app, ["search", "judges", *asked, "--set", "profile=engine", "--n", "2", "--json"])
    assert searched.exit_code == 0, searched.output
    assert len(json.loads(searched.stdout)["hits"]) == 2
    checked = run.invoke(app, ["doctor", *asked])
    assert "12 documents at" in checked.stdout
    wrong = [*asked[:3], f"engine={{kind: lucene, index: {built / 'hnsw'}}}"]
    refused = run.invoke(app, ["doctor", *wrong])
    assert refused.exit_code == 3
    assert "is of embeddings" in " ".join(refused.stdout.split())


def test_an_experiment_notices_another_index(built, collection, tmp_path):
    index = tmp_path / "index"
    shutil.copytree(built / "full-0", index)
    engine = f"{{kind: lucene, index: {index.name}}}"
    systems = f"  plain: {{profile: engine, engine: {engine}}}\n  agent: {{profile: offline, engine: {engine}}}\n"
    (tmp_path / "experiment.yaml").write_text(
        f"name: built\ncollection: collection.yaml\nmeasures: [nDCG@3, AWRF@3]\nsystems:\n{systems}"
    )
    asked = ["evaluate", str(tmp_path / "experiment.yaml"), "--run", str(tmp_path / "run")]
    first = CliRunner().invoke(app, asked)
    assert first.exit_code == 0, first.output
    again = CliRunner().invoke(app, asked)
    assert again.exit_code == 0, again.output
    joined(index, built / "full-1")
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code != 0
    assert "engine.index" in refused.output


def test_prebuilt_indexes_by_name(built, collection, tmp_path, monkeypatch):
    """`fairagent index` downloads one; from then on the name stands for its folder."""
    from pyserini import util

    name = "cacm"
    part = LuceneConfig(index=name)
    assert part.relative_to(tmp_path) == part
    assert LuceneConfig(index="elsewhere").relative_to(tmp_path).index == str(tmp_path / "elsewhere")
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    engine = {"kind": "lucene", "index": name}
    with pytest.raises(BackendUnavailable, match="which `fairagent index` downloads"):
        open_agent(collection, engine=engine, profile="engine")

    def fetch(url, **asked):
        assert name in url
        target = tmp_path / "cache" / "indexes" / f"{url.split('/')[-1].removesuffix('.tar.gz')}.{asked['md5']}"
        return str(target if target.exists() else shutil.copytree(built / "full", target))

    monkeypatch.setattr(util, "download_and_unpack_index", fetch)
    asked = ["-c", str(collection), "--set", f"engine={{kind: lucene, index: {name}}}"]
    done = CliRunner().invoke(app, ["index", *asked])
    assert done.exit_code == 0, done.output
    assert len(open_agent(collection, engine=engine, profile="engine", n=2).search("judges").hits) == 2
