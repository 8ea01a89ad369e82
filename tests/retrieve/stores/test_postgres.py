"""`engine: pgvector` against a real PostgreSQL: embeddings, words, groups in columns, and what can be wrong."""

from __future__ import annotations

import socket
import threading
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import BackendUnavailable, Collection, DataError, SettingsError
from fairagent.guests.stores.postgres import PostgresConfig, PostgresTable
from fairagent.guests.stores.store import Columns, StoreVectors, read_groups
from fairagent.search.pipeline import open_agent, open_site
from fairagent.types import Query

from .conftest import COLUMNS, ENVIRON, MADE, PASSWORD, Postgres, WordEncoder


def part(postgres: Postgres, **changed: Any) -> PostgresConfig:
    values = {"url": postgres.url, "table": "articles", "columns": COLUMNS, "password_env": "PASSWORD"}
    return PostgresConfig(**{**values, **changed})


@pytest.fixture(scope="module")
def table(postgres: Postgres) -> PostgresTable:
    return part(postgres).connect(ENVIRON)


@pytest.fixture(scope="module")
def vectors(table: PostgresTable) -> StoreVectors:
    return StoreVectors(table, Columns(**COLUMNS), ("sex", "places"), WordEncoder())


def test_values_of_another_type_than_the_column(postgres: Postgres) -> None:
    with pytest.raises(DataError, match="cannot read the values"):
        part(postgres, where={"sex": 7}).connect(ENVIRON).count()


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
        with pytest.raises(DataError, match="cannot read the values"):
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
            StoreVectors(store, Columns(), (), TwoNumbers()).search(Query("jazz"), 5)
    finally:
        postgres.admin.execute("DROP TABLE bad")


def test_a_database_that_cannot_be_reached_is_named_by_its_host_alone(postgres: Postgres) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
    elsewhere = f"postgresql://reader@127.0.0.1:{nobody}/postgres"
    wrong = {"PASSWORD": "wrong-horse"}
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
    ]
    for engine, environ, said in cases:
        table = engine.connect(environ)
        ask = {"nowhere": lambda: table.check(("key",))}.get(engine.table, table.count)  # noqa: B023
        with pytest.raises((BackendUnavailable, DataError)) as raised:
            ask()
        assert said in str(raised.value)
        shown = "".join(traceback.format_exception(raised.value)) + repr(table) + repr(raised.value.__context__)
        assert PASSWORD not in shown
        assert "wrong-horse" not in shown


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
    monkeypatch.setenv("PASSWORD", PASSWORD)
    with LoopbackServer() as server:
        yield server


def test_an_agent_over_the_table_is_fair(postgres: Postgres, served: Any, tmp_path: Path) -> None:
    (tmp_path / "collection.yaml").write_text("name: articles\n", encoding="utf-8")
    chosen = settings(postgres, served, groups={"gender": "sex"})
    found = open_agent(tmp_path / "collection.yaml", **chosen).search("jazz piano")
    plain = open_agent(tmp_path / "collection.yaml", **chosen, loop="none", rerank="none").search("jazz piano")
    assert len(found.hits) == 6
    assert found.trace.gap < plain.trace.gap
    labels = {one.id: one.gender for one in MADE}
    for hit in found.hits:
        assert hit.title.startswith("Person ")
        assert dict(hit.groups["gender"]) == ({labels[hit.id]: 1.0} if labels[hit.id] else {})


def test_doctor_tells_what_is_searched(postgres: Postgres, served: Any) -> None:
    site = open_site(Collection.from_records([{"id": "a", "text": "x"}]), **settings(postgres, served))
    engine: Any = site.settings.engine
    checks = {check.name: check for check in engine.diagnose(site)}
    assert checks["pgvector"].detail.endswith(": 40 rows, which are only read")
    assert checks["embeddings"].detail == "compared by cosine; endpoint:tiny"
    groups = {check.name: check for check in engine.model_copy(update={"groups": {"gender": "sex"}}).diagnose(site)}
    assert groups["groups in columns"].detail == "gender: 2 labels, 20% without"
    [check] = engine.model_copy(update={"table": "nowhere"}).diagnose(site)
    assert check.status == "problem"


def test_groups_twice_and_experiments_are_refused(postgres: Postgres, served: Any) -> None:
    engine = part(postgres, groups={"gender": "sex"})
    own = Collection.from_records([{"id": "a", "text": "x", "gender": "male"}], groups=["gender"])
    with pytest.raises(SettingsError, match="has groups of gender already"):
        engine.with_parts_of(open_site(own, **settings(postgres, served)))
    site = open_site(Collection.from_records([{"id": "a", "text": "x"}]), **settings(postgres, served))
    with pytest.raises(SettingsError, match="an experiment judges by the groups of its collection"):
        engine.build(replace(site, stateless=True))
