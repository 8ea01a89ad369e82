"""`engine: pgvector` against a real PostgreSQL: embeddings, words, groups in columns, and what can be wrong."""

from __future__ import annotations

import socket
import threading
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import BackendUnavailable, Collection, DataError, GroupTable, SettingsError, UsageError
from fairagent.guests.stores.postgres import PostgresColumns, PostgresConfig, PostgresTable
from fairagent.guests.stores.store import StoreVectors, StoreWords, read_groups, secret
from fairagent.search.pipeline import open_agent, open_site
from fairagent.types import Query, Term

from .conftest import MADE, PASSWORD, Postgres, WordEncoder, encoded

COLUMNS = {"id": "key", "title": "headline", "text": "body", "vector": "near", "search": "words"}
ENVIRON = {"PGVECTOR_PASSWORD": PASSWORD}


def part(postgres: Postgres, **changed: Any) -> PostgresConfig:
    values = {"url": postgres.url, "table": "articles", "columns": COLUMNS, "password_env": "PGVECTOR_PASSWORD"}
    return PostgresConfig(**{**values, **changed})


@pytest.fixture(scope="module")
def table(postgres: Postgres) -> PostgresTable:
    return part(postgres).connect(ENVIRON)


@pytest.fixture(scope="module")
def vectors(table: PostgresTable) -> StoreVectors:
    return StoreVectors(table, PostgresColumns(**COLUMNS), ("sex", "places"), WordEncoder())


@pytest.fixture(scope="module")
def words(table: PostgresTable) -> StoreWords:
    return StoreWords(table, PostgresColumns(**COLUMNS))


def cosines(query: str) -> dict[str, float]:
    asked = np.array(encoded(query), dtype=np.float32)
    rows = {one.id: np.array(one.vector, dtype=np.float32) for one in MADE}
    return {id: float(row @ asked / np.linalg.norm(row) / np.linalg.norm(asked)) for id, row in rows.items()}


@pytest.mark.parametrize("n", [1, 7, 40, 100])
def test_the_nearest_are_those_computed_here(vectors: StoreVectors, n: int) -> None:
    found, exact = vectors.search(Query("jazz piano"), n), cosines("jazz piano")
    assert len(found) == min(n, len(MADE))
    assert found.scores.tolist() == pytest.approx([exact[id] for id in found.ids], abs=1e-6)
    assert found.scores.tolist() == pytest.approx(sorted(exact.values(), reverse=True)[:n], abs=1e-6)
    assert vectors.score(Query("jazz piano"), found.ids).tolist() == pytest.approx(found.scores.tolist(), abs=1e-6)
    near = vectors.nearest(vectors.query_vector(Query("jazz piano")), n)
    assert near.ids == found.ids
    assert len(vectors) == len(MADE)


def test_texts_come_with_the_columns_of_groups(vectors: StoreVectors) -> None:
    one = MADE[6]
    document = vectors.document(one.id)
    assert (document.id, document.title, document.text) == (one.id, one.title, one.text)
    assert document.extra == {"sex": one.gender, "places": one.regions}
    assert vectors.vectors([one.id])[0].tolist() == pytest.approx(one.vector, abs=1e-6)
    with pytest.raises(DataError, match=r"2 document id\(s\) are not in table articles on 127.0.0.1:\d+: 'none', 'x'"):
        vectors.documents(["d00", "none", "x"])
    with pytest.raises(DataError, match=r"1 document id\(s\) are not in"):
        vectors.score(Query("jazz"), ["d00", "no\0ne"])


def test_only_what_where_lets_through_is_in_a_list(postgres: Postgres) -> None:
    some = part(postgres, where={"sex": "female"}).connect(ENVIRON)
    women = {one.id for one in MADE if one.gender == "female"}
    assert set(StoreVectors(some, PostgresColumns(**COLUMNS), (), WordEncoder()).search(Query("jazz"), 40).ids) == women
    found = StoreWords(some, PostgresColumns(**COLUMNS)).search(Query("jazz"), 40)
    assert set(found.ids) == {one.id for one in MADE if "jazz" in one.text} & women
    assert (some.count(), len(list(some.every(())))) == (len(women), len(women))
    known = part(postgres, where={"sex": ("female", "male"), "key": "d00"}).connect(ENVIRON)
    assert known.count() == 1
    with pytest.raises(DataError, match="cannot read what it was asked for"):
        part(postgres, where={"sex": 7}).connect(ENVIRON).count()


def test_words_are_found_and_scored_by_the_server(words: StoreWords, postgres: Postgres) -> None:
    found = words.search(Query("jazz"), 50)
    assert set(found.ids) == {one.id for one in MADE if "jazz" in one.text}
    rows = postgres.admin.execute("SELECT key, ts_rank(words, 'jazz'::tsquery, 1) FROM articles").fetchall()
    expected = {key: score for key, score in rows if score > 0}
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert found.scores.tolist() == words.score(Query("jazz"), found.ids).tolist()
    pairs = list(zip((-found.scores).tolist(), found.ids, strict=True))
    assert pairs == sorted(pairs)
    assert words.search(Query("jazz"), 3).ids == found.ids[:3]
    # Any word of the query, stemmed, and keywords by their weights.
    both = words.search(Query("jazzed judges"), 50)
    assert set(both.ids) == {one.id for one in MADE if "jazz" in one.text or "judge" in one.text}
    [plain] = words.score(Query("jazz"), ["d01"])
    [more] = words.score(Query("jazz", terms=(Term("judge", 0.5),)), ["d01"])
    assert more == pytest.approx(plain + 0.5 * words.score(Query("judge"), ["d01"])[0])
    assert words.document_frequency("jazz") == len(found)
    assert words.document_frequency("the jazz ship") == sum("jazz" in one.text and "ship" in one.text for one in MADE)
    assert (words.document_frequency("the"), words.document_frequency("zzz")) == (0, 0)
    for blank in ("", "the", "!?", "zzz"):
        assert words.search(Query(blank), 5).ids == ()
    with pytest.raises(DataError, match="are not in table articles"):
        words.score(Query("jazz"), ["d00", "nobody"])


@pytest.mark.parametrize(
    "hostile", ["'; DROP TABLE articles; --", "%s %(n)s", "a & b | !c", "\0jazz", "x' OR 'a'='a", "\\"]
)
def test_hostile_words_and_ids_are_texts(hostile: str, words: StoreWords, vectors: StoreVectors) -> None:
    words.search(Query(hostile), 5)
    words.document_frequency(hostile)
    with pytest.raises(DataError, match="are not in table"):
        vectors.documents([hostile])
    assert len(vectors.search(Query("jazz"), 5)) == 5


def test_half_a_character_is_an_error(words: StoreWords, vectors: StoreVectors) -> None:
    for ask in (lambda: words.search(Query("\ud800"), 5), lambda: vectors.documents(["\ud800"])):
        with pytest.raises(DataError):
            ask()


def test_without_a_column_of_words_the_texts_are_searched(table: PostgresTable, postgres: Postgres) -> None:
    columns = {**COLUMNS, "search": ""}
    found = StoreWords(part(postgres, columns=columns).connect(ENVIRON), PostgresColumns(**columns))
    indexed = StoreWords(table, PostgresColumns(**COLUMNS)).search(Query("court judge"), 20)
    assert found.search(Query("court judge"), 20).ids == indexed.ids


def test_groups_are_read_from_columns(table: PostgresTable) -> None:
    groups = read_groups(table, {"gender": "sex", "region": "places"}, {})
    assert groups.labels("gender") == ("female", "male")
    assert groups.labels("region") == ("Asia", "Europe")
    assert groups.memberships("region", ["d01", "d02"]).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    assert groups.missing("gender") == sum(one.gender is None for one in MADE) / len(MADE)
    besides = read_groups(table, {"gender": "sex"}, {"gender": {"nonbinary": 0.1, "male": 0.9}})
    assert besides.labels("gender") == ("female", "male", "nonbinary")
    with pytest.raises(DataError, match=r"no column 'sexx' \(engine.*; it has: key, headline"):
        read_groups(table, {"gender": "sexx"}, {})


def test_nothing_can_be_written(table: PostgresTable, postgres: Postgres) -> None:
    postgres.admin.execute("GRANT INSERT, DELETE ON articles TO reader")
    try:
        with pytest.raises(BackendUnavailable, match=r"refused a query \(ReadOnlySqlTransaction, 25006\)"):
            table.ask("DELETE FROM {table} RETURNING 1")
    finally:
        postgres.admin.execute("REVOKE INSERT, DELETE ON articles FROM reader")
    assert table.count() == len(MADE)


def test_a_list_that_the_index_leaves_short_is_made_exactly(postgres: Postgres) -> None:
    """pgvector's HNSW keeps 40 candidates by itself, and at most 1,000."""
    postgres.admin.execute(
        "CREATE TABLE many AS SELECT n AS id, format('[%s,1]', n)::vector(2) AS embedding "
        "FROM generate_series(1, 1500) n"
    )
    postgres.admin.execute(
        "CREATE INDEX ON many USING hnsw (embedding vector_cosine_ops); GRANT SELECT ON many TO reader; ANALYZE many"
    )
    try:
        found = part(postgres, table="public.many", columns={"text": ""}).connect(ENVIRON)
        vector = np.array([1.0, 0.0], dtype=np.float32)
        assert [len(found.near(vector, n)) for n in (60, 1400, 9000)] == [60, 1400, 1500]
        assert [id for id, _ in found.rows(["7", "x", "-1", "99999999999999999999"], ())] == ["7"]
        assert len(list(found.every(()))) == 1500
        with pytest.raises(DataError, match=r"column 'id' of table public.many on .* has more than 1,000 values"):
            read_groups(found, {"gender": "id"}, {})
    finally:
        postgres.admin.execute("DROP TABLE many")


def test_inner_products_where_the_only_index_is_of_these(postgres: Postgres) -> None:
    postgres.admin.execute(
        "CREATE TABLE products (id uuid DEFAULT gen_random_uuid(), embedding vector(2), nothing text)"
    )
    postgres.admin.execute("INSERT INTO products (embedding) VALUES ('[3,0]'), ('[1,1]'), (NULL)")
    postgres.admin.execute(
        "CREATE INDEX ON products USING hnsw (embedding vector_ip_ops); GRANT SELECT ON products TO reader"
    )

    class Two(WordEncoder):
        def queries(self, texts: list[str]) -> Any:
            return np.array([[2.0, 1.0]] * len(texts), np.float32)

    try:
        engine = part(postgres, table="products", columns={"text": ""})
        store = engine.connect(ENVIRON)
        found = StoreVectors(store, engine.columns, (), Two()).search(Query("jazz"), 5)
        assert found.scores.tolist() == [6.0, 3.0]
        with pytest.raises(DataError, match="has no value in any row; is it that of 'gender'"):
            read_groups(store, {"gender": "nothing"}, {})
        with pytest.raises(DataError, match="cannot read what it was asked for"):
            store.rows(["no uuid"], ())
    finally:
        postgres.admin.execute("DROP TABLE products")


BAD_TABLES = {
    "two rows of an id": (
        "(id text, text text, embedding vector(2))",
        "('a', '', '[1,0]'), ('a', '', '[1,1]')",
        "several rows of",
    ),
    "numbers for embeddings": ("(id text, text text, embedding float[])", "('a', '', '{1,0}')", "expected a vector"),
    "another encoder's": (
        "(id text, text text, embedding vector(2))",
        "('a', '', '[1,0]')",
        "are another encoder's; set engine.encoder",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_table_that_cannot_be_searched(name: str, postgres: Postgres) -> None:
    columns, rows, said = BAD_TABLES[name]
    postgres.admin.execute(f"CREATE TABLE bad {columns}")
    postgres.admin.execute(f"INSERT INTO bad VALUES {rows}; GRANT SELECT ON bad TO reader")

    class TwoNumbers(WordEncoder):
        def queries(self, texts: list[str]) -> Any:
            return np.ones((len(texts), 2 if name != "another encoder's" else 3), np.float32)

    try:
        store = part(postgres, table="bad", columns={}).connect(ENVIRON)
        with pytest.raises(DataError, match=said):
            StoreVectors(store, PostgresColumns(), (), TwoNumbers()).search(Query("jazz"), 5)
    finally:
        postgres.admin.execute("DROP TABLE bad")


def test_a_database_that_cannot_be_reached_is_named_by_its_host_alone(postgres: Postgres) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
    elsewhere = f"postgresql://reader@127.0.0.1:{nobody}/postgres"
    wrong = {"PGVECTOR_PASSWORD": "wrong-horse"}
    cases = [
        (part(postgres, url=elsewhere), ENVIRON, f"no connection to 127.0.0.1:{nobody} (OperationalError)"),
        (part(postgres), wrong, "does not let this user in; check what the environment variables of engine.user_env"),
        (
            part(postgres, url=postgres.url.replace("/postgres", "/nothing")),
            ENVIRON,
            "has it the database of engine.url?",
        ),
        (part(postgres, table="nowhere"), ENVIRON, "there is no table nowhere on 127.0.0.1"),
        (part(postgres, table="pg_authid", columns={"id": "rolname"}), ENVIRON, "may not read table pg_authid"),
        (part(postgres, language="klingon", by="text"), ENVIRON, "klingon"),
    ]
    for engine, environ, said in cases:
        table = engine.connect(environ)
        ask = {"nowhere": lambda: table.check(("key",))}.get(engine.table, table.count)  # noqa: B023
        with pytest.raises((BackendUnavailable, DataError)) as raised:
            table.frequency("x") if engine.by == "text" else ask()
        assert said in str(raised.value)
        shown = "".join(traceback.format_exception(raised.value)) + repr(table) + repr(raised.value.__context__)
        assert PASSWORD not in shown
        assert "wrong-horse" not in shown


def test_secrets_come_from_the_environment_alone(postgres: Postgres) -> None:
    with pytest.raises(SettingsError, match=r"of 127.0.0.1:\d+ has a password in it.* engine.password_env") as raised:
        part(postgres, url=postgres.url.replace("reader@", f"reader:{PASSWORD}@")).connect(ENVIRON)
    assert PASSWORD not in str(raised.value)
    with pytest.raises(SettingsError, match="is no address of a database"):
        part(postgres, url=f"postgresql:/{PASSWORD}").connect(ENVIRON)
    with pytest.raises(BackendUnavailable, match="is signed in to with PGVECTOR_PASSWORD, which is not set"):
        part(postgres).connect({})
    assert secret("", {}, "host") == ""


def test_a_connection_that_breaks_is_opened_again(postgres: Postgres) -> None:
    table = part(postgres).connect(ENVIRON)
    table.count()
    postgres.admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairagent'"
    )
    assert table.count() == len(MADE)


def test_a_slow_answer_has_an_end(postgres: Postgres) -> None:
    with pytest.raises(BackendUnavailable, match=r"did not answer in 0.05 s \(engine.timeout\)"):
        part(postgres, timeout=0.05).connect(ENVIRON).ask("SELECT pg_sleep(30)")


def test_a_server_that_falls_silent_has_an_end(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay that passes on what both say, until it does not."""
    monkeypatch.setattr("fairagent.guests.stores.postgres.GRACE", 0.05)
    silent, ends = threading.Event(), list[socket.socket]()

    def relay(source: socket.socket, target: socket.socket) -> None:
        # It ends with the test, which closes both.
        with suppress(OSError):
            while data := source.recv(65536):
                if not silent.is_set():
                    target.sendall(data)

    def accept(listening: socket.socket) -> None:
        client, _ = listening.accept()
        server = socket.create_connection(("127.0.0.1", postgres.port))
        ends.extend([client, server])
        threading.Thread(target=relay, args=(client, server), daemon=True).start()
        threading.Thread(target=relay, args=(server, client), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        url = f"postgresql://reader@127.0.0.1:{listening.getsockname()[1]}/postgres"
        table = part(postgres, url=url, timeout=2).connect(ENVIRON)
        assert table.count() == len(MADE)
        silent.set()
        with pytest.raises(BackendUnavailable, match=r"did not answer in 2 s \(engine.timeout\)"):
            table.count()
    for end in ends:
        end.shutdown(socket.SHUT_RDWR)
        end.close()


def test_threads_may_share_it(vectors: StoreVectors) -> None:
    found: Counter[tuple[str, ...]] = Counter()
    threads = [threading.Thread(target=lambda: found.update([vectors.search(Query("jazz"), 5).ids])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(found.values()) == [8]


def settings(postgres: Postgres, server: Any, **engine: Any) -> dict[str, Any]:
    return {
        "engine": part(postgres, encoder="endpoint:tiny", **engine).model_dump(exclude_defaults=True)
        | {"kind": "pgvector"},
        "profile": "offline",
        "model": {"name": "tiny", "base_url": server.url},
        "target": {"gender": {"female": 0.5, "male": 0.5}},
        "n": 6,
    }


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, no_variables: None) -> Any:
    from fairagent.guests.testing import LoopbackServer

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("PGVECTOR_PASSWORD", PASSWORD)
    with LoopbackServer() as server:
        yield server


@pytest.mark.parametrize("engine", [{}, {"by": "text"}])
def test_an_agent_over_the_table_is_fair(engine: Any, postgres: Postgres, served: Any, tmp_path: Path) -> None:
    (tmp_path / "collection.yaml").write_text("name: articles\n", encoding="utf-8")
    chosen = settings(postgres, served, groups={"gender": "sex"}, **engine)
    found = open_agent(tmp_path / "collection.yaml", **chosen).search("jazz piano")
    plain = open_agent(tmp_path / "collection.yaml", **chosen, loop="none", rerank="none").search("jazz piano")
    assert len(found.hits) == 6
    assert found.trace.gap < plain.trace.gap
    labels = {one.id: one.gender for one in MADE}
    for hit in found.hits:
        assert hit.title.startswith("Person ")
        assert dict(hit.groups["gender"]) == ({labels[hit.id]: 1.0} if labels[hit.id] else {})


def test_doctor_counts_ids_that_the_table_lacks(postgres: Postgres, served: Any) -> None:
    rows = [(one.id, {"gender": one.gender}) for one in MADE] + [
        ("gone1", {"gender": "male"}),
        ("gone2", {"gender": None}),
    ]
    table = GroupTable.from_rows(rows, ["gender"])
    site = open_site(Collection.from_records([{"id": "a", "text": "x"}]), **settings(postgres, served))
    engine: Any = site.settings.engine
    checks = {check.name: check for check in engine.diagnose(with_collection(site, table))}
    assert checks["pgvector"].detail.endswith(": 40 rows, which are only read")
    assert checks["embeddings"].detail == "compared by cosine; endpoint:tiny"
    groups = checks["groups in columns"]
    assert (groups.status, groups.detail[:48]) == ("note", "2 of 42 ids of the group table are not in table ")
    assert "'gone1', 'gone2'" in groups.fix
    broken = engine.model_copy(update={"table": "nowhere"})
    [check] = broken.diagnose(site)
    assert check.status == "problem"


def with_collection(site: Any, groups: GroupTable) -> Any:
    from dataclasses import replace

    return replace(site, collection=replace(site.collection, groups=groups))


def test_groups_twice_and_experiments_are_refused(postgres: Postgres, served: Any) -> None:
    table = GroupTable.from_rows([("d00", {"gender": "male"})], ["gender"])
    site = open_site(Collection.from_records([{"id": "a", "text": "x"}]), **settings(postgres, served))
    engine = part(postgres, groups={"gender": "sex"})
    with pytest.raises(SettingsError, match="has groups of gender already"):
        engine.with_parts_of(with_collection(site, table))
    with pytest.raises(UsageError, match="at most 10,000"):
        engine.build(site).search(Query("jazz"), 20_000)
