"""Pages of other packages in the studio."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from studio_server import desk_of, running

from fairagent.errors import SettingsError
from fairagent.settings.plugins import all_entry_points
from fairagent.studio.app import studio_pages

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
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with a page."""
    folder = tmp_path / "packages"
    about = folder / "greeting-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n", encoding="utf-8")
    entries = "[fairagent.studio_pages]\nhello = greeting_page:HelloPage\n"
    (about / "entry_points.txt").write_text(entries, encoding="utf-8")
    for name, text in {"greeting_page.py": HELLO, "hello.html": TEMPLATE, "hello.js": "export {};\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    all_entry_points.cache_clear()
    yield folder
    all_entry_points.cache_clear()


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


def test_pages_come_in_order_and_one_that_cannot_be_loaded_is_refused(package: Path) -> None:
    shipped = ["SearchPage", "PromptPage", "RunPages"]
    assert [type(page).__name__ for page in studio_pages()] == [*shipped, "HelloPage"]
    (package / "greeting-1.0.dist-info" / "entry_points.txt").write_text(
        "[fairagent.studio_pages]\nbad = no_such_module:Page\n", encoding="utf-8"
    )
    all_entry_points.cache_clear()
    with pytest.raises(SettingsError, match=r"studio page 'bad' of greeting .*uninstall"):
        studio_pages()
