"""`engine: opensearch` against a server: our own formula, ties, weights, groups, and what can be wrong."""

from pathlib import Path
from typing import Any

import pytest

from fairagent import BackendUnavailable, DataError, SettingsError, UsageError
from fairagent.guests.stores.opensearch import Fields, OpenSearchConfig, OpenSearchIndex, StoreWords, read_groups
from fairagent.guests.terms import local_bm25
from fairagent.retrieve.bm25.analysis import open_analyzer
from fairagent.search.pipeline import open_agent
from fairagent.types import Query, Term

from .conftest import COLUMNS, MADE, PASSWORD

FIELDS: dict[str, Any] = dict(COLUMNS)
BODY = {**FIELDS, "title": "", "search": ("body",)}


def part(at: str, **changed: Any) -> OpenSearchConfig:
    return OpenSearchConfig(**{"url": at, "index": "fairagent-articles", "fields": FIELDS, **changed})


@pytest.fixture(scope="module")
def index(articles: str) -> OpenSearchIndex:
    return part(articles, fields=BODY).connect({})


@pytest.fixture(scope="module")
def words(index: OpenSearchIndex) -> StoreWords:
    return StoreWords(index, Fields(**BODY), ("sex", "headline.raw"))


def bm25(query: Query, k1: float = 1.2, b: float = 0.75) -> dict[str, float]:
    """As `local_bm25` of analyzed words, times k1 + 1, of every document; these are shorter than 40."""

    def analyzed(text: str) -> str:
        return " ".join(open_analyzer("english").terms(text))

    terms = Query("", terms=tuple(Term(analyzed(text), weight) for text, weight in query.weighted))
    scores = (k1 + 1) * local_bm25(terms, [analyzed(one.text) for one in MADE], k1, b)
    return dict(zip([one.id for one in MADE], scores.tolist(), strict=True))


@pytest.mark.parametrize(
    "query",
    [
        Query("jazz"),
        Query("judges court"),
        Query("ship", terms=(Term("poems", 0.25), Term("jazz court", 2.5))),
        Query("court court", terms=(Term("court", 0.5),)),
    ],
    ids=str,
)
def test_scores_are_those_of_our_formula(words: StoreWords, query: Query) -> None:
    expected = bm25(query)
    found = words.search(query, 50)
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(
        {id: score for id, score in expected.items() if score > 0}, rel=2e-6
    )
    assert words.score(query, list(expected)).tolist() == pytest.approx(list(expected.values()), rel=2e-6)


@pytest.mark.parametrize("n", [1, 3, 9, 10, 11, 40])
def test_ties_are_in_the_order_of_ids_at_the_cut_too(words: StoreWords, n: int) -> None:
    every = words.search(Query("ship"), 50)
    assert len(set(every.scores.tolist())) < len(every)
    pairs = list(zip((-every.scores).tolist(), every.ids, strict=True))
    assert pairs == sorted(pairs)
    assert words.search(Query("ship"), n).ids == every.ids[:n]


@pytest.mark.parametrize("text", ["", "  ", "the of", "xyzzy", "👩‍⚖️ AND (", "\0"])
def test_a_query_that_finds_nothing(words: StoreWords, text: str) -> None:
    query = Query(text)
    assert len(words.search(query, 10)) == 0
    assert words.score(query, ["d00", "d01"]).tolist() == [0, 0]
    assert words.document_frequency(query.text) == 0


def test_what_cannot_be_asked(words: StoreWords) -> None:
    with pytest.raises(DataError, match="surrogate"):
        words.search(Query("\ud800"), 5)
    with pytest.raises(UsageError, match="at most 9,999"):
        words.search(Query("jazz"), 10_000)
    for ask in (lambda ids: words.score(Query("jazz"), ids), words.documents, words.postings):
        with pytest.raises(DataError, match=r"5 document id\(s\) are not in index .*'nobody', 'no\\x00ne', '\\ud800'"):
            ask(["d00", "nobody", "no\0ne", "\ud800", '"] or key != "', "x' OR '1'='1"])


def test_texts_terms_and_frequencies(words: StoreWords, articles: str) -> None:
    one = MADE[6]
    [document] = words.documents([one.id])
    assert (document.title, document.text) == ("", one.text)
    assert document.extra == {"sex": one.gender, "headline.raw": one.title}
    assert len(words) == len(MADE)
    assert words.document_frequency("judges") == sum("judge" in one.text for one in MADE)
    postings = words.postings(["d00", "d01"])
    assert set(words.words(postings.vocabulary)) >= {"jazz", "piano"}
    both = StoreWords(part(articles).connect({}), Fields(**FIELDS))
    title, text = (
        StoreWords(part(articles, fields={**FIELDS, "search": (field,)}).connect({}), Fields(**FIELDS))
        for field in ("headline", "body")
    )
    query, ids = Query("person 7 jazz"), ["d07", "d08"]
    assert both.score(query, ids) == pytest.approx(title.score(query, ids) + text.score(query, ids), rel=2e-6)
    assert both.document("d07").title == "Person 7"


def test_only_what_where_lets_through_is_in_a_list(articles: str) -> None:
    some = part(articles, where={"sex": "female"})
    women, opened = {one.id for one in MADE if one.gender == "female"}, some.connect({})
    found = StoreWords(opened, some.fields).search(Query("jazz"), 50)
    assert set(found.ids) == {one.id for one in MADE if "jazz" in one.text} & women
    assert opened.count() == len(women) == len(list(opened.every(())))
    assert part(articles, where={"sex": ("female", "male"), "key": ("d00", "d03", "'\"")}).connect({}).count() == 1


def test_an_agent_over_the_index_is_fair(articles: str, tmp_path: Path, no_variables: None) -> None:
    (tmp_path / "collection.yaml").write_text("name: articles\n", encoding="utf-8")
    engine = part(articles, groups={"gender": "sex"}).model_dump(exclude_defaults=True) | {"kind": "opensearch"}
    half = {"gender": {"female": 0.5, "male": 0.5}}
    chosen: dict[str, Any] = {"engine": engine, "profile": "offline", "target": half, "n": 6}
    found = open_agent(tmp_path / "collection.yaml", **chosen).search("jazz piano")
    plain = open_agent(tmp_path / "collection.yaml", **chosen, loop="none", rerank="none").search("jazz piano")
    assert len(found.hits) == 6
    assert found.trace.gap < plain.trace.gap
    assert found.hits[0].title.startswith("Person ")


def test_groups_are_read_from_fields(index: OpenSearchIndex) -> None:
    groups = read_groups(index, {"gender": "sex", "region": "places"}, {"gender": {"nonbinary": 0.1, "male": 0.9}})
    assert groups.labels("gender") == ("female", "male", "nonbinary")
    assert groups.memberships("region", ["d01", "d02"]).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    assert groups.missing("gender") == sum(one.gender is None for one in MADE) / len(MADE)


def test_what_is_not_there(articles: str, index: OpenSearchIndex) -> None:
    with pytest.raises(DataError, match=r"there is no index nothing on .* \(engine.index\)"):
        part(articles, index="nothing").connect({}).check(("key",))
    with pytest.raises(DataError, match=r"has no field 'nearr' \(engine.*; it has: .*key"):
        index.check(("key", "nearr"))
    with pytest.raises(BackendUnavailable, match="is signed in to with ABSENT, which is not set"):
        part("http://host", api_key_env="ABSENT").connect({})


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("http://host", {"index": "a,b"}),
    ("http://host", {"index": "_all"}),
    ("http://host", {"user_env": "X"}),
    ("http://host", {"api_key_env": "X", "user_env": "Y", "password_env": "Z"}),
    (f"http://me:{PASSWORD}@host", {}),
    (f"http://host?password={PASSWORD}", {}),
    (f"ftp://{PASSWORD}", {}),
]


@pytest.mark.parametrize(("at", "changed"), REFUSED)
def test_settings_that_are_refused_without_the_secrets_in_them(at: str, changed: dict[str, Any]) -> None:
    pytest.importorskip("opensearchpy")
    with pytest.raises(SettingsError, match="engine") as raised:
        part(at, **changed).connect({})
    assert PASSWORD not in str(raised.value)
