from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from benchmarks.made_up_people import make_entries
from benchmarks.made_up_people.people import OCCUPATIONS, REGIONS
from fairagent.collection import demo, load_collection
from fairagent.collection.demo import EDITION, write_demo
from fairagent.errors import BackendUnavailable, UsageError
from fairagent.storage.digests import RECORD

GENDERS = {"female", "male", "nonbinary"}
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


@pytest.fixture(scope="module")
def groups(folder):
    header, *rows = (line.split("\t") for line in (folder / "groups.tsv").read_text("utf-8").splitlines())
    assert header == ["id", "kind", "gender", "region"]
    return {id: (gender, tuple(region.split("|")) if region else ()) for id, _, gender, region in rows}


@pytest.fixture(scope="module")
def relevant(folder):
    found = defaultdict(set)
    for line in (folder / "qrels.txt").read_text("utf-8").splitlines():
        topic, zero, document, grade = line.split(" ")
        assert (zero, grade) == ("0", "1")
        assert document not in found[topic]
        found[topic].add(document)
    return found


@pytest.fixture(scope="module")
def occupation_of(folder):
    by_title = {occupation.title: occupation for occupation in OCCUPATIONS}
    return {topic["id"]: by_title[topic["title"]] for topic in json_lines(folder / "topics.jsonl")}


def json_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def digests(folder):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}


def names(occupation, text):
    return re.search(rf"\b({occupation.one}|{occupation.many})\b", text, re.IGNORECASE) is not None


def opening(document):
    # The name may hold initials, whose periods end no sentence.
    return document["text"].replace(document["title"], "", 1).split(". ")[0]


# The same bytes everywhere


def test_the_default_collection_is_pinned(folder):
    assert EDITION == PINNED_EDITION
    assert digests(folder) == PINNED


def test_files_have_unix_lines_and_nothing_else_lies_beside_them(folder):
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "made.json", RECORD])
    for name in FILES:
        content = (folder / name).read_bytes()
        assert content.endswith(b"\n")
        assert b"\r" not in content


def test_the_generator_of_the_files_writes_them(tmp_path):
    code = "import sys, pathlib, made_up_people as made; made.write_people(pathlib.Path(sys.argv[1]), 3000)"
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).parents[2] / "benchmarks")}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "1")], env=environment, check=True)
    assert digests(tmp_path / "1") == PINNED


def test_another_seed_gives_other_texts_and_more_people_change_no_earlier_ones():
    assert make_entries(20, seed=1) != make_entries(20, seed=2)
    assert make_entries(60, seed=5)[:40] == make_entries(40, seed=5)[:40]


# The folder


def test_a_finished_folder_is_used_as_it_is(tmp_path, monkeypatch):
    first = write_demo(tmp_path / "demo", people=5)
    monkeypatch.setattr(demo, "_files", None)
    assert write_demo(tmp_path / "demo", people=5) == first == tmp_path / "demo" / "collection.yaml"


def test_an_empty_folder_is_filled_and_one_of_other_parameters_replaced(tmp_path):
    (tmp_path / "demo").mkdir()
    for people in (5, 6):
        assert write_demo(tmp_path / "demo", people=people).is_file()
        assert len(json_lines(tmp_path / "demo" / "docs.jsonl")) == people
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


@pytest.mark.parametrize("name", ["theirs/thesis.txt", "theirs/made.json", "theirs"])
def test_what_is_no_demo_collection_is_left_alone(tmp_path, name):
    theirs = tmp_path / name
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("years of work")
    with pytest.raises(UsageError, match="theirs is there and was not made by fairagent"):
        write_demo(tmp_path / "theirs", people=5)
    assert theirs.read_text() == "years of work"


def test_what_was_not_finished_is_no_demo_collection(tmp_path, monkeypatch):
    def fail(path: Path) -> BinaryIO:
        raise OSError(28, "disk full")

    with monkeypatch.context() as patch:
        patch.setattr(demo, "new_file", fail)
        with pytest.raises(BackendUnavailable, match="disk full"):
            write_demo(tmp_path / "demo", people=5)
    assert not (tmp_path / "demo").exists()
    assert write_demo(tmp_path / "demo", people=5).is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_threads_that_write_the_same_folder_wait_for_each_other(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(lambda _: write_demo(tmp_path / "demo", people=5), range(4)))
    assert len(set(files)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


@pytest.mark.parametrize("people", [0, -3, 3001])
def test_nobody_and_more_than_there_are_are_refused(tmp_path, people):
    with pytest.raises(UsageError, match=f"got people={people}"):
        write_demo(tmp_path / "demo", people=people)
    assert not (tmp_path / "demo").exists()


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


# What is in it


def test_it_loads(folder, docs):
    collection = load_collection(folder / "collection.yaml")
    # Biographies are of the type of gender, pages are not.
    assert collection.groups.of_type("gender", list(docs)).tolist() == [True] * 3000 + [False] * 120
    assert collection.groups.of_type("region", list(docs)) is None
    assert collection.name == "demo"
    assert len(collection.topics) == 40
    assert set(collection.groups.dimensions) == {"gender", "region"}
    assert collection.notes == ()


def test_counts(docs, groups, relevant, occupation_of):
    assert (
        len(docs) == len({d["text"] for d in docs.values()}) == len({d["title"] for d in docs.values()}) == 3000 + 120
    )
    assert list(groups) == list(docs)
    assert list(occupation_of) == [f"T{number:02d}" for number in range(1, 41)] == list(relevant)
    assert all(40 <= len(found) <= 150 for found in relevant.values())
    assert set().union(*relevant.values()) <= set(list(docs)[:3000])
    occupations = Counter(id for found in relevant.values() for id in found)
    assert set(occupations.values()) == {1, 2}


def test_group_labels_are_valid_and_have_the_shares_meant(groups):
    people = list(groups.values())[:3000]
    genders = Counter(gender for gender, _ in people)
    assert set(genders) == {*GENDERS, ""}
    for gender, share in {"female": 0.43, "male": 0.48, "nonbinary": 0.03, "": 0.06}.items():
        assert genders[gender] / 3000 == pytest.approx(share, abs=0.03)
    regions = Counter(region for _, here in people for region in here)
    assert set(regions) == set(REGIONS)
    assert all(list(here) == sorted(set(here)) and len(here) <= 2 for _, here in people)
    assert sum(not here for _, here in people) / 3000 == pytest.approx(0.05, abs=0.02)
    assert sum(len(here) == 2 for _, here in people) / 3000 == pytest.approx(0.076, abs=0.02)
    assert all(gender == "" and len(here) == 1 for gender, here in list(groups.values())[3000:])


# The skew, and what can be learned about it


def shares_named(docs, groups, relevant, occupation_of, *, early):
    """Per group: in which share of the relevant (document, topic) pairs the text names the occupation."""
    named, all_ = Counter(), Counter()
    for topic, found in relevant.items():
        for id in found:
            text = opening(docs[id]) if early else docs[id]["text"]
            hit = names(occupation_of[topic], text)
            gender, regions = groups[id]
            for group in [gender, *regions]:
                all_[group] += 1
                named[group] += hit
    return {group: named[group] / all_[group] for group in all_}


@pytest.mark.parametrize(("early", "least"), [(True, 0.2), (False, 0.15)])
def test_some_groups_are_named_outright_more_often(docs, groups, relevant, occupation_of, early, least):
    named = shares_named(docs, groups, relevant, occupation_of, early=early)
    assert all(0.1 < share < 0.9 for share in named.values())
    assert named["male"] - named["female"] > least
    assert named["male"] - named["nonbinary"] > least / 2
    for over in ("Europe", "Northern America"):
        for under in set(REGIONS) - {"Europe", "Northern America"}:
            assert named[over] - named[under] > least / 2, (over, under)
