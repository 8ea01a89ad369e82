"""Words that name groups: what is swapped, what a text's class is, and every fault of a file with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.errors import DataError
from fairagent.papers.debias_rag.avoid import load_lexicon

from .parts import lexicon, written


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("he saw He and HE", "she saw She and SHE"),
        ("the he-man, sheer, other; (he)", "the he-man, sheer, other; (she)"),
        ("he's late -- he\u2019s not", "she's late -- she\u2019s not"),
        ("MOSQUE, Mosque", "CHURCH, Church"),
        ("he and she", "she and he"),
        ("", ""),
        ("nobody was there", "nobody was there"),
    ],
)
def test_whole_words_are_swapped_with_their_case(tmp_path: Path, text: str, swapped: str) -> None:
    assert lexicon(tmp_path).swap(text) == swapped
    assert lexicon(tmp_path).swap(swapped) == text


def test_the_longest_entry_wins_and_white_space_may_be_any(tmp_path: Path) -> None:
    words = lexicon(tmp_path, "r: [black <-> white, black belt -> blue belt, belt -> strap, Native American -> Dane]\n")
    assert words.swap("A Black\n belt, a black hat, a belt") == "A Blue belt, a white hat, a strap"
    assert words.swap("Native American, native american, NATIVE AMERICAN, native") == "Dane, dane, DANE, native"


def test_the_class_is_that_of_most_words_and_of_the_first_on_a_tie(tmp_path: Path) -> None:
    words = lexicon(tmp_path, "gender: [he <-> she, pregnant]\nreligion: [mosque <-> church, imam -> pastor]\n")
    assert words.tag("Is she pregnant in church?") == "gender"
    assert words.tag("She is in the mosque, the imam too.") == "religion"
    assert words.tag("She is in church.") == "gender"
    assert words.tag("The pastor") == ""
    assert words.tag("") == ""


def test_the_shipped_lexicon() -> None:
    words = load_lexicon()
    assert words.order[:4] == ("gender", "race", "nationality", "religion")
    assert len(words.swaps) > 300
    assert (
        words.swap("The African American priest told his wife.") == "The European American priestess told her husband."
    )
    assert words.swap("She hurt him and HIS father-in-law.") == "He hurt her and HER mother-in-law."
    assert {words.kinds[word] for word in ("he", "black", "ethiopia", "muslim", "elderly", "poor")} == {
        *("gender", "race", "nationality", "religion", "age", "class"),
    }
    # What one word becomes is never a second entry by accident.
    assert all(word != other.lower() for word, other in words.swaps.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("g:\n  - he <-> she\n  - him <-> she\n", "g: 'she' is replaced by 'he' already"),
        ("g:\n  - he <-> He\n", "'he' stands on both sides"),
        ("g: [he <-> she]\nr:\n  - he -> it\n", "r: 'he' is of class 'g' already"),
        ("g:\n  - he <-> she <-> it\n", "expected `word <-> other`"),
        ("g: he\n", "g: expected a list of entries"),
        ("- he\n", "expected 'key: value' lines"),
        ("g: [\n", "not valid YAML"),
        ("g: []\n", "holds no entry"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path / "faulty.yaml", text)
    with pytest.raises(DataError) as raised:
        load_lexicon(file)
    assert said in str(raised.value)
    assert str(file) in str(raised.value)
