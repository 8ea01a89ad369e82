"""Execute the notebooks of examples/notebooks, each in an empty folder of its own: `make notebooks`.

    python docs/notebooks.py [build/notebooks] [--of examples/notebooks] [--only NAME]

Ends with 1 where a cell fails, or a command in one. Executed copies go into the folder; the site is made from them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 2
SECONDS = 300
"""That a cell may take."""
STRICT = "--InteractiveShell.system_raise_on_error=True"
"""A command that fails is a cell that fails."""


async def execute(path: Path, folder: Path) -> str:
    """Execute a notebook and write the copy; what is wrong, or ""."""
    started = perf_counter()
    notebook = nbformat.read(path, as_version=4)
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
    return ""


async def execute_all(paths: list[Path], folder: Path) -> list[str]:
    """Execute notebooks, some at once; what is wrong with them."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(path: Path) -> str:
        async with free:
            return await execute(path, folder)

    return [fault for fault in await asyncio.gather(*map(one, paths)) if fault]


def main() -> None:
    """Execute them all, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "notebooks")
    parser.add_argument("--of", type=Path, default=ROOT / "examples" / "notebooks", metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="NAME", help="those whose name holds NAME")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    # The program of this Python, this checkout, and nobody's settings, keys or servers.
    for name in [name for name in os.environ if name.startswith(("FAIRAGENT_", "OPENAI_"))]:
        del os.environ[name]
    for name, first in (("PATH", str(Path(sys.executable).parent)), ("PYTHONPATH", str(ROOT))):
        os.environ[name] = os.pathsep.join(filter(None, (first, os.environ.get(name))))
    paths = [path for path in sorted(chosen.of.glob("*.ipynb")) if chosen.only in path.name]
    faults = asyncio.run(execute_all(paths, chosen.folder))
    print(*faults, sep="\n", file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
