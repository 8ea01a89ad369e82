"""What groups have in common, through three kinds of engines: all three are the mixture that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_engine import LAWYERS, Dense, Texts, Words, begun, by_letter, encoded

from fairagent.measures.exposure import min_max, on_scale_of
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.fused import FusedRetriever
from fairagent.search.loop.candidates import Candidates, Mix, Mixer, VectorView
from fairagent.search.loop.evidence import (
    Channel,
    averaged,
    centroids,
    first_documents,
    grounding,
    learn_from,
    refined_vector,
    words,
)
from fairagent.search.loop.sources import GroupText
from fairagent.types import FloatArray, Query, Ranking, Term

QUERY = Query("law")
ENGINE = Dense(LAWYERS)
FOUND = ENGINE.search(QUERY, 100)
ROWS = np.array([[0.0, float(id[0] == "f"), float(id[0] == "m")] for id in FOUND.ids])
LEARNED = learn_from(FOUND.scores, (ROWS,), 4)
BOTH = np.array([0.3, 0.7])
VECTORS = ENGINE.vectors(FOUND.ids)
GROUPS = centroids(VECTORS, LEARNED)
SHIPS = {f"s{number}": "ship sea" for number in range(40)}


def candidates(engine: Retriever, mixer: Mixer, ranking: Ranking = FOUND) -> Candidates:
    search = begun(engine, groups=by_letter(LAWYERS | {"m7": ""}))
    return Candidates(ranking, search, search.meter, mixer)


def vector_channel() -> Channel:
    return candidates(ENGINE, Mixer(0.4)).mix(LEARNED).channels[0]


def word_channel() -> Channel:
    source = Words(LAWYERS | SHIPS)
    return candidates(source, Mixer(source=source, terms=0.5)).mix(LEARNED).channels[0]


def test_the_best_documents_of_each_group_are_learned_from() -> None:
    assert [tuple(FOUND.ids[place] for place in one.places) for one in LEARNED] == [("f1", "f2"), ("m1", "m2")]
    assert [one.weights.tolist() for one in LEARNED] == [[0.5, 0.5], [0.5, 0.5]]


def test_a_document_counts_by_its_membership() -> None:
    (half,) = learn_from(np.array([2.0, 1.0]), (np.array([[0.5, 0.5], [0.0, 1.0]]),), 2)
    assert half.weights.tolist() == pytest.approx([1 / 3, 2 / 3])


def test_centroids_are_the_mixture_of_vectors_written_out() -> None:
    mixed = BOTH[0] * encoded(LAWYERS["f1"]) + BOTH[1] * encoded(LAWYERS["m1"])
    refined = 0.6 * encoded("law") + 0.4 * mixed / np.linalg.norm(mixed)
    assert refined_vector(encoded("law"), GROUPS, BOTH, 0.4) == pytest.approx(refined, abs=1e-6)
    expected = on_scale_of((VECTORS @ refined).astype(np.float64), FOUND.scores)
    assert vector_channel().scores(BOTH) == pytest.approx(expected, abs=1e-5)


@given(st.floats(0, 1), st.floats(0, 1))
def test_refined_scores_keep_the_mean_and_deviation_of_the_engines_own(female: float, male: float) -> None:
    for channel in (vector_channel(), word_channel()):
        scores = channel.scores(np.array([female, male]))
        assert scores.mean() == pytest.approx(FOUND.scores.mean())
        assert scores.std() == pytest.approx(FOUND.scores.std())


@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_only_the_direction_of_the_weights_counts(female: float, male: float) -> None:
    channel = vector_channel()
    weights = np.array([female, male])
    assert channel.scores(weights) == pytest.approx(channel.scores(3 * weights), abs=1e-5)


def test_terms_hold_the_words_of_the_group_and_none_that_are_everywhere() -> None:
    source = Words(LAWYERS | {f"s{number}": "ship sea" for number in range(20)})
    chosen = words(source, source.postings(FOUND.ids), LEARNED[0])
    named = source.words([place for place, _ in chosen])
    assert "woman" in named
    assert "man" not in named
    assert sum(share for _, share in chosen) == pytest.approx(1)


def test_term_evidence_lifts_the_group_whose_weight_is_higher() -> None:
    women = ROWS[:, 1] == 1

    def lead(weights: list[float]) -> float:
        scores = word_channel().scores(np.array(weights))
        return float(scores[women].mean() - scores[~women].mean())

    assert lead([0.9, 0.1]) > lead([0.5, 0.5]) > lead([0.1, 0.9])


def test_an_engine_of_texts_is_asked_one_query_for_each_group() -> None:
    source = Words(LAWYERS | SHIPS)
    texts, asked = Texts(source), list[Query]()

    def search(query: Query, n: int) -> Ranking:
        asked.append(query)
        return source.search(query, n)

    texts.search = search  # type: ignore[method-assign]
    channel = candidates(texts, Mixer(source=source, terms=0.5)).mix(LEARNED).channels[0]
    assert [query.text for query in asked] == ["law", "", ""]
    assert {term.text for term in asked[1].terms} == {"law", "woman"}
    assert channel.evidence.min() >= 0
    assert channel.evidence.max() == 1


def rows(*values: list[float]) -> FloatArray:
    return np.array(values)


ONE, TWO = np.ones((1, 2)), np.ones((2, 2))


def test_what_a_model_says_takes_the_place_of_feedback_or_stands_beside_it() -> None:
    own, from_model = rows([4.0, 0.0], [0.0, 4.0]), rows([0.0, 2.0], [0.0, 0.0])
    assert averaged(own, [from_model], ONE, keep=False).tolist() == [[0.0, 2.0], [0.0, 4.0]]
    assert averaged(own, [from_model], ONE, keep=True).tolist() == [[2.0, 1.0], [0.0, 4.0]]
    both = [from_model, rows([4.0, 0.0], [2.0, 0.0])]
    assert averaged(own, both, TWO, keep=False).tolist() == [[2.0, 1.0], [2.0, 0.0]]
    assert averaged(own, [], np.ones((0, 2)), keep=False) is own


def test_texts_count_by_their_weights_and_the_groups_documents_by_one() -> None:
    own, said = rows([8.0, 0.0]), [rows([0.0, 4.0]), rows([4.0, 0.0])]
    weights = np.array([[0.75], [0.25]])
    assert averaged(own, said, weights, keep=False).tolist() == [[1.0, 3.0]]
    assert averaged(own, said, weights, keep=True).tolist() == [[4.5, 1.5]]
    # What counts nothing says nothing: the documents stand alone.
    assert averaged(own, said, np.zeros((2, 1)), keep=False).tolist() == [[8.0, 0.0]]


RELEVANCE = np.array([4.0, 3.0, 2.0, 0.0])


def test_grounding_is_the_discounted_gain_of_the_nearest_over_the_best() -> None:
    # Gains 1, 3/4, 1/2, 0; the nearest are the third and the second, with the discounts 1 and 1 / log2(3).
    share = (0.5 + 0.75 / np.log2(3)) / (1 + 0.75 / np.log2(3))
    assert grounding(np.array([0.1, 0.8, 0.9, 0.0]), RELEVANCE, k=2) == pytest.approx(share)
    assert grounding(np.array([0.9, 0.8, 0.1, 0.0]), RELEVANCE, k=2) == 1
    assert grounding(np.array([0.1, 0.2, 0.3, 0.9]), RELEVANCE, k=1) == 0


def test_what_is_near_no_document_counts_nothing_and_equal_relevance_all() -> None:
    assert grounding(np.zeros(4), RELEVANCE) == 0
    assert grounding(np.array([0.1, 0.2, 0.0, 0.3]), np.ones(4)) == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-5, 5)), min_size=1, max_size=30), st.integers(1, 12))
def test_grounding_is_between_nothing_and_all(pairs: list[tuple[float, float]], k: int) -> None:
    similarity, relevance = np.array(pairs).T
    assert 0 <= grounding(similarity, relevance, k) <= 1 + 1e-12


MODEL_TEXTS = ((GroupText("law court", (Term("law", 0.5), Term("court", 0.5))), GroupText()),)


def test_a_models_words_are_a_vector_of_length_one() -> None:
    mixed = candidates(ENGINE, Mixer(0.5, feedback=False)).mix(LEARNED, MODEL_TEXTS)
    (channel,) = mixed.channels
    assert mixed.has.tolist() == [1, 1]
    assert channel.evidence[:, 0] == pytest.approx(ENGINE.vectors(FOUND.ids) @ encoded("law court"), abs=1e-6)
    assert channel.evidence[:, 1] == pytest.approx(ENGINE.vectors(FOUND.ids) @ encoded(LAWYERS["m1"]), abs=1e-6)


@pytest.mark.parametrize("text_alone", [False, True])
def test_a_models_words_are_a_query_of_their_own_for_engines_of_words(text_alone: bool) -> None:
    source = Words(LAWYERS)
    engine = Texts(source) if text_alone else source
    found = source.search(QUERY, 100)
    mixed = candidates(engine, Mixer(0.5, source, feedback=False), found).mix(LEARNED, MODEL_TEXTS)
    scores = source.score(Query("", terms=MODEL_TEXTS[0][0].terms), found.ids)
    assert mixed.channels[0].evidence[:, 0] == pytest.approx(min_max(scores) if text_alone else scores)


def test_in_a_fusion_vectors_and_words_are_refined_each_on_its_own_scale() -> None:
    lexical = Words(LAWYERS)
    engine = FusedRetriever([lexical, ENGINE], ["words", "dense"], (1.0, 2.0))
    found = engine.search(QUERY, 100)
    mixed = candidates(engine, Mixer(0.5), found).mix(LEARNED)
    by_words, by_vector = mixed.channels
    assert by_words.now == pytest.approx(min_max(lexical.score(QUERY, found.ids)))
    assert by_vector.now == pytest.approx(2 * min_max(ENGINE.score(QUERY, found.ids)))
    assert (by_words.mix, by_vector.mix) == (Mixer().terms, 0.5)
    assert mixed.fixed.tolist() == [0] * len(found)


# --- relevance feedback -----------------------------------------------------------------------------------------


def test_the_query_takes_in_what_its_first_documents_have_in_common() -> None:
    """The first two are m1 and m2, which are alike: half of them, half of the query, scaled to length 1."""
    places = first_documents(FOUND.scores, 2)
    assert ([FOUND.ids[place] for place in places.places], places.weights.tolist()) == (["m1", "m2"], [0.5, 0.5])
    fed = (encoded("law") + encoded(LAWYERS["m1"])) / 2
    fed /= np.linalg.norm(fed)
    fed_back = candidates(ENGINE, Mixer(0.5, rocchio=0.5, documents=2))
    (view,), (plain,) = fed_back.views, candidates(ENGINE, Mixer(0.5)).views
    assert isinstance(view, VectorView)
    assert isinstance(plain, VectorView)
    assert view.query == pytest.approx(fed, abs=1e-6)
    assert plain.query == pytest.approx(encoded("law"))
    (channel,) = fed_back.mix(LEARNED).channels
    assert channel.own == pytest.approx(VECTORS @ fed, abs=1e-6)
    assert channel.now == pytest.approx(on_scale_of((VECTORS @ fed).astype(np.float64), FOUND.scores), abs=1e-5)
    assert fed_back.fed == pytest.approx(channel.now, abs=1e-5)


@pytest.mark.parametrize("text_alone", [False, True])
def test_words_of_the_first_documents_keep_the_scale_of_the_engine(text_alone: bool) -> None:
    source = Words(LAWYERS | {"m7": "law law man man"} | SHIPS)
    engine = Texts(source) if text_alone else source
    found = source.search(QUERY, 100)

    def mixed(mixer: Mixer) -> Mix:
        return candidates(engine, mixer, found).mix(LEARNED)

    (plain,) = mixed(Mixer(0.5, source, terms=0.4)).channels
    (channel,) = mixed(Mixer(0.5, source, terms=0.4, rocchio=0.5, documents=3)).channels
    assert channel.evidence == pytest.approx(plain.evidence)
    assert (channel.now.mean(), channel.now.std()) == pytest.approx((found.scores.mean(), found.scores.std()))
    # The first three are men, so what says more of men gains, whatever group is weighed.
    more, less = found.ids.index("m7"), found.ids.index("m1")
    assert found.scores[more] == found.scores[less]
    assert channel.now[more] > channel.now[less]
    assert channel.own.tolist() == channel.now.tolist()
