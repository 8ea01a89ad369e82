"""The Label page: which documents it asks about, and what a click writes, never over a label that is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_chromium
from studio_server import HOSTILE, TOKEN, Studio, desk_of, running, write_collection

CARDS = "document.querySelectorAll('#documents > li').length"
FILE = "small.gender.examples.jsonl"


@pytest.fixture
def labeling(tmp_path: Path) -> Iterator[Studio]:
    """A studio of a collection in which d00, d02 and d20 have a gender."""
    folder = write_collection(tmp_path / "collection")
    rows = (folder / "groups.tsv").read_text(encoding="utf-8").splitlines()
    known = [line if line[:3] in ("id\t", "d00", "d02", "d20") else f"{line[:3]}\t" for line in rows]
    (folder / "groups.tsv").write_text("\n".join(known) + "\n", encoding="utf-8")
    with running(desk_of(folder, cache="")) as studio:
        yield studio


def asked(studio: Studio, status: int = 200, **parameters: Any) -> Any:
    with studio.client() as client:
        reply = client.get("/api/label", params=parameters)
        assert reply.status_code == status, reply.text
        return reply.json()


def answered(studio: Studio, status: int = 200, **body: Any) -> Any:
    with studio.client() as client:
        reply = client.post("/api/label", json=body)
        assert reply.status_code == status, reply.text
        return reply.json()


def file_of(studio: Studio) -> Path:
    return Path(studio.desk.settings.collection).with_name(FILE)


def test_it_asks_for_the_20_that_help_most_and_writes_what_label_ask_writes(labeling: Studio) -> None:
    found = asked(labeling)
    ids = [one["id"] for one in found["documents"]]
    assert len(set(ids)) == 20
    assert not {"d00", "d02", "d20"} & set(ids)
    assert (found["dimension"], found["labels"], found["answers"]) == ("gender", ["female", "male"], 0)
    assert found["file"] == str(file_of(labeling))
    assert not file_of(labeling).exists()
    assert "in the lists of 1 topic" in found["documents"][0]["why"]

    assert answered(labeling, id=ids[0], label="female")["answers"] == 1
    assert answered(labeling, id=ids[1], label=" nonbinary ", dimension="gender")["answers"] == 2
    lines = [json.loads(line) for line in file_of(labeling).read_text(encoding="utf-8").splitlines()]
    assert [(one["id"], one["gender"]) for one in lines] == [(ids[0], "female"), (ids[1], "nonbinary")]
    again = asked(labeling, count=30)
    assert again["answers"] == 2
    assert len(again["documents"]) == 19
    assert not set(ids[:2]) & {one["id"] for one in again["documents"]}


@pytest.mark.parametrize("id", ["d00", "d05"], ids=["of the collection", "of the file"])
def test_a_label_that_is_given_stays(labeling: Studio, id: str) -> None:
    answered(labeling, id="d05", label="male")
    before = file_of(labeling).read_bytes()
    said = answered(labeling, 409, id=id, label="female")
    assert "has a label of 'gender' already" in said["error"]
    assert file_of(labeling).read_bytes() == before


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"id": "d99", "label": "male"}, "no document of this collection"),
        ({"id": "d05", "label": "  "}, "one line of 1 to 100"),
        ({"id": "d05", "label": "a\nb"}, "one line of 1 to 100"),
        ({"id": "d05", "label": "x" * 101}, "one line of 1 to 100"),
        ({"id": "d05", "label": "male", "dimension": "../../x\n"}, "dimension: expected a name"),
        ({"id": "d05", "label": "male", "file": "/etc/passwd"}, "file"),
    ],
    ids=["unknown", "empty", "two lines", "long", "dimension", "file"],
)
def test_what_is_no_label_is_not_written(labeling: Studio, body: dict[str, str], says: str) -> None:
    folder = file_of(labeling).parent
    before = sorted(path.name for path in folder.iterdir())
    assert says in answered(labeling, 400, **body)["error"]
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_dimension_that_is_not_there_yet_has_a_file_beside_the_collection(labeling: Studio) -> None:
    found = asked(labeling, dimension="../up/region", count=1)
    assert found["labels"] == []
    answered(labeling, id=found["documents"][0]["id"], label="Asia", dimension="../up/region")
    (written,) = (path for path in file_of(labeling).parent.iterdir() if path.name.endswith(".examples.jsonl"))
    assert str(written) == asked(labeling, dimension="../up/region", count=1)["file"]
    assert "count" in asked(labeling, 400, count=0)["error"]


@needs_chromium
def test_a_click_labels_and_texts_are_texts(browser: Browser, labeling: Studio) -> None:
    with browser.quiet(labeling.url):
        browser.begin(f"{labeling.url}/label#token={TOKEN}")
        browser.wait(f"{CARDS} === 20")
        titles = browser.run("[...document.querySelectorAll('#documents h2')].map((one) => one.textContent)")
        place = next(number for number, title in enumerate(titles) if title.startswith("<img src=x"))
        assert len(titles[place]) == len(HOSTILE)
        assert browser.run("document.querySelectorAll('main img, main script').length") == 0
        card = f"document.querySelectorAll('#documents > li')[{place}]"
        browser.run(f"{card}.querySelector('form button').click()")
        browser.wait(f"{card}.querySelector('form') === null")
        assert browser.run(f"{card}.querySelector('.done').textContent") == "labeled: female"
        assert "1 answer in" in browser.text("#state")
        assert json.loads(file_of(labeling).read_text(encoding="utf-8"))["id"] == "d01"
        # Another label by the keyboard, and one that somebody else gave meanwhile.
        first = f"document.querySelectorAll('#documents > li')[{int(place == 0)}]"
        browser.run(f"{first}.querySelector('input').focus()")
        browser.type("nonbinary")
        browser.press("Enter")
        browser.wait(f"{first}.querySelector('form') === null")
        assert json.loads(file_of(labeling).read_text(encoding="utf-8").splitlines()[1])["gender"] == "nonbinary"
    assert browser.run("document.title") == "fairagent studio: label"


@needs_chromium
@pytest.mark.parametrize("width", [360, 1280])
def test_it_is_no_wider_than_the_screen(browser: Browser, labeling: Studio, width: int) -> None:
    browser.size(width)
    browser.open(f"{labeling.url}/label#token={TOKEN}")
    browser.wait(f"{CARDS} === 20")
    assert browser.run("document.documentElement.scrollWidth") == width
