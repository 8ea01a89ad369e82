"""What every store must do, against real ones: embeddings, texts, groups in columns, `where`, and what can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairagent import BackendUnavailable, DataError, SettingsError, UsageError
from fairagent.guests.stores.milvus import MilvusConfig
from fairagent.guests.stores.opensearch import OpenSearchConfig
from fairagent.guests.stores.postgres import PostgresConfig
from fairagent.guests.stores.store import Store, StoreConfig, StoreVectors, read_groups
from fairagent.types import Query

from .conftest import COLUMNS, ENVIRON, MADE, PASSWORD, WordEncoder, cosines

Make = Callable[..., StoreConfig]


@pytest.fixture(scope="module", params=["opensearch", "pgvector", "milvus"])
def make(request: pytest.FixtureRequest) -> Make:
    """What makes the part of a store, with the changes that a test wants; `held` are changes of its columns."""
    if request.param == "opensearch":
        given, kind, columns = request.getfixturevalue("articles"), OpenSearchConfig, "fields"
        settings = {"url": given, "index": "fairagent-articles", "by": "embeddings"}
    elif request.param == "pgvector":
        given, kind, columns = request.getfixturevalue("postgres"), PostgresConfig, "columns"
        settings = {"url": given.url, "table": "articles", "password_env": "PASSWORD"}
    else:
        given, kind, columns = request.getfixturevalue("milvus"), MilvusConfig, "columns"
        settings = {"url": str(given), "entities": "articles"}

    def made(held: dict[str, str] | None = None, **changed: Any) -> StoreConfig:
        return kind(**{**settings, columns: COLUMNS | (held or {}), **changed})

    return made


@pytest.fixture(scope="module")
def store(make: Make) -> Store:
    return make().connect(ENVIRON)


@pytest.fixture(scope="module")
def vectors(make: Make, store: Store) -> StoreVectors:
    return StoreVectors(store, make().held, ("sex", "places"), WordEncoder())


@pytest.mark.parametrize("n", [1, 7, 40, 100])
def test_the_nearest_are_those_computed_here(vectors: StoreVectors, n: int) -> None:
    found, exact = vectors.search(Query("jazz piano"), n), cosines("jazz piano")
    assert found.scores.tolist() == pytest.approx([exact[id] for id in found.ids], abs=1e-6)
    assert found.scores.tolist() == pytest.approx(sorted(exact.values(), reverse=True)[:n], abs=1e-6)
    assert vectors.score(Query("jazz piano"), found.ids).tolist() == pytest.approx(found.scores.tolist(), abs=1e-12)
    assert vectors.nearest(vectors.query_vector(Query("jazz piano")), n).ids == found.ids
    assert len(vectors) == len(MADE)


def test_blank_queries_and_lists_that_are_too_long(vectors: StoreVectors) -> None:
    assert len(vectors.search(Query(" "), 5)) == 0
    assert vectors.score(Query(""), ["d00"]).tolist() == [0]
    assert vectors.score(Query("jazz"), []).tolist() == []
    with pytest.raises(UsageError, match="gives at most"):
        vectors.search(Query("jazz"), 20_000)


def test_texts_come_with_the_columns_of_groups(vectors: StoreVectors) -> None:
    one = MADE[6]
    document = vectors.document(one.id)
    assert (document.id, document.title, document.text) == (one.id, one.title, one.text)
    assert document.extra == {"sex": one.gender, "places": one.regions}
    assert vectors.vectors([one.id])[0].tolist() == pytest.approx(one.vector, abs=1e-6)
    assert [one.id for one in vectors.documents(["d03", "d01", "d03"])] == ["d03", "d01", "d03"]
    for ask in (vectors.documents, lambda ids: vectors.score(Query("jazz"), ids)):
        with pytest.raises(DataError, match=r"2 document id\(s\) are not in (index|table|collection) .*: 'none', 'x'"):
            ask(["d00", "none", "x"])


@pytest.mark.parametrize(
    "hostile", ['"] or key != "', "\\", "x' OR '1'='1", "'; DROP TABLE articles; --", "%s %(n)s", "{x}", "\0", "\ud800"]
)
def test_hostile_ids_are_texts(hostile: str, vectors: StoreVectors) -> None:
    with pytest.raises(DataError, match=r"1 document id\(s\) are not in"):
        vectors.documents([hostile, "d00"])


def test_groups_are_read_from_columns(store: Store) -> None:
    groups = read_groups(store, {"gender": "sex", "region": "places"}, {"gender": {"nonbinary": 0.1, "male": 0.9}})
    assert groups.labels("gender") == ("female", "male", "nonbinary")
    assert groups.memberships("region", ["d01", "d02"]).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    assert groups.missing("gender") == sum(one.gender is None for one in MADE) / len(MADE)


def test_only_what_where_lets_through_is_in_a_list(make: Make) -> None:
    women = {one.id for one in MADE if one.gender == "female"}
    some = make(where={"sex": "female"})
    opened = some.connect(ENVIRON)
    assert set(StoreVectors(opened, some.held, (), WordEncoder()).search(Query("jazz"), 40).ids) == women
    assert opened.count() == len(women) == len(list(opened.every(())))
    assert make(where={"sex": ("female", "male"), "key": ("d00", "d03", "'\"")}).connect(ENVIRON).count() == 1


def test_what_is_not_there(make: Make, store: Store) -> None:
    name = {"opensearch": "index", "pgvector": "table", "milvus": "entities"}[make().kind]
    with pytest.raises(DataError, match=rf"there is no \w+ nothing on .* \(engine.{name}\)"):
        make(**{name: "nothing"}).connect(ENVIRON).check(("key",))
    with pytest.raises(DataError, match=r"has no column 'nearr' \(engine.*; it has: .*key"):
        make({"vector": "nearr"}).connect(ENVIRON).check(("key", "nearr"))
    with pytest.raises(DataError, match=r"of type .*; expected"):
        _ = make({"vector": "body"}).connect(ENVIRON).compared


def test_secrets_come_from_the_environment_alone(make: Make) -> None:
    variables = {"opensearch": {"api_key_env": "ABSENT"}, "pgvector": {"password_env": "ABSENT"}}
    with pytest.raises(BackendUnavailable, match="is signed in to with ABSENT, which is not set"):
        make(**variables.get(make().kind, {"token_env": "ABSENT"})).connect({})
    scheme = "postgresql" if make().kind == "pgvector" else "http"
    for url in (f"{scheme}://me:{PASSWORD}@host", f"{scheme}://host?password={PASSWORD}", f"ftp://{PASSWORD}"):
        with pytest.raises(SettingsError) as raised:
            make(url=url).connect(ENVIRON)
        assert PASSWORD not in str(raised.value)
