"""The track: its corpus, its metadata, the collection that they are, and its run files."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from track_files import ARTICLES, FILES_2021, FILES_2022, PAGES, write_track

from fairagent.collection import Collection, make_target
from fairagent.collection import trec_fair as groups_module
from fairagent.collection.trec_fair import Corpus, load_track, read_metadata, read_run, track_groups, wikitext_to_text
from fairagent.errors import DataError
from fairagent.measures.trec_fair import DIMENSIONS_2022, Task, TrackRun
from fairagent.types import UNKNOWN, Document


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_track(tmp_path / "track")


def labels_of(collection: Collection, dimension: str, id: str) -> dict[str, float]:
    labels = (UNKNOWN, *collection.groups.labels(dimension))
    row = collection.groups.memberships(dimension, [id])[0].tolist()
    return {label: weight for label, weight in zip(labels, row, strict=True) if weight}


def test_the_year_2022(folder: Path) -> None:
    collection = load_track(folder)
    assert collection.name == "trec-fair-2022-eval"
    assert [document.id for document in collection.documents()] == ["12", "7", "70000001"]
    assert {id: topic.query for id, topic in collection.topics.items()} == {"101": "Computing", "102": "Islands"}
    assert collection.topics["101"].extra["keywords"] == ["programs", "wrote"]
    qrels = {topic: dict(judged) for topic, judged in collection.qrels.items()}
    assert qrels == {"101": {"12": 1, "99": 1, "70000001": 1}, "102": {"7": 1}}
    groups = collection.groups
    assert (groups.dimensions, groups.labels("gender")) == (("sub-geo", "gender"), ("female", "male", "NB"))
    # The track's alignments: two genders weigh 1 each, regions are divided by their number, Oceania is one.
    for dimension, id, labels in (
        ("gender", "12", {"female": 1.0, "male": 1.0}),
        ("gender", "70000001", {"NB": 1.0}),
        ("sub-geo", "12", {"Northern Europe": 0.5, "Southern Asia": 0.5}),
        ("sub-geo", "7", {"Oceania": 2 / 3, "Caribbean": 1 / 3}),
        ("sub-geo", "99", {UNKNOWN: 1.0}),
    ):
        assert labels_of(collection, dimension, id) == pytest.approx(labels)
    # The track does not say which pages are about people.
    assert [groups.of_type(name, ["12", "7"]) for name in ("sub-geo", "gender")] == [None, None]
    assert collection.population["gender"] == {"female": 0.495, "male": 0.495, "NB": 0.01}
    notes = "\n".join(collection.notes)
    assert "relevant pages that are listed again" in notes
    assert "Atlantis" in notes


def test_the_year_2021(tmp_path: Path) -> None:
    collection = load_track(write_track(tmp_path, FILES_2021), 2021)
    topic = collection.topics["101"]
    assert (topic.query, topic.extra["keywords"]) == ("Computing", ["programs", "wrote"])
    assert set(topic.extra) == {"keywords", "scope", "homepage"}
    # 2021 does not divide by the number of continents.
    assert labels_of(collection, "geo", "12") == {"Europe": 1.0, "Asia": 1.0}
    assert labels_of(collection, "gender", "12") == {"female": 1.0}
    assert make_target("trec", "geo", collection, "101").shares.sum() == pytest.approx(1, abs=1e-6)
    assert len(list(collection.documents())) == 3


BAD_FILES = [
    ("trec_2022_articles_discrete_assessed.json.gz", {"page_id": "12"}, "field 'page_id' is '12'"),
    ("trec_2022_eval_reldocs.jsonl", {"id": 5, "title": 5.5, "rel_docs": []}, "field 'title' is 5.5"),
    ("trec_2022_eval_reldocs.jsonl", {"id": 101, "title": "x", "rel_docs": []}, "topic 101 is that of line 1 already"),
]


@pytest.mark.parametrize(("name", "record", "message"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_faults_of_files_are_named(tmp_path: Path, name: str, record: object, message: str) -> None:
    records = [*FILES_2022[name], record]
    folder = write_track(tmp_path, changed={name: records})
    with pytest.raises(DataError, match=message) as error:
        load_track(folder)
    assert [(fault.path, fault.line) for fault in error.value.faults] == [(folder / name, len(records))]


def test_groups_are_the_official_alignments(golden: Path, tmp_path: Path) -> None:
    articles = Path(shutil.copy(golden / "trec_fair" / "raw8" / "articles.jsonl", tmp_path))
    table, notes = track_groups(articles, 2022, [dimension.name for dimension in DIMENSIONS_2022])
    pages = read_metadata(articles).pages
    assert (len(table), notes) == (len(pages), ())
    for dimension in DIMENSIONS_2022:
        ours = table.memberships(dimension.name, [str(id) for id in pages.ids])
        known = ours if dimension.labels[0] == UNKNOWN else ours[:, 1:]
        # The table has counts as 32-bit floats only where they are the same.
        assert np.array_equal(known, pages.matrix(dimension.name)), dimension.name


def test_groups_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ["12", "7", "70000001", "99"]
    first = load_track(folder)
    monkeypatch.setattr(groups_module, "read_metadata", lambda *given, **more: pytest.fail("it is cached"))
    second = load_track(folder)
    assert second.notes == first.notes
    for name in first.groups.dimensions:
        assert np.array_equal(first.groups.memberships(name, ids), second.groups.memberships(name, ids))
    monkeypatch.undo()
    write_track(folder, {"trec_2022_articles_discrete_assessed.json.gz": PAGES[:2]})
    assert labels_of(load_track(folder), "gender", "70000001") == {UNKNOWN: 1.0}


TASK1 = "id\tpage_id\n101\t7\n101\t9\n102\t9\n102\t70000000\n"
TASK2 = "id\trep_number\tpage_id\n101\t1\t7\n101\t1\t9\n101\t2\t9\n102\t1\t7\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.tsv"


def rankings(run: TrackRun) -> dict[str, list[list[int]]]:
    lists: dict[str, list[list[int]]] = {topic: [] for topic in run.topics}
    for number, start, end in zip(run.topic.tolist(), run.bounds.tolist(), run.bounds[1:].tolist(), strict=False):
        lists[run.topics[number]].append(run.pages[start:end].tolist())
    return lists


ONE = {"101": [[7, 9]], "102": [[9, 70000000]]}
TWO = {"101": [[7, 9], [9]], "102": [[7]]}


@pytest.mark.parametrize(("text", "task", "expected"), [(TASK1, 1, ONE), (TASK2, 2, TWO)])
def test_every_accepted_form_reads_the_same(path: Path, text: str, task: Task, expected: object) -> None:
    for form in (
        text.encode(),
        text.partition("\n")[2].encode(),  # no header
        b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        gzip.compress(text[:9].encode(), mtime=0) + gzip.compress(text[9:].encode()),
        text.replace("101", "00101").encode(),
    ):
        path.write_bytes(form)
        run = read_run(path, 2022, task)
        assert (run.name, rankings(run)) == ("mine.tsv", expected)


RUN_FAULTS: list[tuple[Task, str, list[str]]] = [
    (1, "", [": there are no lines"]),
    (1, "101\t7\n101\t6\n101\n101\t8\t9\t3\n", [":3: 1 column, and 2 above: '101'", ":4: 4 columns, and 2 above"]),
    (1, "101\t7\tx\ty\tz\n101\t7\n", [":1: the rank 'x' is no whole number; a run has TREC's six columns"]),
    (2, TASK1, [":2: expected topic, ranking and page, got 2: '101 7'; is this a run of Task 1?"]),
    (2, "101 Q0 7 1 0.5 me\n", [":1: expected topic, ranking and page, got 6"]),
    (1, "101 Q0 7 1 0.5 me\n101 Q0 6 1 0.4 me\n101 Q0 x 2 0.4 me\n101 Q0 9 4 nan me\n", [
        ":3: the page 'x' is no whole number", ":4: the score 'nan' is no finite number"]),
    (1, "101\t7.0\n101\tnan\n101\t-7\n101\t\nx\t7\n101\t٣\n101\t2147483648\n", [
        f":{line}: the {name} {cell} is no whole number from 0 to 2147483647"
        for line, name, cell in [(1, "page", "'7.0'"), (2, "page", "'nan'"), (3, "page", "'-7'"), (4, "page", "''"),
                                 (5, "topic", "'x'"), (6, "page", "'٣'"), (7, "page", "'2147483648'")]]),
    (2, "101\tx\ty\n", [":1: the ranking 'x' and the page 'y' are no whole numbers"]),
    (1, "101\t7\nid\tpage_id\n", [":2: the topic 'id' and the page 'page_id' are no whole numbers"]),
    (1, "id\tpage_id\n101\t7\n101\t9\n102\t7\n101\t7\n101\t7\n", [
        ":5: page 7 is in line 2 of the same ranking already", ":6: page 7 is in line 2 of the same ranking already"]),
]  # fmt: skip


@pytest.mark.parametrize(("task", "text", "faults"), RUN_FAULTS)
def test_every_fault_of_a_run_is_named(path: Path, task: Task, text: str, faults: list[str]) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_run(path, 2022, task)
    assert len(caught.value.faults) == len(faults)
    for found, expected in zip(sorted(map(str, caught.value.faults)), sorted(faults), strict=True):
        assert expected in found


SIX = """101 Q0 9 2 1.5 me
102 Q0 70000000 9 -3e-2 me
101 Q0 7 1 2.5 me
102 Q0 9 9 4 me
"""
JSON = '{"101": {"9": 1.5, "7": 2.5}, "102": {"70000000": -3e-2, "9": 4}}'


@pytest.mark.parametrize("text", [SIX, SIX.replace(" ", ", "), "topic,Q0,page,rank,score,tag\n" + SIX, JSON])
def test_runs_of_other_tools_are_ordered_by_score(path: Path, text: str) -> None:
    path.write_text(text)
    assert rankings(read_run(path, 2022, 1)) == ONE


@pytest.mark.parametrize(
    ("text", "task", "expected"),
    [
        ("101\t7\n101\t9\n101\t7\n", 1, [[7, 9, 7]]),
        ("101 Q0 7 1 3 me\n101 Q0 9 2 2 me\n101 Q0 7 3 1 me\n", 1, [[7, 9, 7]]),
        ("101\t2\t5\n101\t1\t7\n101\t1\t7\n", 2, [[7, 7], [5]]),
    ],
)
def test_repeated_pages_count_where_they_are_to(path: Path, text: str, task: Task, expected: list[list[int]]) -> None:
    path.write_text(text)
    assert rankings(read_run(path, 2022, task, repeated="count")) == {"101": expected}


def test_topics_that_are_not_judged_are_named_once(path: Path) -> None:
    # The lines of a ranking need not stand together.
    path.write_text("101\t7\n55\t7\n66\t1\n55\t8\n")
    assert rankings(read_run(path, 2022, 1, ["101", "55", "66"])) == {"55": [[7, 8]], "66": [[1]], "101": [[7]]}
    with pytest.raises(DataError) as caught:
        read_run(path, 2022, 1, {"101": None})
    assert sorted((fault.line, fault.message) for fault in caught.value.faults) == [
        (2, "topic 55 is none of the 1 judged ones"),
        (3, "topic 66 is none of the 1 judged ones"),
    ]


def corpus_of(folder: Path, *articles: object) -> Corpus:
    name = "trec_corpus_20220301_plain.json.gz"
    return Corpus("small", write_track(folder, {name: articles}) / name)


def test_articles_become_documents_and_the_first_of_an_id_counts(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, *ARTICLES, {"id": 1, "title": "A", "text": "[[code|wrote]]"})
    assert corpus.notes == ()
    expected = [
        Document(str(page["id"]), page["plain"], page["title"], {"url": page["url"]})
        for page in (ARTICLES[0], ARTICLES[1], ARTICLES[3])
    ]
    for _ in range(2):
        assert list(corpus) == [*expected, Document("1", "wrote", "A")]
        name = corpus.paths[0].name
        assert corpus.notes == (f"articles of {name} that repeat an id, of which the first counts: 1 (12)",)
    assert corpus.count() == len(ARTICLES) + 1


def test_every_fault_of_an_article_is_named(tmp_path: Path) -> None:
    faults = {
        2: ({"id": "12", "title": "A", "plain": "x"}, "field 'id' is '12', expected a whole number from 0"),
        3: ({"id": 3, "title": "A"}, "article 3: expected the article in one of the fields plain, text;"),
        4: ("{not json", "not JSON"),
    }
    corpus = corpus_of(tmp_path, ARTICLES[0], *(article for article, _ in faults.values()), ARTICLES[1])
    with pytest.raises(DataError) as error:
        list(corpus)
    assert [(fault.path, fault.line) for fault in error.value.faults] == [(corpus.paths[0], line) for line in faults]
    assert all(faults[fault.line][1] in fault.message for fault in error.value.faults)


WIKITEXT = [
    ("'''Bold''' and ''italic''", "Bold and italic"),
    ("== Life ==\nBorn.\n=== Work ===\n* one\n# two", "Life Born. Work one two"),
    ("[[London]], the [[London|city]]s, [[File:A.jpg|t|An [[isle]].]][[Category:Towns]]end", "London, the citys, end"),
    ("{{Infobox|a={{b|{{c}}}}}}Text{{citation needed}}.", "Text."),
    ('a<ref>one</ref> b<ref name="x" /> c<ref name="x">two</ref> d', "a b c d"),
    ("a<!-- hidden -->b <!-- never closed", "ab <!-- never closed"),
    ("see [https://example.org/x the page] or [//example.org]", "see the page or"),
    ('before {| class="x"\n|-\n| cell\n|} after', "before after"),
]


@pytest.mark.parametrize(("source", "text"), WIKITEXT)
def test_wikitext(source: str, text: str) -> None:
    assert wikitext_to_text(source) == text


PAGE: dict[str, Any] = {
    "page_id": 12,
    "qual_cat": "C",
    "page_subcont_regions": ["Caribbean"],
    "source_subcont_regions": {"UNK": 1, "Polynesia": 3},
    "gender": ["female"],
    "occupations": ["chemist", "jurist"],
    "first_letter_category": "a-d",
    "creation_date_category": "2001-2006",
    "relative_pageviews_category": "Low",
    "num_sitelinks_category": "English only",
    "title": "is not read",
}


def written(path: Path, *records: Any) -> Path:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in PAGE.items() if name != field}


def test_the_first_line_of_a_page_wins_and_the_others_are_counted(path: Path) -> None:
    other = PAGE | {"gender": ["male"], "qual_cat": "FA"}
    metadata = read_metadata(written(path, PAGE | {"page_id": 99}, PAGE, other, other))
    assert (metadata.pages.ids.tolist(), metadata.pages.quality.tolist()) == ([12, 99], [2, 2])
    assert metadata.pages.matrix("gender")[0].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert metadata.notes == ("lines that repeat a page, whose first line counts: 2",)


def test_missing_fields_are_counted_and_named(path: Path) -> None:
    records = [without(field) | {"page_id": number} for number, field in enumerate(PAGE) if number]
    metadata = read_metadata(written(path, *records, PAGE | {"page_id": 90, "first_letter_category": None}))
    fields = [field for field in PAGE if field not in ("page_id", "title")]
    assert set(metadata.notes) == {f"pages without {field!r}: {1 + (field == fields[5])}" for field in fields}
    assert metadata.pages.quality[0] == -1  # no qual_cat
    assert metadata.pages.matrix("occ")[4].tolist()[0] == 1.0  # unknown
    assert not metadata.pages.matrix("alpha")[5].any()  # a dimension without an unknown: no weight


def test_labels_that_are_none_are_counted_and_named(path: Path) -> None:
    none = {"page_subcont_regions": ["Atlantis"], "relative_pageviews_category": "Huge", "qual_cat": "Superb"}
    metadata = read_metadata(
        written(path, PAGE | {"page_subcont_regions": ["Atlantis", "Caribbean"]}, PAGE | none | {"page_id": 13})
    )
    odd = [
        ("page_subcont_regions", "Atlantis", 2),
        ("relative_pageviews_category", "Huge", 1),
        ("qual_cat", "Superb", 1),
    ]
    assert metadata.notes == tuple(
        f"values of {field!r} that are no label and count for nothing: {label!r} ({count})"
        for field, label, count in odd
    )
    regions = metadata.pages.matrix("sub-geo")
    assert (regions[0].max(), regions[1][0]) == (1.0, 1.0)
    assert not metadata.pages.matrix("pop")[1].any()
    assert metadata.pages.quality.tolist() == [2, -1]


def test_every_fault_of_a_page_is_named(path: Path) -> None:
    no_ids = [PAGE | {"page_id": id} for id in ("13", -1, 2**31, True)]
    fields = {"gender": "male"}, {"source_subcont_regions": {"Caribbean": "x"}}, {"qual_cat": 3}
    wrong = [PAGE | {"page_id": id} | field for id, field in enumerate(fields, start=20)]
    written(path, PAGE, "{not json", without("page_id"), *no_ids, *wrong, "[1]")
    with pytest.raises(DataError, match="TREC Fair 2022 metadata: 10 errors") as caught:
        read_metadata(path)
    messages = {fault.line: fault.message for fault in caught.value.faults}
    assert list(messages) == list(range(2, 12))
    for line, words in {
        2: "not JSON",
        3: "field 'page_id' is None, expected a whole number from 0 to 2147483647",
        8: "page 20, field 'gender': expected a list of labels",
        9: "page 21, field 'source_subcont_regions': the count of 'Caribbean' is 'x'",
        10: "page 22, field 'qual_cat': expected a quality class, got 3",
    }.items():
        assert words in messages[line]
