"""The API page: FastAPI's own, whose requests have the token of the tab; it loads nothing from elsewhere."""

from __future__ import annotations

from browser import Browser, needs_chromium
from studio_server import TOKEN, Studio

from fairagent.studio.desk import ExposureRequest


@needs_chromium
def test_an_example_is_sent_from_the_page(browser: Browser, studio: Studio) -> None:
    with studio.client() as client:
        calls = client.get("/api/openapi.json").json()["paths"]
    browser.begin(f"{studio.url}/#token={TOKEN}")
    browser.wait("document.querySelectorAll('#more > *').length > 3")
    browser.run("document.querySelector('nav a[href=\"/docs\"]').click()")
    browser.wait(f"document.querySelectorAll('.opblock').length === {sum(map(len, calls.values()))}")
    browser.run("document.querySelector('[id$=search_api_search_post] button').click()")
    browser.wait("document.querySelector('.try-out button') !== null")
    browser.run("document.querySelector('.try-out button').click()")
    browser.wait("document.querySelector('button.execute') !== null")
    browser.run("document.querySelector('button.execute').click()")
    browser.wait("document.querySelector('.live-responses-table tbody .response-col_status') !== null")
    assert browser.text(".live-responses-table tbody .response-col_status").startswith("200")
    assert browser.said == []
    assert all(url.startswith((studio.url, "data:")) for url in browser.requested)


def test_the_schema_has_every_key_of_a_request(studio: Studio) -> None:
    with studio.client() as client:
        schema = client.get("/api/openapi.json").json()
    assert set(schema["paths"]) >= {"/api/search", "/api/answer", "/api/exposure"}
    assert set(ExposureRequest.model_fields) == set(schema["components"]["schemas"]["ExposureRequest"]["properties"])
