"""The kinds of documents: what they add to relevance, and where they add nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_engine import LAWYERS, Dense, agent, begun
from scripted import by_letter, collection

from fairagent.collection import GroupTable
from fairagent.collection.exposure import UnlabeledTarget
from fairagent.collection.table_buffer import TableBuffer
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.graph import Graph
from fairagent.search.loop.actions import RefineAction
from fairagent.search.loop.controller import Controller
from fairagent.search.loop.document_types import DocumentType, TypeSource, bonus, type_chances
from fairagent.search.loop.guard import moved_by_types
from fairagent.storage.threads import Memo

SCORES = np.array([4.0, 3.0, 2.0, 1.0])


def test_the_likelihood_ratio_by_hand() -> None:
    """Chance .2; 2 of 4 documents are of the kind, shrunk by 5 documents to (2 + 5 * .2) / 9 = 1 / 3."""
    kind = DocumentType("gender", np.array([1.0, 1.0, 0.0, 0.0]), 0.2)
    added = bonus(SCORES, [kind], 0.5)
    yes, no = 0.5 * np.log((1 / 3) / 0.2), 0.5 * np.log((2 / 3) / 0.8)
    assert added == pytest.approx([yes, yes, no, no])


@given(st.floats(0.05, 0.95), st.floats(0, 1))
def test_documents_of_one_kind_are_left_as_they_are(chance: float, of: float) -> None:
    added = bonus(SCORES, [DocumentType("gender", np.full(4, of), chance)], 0.6)
    assert added.tolist() == [0, 0, 0, 0]


def test_a_query_that_is_not_about_the_kind_loses_nothing() -> None:
    """One of four, where chance alone would bring more than three."""
    added = bonus(SCORES, [DocumentType("gender", np.array([0.0, 0.0, 0.0, 1.0]), 0.8)], 0.6)
    assert added.tolist() == [0, 0, 0, 0]


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.floats(0.05, 0.9))
def test_who_is_more_surely_of_the_kind_never_gets_less(of: list[float], chance: float) -> None:
    added = bonus(SCORES, [DocumentType("gender", np.array(of), chance)], 0.6)
    assert (np.diff(added[np.argsort(of)]) >= -1e-12).all()


def test_kinds_follow_labels_and_neighbors() -> None:
    labeled = np.array([1.0, 0.0, 0.0])
    own, beside, apart = type_chances(labeled, np.array([[0, 0], [0, 0], [2, 2]], dtype=np.int32)).tolist()
    assert own == pytest.approx(1 / (1 + np.exp(-10 * (1.0 - 0.4))))
    assert beside == pytest.approx(1 / (1 + np.exp(-10 * (0.5 - 0.4))))
    assert apart == pytest.approx(1 / (1 + np.exp(10 * 0.4)))


ROWS = [(f"{letter}{number}", letter) for letter in "fr" for number in range(60)]
"""People, all but f55 to f59 with a gender, and rivers."""


def table(typed: bool) -> GroupTable:
    buffer = TableBuffer({"gender": ("f", "m")}, typed=["gender"] if typed else [])
    for line, (id, letter) in enumerate(ROWS, start=1):
        named = letter == "f" and int(id[1:]) < 55
        buffer.add(id, {"gender": "f" if named else None}, line, ["gender"] if typed and letter == "f" else [])
    return GroupTable(*buffer.finish())


def graph(apart: bool) -> Graph:
    """Each document beside the next two of its kind, or beside some of each."""
    places = {id: place for place, (id, _) in enumerate(ROWS)}
    near = [
        [places[f"{letter if apart else 'fr'[step % 2]}{(int(id[1:]) + step) % 60}"] for step in (1, 2)]
        for id, letter in ROWS
    ]
    names = np.array([id.encode() for id, _ in ROWS])
    return Graph(IdTable(names, np.argsort(names).astype(np.uint32)), np.array(near, dtype=np.int32))


def test_a_collection_declares_which_documents_can_have_a_label() -> None:
    kinds = TypeSource.of_collection(collection(table(typed=True)), None, Memo())
    (kind,) = kinds.document_types(["f0", "f59", "r0"], "t1")
    assert (kind.dimension, kind.of.tolist(), kind.chance) == ("gender", [1, 1, 0], 0.5)
    assert (kinds.clustered, list(kinds.notes)) == (frozenset(), [])


def test_missing_labels_that_cluster_tell_a_kind_and_others_do_not() -> None:
    kinds = TypeSource.of_collection(collection(table(typed=False)), graph(apart=True), Memo())
    (kind,) = kinds.document_types(["f0", "f59", "r0"], "t1")
    named, unnamed, river = kind.of.tolist()
    assert named > 0.9 > unnamed > 0.6 > 0.1 > river
    assert kinds.clustered == {"gender"}
    assert "54 % of the documents have no label of 'gender'; near documents lack it together" in next(kinds.notes)
    mixed = TypeSource.of_collection(collection(table(typed=False)), graph(apart=False), Memo())
    assert mixed.document_types(["f0", "r0"], "t1") == []
    assert "taken for documents whose label nobody gave" in next(mixed.notes)


class Judgments:
    """Groups that come from the relevance judgments."""

    def __init__(self, table: object) -> None:
        self.table = table

    @property
    def oracle(self) -> frozenset[str]:
        return frozenset({"gender"})

    def __getattr__(self, name: str) -> object:
        return getattr(self.table, name)


def test_groups_of_the_judgments_never_tell_a_kind() -> None:
    groups = Judgments(by_letter([*LAWYERS, "u1", "u2"]))
    assert TypeSource.of_collection(collection(groups), None, Memo()).document_types(["f1", "u1"], "t1") == []  # type: ignore[arg-type]


def test_where_every_document_has_a_label_the_prior_changes_nothing() -> None:
    engine = Dense(LAWYERS)
    kinds = TypeSource.of_collection(collection(by_letter(LAWYERS)), None, Memo())
    with_, without = (
        agent(engine, Controller((RefineAction(3, 0.5),), drift=0.6, prior=prior, types=kinds)).search("law")
        for prior in (0.6, 0.0)
    )
    assert with_.ranking.ids == without.ranking.ids
    assert with_.ranking.scores.tolist() == without.ranking.scores.tolist()


def test_a_target_that_kinds_have_moved_is_said() -> None:
    meter = begun(Dense(LAWYERS)).meter
    before = replace(meter, unlabeled=(UnlabeledTarget(np.array([0.4]), np.array([0.4, 0.3, 0.3])),))
    for share, kind in ((0.1, "have labels"), (0.9, "have none")):
        after = replace(before, unlabeled=(before.unlabeled[0].by_type(np.array([share]), clustered=True),))
        assert moved_by_types(before, after) == (
            f"in gender the target of documents without a label is {share:.0%}, not the 40% of the engine's list: "
            f"the query asks for the type of documents that {kind}",
        )
    assert moved_by_types(before, before) == ()
    assert moved_by_types(meter, replace(meter, unlabeled=())) == ()
