"""Engines without a search: run files, with every fault and its line; the judgments; and none at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.retrieve.base import Retriever, TextSource, searched
from fairagent.retrieve.run_file import EmptyRetriever, QrelsRetriever, Reading, by_grade, check_scored, drawn, read_run
from fairagent.settings.parts import read_part
from fairagent.types import Query

TOPICS = ("1", "2")


def written(folder: Path, text: str) -> Path:
    path = folder / "run.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_documents_stand_by_score(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "1 Q0 b 2 3.5 t\n1 Q0 a 1 7 t\n9 Q0 x 1 1 t\n"), TOPICS)
    assert run.keys() == {"1"}
    assert run["1"].ids == ("a", "b")
    assert run["1"].scores.tolist() == [7, 3.5]
    alike = read_run(written(tmp_path, "1 Q0 b 0 3.5 t\n1 Q0 a 0 7 t\n"), TOPICS)
    assert alike["1"].ids == ("a", "b")


def test_ranks_begin_anywhere_and_order_what_scores_alike(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "1 Q0 a 0 7 t\n1 Q0 d 9 3 t\n1 Q0 c 5 3 t\n1 Q0 b 5 3 t\n"), TOPICS)
    assert run["1"].ids == ("a", "c", "b", "d")


SIX = "1 Q0 a,1 1 7 t\n1 Q0 b 2 3.5 t\n"


@pytest.mark.parametrize(
    "raw",
    [
        SIX.encode(),
        gzip.compress(SIX.encode(), mtime=0),
        b"\xef\xbb\xbf" + SIX.replace("\n", "\r\n").encode(),
        b"topic Q0 docno rank score run\n\n" + SIX.encode(),
        b"qid\tQ0\tdocno\trank\tscore\trun name\n" + SIX.replace(" ", "\t").replace("t\n", "my run\n").encode(),
    ],
)
def test_forms(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "run"
    path.write_bytes(raw)
    run = read_run(path, TOPICS)
    assert (run["1"].ids, run["1"].scores.tolist()) == (("a,1", "b"), [7, 3.5])


@pytest.mark.parametrize("separator", ["\t", ", "])
def test_topic_and_document_alone_stand_as_in_the_file(tmp_path: Path, separator: str) -> None:
    text = "query_id docid\n1 b\n2 b\n1 a\n1 c\n"
    run = read_run(written(tmp_path, text.replace(" ", separator)), TOPICS)
    assert (run["1"].ids, run["2"].ids) == (("b", "a", "c"), ("b",))
    np.testing.assert_array_equal(run["1"].scores, [1, 1 / 2, 1 / 3])


def test_scores_where_they_are_needed(tmp_path: Path) -> None:
    path = written(tmp_path, "id page\n1 b\n1 a\n")
    with pytest.raises(DataError, match=r"run\.txt:2: there are no scores, and `rerank: mmr` needs them: topic Q0"):
        check_scored(path, "rerank: mmr")
    with pytest.raises(DataError, match=r"run\.txt:2: there are no tags, and 'mine' is wanted"):
        read_run(path, TOPICS, "mine")
    check_scored(written(tmp_path, SIX), "rerank: mmr")
    with pytest.raises(DataError, match="no such file"):
        check_scored(tmp_path / "none", "rerank: mmr")


def test_one_of_several_runs(tmp_path: Path) -> None:
    path = written(tmp_path, "1 Q0 a 1 7 one\n1 Q0 b 1 5 other\n1 Q0 a 2 4 other\n")
    assert read_run(path, TOPICS, "other")["1"].ids == ("b", "a")
    with pytest.raises(DataError, match="in line 1 already; if the file holds several runs, choose one by its tag"):
        read_run(path, TOPICS)
    with pytest.raises(DataError) as error:
        read_run(path, TOPICS, "third")
    assert "the tags are: one, other" in str(error.value)


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("1 0 a 2\n", 1, "are these qrels?"),
        ("1 Q0 a 1 7 t\n1 Q0 b 2 6\n", 2, "as above, got 5"),
        ("1 Q0 a 1 nan t\n", 1, "the score 'nan' is no finite number"),
        ("1 Q0 a 1 7 t\n1 Q0 a 2 6 t\n", 2, "topic 1 has document 'a' in line 1 already; if the file holds"),
        ("1\ta\n1\t\n", 2, "the document id is empty"),
        ("1 Q0 a 1 7 t\n1 Q0 b 2 8 t\n", 2, "rank 2 of topic 1 has the score 8, and rank 1 (line 1) the lower one 7"),
        ("9 Q0 a 1 7 t\n", None, "ranks documents for none of the 2 topics"),
        ("", None, "there are no lines"),
    ],
)
def test_faults(tmp_path: Path, text: str, line: int | None, fault: str) -> None:
    with pytest.raises(DataError) as error:
        read_run(written(tmp_path, text), TOPICS)
    (found,) = error.value.faults
    assert (found.path.name, found.line) == ("run.txt", line)
    assert fault in found.message


# --- the judgments, and no search

GRADES = {
    "T1": {"a": 0, "b": 3, "c": 2, "d": -1, "e": 2},
    "T2": {f"d{n}": int(n < 20) for n in range(40)},
    "T3": {"a": 0},
}


def engine(reading: Reading = "drawn", worst: bool = False, seed: int = 0) -> QrelsRetriever:
    return QrelsRetriever(GRADES, reading, worst, seed)


def test_the_oracle_finds_what_is_relevant_and_its_adversary_the_rest() -> None:
    found = engine().search(Query("q", "T1"), 10)
    assert set(found.ids) == {"b", "c", "e"}
    assert found.scores.tolist() == [3.0, 2.0, 1.0]
    assert set(engine(worst=True).search(Query("q", "T1"), 10).ids) == {"a", "d"}


def test_sorted_is_all_of_them_by_grade_and_then_in_the_order_of_the_judgments() -> None:
    best, worst = engine("sorted"), engine("sorted", worst=True)
    assert best.search(Query("q", "T1"), 10).ids == ("b", "c", "e", "a", "d")
    assert worst.search(Query("q", "T1"), 10).ids == ("d", "a", "c", "e", "b")
    found = best.search(Query("q", "T1"), 2)
    assert (found.ids, found.scores.tolist()) == (("b", "c"), [5.0, 4.0])
    assert by_grade({}) == []


def test_a_draw_depends_on_the_seed_and_the_topic_alone() -> None:
    first = engine().search(Query("q", "T2"), 20).ids
    other = engine()
    other.search(Query("q", "T1"), 5)
    assert other.search(Query("other words", "T2"), 20).ids == first
    assert engine().search(Query("q", "T2"), 5).ids == first[:5]
    assert engine(seed=1).search(Query("q", "T2"), 20).ids != first
    assert sorted(first) == sorted(f"d{n}" for n in range(20))
    assert drawn([], np.random.default_rng(0)) == []


def test_scores_are_grades_and_negative_for_the_adversary() -> None:
    assert engine().score(Query("q", "T1"), ["b", "z", "a", "d"]).tolist() == [3.0, 0.0, 0.0, -1.0]
    assert engine(worst=True).score(Query("q", "T1"), ["b", "d"]).tolist() == [-3.0, 1.0]
    assert engine().score(Query("q", "T1"), []).tolist() == []


def test_no_search_at_all() -> None:
    nothing: Retriever = read_part("engine", "none").build(None)
    assert isinstance(nothing, EmptyRetriever)
    assert len(searched(nothing, Query("q", "T1"), 10)) == 0
    assert nothing.score(Query("q"), ["a", "b"]).tolist() == [0.0, 0.0]
    # It keeps texts, of no document: answers are then written from nothing, and no error is made of that.
    assert isinstance(nothing, TextSource)
    with pytest.raises(DataError, match="so there is no 'a'"):
        nothing.document("a")
