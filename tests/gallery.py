"""The pictures of docs/gallery.md, from the made-up collection, in a real Chromium: `make gallery`.

    python tests/gallery.py [docs/gallery]

The run is that of examples/notebooks/trec_run.ipynb. Pixels differ a little from one Chromium to another.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from browser import Browser, chromium
from studio_server import Studio, desk_of, running

from fairagent import build_index, load_collection, open_agent, write_demo
from fairagent.report.page import html_of

ROOT = Path(__file__).resolve().parents[1]
QUALITY = 70
"""Of WebP, of 100: 30 to 100 kB a picture."""
HEAD = 150
"""Pixels that the page's head and a heading take."""
DONE = "document.getElementById('state').textContent.startsWith('Done')"
STARTED = "!document.getElementById('start').hidden"
FILLED = "document.querySelector('#messages pre') !== null"
LISTED = "document.querySelectorAll('td').length > 2"


@dataclass(frozen=True)
class View:
    """One picture: an address, what is waited for, how large the window is, light or dark, how far it is scrolled."""

    name: str
    address: str
    wait: str = "true"
    width: int = 1280
    height: int = 800
    scheme: str = "light"
    scroll: str = ""
    """The element that is brought below the page's head."""


def views(studio: Studio, report: Path, notebook: Path) -> list[View]:
    """All pictures."""
    search = f"{studio.url}/?q=lawyers"
    page = report.as_uri()
    return [
        View("studio_start", f"{studio.url}/", STARTED),
        View("studio_search", search, DONE),
        View("studio_search_dark", search, DONE, scheme="dark"),
        View("studio_lists", search, DONE, scroll="#lists .twin"),
        View("studio_answer", f"{search}&do=answer&n=6", DONE),
        View("studio_phone_light", f"{studio.url}/", STARTED, 390, 844),
        View("studio_phone", search, DONE, 390, 844, "dark"),
        View("studio_prompts", f"{studio.url}/prompts?id=refine_query&q=lawyers", FILLED),
        View("studio_runs", f"{studio.url}/runs", LISTED),
        View("studio_runs_phone", f"{studio.url}/runs", LISTED, 390, 844, "dark"),
        View("report", page),
        View("report_dark", page, scheme="dark"),
        View("notebook", notebook.as_uri(), width=760, height=520),
    ]


def take(browser: Browser, view: View, folder: Path) -> Path:
    """Write one picture."""
    browser.prefer(view.scheme)
    browser.size(view.width, view.height)
    browser.open(view.address)
    browser.wait(view.wait)
    if view.scroll:
        browser.run(f"scrollBy(0, document.querySelector('{view.scroll}').getBoundingClientRect().top - {HEAD})")
    taken = browser.do("Page.captureScreenshot", format="webp", quality=QUALITY)
    path = folder / f"{view.name}.webp"
    path.write_bytes(base64.b64decode(taken["data"]))
    return path


def experiment() -> str:
    """The experiment file of the notebook."""
    cells = json.loads((ROOT / "examples" / "notebooks" / "trec_run.ipynb").read_text(encoding="utf-8"))["cells"]
    (text,) = (found for cell in cells if (found := "".join(cell["source"])).startswith("%%writefile"))
    return text.partition("\n")[2]


def main() -> None:
    """Make the collection, the run and the server, and take all pictures."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    target = target.resolve()
    with TemporaryDirectory() as temporary, chdir(temporary):
        demo = Path("fairagent-demo")
        collection = load_collection(write_demo(demo))
        build_index(collection, demo / "index")
        Path("first.yaml").write_text(experiment(), encoding="utf-8")
        command = [sys.executable, "-m", "fairagent", "evaluate", "first.yaml"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        result = open_agent(collection, demo / "index", n=8).search("lawyers")
        notebook = Path("notebook.html").resolve()
        notebook.write_text(f"<meta charset=utf-8><body style='font: 16px sans-serif'>{html_of(result)}", "utf-8")
        report = Path("runs/first/report.html").resolve()
        with (
            running(desk_of(demo, cache="cache", engine="auto", target="trec-estimated")) as studio,
            chromium(Path("profile").resolve()) as browser,
        ):
            browser.open(studio.address)  # the cookie with the token
            for view in views(studio, report, notebook):
                path = take(browser, view, target)
                print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
