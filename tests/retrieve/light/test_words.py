"""The shipped table of word vectors."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.retrieve.light.encoder import word_table


def test_the_table_has_berts_uncased_word_pieces() -> None:
    table = word_table()
    assert len(table._places) == 30_522
    assert table._vectors.shape == (30_522, 64)
    assert table._places["[PAD]"] == 0
    assert np.isfinite(table._vectors).all()


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("lawyer", ["lawyer"]),
        ("Lawyer", ["lawyer"]),
        ("embeddings", ["em", "##bed", "##ding", "##s"]),
        ("naïve", ["naive"]),
        ("Éclair", ["ec", "##lai", "##r"]),
        ("адвокат", ["а", "##д", "##в", "##о", "##ка", "##т"]),
        ("😀", []),
        ("", []),
    ],
)
def test_words_are_cut_as_bert_cuts_them(word: str, pieces: list[str]) -> None:
    table = word_table()
    assert table._pieces(word) == [table._places[piece] for piece in pieces]


def test_a_word_of_several_pieces_is_their_mean() -> None:
    table = word_table()
    (found,) = table.vectors(["embeddings"])
    rows = [table._places[piece] for piece in ("em", "##bed", "##ding", "##s")]
    np.testing.assert_allclose(found, table._vectors[rows].mean(axis=0))


def test_a_word_without_pieces_has_no_vector() -> None:
    assert not word_table().vectors(["😀", "律師律"]).any()
    assert word_table().vectors([]).shape == (0, 64)
