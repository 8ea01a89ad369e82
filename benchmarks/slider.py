"""How long a move of the search page's slider takes, from the hand to the picture, in a real Chromium.

    python benchmarks/slider.py evaluations/collections/wikilead.yaml INDEX "women in science" ...

INDEX is what `fairagent index` made of it; the default queries are those of the first topics. Each move is made after
the one before is seen, and asks the server nothing. Printed are milliseconds, median and 95th percentile, from the
slider's event to the end of the frame that shows the new list; and how long the reply is that has all lists.
Asked: 50 at 20,000 documents.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from browser import Browser, chromium
from studio_server import running

from fairagent.studio.desk import Desk

ASKED = 50.0
QUERIES = 3
DONE = "document.getElementById('state').textContent.startsWith('Done')"
MOVED = """(async () => {
  const slider = document.getElementById('set-list');
  const times = [];
  const last = Number(slider.max);
  for (const place of [...Array(2 * last + 1).keys()]) {
    const began = performance.now();
    slider.value = place <= last ? place : 2 * last - place;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    // The frame that shows it comes first, then the message.
    await new Promise((seen) => requestAnimationFrame(() => {
      const drawn = new MessageChannel();
      drawn.port1.onmessage = seen;
      drawn.port2.postMessage(0);
    }));
    times.push(performance.now() - began);
    await new Promise((done) => setTimeout(done, PAUSE));
  }
  return times;
})()"""


def main(collection: Path, index: Path, queries: list[str]) -> None:
    desk = Desk(None, {"collection": str(collection), "index": str(index), "target": "population"})
    desk.warm()
    queries = queries or [topic["query"] for topic in desk.about()["topics"][:QUERIES]]
    documents = desk.contents()["documents"]
    print(f"{collection.stem}, {documents} documents, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as page, running(desk) as studio:
        page.begin(studio.address)
        for query in queries:
            page.open(f"{studio.url}/?q={query}")
            page.wait(DONE)
            with studio.client() as client:
                reply = client.post("/api/search", json={"query": query, "trace": True}).content
            lists = len(json.loads(reply)["frontier"]["lists"])
            print(f"{query!r}: {lists} lists, a reply of {len(reply) / 1000:.0f} kB")
            for pause in (0, 300):
                worst = max(worst, told(page, query, pause))
    print(f"the slowest median: {worst:.0f} ms (asked: {ASKED:.0f})")
    sys.exit(worst > ASKED)


def told(page: Browser, query: str, pause: int) -> float:
    """Print the times of all moves with so many milliseconds between them; their median."""
    page.requested.clear()
    times = np.array(page.run(MOVED.replace("PAUSE", str(pause))))
    asked = f", {len(page.requested)} requests" if page.requested else ""
    median, slow = np.median(times), np.percentile(times, 95)
    print(f"{query!r}, {pause} ms between moves: {len(times)} moves, {median:.0f} ({slow:.0f}){asked}")
    return float(median)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
