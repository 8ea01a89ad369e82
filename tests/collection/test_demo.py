import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairagent.collection import load_collection
from fairagent.collection.demo import EDITION, write_demo
from fairagent.errors import UsageError

FILES = ("collection.yaml", "docs.jsonl", "groups.tsv", "population.json", "qrels.txt", "topics.jsonl")

# A change of these means other numbers for everybody: raise EDITION with it, and say so in the changelog.
PINNED_EDITION = 3
PINNED = {
    "collection.yaml": "64d0fb0c66962a5c0b9dda41d2825400036a016e81ad3e57ba6d061234487ed1",
    "docs.jsonl": "078a1970fe4b243e04ee1e94ac2248740a82e62162f17e8d2a56f04be4aefbd7",
    "groups.tsv": "be4a284515e44d1a96c702d93adc5c65a0a479a0262ea11b37234d8eb7ca4708",
    "population.json": "8ab130ec66ce3742377593bb0463a461ce12fe91f92995653ab4b09fbd2fa97d",
    "qrels.txt": "bd743c0eb808ae9bca619471f9b19a1a9a7f3952279cc414904718dd870e58e5",
    "topics.jsonl": "27cd0c8b1f2e46898131cfdb8b7b787d0ed2ee35b371d707a7367cdd2a506cc1",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_demo(tmp_path_factory.mktemp("demo") / "default").parent


@pytest.fixture(scope="module")
def docs(folder):
    return {d["id"]: d for d in json_lines(folder / "docs.jsonl")}


def json_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def digests(folder):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}


def test_the_default_collection_is_pinned(folder):
    assert EDITION == PINNED_EDITION
    assert digests(folder) == PINNED


def test_the_generator_of_the_files_writes_them(tmp_path):
    code = "import sys, pathlib, made_up_people as made; made.write_people(pathlib.Path(sys.argv[1]), 3000)"
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).parents[2] / "benchmarks")}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "1")], env=environment, check=True)
    assert digests(tmp_path / "1") == PINNED


@pytest.mark.parametrize("name", ["theirs/thesis.txt", "theirs"])
def test_what_is_no_demo_collection_is_left_alone(tmp_path, name):
    theirs = tmp_path / name
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("years of work")
    with pytest.raises(UsageError, match="theirs is there and was not made by fairagent"):
        write_demo(tmp_path / "theirs", people=5)
    assert theirs.read_text() == "years of work"


def test_a_small_collection_is_the_first_of_the_whole_with_topics_that_have_relevant_documents(tmp_path, folder, docs):
    collection = load_collection(write_demo(tmp_path / "demo", people=60))
    ids = [*list(docs)[:60], "D03001", "D03002"]
    assert [(one.id, one.text) for one in collection.documents()] == [(id, docs[id]["text"]) for id in ids]
    whole = load_collection(folder / "collection.yaml")
    known = {topic: {id: 1 for id in grades if id in ids} for topic, grades in whole.qrels.items()}
    assert collection.qrels == {topic: grades for topic, grades in known.items() if grades}
    for dimension in ("gender", "region"):
        theirs = whole.groups.memberships(dimension, ids).tolist()
        assert collection.groups.memberships(dimension, ids).tolist() == theirs
