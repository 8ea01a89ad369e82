from __future__ import annotations

import numpy as np

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
