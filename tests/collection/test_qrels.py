import bz2
import lzma

import numpy as np
import pytest

from fairagent.collection import load_collection

TREC = "qrels: {path: qrels.tsv, format: trec, relevant: 1}"


def test_what_is_left_out_is_counted_and_named(write):
    qrels = "T1 0 d1 1\nT1 0 d1 1\nT9 0 d1 1\nT8 0 d1 0\nT8 0 d2 1\nT2 0 d3 0\n"
    collection = load_collection(write({"qrels.tsv": qrels}))
    assert collection.qrels == {"T1": {"d1": 1}, "T2": {"d3": 0}}
    assert collection.notes == (
        "2 qrels topics are not in the topics file: T9, T8",
        "1 of 2 topics have no relevant document: T2",
        "1 judgments are repeated (with the same grade)",
    )


def test_groups_that_depend_on_the_topic(write, settings):
    text = settings(
        (TREC, "qrels: {path: qrels.tsv, header: true, dimensions: {stance: {column: side}}}"),
        ("world.json", "{stance: {pro: .5, con: .4, unsure: .1}}"),
    )
    qrels = "claim\t0\tdoc\trel\tside\nT1\t0\td1\t1\tpro\nT2\t0\td1\t1\tcon\nT1\t0\td2\t0\t\nT7\t0\td1\t1\tpro\n"
    collection = load_collection(write({"collection.yaml": text, "qrels.tsv": qrels}))
    groups = collection.groups
    assert collection.qrels == {"T1": {"d1": 1, "d2": 0}, "T2": {"d1": 1}}
    assert groups.dimensions == ("gender", "region", "stance")
    assert groups.oracle == ("stance",)
    assert groups.labels("stance") == ("con", "pro", "unsure")
    ids = ["d1", "d2", "d3"]
    np.testing.assert_array_equal(groups.memberships("stance", ids, "T1"), [[0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(groups.memberships("stance", ["d1"], "T2"), [[0, 1, 0, 0]])
    np.testing.assert_array_equal(groups.memberships("stance", ["d1"]), [[1, 0, 0, 0]])
    np.testing.assert_allclose(groups.shares("stance"), [1 / 3, 1 / 3, 1 / 3, 0])


@pytest.mark.parametrize(
    ("topics", "query"),
    [
        (b"1\tone or two\n2\tthree\n", "columns: [id, query]"),  # MS MARCO's
        (
            b'{"_id": "1", "text": "one or two", "metadata": {}}\n{"_id": "2", "text": "three"}\n',
            "id: _id, query: text",
        ),
        (b'qid,query\n1,one or two\n2,"three"\n', "id: qid"),
        (b"<top>\n<num> Number: 1\n<title> one or two\n<top><num>2<title>three", ""),
        (b"<topics><topic number='1'><query>one or two</query></topic><topic number='2'><query>three</query>", ""),
        (b".I 1\n.W\none or\ntwo\n.I 2\n.W\nthree\n", ""),
    ],
)
@pytest.mark.parametrize("pack", [bytes, bz2.compress, lzma.compress])
def test_topics_and_judgments_as_the_field_writes_them(write, settings, topics, query, pack):
    """By the documented forms of MS MARCO, BEIR (whose judgments go with all of them), TREC and SMART."""
    name = f"topics.{'tsv' if 'columns' in query else 'csv' if 'qid' in query else 'txt'}.packed"
    text = settings(
        ("topics.jsonl, id: n, query: title", f"{name}, {query}" if query else name),
        (TREC, "qrels: {path: qrels.tsv, digits: 3}"),
    )
    qrels = "query-id\tcorpus-id\tscore\n01\t7\t1\n2.0\t0012.0\t2\n02\td3\t0\n1\td3\t1\n"
    collection = load_collection(write({"collection.yaml": text, name: pack(topics), "qrels.tsv": qrels}))
    assert {id: topic.query for id, topic in collection.topics.items()} == {"1": "one or two", "2": "three"}
    # 1 is there as it is, so that 01 is another one; of 2.0 and 02 nobody knows which is meant.
    assert collection.qrels == {"1": {"d3": 1}, "2": {}}
    qrels = qrels.replace("1\td3\t1\n", "").replace("02\t", "2.0\t")
    (collection := load_collection(write({"collection.yaml": text, name: pack(topics), "qrels.tsv": qrels})))
    assert collection.qrels == {"1": {"007": 1}, "2": {"012": 2, "d3": 0}}
    assert "2 topics joined with ids that differ by zeros before them or `.0`: 1 (there 01), 2 (there 2.0)" in (
        collection.notes
    )
