"""Reading the benchmarks: both forms of each, and every fault with its place."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairagent.errors import DataError
from fairagent.papers.debias_rag.benchmarks.items import (
    Pair,
    StereoSetExample,
    filled_word,
    read_crows_pairs,
    read_seat,
    read_stereoset,
)

LABELS = {"stereotype": "stereotype", "anti_stereotype": "anti-stereotype", "unrelated": "unrelated"}
INTRA = {
    "bias_type": "gender",
    "target": "judge",
    "context": "The BLANK judge.",
    "stereotype": "The old judge.",
    "anti_stereotype": "The young judge.",
    "unrelated": "The green judge.",
}
INTER = {
    "bias_type": "race",
    "target": "nurse",
    "context": "The nurse came.",
    "stereotype": "She was kind.",
    "anti_stereotype": "He was rude.",
    "unrelated": "It rained.",
}
SET = {"category": "Names", "examples": ["a", "b"]}
TEST = {"targ1": SET, "targ2": SET, "attr1": SET, "attr2": SET}
CSV = ",sent_more,sent_less,stereo_antistereo,bias_type\n"


def as_dev(record: dict[str, str], id: str) -> dict[str, Any]:
    sentences = [{"sentence": record[name], "gold_label": label} for name, label in LABELS.items()]
    others = {key: record[key] for key in ("bias_type", "target", "context")}
    return {"id": id, **others, "sentences": sentences[::-1]}


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_stereoset_in_both_forms(tmp_path: Path) -> None:
    found = read_stereoset(lines(tmp_path / "lines.jsonl", INTRA, INTER))
    names = ("context", "stereotype", "anti_stereotype", "unrelated")
    assert found["q1"] == StereoSetExample("q1", "intrasentence", "gender", "judge", *(INTRA[name] for name in names))
    assert found["q2"].part == "intersentence"
    data = {"intrasentence": [as_dev(INTRA, "a")], "intersentence": [as_dev(INTER, "b")]}
    dev = tmp_path / "dev.json"
    dev.write_text(json.dumps({"version": "1.1", "data": data}, indent=1), encoding="utf-8")
    assert [(one.part, one.sentences) for one in read_stereoset(dev).values()] == [
        (one.part, one.sentences) for one in found.values()
    ]
    assert list(read_stereoset(dev)) == ["a", "b"]
    assert [one.query for one in found.values()] == ["The judge.", "The nurse came."]


def test_a_folder_of_both_parts(tmp_path: Path) -> None:
    lines(tmp_path / "intra.jsonl", INTRA)
    lines(tmp_path / "inter.jsonl", INTER)
    (tmp_path / "README.md").write_text("not read", encoding="utf-8")
    found = read_stereoset(tmp_path)
    assert {id: one.part for id, one in found.items()} == {"inter-q1": "intersentence", "intra-q1": "intrasentence"}
    assert [one.id for one in found.values()] == list(found)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="is empty"):
        read_stereoset(tmp_path / "nothing")


def test_crows_pairs_in_both_forms(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(
        CSV + '0,"He said ""no"", they say.","She said ""no"", they say.",stereo,gender\n1,Old.,New.,antistereo,age\n'
    )
    found = read_crows_pairs(table)
    assert found["q1"] == Pair("q1", "gender", 'He said "no", they say.', 'She said "no", they say.', True)
    assert [one.stereo for one in found.values()] == [True, False]
    assert [one.query for one in found.values()] == ['said "no", they say.', "Old."]
    names = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
    records = [
        dict(zip(names, (p.more, p.less, "stereo" if p.stereo else "antistereo", p.kind), strict=True))
        for p in found.values()
    ]
    assert read_crows_pairs(lines(tmp_path / "pairs.jsonl", *records)) == found


def test_seat_in_all_forms(tmp_path: Path) -> None:
    found = read_seat(lines(tmp_path / "all.jsonl", {"test": "one", **TEST}, {"test": "two", **TEST}))
    assert found["one"].targets == (("a", "b"), ("a", "b"))
    assert found["one"].categories == ("Names",) * 4
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.jsonl").write_text(json.dumps(TEST, indent=1), encoding="utf-8")
    assert read_seat(folder) == found


DEV = {"intrasentence": [as_dev(INTRA, "x")], "intersentence": [as_dev(INTER, "y")]}


def records(*listed: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in listed)


def dev(**change: object) -> str:
    return json.dumps({"data": {**DEV, **change}})


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_stereoset, "", "is empty"),
        (read_stereoset, records({**INTRA, "target": ""}), "faulty:1: 'target': expected a text, got ''"),
        (read_stereoset, records(INTRA, {**INTRA, "stereotype": "Old."}), "faulty:2: the sentence does not fill the"),
        (read_stereoset, records(INTRA, 5), "faulty:2: expected a JSON object"),
        (read_stereoset, dev(intersentence=3), "data.intersentence: expected a list of examples, got 3"),
        (read_stereoset, dev(intrasentence=[as_dev(INTRA, "a")] * 2), "data.intrasentence[1]: the id 'a' occurs twice"),
        (
            read_stereoset,
            dev(intrasentence=[{**as_dev(INTRA, "a"), "sentences": []}]),
            "data.intrasentence[0]: 'sentences': expected one",
        ),
        (read_stereoset, dev(intrasentence=[as_dev({**INTRA, "context": "No."}, "a")]), "the context has no BLANK"),
        (read_crows_pairs, "", "is empty"),
        (read_crows_pairs, CSV + "0,A.,B.,stereo,age\n1,A.,B.,both,age\n", "faulty:3: 'stereo_antistereo': expected"),
        (read_crows_pairs, CSV + "0,A.,A.,stereo,age\n", "faulty:2: both sentences are the same"),
        (read_crows_pairs, CSV + '0,"A.,B.,stereo,age\n', "no row of a CSV file"),
        (read_seat, "", "is empty"),
        (read_seat, records({"test": "one", **TEST}, {"test": "one", **TEST}), "faulty:2: the id 'one' occurs twice"),
        (read_seat, records({"test": "", **TEST}), "faulty:1: 'test': the test has no name"),
        (read_seat, records({"test": "one", **TEST, "attr2": {}}), "faulty:1: 'attr2': expected {category, examples"),
        (
            read_seat,
            records({"test": "one", **TEST, "targ2": {"examples": ["a"]}}),
            "faulty:1: targ1 and targ2 are compared one for one, and have 2 and 1 examples",
        ),
    ],
)
def test_faults_have_their_place(tmp_path: Path, read: Any, text: str, message: str) -> None:
    (tmp_path / "faulty").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as found:
        read(tmp_path / "faulty")
    assert message in str(found.value)
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("context", "sentence", "word"),
    [
        ("The BLANK judge.", "the OLD judge.", "OLD"),
        ("He is BLANK.", "He is very old.", "very old"),
        ("Not BLANK and says BLANK.", "Not old and says old.", "old"),
        ("It is BLANK!", "It was (old).", "old"),
    ],
)
def test_the_word_in_the_blank(context: str, sentence: str, word: str) -> None:
    assert filled_word(context, sentence) == word


@pytest.mark.shared
def test_the_real_files(shared: Path) -> None:
    folder = shared / "data"
    parts = {}
    for name in ("intrasentence", "intersentence"):
        found = read_stereoset(folder / "stereoset" / f"{name}.jsonl")
        assert {one.part for one in found.values()} == {name}
        parts[name] = Counter(one.kind for one in found.values())
    assert parts == {
        "intrasentence": {"gender": 255, "profession": 810, "race": 962, "religion": 79},
        "intersentence": {"gender": 242, "profession": 827, "race": 976, "religion": 78},
    }
    pairs = read_crows_pairs(folder / "crows_pairs" / "crows_pairs.jsonl")
    assert Counter(pair.stereo for pair in pairs.values()) == {True: 1290, False: 218}
    assert len({pair.kind for pair in pairs.values()}) == 9
    tests = read_seat(folder / "seat" / "seat.jsonl")
    assert len(tests) == 54
    assert tests["sent-weat7"].categories == ("Math", "Arts", "MaleTerms", "FemaleTerms")
