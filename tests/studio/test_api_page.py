"""The API page: a call of the schema has an example for the open collection, which can be sent and copied."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_chromium
from studio_server import TOKEN, Studio, desk_of, running

from fairagent.errors import UsageError
from fairagent.guests.testing import LoopbackServer
from fairagent.studio.api_page import CallExample, calls_of, examples_of, in_words

from .asked_runs import make_runs

EXAMPLES = "document.getElementById('state')?.textContent.startsWith('Open a call')"


@pytest.fixture(scope="module")
def full(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio that has all that calls are about: a model, runs with exchanges, a folder of templates."""
    root = tmp_path_factory.mktemp("asked")
    runs = make_runs(folder, root, one=0.1, two=0.9)
    with pytest.MonkeyPatch.context() as patch, LoopbackServer([json.dumps({"keywords": ["judges"]})]) as model:
        patch.setenv("OPENAI_API_KEY", "not-a-real-key")
        named = {"name": "tiny", "base_url": model.url, "attempts": 1}
        with running(
            desk_of(folder, cache="", model=named, profile="offline"), runs=runs, prompts=root / "mine"
        ) as studio:
            yield studio


def examples(studio: Studio) -> list[dict[str, Any]]:
    with studio.client() as client:
        found: list[dict[str, Any]] = client.get("/api/examples").json()["calls"]
    return found


def test_every_call_of_the_schema_has_an_example_that_is_answered(full: Studio) -> None:
    with full.client() as client:
        schema = client.get("/api/openapi.json").json()
        calls = {(method.upper(), path) for path, methods in schema["paths"].items() for method in methods}
        told = examples(full)
        assert {(one["method"], one["path"]) for one in told} == calls
        assert len(calls) >= 16
        for one in told:
            assert one["lacking"] == ""
            reply = client.request(one["method"], one["address"], json=one["body"])
            assert reply.status_code == 200, (one, reply.text)
            if one["streams"]:
                body, accept = one["body"], {"accept": "text/event-stream"}
                assert "event: result" in client.request(one["method"], one["address"], json=body, headers=accept).text
    effects = {f"{one['method']} {one['path']}": one["effect"] for one in told if one["effect"]}
    assert list(effects) == ["POST /api/prompts/try", "POST /api/prompts/save"]


def test_what_there_is_no_example_of_is_said(folder: Path, tmp_path: Path) -> None:
    with running(desk_of(folder, cache=""), runs=tmp_path / "none", prompts=tmp_path / "mine") as studio:
        lacking = {f"{one['method']} {one['path']}": one["lacking"] for one in examples(studio) if one["lacking"]}
    assert "no run in" in lacking["GET /api/runs/{name}/topic"]
    assert "needs a language model" in lacking["POST /api/prompts/try"]
    assert "POST /api/search" not in lacking


SCHEMA: dict[str, Any] = {
    "paths": {
        "/api/new/{part}": {
            "post": {
                "summary": "A new call",
                "parameters": [
                    {"name": "part", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "n", "in": "query", "required": True, "schema": {"type": "integer"}},
                    {"name": "more", "in": "query", "schema": {"type": "string"}},
                ],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/New"}}}},
            }
        },
        "/api/old": {"get": {"summary": "An old call"}},
    },
    "components": {
        "schemas": {
            "New": {
                "required": ["text", "kind", "inner"],
                "properties": {
                    "text": {"type": "string", "maxLength": 9, "description": "what\n is said"},
                    "kind": {"enum": ["this", "that"]},
                    "inner": {"$ref": "#/components/schemas/Inner"},
                    "free": {"type": "number", "default": 0.5, "minimum": 0},
                },
            },
            "Inner": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
        }
    },
}


def test_a_call_that_nobody_has_told_of_gets_an_example_from_its_schema() -> None:
    new, old = examples_of(SCHEMA, {}, lambda: "famous lawyers")
    assert new["address"] == "/api/new/famous%20lawyers?n=1"
    assert new["body"] == {"text": "famous lawyers", "kind": "this", "inner": {}}
    # What it does is not known: it is sent only when one says so.
    assert (new["effect"], old["effect"], old["address"], old["body"]) == ("may change something", "", "/api/old", None)
    fields = calls_of(SCHEMA)[0]["fields"]
    assert [(one["name"], one["where"], one["required"], one["values"]) for one in fields] == [
        ("part", "path", True, "a text"),
        ("n", "query", True, "a whole number"),
        ("more", "query", False, "a text"),
        ("text", "body", True, "a text of at most 9 characters"),
        ("kind", "body", True, "one of this, that"),
        ("inner", "body", True, "an object"),
        ("inner.deep", "body", False, "true or false"),
        ("free", "body", False, "a number, at least 0"),
    ]
    assert fields[3]["about"] == "what is said"


def test_an_example_with_keys_that_the_call_has_not_is_an_error() -> None:
    def wrong() -> Mapping[str, Any]:
        return {"x": 1}

    with pytest.raises(UsageError, match="GET /api/old has keys that the call has not: x"):
        examples_of(SCHEMA, {"GET /api/old": CallExample(wrong)}, lambda: "q")


def test_values_in_words() -> None:
    assert in_words({"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "string"}]}, {}) == "a text"
    assert in_words({"const": "x"}, {}) == "x"
    assert in_words({}, {}) == "any value"


def part(call: str) -> str:
    return f"document.querySelector('[data-call=\"{call}\"]')"


@pytest.fixture
def page(browser: Browser, full: Studio) -> Iterator[Browser]:
    browser.open(f"{full.url}/compare#token={TOKEN}")  # or else the page that is there would stay as it is
    browser.begin(f"{full.url}/api#token={TOKEN}")
    with browser.quiet(full.url):
        browser.wait(EXAMPLES)
        yield browser


@needs_chromium
class TestInABrowser:
    def test_a_call_is_opened_sent_changed_and_sent_again(self, page: Browser, full: Studio) -> None:
        search = part("POST /api/search")
        page.run(f"{search}.open = true")
        page.wait(f"/^200 OK, \\d+\\.\\d\\d s/.test({search}.querySelector('.said')?.textContent)")
        shown = json.loads(page.run(f"{search}.querySelector('.request > pre').textContent.split('\\n…')[0]"))
        assert shown["query"]["text"] == "lawyer"
        assert len(shown["hits"]) == 5
        body = f"{search}.querySelector('textarea')"
        changed = json.dumps({"query": "it's a 'court'", "settings": {"n": 3, "loop": None}})
        page.run(f"{body}.value = {json.dumps(changed)}; {body}.dispatchEvent(new Event('input', {{bubbles: true}}))")
        page.run(f"{search}.querySelector('.main').click()")
        page.wait(f"{search}.querySelector('.request > pre').textContent.includes('court')")
        # The reset brings the example back.
        page.run(f"{search}.querySelector('[type=reset]').click()")
        page.wait(f"JSON.parse({body}.value).query === 'lawyer'")

    def test_what_is_wrong_is_said_and_what_is_refused_shown(self, page: Browser) -> None:
        search = part("POST /api/search")
        page.run(f"{search}.open = true")
        page.wait(f"{search}.querySelector('.said.up') !== null")
        body, send = f"{search}.querySelector('textarea')", f"{search}.querySelector('.main').click()"
        page.run(f"{body}.value = '{{'; {send}")
        page.wait(f"{search}.querySelector('.said').textContent === 'The body is no JSON; nothing was sent.'")
        page.run(f"{body}.value = '{{\"nonsense\": 1}}'; {send}")
        page.wait(f"{search}.querySelector('.said').textContent.startsWith('400')")
        assert "nonsense" in page.run(f"{search}.querySelector('.request > pre').textContent")
        page.said.clear()  # the status

    def test_what_has_an_effect_waits_for_its_button(self, page: Browser, full: Studio) -> None:
        save = part("POST /api/prompts/save")
        page.run(f"{save}.open = true")
        page.wait(f"{save}.querySelector('textarea') !== null")
        assert "writes into" in page.run(f"{save}.querySelector('.badge').textContent")
        assert page.run(f"{save}.querySelector('.said').textContent") == ""

    @pytest.mark.parametrize("call", ["POST /api/search", "GET /api/document"])
    def test_what_is_copied_runs(
        self, page: Browser, full: Studio, call: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """As it stands, in a shell and in Python, also with quotes in it."""
        monkeypatch.setenv("TOKEN", TOKEN)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        one = part(call)
        page.run(f"{one}.open = true")
        page.wait(f"{one}.querySelectorAll('.snippet pre').length === 2")
        if call.startswith("POST"):
            body = f"{one}.querySelector('textarea')"
            changed = json.dumps({"query": 'it\'s a "court"', "settings": {"n": 3, "loop": None}})
            page.run(
                f"{body}.value = {json.dumps(changed)}; {body}.dispatchEvent(new Event('input', {{bubbles: true}}))"
            )
        curl, python = page.run(f"[...{one}.querySelectorAll('.snippet pre')].map((shown) => shown.textContent)")
        assert TOKEN not in curl + python
        done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ("court" if call.startswith("POST") else "lawyer") in done.stdout
        if shutil.which("curl"):
            said = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, check=True).stdout
            assert json.loads(said).keys() == eval(done.stdout).keys()

    @pytest.mark.parametrize("width", [360, 1280])
    def test_nothing_is_wider_than_the_screen(self, page: Browser, width: int) -> None:
        page.size(width)
        page.run("document.querySelectorAll('.call, .call details').forEach((one) => { one.open = true; })")
        page.wait("document.querySelectorAll('.said.up').length >= 15")
        page.run("document.querySelectorAll('.snippet').forEach((one) => { one.open = true; })")
        assert page.run("document.documentElement.scrollWidth") == width
        assert page.beyond(width, ".scroll, pre, nav, .skip") == []
