"""Run files: what stands where, and every fault with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.retrieve.run_file import RunFile, read_run
from fairagent.types import Query

TOPICS = ("1", "2")


def written(folder: Path, text: str) -> Path:
    path = folder / "run.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_documents_stand_by_rank(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "1 Q0 b 2 3.5 t\n1 Q0 a 1 7 t\n9 Q0 x 1 1 t\n"), TOPICS)
    assert run.keys() == {"1"}
    assert run["1"].ids == ("a", "b")
    assert run["1"].scores.tolist() == [7, 3.5]


def test_ranks_begin_anywhere_and_may_be_shared_by_equal_scores(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "1 Q0 a 0 7 t\n1 Q0 c 5 3 t\n1 Q0 b 5 3 t\n"), TOPICS)
    assert run["1"].ids == ("a", "c", "b")


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
        ("1 Q0 a 1 7\n", 1, "expected 6 columns (topic Q0 document rank score tag), found 5"),
        ("1 Q0 a one 7 t\n", 1, "the rank 'one' is no whole number"),
        ("1 Q0 a 1 nan t\n", 1, "the score 'nan' is no finite number"),
        ("1 Q0 a 1 high t\n", 1, "the score 'high' is no finite number"),
        ("1 Q0 a 1 7 t\n1 Q0 a 2 6 t\n", 2, "topic 1 has document 'a' in line 1 already"),
        ("1 Q0 a 1 7 t\n1 Q0 b 1 6 t\n", 2, "rank 1 of topic 1 has the score 6, and rank 1 (line 1) 7"),
        ("1 Q0 a 1 7 t\n1 Q0 b 2 8 t\n", 2, "rank 2 of topic 1 has the score 8, and rank 1 (line 1) 7"),
        ("9 Q0 a 1 7 t\n", None, "ranks documents for none of the 2 topics"),
        ("", None, "ranks documents for none of the 2 topics"),
    ],
)
def test_faults(tmp_path: Path, text: str, line: int | None, fault: str) -> None:
    with pytest.raises(DataError) as error:
        read_run(written(tmp_path, text), TOPICS)
    (found,) = error.value.faults
    assert (found.path.name, found.line) == ("run.txt", line)
    assert fault in found.message


def test_as_a_search_engine(tmp_path: Path) -> None:
    engine = RunFile(read_run(written(tmp_path, "1 Q0 a 1 7 t\n1 Q0 b 2 3 t\n"), TOPICS))
    assert engine.search(Query("words", "1"), 1).ids == ("a",)
    assert engine.search(Query("words", "2"), 5).ids == ()
    np.testing.assert_array_equal(engine.score(Query("words", "1"), ["b", "a", "z"]), [3, 7, 3])


@pytest.mark.shared
def test_the_runs_of_trec_deep_learning(shared: Path) -> None:
    path = shared / "data/trec_dl/runs_top100.tsv.gz"
    topics = {"1106007", "156493"}
    assert {id: len(found) for id, found in read_run(path, topics, "mt5_dl19").items()} == dict.fromkeys(topics, 100)
    # This one has ranks that equal scores share.
    assert len(read_run(path, topics, "tct_dl19")["1106007"]) == 100
