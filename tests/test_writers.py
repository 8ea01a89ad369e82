"""Every file is written through fairagent/storage/files.py, which follows no link; the exceptions are listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from test_layers import SOURCES, parsed

WRITING = {
    *("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "tofile", "savez", "savez_compressed"),
    *("savetxt", "save_npz", "write_index", "save_pretrained", "save_file", "savefig", "to_csv", "to_parquet"),
    *("mkstemp", "NamedTemporaryFile", "TemporaryFile", "FileHandler", "RotatingFileHandler"),
    *("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move", "os.open", "os.link"),
    "shutil.rmtree",
}
"""Names of functions and methods that write, or remove a folder, with their module where the name alone is common."""
EXCEPTIONS = {
    # Here files are opened, without following links, and folders removed.
    "storage/files.py": {"os.open", "shutil.rmtree"},
    # The writers of other packages, each in a workshop, which is refused where a link is in it.
    "retrieve/ann.py": {"write_index"},
    "papers/fairft/train.py": {"save_pretrained"},
    # A model that a call of Python puts where it is told to.
    # A file without a name.
    "guests/local/server.py": {"TemporaryFile"},
    # /dev/null in the place of a closed output.
    "storage/signals.py": {"os.open"},
    "cli/app.py": {"open", "os.open"},
}


def writing(source: str) -> Iterator[str]:
    """The calls in a source that write a file, or open one for writing."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call):
            dotted = ast.unparse(node.func)
            name = dotted.rpartition(".")[2]
            modes = [*node.args[:2], *(one.value for one in node.keywords if one.arg == "mode")]
            if {name, dotted} & WRITING:
                yield dotted if dotted in WRITING else name
            elif name == "open" and any(_writes(mode) for mode in modes):
                yield "open"


def _writes(mode: ast.expr) -> bool:
    """Whether it is the mode of a file that is written; a path is longer."""
    return (
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and 0 < len(mode.value) < 4
        and bool(set(mode.value) & set("wax+") and set(mode.value) <= set("rwaxbt+"))
    )


def test_files_are_written_in_one_way() -> None:
    found = {place: set(writing(source)) for place, source in SOURCES.items()}
    assert {place: names for place, names in found.items() if names} == EXCEPTIONS, "use storage/files.py, files.py"
