"""The picture of the README: the share of the attention that each group gets before and after, and its target.

    python docs/before_after.py [--check]

The numbers are those of `fairagent demo --json`: means over its topics of the agent's engine alone and of the agent.
`--check` writes nothing, and ends with 1 where the picture is not what the demo comes to.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape

from fairagent import load_collection

PICTURE = Path(__file__).with_suffix(".svg")
BEFORE, AFTER = "BM25 + vectors", "agent"
WIDTH, LEFT, LONGEST = 720, 236, 330
"""Pixels: of the picture, of the names, and of the longest bar."""
ROW, BLOCK = 27, 34
STYLE = """
  .card{fill:#fff;stroke:#d0d7de}.t{fill:#1f2328;font:14px system-ui,sans-serif}.s{fill:#59636e;font-size:12px}
  .h{font-weight:600}.n{text-anchor:end}.b{fill:#b1bac4}.a{fill:#0969da}.g{stroke:#bc4c00;stroke-width:2.5}
  @media (prefers-color-scheme:dark){.card{fill:#0d1117;stroke:#3d444d}.t{fill:#f0f6fc}.s{fill:#9198a1}.b{fill:#656c76}
  .a{fill:#4493f8}.g{stroke:#f0883e}}
"""


def demo() -> tuple[int, dict[str, Any]]:
    """The number of topics, and what `fairagent demo --json` prints, in an empty folder."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fairagent", "demo", "--json"]
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, encoding="utf-8")
        return len(load_collection(Path(folder, "fairagent-demo", "collection.yaml")).topics), json.loads(done.stdout)


def picture(topics: int, results: dict[str, Any]) -> str:
    """The picture as SVG."""
    shares: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for row in results["exposures"]:
        if row["target"] is not None:
            groups = shares.setdefault(row["dimension"], {}).setdefault(row["group"], {})
            groups[row["system"]] = (row["exposure"], row["target"])
    shown = [groups[name] for each in shares.values() for groups in each.values() for name in (BEFORE, AFTER)]
    most = max(map(max, shown))
    parts, y = list(_head(topics)), 84
    for dimension, each in shares.items():
        parts.append(f'<text class="t h" x="20" y="{y}">{escape(dimension)}</text>')
        y += 10
        for label, groups in each.items():
            parts += _row(label, groups[BEFORE][0], *groups[AFTER], LONGEST / most, y)
            y += ROW
        y += BLOCK - 8
    card = f'<rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{y - 23}" rx="8"/>'
    label = "Share of the attention of each group before and after, beside its target"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y - 22}" viewBox="0 0 {WIDTH} {y - 22}" '
        f'role="img" aria-label="{label}">\n<style>{STYLE}</style>\n{card}\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _head(topics: int) -> Iterator[str]:
    yield '<text class="t h" x="20" y="28">Who gets the readers’ attention</text>'
    about = f"made-up collection, means over {topics} queries, first 20 results"
    yield f'<text class="t s" x="20" y="46">{about}</text>'
    for x, mark, name in ((452, "b", "engine"), (528, "a", "fairagent"), (620, "g", "target")):
        if mark == "g":
            yield f'<line class="g" x1="{x + 5}" x2="{x + 5}" y1="16" y2="31"/>'
        else:
            yield f'<rect class="{mark}" x="{x}" y="18" width="10" height="10"/>'
        yield f'<text class="t s" x="{x + 15}" y="28">{name}</text>'


def _row(label: str, was: float, now: float, due: float, scale: float, y: int) -> Iterator[str]:
    name = label if len(label) <= 28 else f"{label[:27]}…"
    yield f'<text class="t" x="20" y="{y + 16}">{escape(name)}</text>'
    for share, mark, top in ((was, "b", y + 3), (now, "a", y + 11)):
        yield f'<rect class="{mark}" x="{LEFT}" y="{top}" width="{share * scale:.1f}" height="8"/>'
    at = LEFT + due * scale
    yield f'<line class="g" x1="{at:.1f}" x2="{at:.1f}" y1="{y}" y2="{y + 22}"/>'
    yield f'<text class="t s n" x="{WIDTH - 16}" y="{y + 16}">{was:.0%} → {now:.0%} of {due:.0%}</text>'


def main() -> None:
    """Write the picture, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    made = picture(*demo())
    if parser.parse_args().check:
        sys.exit(f"{PICTURE.name} is not what the demo comes to" if made != PICTURE.read_text("utf-8") else 0)
    PICTURE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
