"""`OwnPrompts`: the user's folder of templates, as a page reads and writes it."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path

from fairagent.extend import LARGEST_TEMPLATE, Malformed, UsageError, as_text, file_bytes, shipped_folder, write_whole


class Changed(UsageError):
    """The file is not as it was when it was read."""


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A template's file: its text, and the SHA-256 (hex) of its bytes, by which a change of it is seen."""

    text: str
    sha256: str


NOTHING = OwnPrompt("", "")
"""Where there is no file."""


class OwnPrompts:
    """A folder of `<id>.j2`, which need not be there yet; ids are those of shipped templates, and are checked before.

    Nothing is written but files of this folder itself: no shipped one, and none that a link leads to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()

    def path(self, id: str) -> Path:
        """Where the template is, or would be."""
        return self.folder / f"{id}.j2"

    def read(self, id: str) -> OwnPrompt:
        """The template as it is; UsageError where its file is none of text."""
        path = self.path(id)
        try:
            content = file_bytes(path, LARGEST_TEMPLATE)
            return OwnPrompt(as_text(content), hashlib.sha256(content).hexdigest())
        except FileNotFoundError:
            return NOTHING
        except (OSError, Malformed) as error:
            raise UsageError(f"{path} cannot be read as a template ({error}); move it away, or mend it") from None

    def save(self, id: str, text: str, was: str) -> OwnPrompt:
        """Put `text` into the template's file, if its SHA-256 is still `was` ("": there is no file).

        Raises Changed where it is not, UsageError where the place is none of this folder, BackendUnavailable where it
        cannot be written; the file stays as it is then.
        """
        path, shipped = self.path(id), shipped_folder().resolve()
        if self.folder.resolve().is_relative_to(shipped):
            raise UsageError(f"{self.folder} is that of the shipped templates; name another with --prompts")
        if path.is_symlink():
            raise UsageError(f"{path} is a link to another file; nothing was written")
        with self._lock:
            if self.read(id).sha256 != was:
                raise Changed(f"{path} was changed meanwhile; nothing was written, and your text is still here")
            write_whole(path, text)
            return self.read(id)
