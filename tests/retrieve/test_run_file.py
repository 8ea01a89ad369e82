"""Engines without a search: run files, with every fault and its line; the judgments; and none at all."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from fairagent.errors import DataError
from fairagent.retrieve.base import Retriever, TextSource, searched
from fairagent.retrieve.run_file import EmptyRetriever, QrelsRetriever, Reading, by_grade, check_scored, read_run
from fairagent.settings.parts import read_part
from fairagent.types import Query

TOPICS = ("1", "2")


def written(folder: Path, text: str) -> Path:
    path = folder / "run.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "run_files").iterdir()), ids=lambda path: path.name)
def test_what_other_tools_write(path: Path, tmp_path: Path) -> None:
    """The same run, written by PyTerrier 1.1.2 (`write_results`, `to_csv` of its results with and without the index),
    ranx 0.3.21 (`Run.save`), ir_measures 0.4.3 (`ScoredDoc`s, by pandas' `to_csv`), pyserini 1.6.0 (its writers), bm25s
    0.3.16 (`postprocess_results_for_eval`, by `json.dump`), and by hand in the four columns of ColBERT's rankings.
    """
    for pack in (bytes, gzip.compress, bz2.compress, lzma.compress) if path.suffix != ".zst" else (bytes,):
        (tmp_path / "packed").write_bytes(pack(path.read_bytes()))
        try:
            run = read_run(tmp_path / "packed", TOPICS)
        except DataError as error:
            if path.suffix == ".zst" and "packed by zstd; unpack it" in str(error):
                return  # where Python has no reader of it
            raise
        assert {topic: ranking.ids for topic, ranking in run.items()} == {"1": ("d2", "d7", "d1"), "2": ("d7", "d3")}
        scored = path.name not in ("pyterrier.minimal", "pyserini.msmarco")
        assert run["1"].scores.tolist() == ([2.5, 1.25, -0.5] if scored else [1, 1 / 2, 1 / 3])


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1 Q0 b 2 3.5 t\n1 Q0 a 1 7 t\n9 Q0 x 1 1 t\n", "a b"),
        ("1 Q0 b 0 3.5 t\n1 Q0 a 0 7 t\n", "a b"),  # ranks that are all alike
        # equal scores by rank, then as they stand
        ("1 Q0 a 0 7 t\n1 Q0 d 9 3 t\n1 Q0 c 5 3 t\n1 Q0 b 5 3 t\n", "a c b d"),
        (
            "1 Q0 a 1 7 t\n1 Q0 b 2 8 t\n",
            "b a",
        ),  # scores that rise with the rank: as trec_eval orders them, with a note
        ("1 a .5\n1 b 2.5\n", "b a"),  # the third column is a score
        ("1 a 3\n1 b 2\n1 c 1\n", "a b c"),
        ("1 a 2\n1 b 1\n", "a b"),
        ("1 a 1\n1 b 0\n1 c 2\n2 d 0\n", "b a c"),  # or a rank
        ("1 Q0 a 1 7\n1 Q0 b 2 6\n", "a b"),
        ("1,a,1,7,t\n1,b,2,6,t\n", "a b"),
        ("qid;docno;score\n1;a;2\n1;b;3\n", "b a"),
        ("query_id docid\n1 b\n2 b\n1 a\n1 c\n", "b a c"),
        ("query_id, docid\n1, b\n1, a\n", "b a"),
        ("1 Q0 a,1,b,c,d,e,f 1 7 t\n1 Q0 b 2 3.5 t\n", "a,1,b,c,d,e,f b"),
        ("topic Q0 docno rank score run\n\n1 Q0 a 1 7 t\r\n", "a"),
        ("topic,Q0,docno,rank,score,my run\n1 Q0 a 1 7 t\n", "a"),
        ("\ufeffqid\tQ0\tdocno\trank\tscore\trun name\n1\tQ0\ta\t1\t7\tmy run\n", "a"),
    ],
)
def test_forms(tmp_path: Path, text: str, ids: str, caplog: pytest.LogCaptureFixture) -> None:
    assert read_run(written(tmp_path, text), TOPICS)["1"].ids == tuple(ids.split())
    assert ("as trec_eval orders them" in caplog.text) == ("2 8 t" in text)


def test_topics_are_joined_over_zeros(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "01 a 1\n2.0 b 1\n3 c 1\n"), ("1", "2", "4"))
    assert {topic: ranking.ids for topic, ranking in run.items()} == {"1": ("a",), "2": ("b",)}


def test_scores_where_they_are_needed(tmp_path: Path) -> None:
    check_scored(written(tmp_path, "1 Q0 a 1 7 t\n"), "rerank: mmr")
    path = written(tmp_path, "id page\n1 b\n1 a\n")
    for bad, says in (
        (path, r"run\.txt:2: there are no scores, and `rerank: mmr` needs them"),
        (tmp_path / "none", "no such"),
    ):
        with pytest.raises(DataError, match=says):
            check_scored(bad, "rerank: mmr")
    with pytest.raises(DataError, match="the tags are: none"):
        read_run(path, TOPICS, "mine")


def test_one_of_several_runs(tmp_path: Path) -> None:
    path = written(tmp_path, "1 Q0 a 1 7 one\n1 Q0 b 1 5 other\n1 Q0 a 2 4 other\n")
    assert read_run(path, TOPICS, "other")["1"].ids == ("b", "a")
    with pytest.raises(DataError, match="in line 1 already; if the file holds several runs, choose one by its tag"):
        read_run(path, TOPICS)
    with pytest.raises(DataError, match="the tags are: one, other"):
        read_run(path, TOPICS, "third")


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("1 0 a 2\n", 1, "are these qrels?"),
        ("1 Q0 a 1 7 t\n1 Q0 b 2 6\n", 2, "5 columns, and 6 above"),
        (".I 1\n.W\nwords of a topic\n" * 99, 2, "a run has TREC's six columns"),
        ("1 Q0 a first 7 t\n" * 99, 1, "a run has TREC's six columns"),
        ('{"1": ["a"]}', None, "JSON, {topic: {document: score}}"),
        ("1 Q0 a 1 nan t\n", 1, "the score 'nan' is no finite number"),
        ("1 Q0 a 1 7 t\n1 Q0 a 2 6 t\n", 2, "topic 1 has document 'a' in line 1 already; if the file holds"),
        ("1\ta\n1\t\n", 2, "the document id is empty"),
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


GRADES = {
    "T1": {"a": 0, "b": 3, "c": 2, "d": -1, "e": 2},
    "T2": {f"d{n}": int(n < 20) for n in range(40)},
    "T3": {"a": 0},
}


def engine(reading: Reading = "drawn", worst: bool = False, seed: int = 0) -> QrelsRetriever:
    return QrelsRetriever(GRADES, reading, worst, seed)


def test_the_oracle_finds_what_is_relevant_and_its_adversary_the_rest() -> None:
    found = engine().search(Query("q", "T1"), 10)
    assert (set(found.ids), found.scores.tolist()) == ({"b", "c", "e"}, [3.0, 2.0, 1.0])
    assert set(engine(worst=True).search(Query("q", "T1"), 10).ids) == {"a", "d"}
    # Scores are grades, and negative for the adversary.
    assert engine().score(Query("q", "T1"), ["b", "z", "a", "d"]).tolist() == [3.0, 0.0, 0.0, -1.0]
    assert engine(worst=True).score(Query("q", "T1"), ["b", "d"]).tolist() == [-3.0, 1.0]
    # Sorted it is all of them by grade and then in the order of the judgments.
    assert engine("sorted").search(Query("q", "T1"), 10).ids == ("b", "c", "e", "a", "d")
    assert engine("sorted", worst=True).search(Query("q", "T1"), 10).ids == ("d", "a", "c", "e", "b")
    found = engine("sorted").search(Query("q", "T1"), 2)
    assert (found.ids, found.scores.tolist()) == (("b", "c"), [5.0, 4.0])


def test_a_draw_depends_on_the_seed_and_the_topic_alone() -> None:
    first, other = engine().search(Query("q", "T2"), 20).ids, engine()
    other.search(Query("q", "T1"), 5)
    assert other.search(Query("other words", "T2"), 20).ids == first
    assert engine().search(Query("q", "T2"), 5).ids == first[:5]
    assert engine(seed=1).search(Query("q", "T2"), 20).ids != first
    assert sorted(first) == sorted(f"d{n}" for n in range(20))


def test_no_search_at_all() -> None:
    nothing: Retriever = read_part("engine", "none").build(None)
    assert isinstance(nothing, EmptyRetriever)
    assert len(searched(nothing, Query("q", "T1"), 10)) == 0
    assert nothing.score(Query("q"), ["a", "b"]).tolist() == [0.0, 0.0]
    # It keeps texts, of no document: answers are then written from nothing, and no error is made of that.
    assert isinstance(nothing, TextSource)
    with pytest.raises(DataError, match="so there is no 'a'"):
        nothing.document("a")


def test_sorted_is_all_of_them_by_grade_and_then_in_the_order_of_the_judgments() -> None:
    best, worst = engine("sorted"), engine("sorted", worst=True)
    assert best.search(Query("q", "T1"), 10).ids == ("b", "c", "e", "a", "d")
    assert worst.search(Query("q", "T1"), 10).ids == ("d", "a", "c", "e", "b")
    found = best.search(Query("q", "T1"), 2)
    assert (found.ids, found.scores.tolist()) == (("b", "c"), [5.0, 4.0])
    assert by_grade({}) == []
