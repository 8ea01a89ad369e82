"""The shipped table of word vectors."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.retrieve.light import word_table


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
    assert table._pieces(word) == [table.places[piece] for piece in pieces]


def test_a_word_of_several_pieces_is_their_mean() -> None:
    table = word_table()
    (found,) = table.vectors(["embeddings"])
    rows = [table.places[piece] for piece in ("em", "##bed", "##ding", "##s")]
    np.testing.assert_allclose(found, table._vectors[rows].mean(axis=0))
