"""Execute the notebooks of examples/notebooks, each in an empty folder of its own: `make notebooks`.

    python docs/notebooks.py [build/notebooks] [--of examples/notebooks] [--only NAME] [--store]

Executed copies go into the folder; the site is made from them. Ends with 1 where a cell fails, or a command in one, and
where the outputs that it is stored with are others than those of its run, but for seconds; `--store` stores them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 2
SECONDS = 300
"""That a cell may take."""
STRICT = "--InteractiveShell.system_raise_on_error=True"
"""A command that fails is a cell that fails."""


SECONDS_SHOWN = re.compile(r"\d+(?:\.\d+)?(?= s\b)|(?<=engine )[\d.]+|(?<=model )[\d.]+|(?<=own )[\d.]+")
"""What a run shows of time."""
SIZE_SHOWN = re.compile(r"[\d,]+(?=  runs/)")
"""Bytes of files that hold seconds."""
HOW_FAR = re.compile(r"\(\d+:\d\d:\d\d\)$")
"""What a command that takes long says every ten seconds."""


def joined(outputs: list[Any], blank: str) -> list[Any]:
    """The outputs of a cell, with each stream in one piece: it comes in as many as time has it.

    `blank` stands in the place of empty lines, of which a command that takes long prints more.
    """
    made: list[Any] = []
    for output in outputs:
        if made and output.get("output_type") == "stream" and output.get("name") == made[-1].get("name"):
            made[-1]["text"] += output["text"]
        else:
            made.append(output)
    for output in made:
        if output.get("output_type") == "stream":
            lines = [line.rstrip() for line in output["text"].splitlines() if not HOW_FAR.search(line)]
            output["text"] = re.sub(r"\n{2,}", f"\n{blank}", "\n".join(lines).strip("\n") + "\n")
    return [output for output in made if output.get("text") != "\n"]


def settled(notebook: Any) -> list[list[Any]]:
    """The outputs of each code cell as they are compared: without what they show of time.

    A cell with the tag `varies` is executed and not compared: the host's own list has ties, in an order of its own.
    """
    return [
        []
        if "varies" in cell.metadata.get("tags", ())
        else [
            json.loads(SIZE_SHOWN.sub("0", SECONDS_SHOWN.sub("0", json.dumps(output, sort_keys=True))))
            for output in joined(deepcopy(cell.outputs), "")
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def stored(notebook: Any) -> Any:
    """The executed notebook without what differs from machine to machine: times of day, and the Python that ran it."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs, "\n")
    notebook.metadata.pop("language_info", None)
    return notebook


async def execute(path: Path, folder: Path, store: bool) -> str:
    """Execute a notebook and write the copy; what is wrong, or ""."""
    started = perf_counter()
    notebook = nbformat.read(path, as_version=4)
    before = settled(notebook)
    with TemporaryDirectory() as empty:
        client = NotebookClient(
            notebook, timeout=SECONDS, extra_arguments=[STRICT], resources={"metadata": {"path": empty}}
        )
        try:
            await client.async_execute()
        except CellExecutionError as error:
            return f"{path.name}: {error}"
    nbformat.write(notebook, folder / path.name)
    print(f"{path.name}: {perf_counter() - started:.0f} s")
    if store:
        nbformat.write(stored(notebook), path)
        return ""
    cells = [
        number for number, (was, now) in enumerate(zip(before, settled(notebook), strict=True), start=1) if was != now
    ]
    return f"{path.name}: the outputs of code cells {cells} are not those stored (--store)" if cells else ""


async def execute_all(paths: list[Path], folder: Path, store: bool) -> list[str]:
    """Execute notebooks, some at once; what is wrong with them."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(path: Path) -> str:
        async with free:
            return await execute(path, folder, store)

    return [fault for fault in await asyncio.gather(*map(one, paths)) if fault]


def main() -> None:
    """Execute them all, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "notebooks")
    parser.add_argument("--of", type=Path, default=ROOT / "examples" / "notebooks", metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="NAME", help="those whose name holds NAME")
    parser.add_argument("--store", action="store_true", help="store the outputs in the notebooks")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    # The program of this Python, this checkout, and nobody's settings, keys or servers.
    for name in [name for name in os.environ if name.startswith(("FAIRAGENT_", "OPENAI_"))]:
        del os.environ[name]
    for name, first in (("PATH", str(Path(sys.executable).parent)), ("PYTHONPATH", str(ROOT))):
        os.environ[name] = os.pathsep.join(filter(None, (first, os.environ.get(name))))
    paths = [path for path in sorted(chosen.of.glob("*.ipynb")) if chosen.only in path.name]
    faults = asyncio.run(execute_all(paths, chosen.folder, chosen.store))
    print(*faults, sep="\n", file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
