"""StereoSet and CrowS-Pairs: their files with every fault, what their authors publish, and the numbers by hand."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.papers.debias_rag.benchmarks.items import (
    Pair,
    StereoSetExample,
    StereoSetScore,
    crows_pairs_score,
    filled_word,
    preferences,
    read_crows_pairs,
    read_stereoset,
    relevance_to_context,
    stereoset_score,
)
from fairagent.papers.debias_rag.benchmarks.seat import read_seat

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
convert = runpy.run_path(str(Path(__file__).parents[3] / "evaluations" / "stereotypes" / "convert.py"))["main"]


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_stereoset_and_its_published_file(tmp_path: Path) -> None:
    found = read_stereoset(lines(tmp_path / "lines.jsonl", INTRA, INTER))
    names = ("context", "stereotype", "anti_stereotype", "unrelated")
    assert found["q1"] == StereoSetExample("q1", "intrasentence", "gender", "judge", *(INTRA[name] for name in names))
    assert found["q2"].part == "intersentence"
    assert [one.query for one in found.values()] == ["The judge.", "The nurse came."]
    data = {}
    for part, record in (("intrasentence", INTRA), ("intersentence", INTER)):
        labels = {"stereotype": "stereotype", "anti_stereotype": "anti-stereotype", "unrelated": "unrelated"}
        sentences = [{"sentence": record[name], "gold_label": label} for name, label in labels.items()]
        data[part] = [{"id": "a", **record, "sentences": sentences[::-1]}]
    (tmp_path / "dev.json").write_text(json.dumps({"data": data}), encoding="utf-8")
    convert("stereoset", str(tmp_path / "dev.json"), str(tmp_path / "made.jsonl"))
    assert read_stereoset(tmp_path / "made.jsonl") == found


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


def test_crows_pairs_and_its_published_file(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(
        ",sent_more,sent_less,stereo_antistereo,bias_type\n"
        '0,"He said ""no"", they say.","She said ""no"", they say.",stereo,gender\n1,Old.,New.,antistereo,age\n'
    )
    convert("crows-pairs", str(table), str(tmp_path / "pairs.jsonl"))
    found = read_crows_pairs(tmp_path / "pairs.jsonl")
    assert found["q1"] == Pair("q1", "gender", 'He said "no", they say.', 'She said "no", they say.', True)
    assert [one.stereo for one in found.values()] == [True, False]
    assert [one.query for one in found.values()] == ['said "no", they say.', "Old."]


def test_seat_and_its_published_files(tmp_path: Path) -> None:
    found = read_seat(lines(tmp_path / "all.jsonl", {"test": "one", **TEST}, {"test": "two", **TEST}))
    assert found["one"].sets == (("a", "b"),) * 4
    assert found["one"].categories == ("Names",) * 4
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.jsonl").write_text(json.dumps(TEST, indent=1), encoding="utf-8")
    convert("seat", str(folder), str(tmp_path / "made.jsonl"))
    assert read_seat(tmp_path / "made.jsonl") == found


def records(*listed: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in listed)


PAIR = {"sent_more": "A.", "sent_less": "B.", "stereo_antistereo": "stereo", "bias_type": "age"}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_stereoset, "", "is empty"),
        (read_stereoset, records({**INTRA, "target": ""}), "faulty:1: 'target': expected a text, got ''"),
        (read_stereoset, records(INTRA, {**INTRA, "stereotype": "Old."}), "faulty:2: the sentence does not fill the"),
        (read_stereoset, records(INTRA, 5), "faulty:2: expected a JSON object"),
        (read_crows_pairs, records(PAIR, {**PAIR, "stereo_antistereo": "both"}), "faulty:2: 'stereo_antistereo': exp"),
        (read_crows_pairs, records({**PAIR, "sent_less": "A."}), "faulty:1: both sentences are the same"),
        (read_seat, records({"test": "one", **TEST}, {"test": "one", **TEST}), "faulty:2: the id 'one' occurs twice"),
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


def test_ties_count_against_the_stereotype_and_against_meaning() -> None:
    one = np.ones(2)
    found = stereoset_score(["a", "b"], one, one, one)
    assert (found.ss, found.lms, found.icat) == (0.0, 0.0, 0.0)


def test_scores_are_rounded_as_the_authors_round_them() -> None:
    # -16.8695 is stored as a number just above it: -16.869, and more than -16.87. numpy's rounding makes them equal.
    assert [one.tolist() for one in preferences(np.array([-16.8695]), np.array([-16.87]))] == [[True], [False]]
    of_python = np.array([round(score, 3) for score in (-16.8695, 2.0005, -0.0015)])
    assert [one.tolist() for one in preferences(np.array([-16.8695, 2.0005, -0.0015]), of_python)] == [
        [False] * 3,
        [True] * 3,
    ]


def test_a_certain_sentence_is_as_relevant_as_can_be() -> None:
    assert relevance_to_context(np.array([-1.0]), np.zeros(2)) == np.finfo(np.float64).max


@pytest.mark.parametrize(("lms", "ss", "expected"), [(100, 50, 100), (80, 75, 40), (80, 25, 40), (0, 50, 0)])
def test_icat(lms: float, ss: float, expected: float) -> None:
    assert StereoSetScore(1, lms, ss).icat == expected


def test_without_pairs_of_a_direction() -> None:
    found = crows_pairs_score(np.array([-1.0, -2.0]), np.array([-2.0, -2.0]), [False, False])
    assert (found.score, found.stereotype, found.anti_stereotype) == (50.0, None, 100.0)
