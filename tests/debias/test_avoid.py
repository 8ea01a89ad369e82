"""The avoid library and the lexicon: their files with every fault, what is near, swapped and tagged, self-diagnosis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent.errors import DataError, FatalModelError, ReplyTruncated
from fairagent.guests.testing import Scripted, ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.avoid import AvoidIndex, AvoidPassage, diagnose, load_lexicon, read_avoid, write_avoid
from fairagent.types import Document

from .parts import LIBRARY, WordEncoder, lexicon, written


def test_a_library_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_avoid(tmp_path / "avoid.jsonl", LIBRARY)
    assert read_avoid(tmp_path / "avoid.jsonl") == LIBRARY


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a", "text": "again"}', "the id 'a' occurs twice"),
        ('{"id": "b"}', "no field 'text'"),
        ('{"id": "b", "text": " "}', "has no text"),
        ('{"id": "b c", "text": "x"}', "white space"),
        ('{"id": "b", "text": "x", "kind": "gender"}', "no key 'kind'"),
        ('{"id": "b", "text": "x", "class": 1.5}', "expected text"),
        ("no json", "not JSON"),
    ],
)
def test_faults_have_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    file = written(tmp_path / "avoid.jsonl", f'{{"id": "a", "text": "x"}}\n{line}\n')
    with pytest.raises(DataError) as raised:
        read_avoid(file)
    assert (raised.value.faults[0].path, raised.value.faults[0].line) == (file, 2)
    assert said in str(raised.value)


def test_an_empty_library(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no passage"):
        read_avoid(written(tmp_path / "avoid.jsonl", "\n"))
    with pytest.raises(DataError, match="the avoid library is empty"):
        AvoidIndex((), lexicon(tmp_path), WordEncoder())
    with pytest.raises(DataError, match="no such file"):
        read_avoid(tmp_path / "none.jsonl")


def test_the_nearest_passages_of_all_or_of_a_class(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    index = AvoidIndex(LIBRARY, lexicon(tmp_path), WordEncoder())
    (query,) = WordEncoder().queries(["late mosque nurse late"])
    ids = [[one.id for one in index.nearest(query, k, kind)[0]] for k, kind in ((9, ""), (2, ""), (9, "gender"))]
    assert ids == [["a3", "a2", "a1"], ["a3", "a2"], ["a2", "a1"]]
    found, vectors = index.nearest(query, 3, "religion")
    # Its class is the lexicon's word for it.
    assert [(one.id, one.kind) for one in found] == [("a3", "religion")]
    assert (vectors**2).sum(axis=1) == pytest.approx([1])
    found, vectors = index.nearest(query, 3, "age")
    assert (found, vectors.shape) == ((), (0, 8))


def diagnosing(request: ModelRequest) -> str:
    """Passages with "all" are biased: against gender where "women" are in them, else against what has no name."""
    line = next(line for line in request.messages[1][1].splitlines() if line.startswith('[{"id"'))
    found = [
        {"id": one["id"], "biased": "all" in one["text"], "kind": "gender" if "women" in one["text"] else "planet"}
        for one in json.loads(line)
    ]
    return json.dumps({"diagnoses": found})


def test_a_model_diagnoses_itself() -> None:
    texts = ["all women are late", "a woman was late", "all martians are green"]
    passages = [Document(f"p{number}", text) for number, text in enumerate(texts)]
    model = ScriptedModel(diagnosing)
    found = diagnose(model, Prompts(), passages, ["gender", "religion"], batch=2)
    assert found.passages == (AvoidPassage("p0", texts[0], "gender"), AvoidPassage("p2", texts[2], ""))
    assert (found.seen, found.usage.calls, len(model.requests)) == (3, 2, 2)


def test_a_passage_that_is_not_diagnosed_costs_the_others_nothing() -> None:
    texts = ["all women are late", "ramble", "all martians are green"]
    passages = [Document(f"p{number}", text) for number, text in enumerate(texts)]

    def answer(request: ModelRequest) -> Scripted:
        return ReplyTruncated("cut off") if "ramble" in request.messages[-1][1] else diagnosing(request)

    found = diagnose(ScriptedModel(answer), Prompts(), passages, ["gender"], batch=3)
    assert [one.id for one in found.passages] == ["p0", "p2"]
    assert (found.seen, found.failed) == (3, (("p1", "cut off"),))
    with pytest.raises(FatalModelError):
        diagnose(ScriptedModel([FatalModelError("no key")]), Prompts(), passages, ["gender"])


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
        *("gender", "race", "nationality", "religion", "age", "class")
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
def test_faults_of_a_lexicon_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path / "faulty.yaml", text)
    with pytest.raises(DataError) as raised:
        load_lexicon(file)
    assert said in str(raised.value)
    assert str(file) in str(raised.value)
