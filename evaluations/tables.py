"""Writes tables of runs into a README: each indented block below `### NAME` becomes the means of its run.

    python evaluations/tables.py evaluations/fair_qr/README.md runs/fair-qr_demo runs/fair-qr_wikilead ...

A run belongs to the heading that is the last word of its name, or the name of its file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fairagent.evaluate.results import means_table
from fairagent.evaluate.run import load_run


def with_table(page: str, heading: str, table: str) -> str:
    """`page` with the first indented block below `### heading` replaced; ValueError where there is none."""
    # The first block that looks like a table: a command may stand before it.
    start = rf"(^### {re.escape(heading)}\b[^\n]*\n(?:(?!###)[^\n]*\n)*?)"
    block = re.compile(start + r"(    +\S[^\n]*\n    system [^\n]*\n(?:    [^\n]*\n)+)", re.MULTILINE)
    indented = "".join(f"    {line}".rstrip() + "\n" for line in table.splitlines())
    found, count = block.subn(lambda match: match[1] + indented, page, count=1)
    if not count:
        raise ValueError(f"no table below `### {heading}`")
    return found


def main(readme: Path, runs: list[Path]) -> None:
    """Replace the tables of these runs."""
    page = readme.read_text(encoding="utf-8")
    for folder in runs:
        run = load_run(folder)
        if run.partial:
            raise ValueError(f"{folder} is not finished")
        page = with_table(page, run.name.split()[-1], means_table(run).text())
    readme.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), list(map(Path, sys.argv[2:])))
