"""The application: pages of other packages, numbers, ids and log lines, arguments that there are not, the API page."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import Browser, needs_chromium, waited
from fastapi.routing import APIRoute
from prometheus_client.parser import text_string_to_metric_families
from running import Install, start
from studio_server import Studio, asking, desk_of, running, without_target, write_collection
from typer.testing import CliRunner

from fairagent.cli import app as program
from fairagent.errors import SettingsError
from fairagent.guests.testing import LoopbackServer
from fairagent.studio.app import RequestLog, studio_app, studio_pages
from fairagent.studio.desk import ExposureRequest
from fairagent.studio.lanes import Lanes
from fairagent.studio.server import Door, User, hash_of

HELLO = """\
from pathlib import Path
from fairagent.studio.app import StudioPage

class HelloPage(StudioPage):
    links = (("/hello", "Hello"),)
    folder = Path(__file__).parent
    assets = ("hello.js",)

    def add(self, app, studio):
        @app.get("/api/hello", summary="How many topics there are")
        async def topics():
            return await studio.json(lambda: {"topics": len(studio.desk.collection.topics)})

        @app.get("/hello", include_in_schema=False)
        async def page():
            return studio.html("hello.html", folder=self.folder, name="<you>")
"""
TEMPLATE = """\
{% extends "base.html" %}
{% set title, here, skip, skip_to, script = "hello", "/hello", "main", "greeting", "hello.js" %}
{% block main %}<p>Hello, {{ name }}</p>{% endblock %}
"""


@pytest.fixture
def package(install: Install) -> Path:
    """An installed package with a page."""
    files = {"greeting_page.py": HELLO, "hello.html": TEMPLATE, "hello.js": "export {};\n"}
    return install("greeting", {"fairagent.studio_pages": {"hello": "greeting_page:HelloPage"}}, **files)


def test_a_page_of_another_package_is_served_like_ours(package: Path, folder: Path, tmp_path: Path) -> None:
    with running(desk_of(folder, cache=str(tmp_path / "cache"))) as studio, studio.client() as client:
        assert client.get("/api/hello").json() == {"topics": 1}
        page = client.get("/hello")
        assert "Hello, &lt;you&gt;" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert '<a href="/hello" aria-current="page">Hello</a>' in page.text
        # Our pages lead to it, and the API lists its call.
        for address in ("/", "/prompts", "/runs"):
            assert '<a href="/hello">Hello</a>' in client.get(address).text
        assert "How many topics there are" in client.get("/api/openapi.json").text
        asset = client.get("/assets/hello.js")
        assert (asset.text, asset.headers["content-type"]) == ("export {};\n", "text/javascript; charset=utf-8")
        client.headers.pop("authorization")
        assert [client.get(address).status_code for address in ("/hello", "/api/hello")] == [200, 401]


def test_pages_come_in_order_and_one_that_cannot_be_loaded_is_refused(package: Path, install: Install) -> None:
    shipped = ["SearchPage", "PromptPage", "RunPages"]
    assert [type(page).__name__ for page in studio_pages()] == [*shipped, "HelloPage"]
    install("worse", {"fairagent.studio_pages": {"bad": "no_such_module:Page"}})
    with pytest.raises(SettingsError, match=r"studio page 'bad' of worse .*uninstall"):
        studio_pages()


HIDDEN = "lawyerly-hidden-words"


def numbers(client: httpx.Client) -> dict[str, float]:
    """Each sample by its name and labels, as Prometheus reads them."""
    reply = client.get("/metrics")
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name + "".join(f",{key}={value}" for key, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_status_and_told_to_who_has_a_token(studio: Studio, folder: Path) -> None:
    with studio.client() as client:
        before = numbers(client)
        client.post("/api/search", json={"query": HIDDEN})
        client.get("/api/document", params={"id": "d01"})
        client.get("/api/document", params={"id": HIDDEN})
        client.get(f"/{HIDDEN}")
        after = numbers(client)
        text = client.get("/metrics").text
    for route, status in (("/api/search", 200), ("/api/document", 200), ("/api/document", 404), ("none", 404)):
        key = f"fairagent_requests_total,route={route},status={status}"
        assert after[key] == before.get(key, 0) + 1
    assert after["fairagent_request_seconds_count,route=/api/search"] >= 1
    assert after["fairagent_collection_documents"] == 24
    for name in ("index_reopened_total", "lane_waiting,lane=search", "model_calls_total"):
        assert after[f"fairagent_{name}"] == 0
    assert (HIDDEN in text, "lawyer" in text) == (False, False)
    with httpx.Client(base_url=studio.url, trust_env=False) as client:
        assert client.get("/metrics").status_code == 401
    with running(desk_of(folder, cache=""), open_metrics=True) as other, httpx.Client(base_url=other.url) as client:
        assert numbers(client)["fairagent_collection_documents"] == 24
        assert client.get("/api/about").status_code == 401
        assert client.get("/metrics", headers={"host": "elsewhere.example"}).status_code == 403


def test_calls_of_models_are_counted(folder: Path, no_variables: None) -> None:
    prices = {"tiny": {"input": 1e6, "output": 1e6}}
    with LoopbackServer(["A lawyer pleaded [1]."]) as model:
        desk = asking(folder, model.url, generate={"kind": "llm"}, prices=prices)
        with running(desk) as studio, studio.client() as client:
            studio.post("/api/answer", {"query": "lawyer"})
            found = numbers(client)
    assert (found["fairagent_model_calls_total"], found["fairagent_model_failures_total"]) == (1, 0)
    tokens = [found[f"fairagent_model_tokens_total,kind={kind}"] for kind in ("input", "output")]
    assert min(tokens) > 0
    assert found["fairagent_model_dollars_total"] == pytest.approx(sum(tokens))


def test_a_scrape_waits_for_no_lane(folder: Path) -> None:
    held, lanes, desk = threading.Event(), Lanes(1), desk_of(folder, cache="")
    desk.document = lambda id: (held.wait(), {"id": id})[-1]  # type: ignore[assignment, method-assign]
    with running(desk, lanes=lanes) as studio, studio.client() as client, ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(client.get, "/api/document?id=d02") for _ in range(3)]
        waited(lambda: lanes.load == (1, 2))
        found = numbers(client)
        held.set()
        assert [one.result().status_code for one in asked] == [200] * 3
    assert [found[f"fairagent_lane_{what},lane=search"] for what in ("running", "waiting")] == [1, 2]


@pytest.fixture
def app(folder: Path) -> Iterator[Any]:
    """The application, inside of what is around it."""
    with closing(desk_of(folder, cache="")) as desk:
        around: Any = studio_app(desk, Lanes(), Door(frozenset(), None))
        assert isinstance(around, RequestLog)
        yield around._app._app


def test_no_route_takes_an_argument_that_it_does_not_have(studio: Studio, app: Any) -> None:
    """Every route of the schema, by asking it; pages take any, for their scripts."""
    routes = [one for one in app.routes if isinstance(one, APIRoute) and one.include_in_schema]
    assert len(routes) >= 14
    with studio.client() as client:
        for route in routes:
            path = re.sub(r"\{\w+\}", "x", route.path)
            for method in route.methods:
                known = {one.alias: "x" for one in route.dependant.query_params}
                body = {"json": {}} if method == "POST" else {}
                reply = client.request(method, path, params=known | {"surplus": "1"}, **body)
                assert reply.status_code == 400, path
                assert "has no argument 'surplus'" in reply.json()["error"] or method == "POST"
                if known:
                    twice = client.request(method, path, params=[*known.items(), *known.items()], **body)
                    assert twice.status_code == 400, path


def test_no_call_takes_a_key_that_it_does_not_have(studio: Studio, app: Any) -> None:
    posts = [one.path for one in app.routes if "POST" in one.methods]
    assert len(posts) >= 6
    for path in posts:
        assert "surplus" in studio.post(path, {"surplus": 1}, 400)["error"]
    schema = studio.get("/api/openapi.json")
    assert set(schema["paths"]) >= {"/api/search", "/api/answer", "/api/exposure"}
    assert set(ExposureRequest.model_fields) == set(schema["components"]["schemas"]["ExposureRequest"]["properties"])


def test_a_request_has_an_id_which_a_proxy_may_give(studio: Studio) -> None:
    with studio.client() as client:
        for given in ("from-a-proxy.1", "a b", "x" * 65, '"}', ""):
            id = client.get("/health", headers={"x-request-id": given}).headers["x-request-id"]
            assert id == given if given.startswith("from") else re.fullmatch("[0-9a-f]{16}", id)
        assert "x-request-id" in client.get("/nothing").headers


def test_a_line_for_each_request_without_what_was_asked(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = "not-a-real-token-of-ada"
    users = {hash_of(token): User(name="ada", sha256=hash_of(token))}
    caplog.set_level(logging.INFO, logger="fairagent")
    with running(desk_of(folder, cache=""), token=token, admission=users) as studio:
        caplog.clear()  # of the other server's last request
        with studio.client() as client:
            client.post("/api/search", json={"query": HIDDEN})
            client.get("/api/document", params={"id": HIDDEN})
        with httpx.Client(base_url=studio.url, trust_env=False) as client:
            client.get("/api/about")
    lines = [record.fields for record in caplog.records if record.message == "request"]  # type: ignore[attr-defined]
    assert [(one["route"], one["status"], one.get("user")) for one in lines] == [
        ("/api/search", 200, "ada"),
        ("/api/document", 404, "ada"),
        ("none", 401, None),
    ]
    assert all(one["ms"] > 0 for one in lines)
    assert not [one for one in (HIDDEN, token) if one in caplog.text + str(lines)]


def test_serve_writes_json_lines_and_nothing_else(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "own")
    options = ("--port", "0", "--log-format", "json", "--set", "engine=bm25", "--set", "cache=")
    given = ("--collection", str(folder / "collection.yaml"), "--index", str(folder / "index"))
    with start("serve", *options, *given, folder=tmp_path) as process:
        assert process.stdout is not None
        url, _, token = process.stdout.readline().strip().partition("/#token=")
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            headers = {"authorization": f"Bearer {token}", "x-request-id": "mine"}
            assert client.post("/api/search", json={"query": "lawyer"}, headers=headers).status_code == 200
        process.terminate()
        _, said = process.communicate(timeout=60)
    lines = [json.loads(line) for line in said.splitlines()]
    assert lines[-1]["event"] == "ended by SIGTERM"
    (asked,) = [one for one in lines if one["event"] == "request"]
    assert (asked["request"], asked["route"], asked["status"], asked["level"]) == ("mine", "/api/search", 200, "info")
    assert not [one for one in ("lawyer", token) if one in said]


def test_the_commands_name_what_is_missing_and_a_port_in_use_first(
    studio: Studio, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(code: int, *arguments: str) -> str:
        result = CliRunner().invoke(program, arguments)
        assert result.exit_code == code, result.output
        return " ".join(result.stderr.split())

    assert "--log-format json" in refused(2, "serve", "--log-texts", "--collection", "nowhere.yaml")
    port = studio.url.rpartition(":")[2]
    said = refused(2, "serve", "--port", port, "--collection", "nowhere.yaml")
    assert f"port {port} of this machine is in use" in said
    alone = without_target(folder, tmp_path / "alone")
    options = ("-c", str(alone / "collection.yaml"), "--index", str(alone / "index"), "--set", "engine=bm25")
    for command in (("mcp",), ("serve", "--port", "0")):
        assert "no target is set for gender" in refused(2, *command, *options)
    for command, package in (("serve", "uvicorn"), ("mcp", "mcp")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            said = refused(3, command)
        assert f"needs the package {package}, which is not installed: pip install 'fairagent[studio]'" in said


@needs_chromium
def test_an_example_is_sent_from_the_page(browser: Browser, studio: Studio) -> None:
    calls = studio.get("/api/openapi.json")["paths"]
    browser.begin(studio.address)
    browser.wait("document.querySelectorAll('#more > *').length > 3")
    browser.click('nav a[href="/docs"]')
    browser.wait(f"document.querySelectorAll('.opblock').length === {sum(map(len, calls.values()))}")
    for place in ("[id$=search_api_search_post] button", ".try-out button", "button.execute"):
        browser.wait(f"document.querySelector('{place}') !== null")
        browser.click(place)
    status = ".live-responses-table tbody .response-col_status"
    browser.wait(f"document.querySelector('{status}') !== null")
    assert browser.text(status).startswith("200")
    assert browser.said == []
    assert all(url.startswith((studio.url, "data:")) for url in browser.requested)
