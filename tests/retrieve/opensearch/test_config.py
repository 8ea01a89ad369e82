"""The engine as users meet it: the example of its README, settings, `index`, `search` and `doctor`."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from fairagent import open_agent
from fairagent.cli import app
from fairagent.collection import load_collection
from fairagent.collection.demo import write_demo
from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.guests.opensearch.server import Address, Credentials, Server
from fairagent.search.pipeline import open_site, parts_of, prepare
from fairagent.settings import load_settings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "fairagent" / "guests" / "opensearch" / "README.md").read_text(encoding="utf-8")
EXAMPLES = [block.partition("\n")[::2] for block in re.findall(r"checked by .*?```yaml\n# (.*?)```", PAGE, re.DOTALL)]


@pytest.fixture
def example(tmp_path: Path, server: Server, name: str, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The two files of the docs, with the server's address, and an index like a company's."""
    assert [file for file, _ in EXAMPLES] == ["collection.yaml", "fairagent.yaml"]
    for file, text in EXAMPLES:
        (tmp_path / file).write_text(
            text.replace("http://localhost:9200", url).replace("index: articles", f"index: {name}")
        )
    (tmp_path / "topics.jsonl").write_text('{"id": "1", "title": "court cases"}\n')
    properties = {
        "headline": {"type": "text", "analyzer": "english"},
        "body": {"type": "text", "analyzer": "english"},
        "author": {"properties": {"gender": {"type": "keyword"}}},
    }
    server.ask("PUT", f"/{name}", {"mappings": {"properties": properties}})
    lines = []
    for number in range(20):
        female = number % 4 == 3
        lines += [
            {"index": {"_id": f"a{number:02d}"}},
            {
                "headline": f"Court case {number}",
                "body": "A court decided. " * (1 if female else 2) + "Cases of the town.",
                "author": {"gender": "female" if female else "male"},
            },
        ]
    server.ask("POST", f"/{name}/_bulk", lines=lines, refresh="true")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    return tmp_path


def test_the_example_serves_a_fair_list(example: Path) -> None:
    engine = open_agent(settings="fairagent.yaml", profile="engine", engine=read(example)["engine"])
    plain = engine.search("court cases")
    fair = open_agent(settings="fairagent.yaml").search("court cases")
    assert len(fair.hits) == 10
    assert fair.hits[0].title.startswith("Court case")
    assert fair.hits[0].groups["gender"] in ({"male": 1.0}, {"female": 1.0})
    shares = [dict(zip(one.labels, one.shares, strict=True)) for one in fair.trace.exposures]
    assert fair.trace.gap < plain.trace.gap
    # Women's documents have the lowest score of all that are found, so relevance lets in one, at the last rank.
    assert 0 < shares[0]["female"] < 0.7
    assert plain.trace.exposures[0].shares[0] == 0
    assert fair.trace.exposures[0].target.tolist() == [0.5, 0.5]


def test_the_examples_are_those_that_are_shipped(example: Path) -> None:
    shipped = ROOT / "examples" / "opensearch"
    documented = yaml.safe_load(EXAMPLES[1][1])
    assert yaml.safe_load((shipped / "fairagent.yaml").read_text())["engine"] == documented["engine"]
    collection = load_collection(shipped / "collection.yaml")
    assert collection.population == yaml.safe_load(EXAMPLES[0][1])["population"]
    services = yaml.safe_load((shipped / "compose.yaml").read_text())["services"]
    assert len(services) == 3
    assert [port for one in services.values() for port in one.get("ports", ())] == ["127.0.0.1:9200:9200"]


def test_experiments_and_groups_that_are_there_twice(example: Path) -> None:
    from dataclasses import replace

    from fairagent.search.pipeline import build

    site = open_site(settings="fairagent.yaml")
    with pytest.raises(SettingsError, match=r"engine\.groups: collection 'articles' has groups of gender already"):
        site.settings.engine.with_parts_of(site)
    bare = load_collection(example / "collection.yaml")
    plain = load_settings(Path("fairagent.yaml"), {"loop": "none", "rerank": "none"})
    with pytest.raises(SettingsError, match="write those of the index into a table once"):
        build(replace(site, collection=bare, settings=plain, stateless=True))


def read(folder: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = yaml.safe_load((folder / "fairagent.yaml").read_text())
    return found


# --- loading, on the command line


@pytest.fixture
def demo(tmp_path: Path, server: Server, name: str, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first documents of the demo collection, and settings that name an index for them."""
    file = write_demo(tmp_path / "demo")
    documents = file.with_name("docs.jsonl")
    documents.write_text("".join(documents.read_text().splitlines(keepends=True)[:60]))
    settings = {"collection": str(file), "engine": {"kind": "opensearch", "url": url, "index": name}}
    (tmp_path / "fairagent.yaml").write_text(yaml.safe_dump(settings))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output if result.exception is None else f"{result.output}{result.exception}"


def test_a_collection_is_loaded_searched_and_checked(demo: Path, name: str) -> None:
    code, said = run("search", "lawyers")
    assert f"there is no index '{name}'" in said
    assert code != 0
    code, said = run("index")
    assert "fairagent index --engine opensearch" in said
    assert not (demo / "indexes").exists()
    code, said = run("index", "--engine", "opensearch", "--json")
    assert code == 0, said
    record = json.loads(said)
    assert (record["documents"], record["groups"], record["built"]) == (60, ["gender", "region"], True)
    code, said = run("index", "--engine", "opensearch")
    assert f"{name} on" in said
    assert "is up to date: 60 documents of demo, groups gender, region" in " ".join(said.split())
    code, said = run("search", "lawyers", "--set", "n=2", "--json")
    assert code == 0, said
    assert len(json.loads(said)["hits"]) == 2
    code, said = run("doctor", "--no-java", "--json")
    found = {check["name"]: (check["status"], check["detail"]) for check in json.loads(said)["checks"]}
    assert found["search index"] == ("ok", f"{name}: 60 documents, loaded from demo")
    assert "contents (english, fairagent; terms stored)" in found["fields"][1]
    assert found["groups on the server"][1].startswith("3,060 of 3,120 ids of the group table are not in the index")
    assert found["permissions"][0] == "ok"
    # Nothing was indexed on this machine.
    assert not (demo / "indexes").exists()


def test_parts_that_read_terms_need_no_index_of_this_machine(demo: Path) -> None:
    run("index", "--engine", "opensearch")
    site = open_site(settings="fairagent.yaml", loop="fair-qr", refine="feedback", rerank={"kind": "mmr", "by": "text"})
    prepare(site, lambda what, done: pytest.fail(f"{what} was built"))
    assert len(parts_of(site.settings)) > 3
    found = open_agent(
        settings="fairagent.yaml", loop="fair-qr", refine="feedback", rerank={"kind": "mmr", "by": "text"}, n=2
    ).search("lawyers")
    assert len(found.hits) == 2


def test_an_index_with_fields_of_its_own_is_not_loaded_into(demo: Path) -> None:
    for wrong in ("engine.fields.text=body", "engine.groups.gender=sex"):
        code, said = run("index", "--engine", "opensearch", "--set", wrong)
        assert code == 2
        assert "leave out engine.fields and engine.groups" in said or "has groups of gender already" in said


# --- addresses and keys

KEY = "not-a-real-key-0123456789"


def test_what_a_server_is_signed_in_to_with() -> None:
    environ = {"KEY": KEY, "TOKEN": f"Bearer {KEY}", "USER_": "me", "PASSWORD": KEY}
    url = "https://search.example.org:9200/es/"

    def sign(*named: str) -> str:
        return Address.find(url, Credentials(*named), environ).sign.get_secret_value()

    assert sign() == ""
    assert sign("KEY") == f"ApiKey {KEY}"
    assert sign("TOKEN") == f"Bearer {KEY}"
    assert sign("", "USER_", "PASSWORD") == "Basic bWU6bm90LWEtcmVhbC1rZXktMDEyMzQ1Njc4OQ=="
    address = Address.find(url, Credentials("", "USER_", "PASSWORD"), environ)
    assert (address.url, address.host, address.path) == (url[:-4], "search.example.org:9200", "/es")
    assert KEY not in repr(address) + str(address)
    echoed = Server(address).quoted(f"{KEY} of me: bWU6bm90LWEtcmVhbC1rZXktMDEyMzQ1Njc4OQ==")
    assert echoed == ": *** of me: ***"


@pytest.mark.parametrize(
    ("url", "credentials", "error", "message"),
    [
        ("search.example.org", Credentials(), SettingsError, "no address of a server"),
        ("ftp://a", Credentials(), SettingsError, "no address of a server"),
        (f"https://me:{KEY}@a", Credentials(), SettingsError, "has a user, a password or a key in it"),
        (f"https://a/?api_key={KEY}", Credentials(), SettingsError, "has a user, a password or a key in it"),
        ("https://a", Credentials("KEY", "USER_", "PASSWORD"), SettingsError, "api_key_env, or with"),
        ("https://a", Credentials("", "USER_", ""), SettingsError, "api_key_env, or with"),
        ("https://a", Credentials("KEY"), BackendUnavailable, "signed in to with KEY, which is not set"),
        ("https://a", Credentials("STRANGE"), SettingsError, "STRANGE holds characters that no key has"),
    ],
)
def test_an_address_or_a_key_that_is_none(url: str, credentials: Credentials, error: type, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Address.find(url, credentials, {"STRANGE": "kéy"})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("index", ["Upper", "a,b", "a*", "_all", "..", "-x", "a/b", "a b", ""])
def test_a_name_that_is_none_of_one_index(index: str) -> None:
    def connect() -> None:
        load_settings(overrides={"engine": {"kind": "opensearch", "index": index}}, environ={}).engine.connect({})

    with pytest.raises(SettingsError):
        connect()


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server with a certificate that it signed itself, and that certificate."""
    if not (program := shutil.which("openssl")):
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    named = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key", "-out", "cert"]
    made = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *named]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"version": {"distribution": "opensearch", "number": "2.19.1"}}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.socket = context.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"https://127.0.0.1:{http.server_address[1]}", folder / "cert"
    http.shutdown()
    http.server_close()
    thread.join()


def test_certificates_are_checked(secure: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    url, certificate = secure

    def version(**more: object) -> str:
        engine = {"kind": "opensearch", "url": url, "index": "i", "attempts": 1, **more}
        return str(load_settings(overrides={"engine": engine}, environ={}).engine.connect({}).version)

    with pytest.raises(BackendUnavailable, match=r"certificate of 127\.0\.0\.1.* cannot be trusted; set engine\.ca"):
        version()
    assert version(ca=str(certificate)) == "OpenSearch 2.19.1"
    assert version(verify=False) == "OpenSearch 2.19.1"
    (tmp_path / "none.pem").write_text("no certificate")
    for wrong in ("none.pem", "nowhere.pem"):
        with pytest.raises(BackendUnavailable, match=r"engine\.ca: .* holds no certificates"):
            version(ca=str(tmp_path / wrong))
