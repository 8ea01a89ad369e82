"""Who may ask, and what every reply says of what a browser may do with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from studio_server import TOKEN, Studio, desk_of, running

from fairagent.studio.app import assets_of, studio_pages

ASKED = {"query": "lawyer"}


@pytest.fixture(scope="module")
def open_studio(folder: Path) -> Iterator[Studio]:
    """A server without a token."""
    with running(desk_of(folder, cache=""), token="") as studio:
        yield studio


def anybody(studio: Studio, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=studio.url, headers=headers, trust_env=False, timeout=60)


@pytest.mark.parametrize("path", ["/api/about", "/api/document?id=d00", "/api/runs", "/api/prompts", "/api/nothing"])
def test_nothing_is_told_without_the_token(studio: Studio, path: str) -> None:
    with anybody(studio) as client:
        assert client.get(path).status_code == 401
        assert client.get(path, params={"token": TOKEN}).status_code == 401
        assert client.get(path, headers={"cookie": f"token={TOKEN}"}).status_code == 401
    with anybody(studio, authorization="Bearer wrong") as client:
        assert client.get(path).status_code == 401
    with anybody(studio, authorization=f"Basic {TOKEN}") as client:
        assert client.get(path).status_code == 401


@pytest.mark.parametrize("path", ["/", "/docs", "/prompts", "/runs", "/runs/one", "/frame"])
def test_pages_are_shells_that_anybody_gets_and_that_tell_nothing(studio: Studio, path: str) -> None:
    with anybody(studio) as client:
        reply = client.get(path)
        assert reply.status_code == 200
        assert "set-cookie" not in reply.headers
        # Neither the collection, nor its topics and groups, nor files.
        for told in ("lawyer", "female", str(studio.desk.settings.index), TOKEN):
            assert told not in reply.text
        assert client.post(path).status_code == 401


def test_health_is_told_to_anybody_and_says_nothing_private(studio: Studio) -> None:
    with anybody(studio) as client:
        reply = client.get("/health")
        assert client.get("/health", headers={"host": "elsewhere.example"}).status_code == 403
    assert reply.status_code == 200
    assert reply.json() == {"ok": True, "version": reply.json()["version"], "collection": "open"}


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "elsewhere.example"},
        {"origin": "http://elsewhere.example"},
        {"origin": "https://127.0.0.1"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_other_names_and_pages_are_refused_also_without_a_token(open_studio: Studio, headers: dict[str, str]) -> None:
    with anybody(open_studio, **headers) as client:
        assert client.post("/api/search", json=ASKED).status_code == 403
        assert client.get("/").status_code == 403


def test_its_own_pages_and_programs_are_let_in_without_a_token(open_studio: Studio) -> None:
    own = {"origin": open_studio.url, "sec-fetch-site": "same-origin"}
    with anybody(open_studio, **own) as client:
        assert client.post("/api/search", json=ASKED).status_code == 200
    with anybody(open_studio) as client:
        assert client.post("/api/search", json=ASKED).status_code == 200
        # A form of another page could send this without asking first.
        plain = {"content-type": "text/plain"}
        assert client.post("/api/search", content=json.dumps(ASKED), headers=plain).status_code == 400


def test_every_reply_says_that_nothing_may_come_from_elsewhere(studio: Studio) -> None:
    with studio.client() as client:
        replies = [client.get(path) for path in ("/", "/runs", "/nothing", "/api/about")]
    with anybody(studio) as client:
        replies.append(client.get("/"))
    for reply in replies:
        policy = dict(part.split(" ", 1) for part in reply.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"


def test_the_files_of_the_page_are_these_and_no_others(studio: Studio) -> None:
    with studio.client() as client:
        for name in assets_of(studio_pages()):
            assert client.get(f"/assets/{name}").status_code == 200
        for name in ("search.html", "..%2fguard.py", "..%2f..%2f..%2fpyproject.toml", "%2fetc%2fpasswd", "."):
            assert client.get(f"/assets/{name}").status_code == 404
