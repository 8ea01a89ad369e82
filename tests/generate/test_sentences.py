from __future__ import annotations

import pytest

from fairagent.answer.generators import sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. A. B. Roe met St. Paul. He left.", ["Dr. A. B. Roe met St. Paul.", "He left."]),
        ('She said "No." Then she left.', ['She said "No."', "Then she left."]),
        ("It was 3.5 m, i.e. long.", ["It was 3.5 m, i.e. long."]),
        ("A title\n\nA text. 12 more.", ["A title", "A text.", "12 more."]),
        ("Él nació. Éva también.", ["Él nació.", "Éva también."]),
        ("a wing in a slipstream . an e.g. study , it was", ["a wing in a slipstream .", "an e.g. study , it was"]),
        (" \n ", []),
        ("", []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found
