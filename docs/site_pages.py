"""What `mkdocs build` does besides: the notebooks, as `make notebooks` executed them, become pages like any other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parents[1]
EXECUTED = ROOT / "build" / "notebooks"
LINK = re.compile(r"(\]\([^)\s]+)\.ipynb\)")


def on_files(files: Files, config: Any) -> Files:
    """Put a page beside every notebook.

    Raises PluginError where one was not executed since it was changed.
    """
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        executed = EXECUTED / path.name
        if not executed.is_file() or executed.stat().st_mtime < path.stat().st_mtime:
            raise PluginError(f"{path.name} was not executed since it was changed: run `make notebooks`")
        text, resources = MarkdownExporter().from_filename(str(executed))
        place = path.relative_to(ROOT).with_suffix("")
        files.append(File.generated(config, f"{place.as_posix()}.md", content=text))
        for name, content in resources["outputs"].items():
            files.append(File.generated(config, (place.parent / name).as_posix(), content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to notebooks lead to their pages."""
    return LINK.sub(r"\1.md)", markdown)
