"""Transcripts: exchanges with models in a file of JSON lines, each line whole or absent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fairagent.digests import unsealed
from fairagent.errors import UsageError
from fairagent.files import explained
from fairagent.intake.json_text import parse_json
from fairagent.lines import LineFile, whole_lines
from fairagent.llm.exchange import Exchange, exchanges_to

FORMAT = 1
"""Of the lines."""
BEGINNING = f'{{"exchange":{FORMAT},'.encode()
"""Every line's: what begins otherwise is no transcript, and nothing is added to it."""
PRIVATE = 0o600
"""Rights of a new file: prompts hold documents and what was searched for."""

_EXCHANGE = TypeAdapter(Exchange)


class Transcript(LineFile):
    """The transcript at `path`, to be added to; to be used as a context. Threads may share it.

    A file that is there is continued. Raises UsageError where it holds something else, BackendUnavailable where it
    cannot be written: both before anything is asked.
    """

    def __init__(self, path: Path | str) -> None:
        # A power cut may take the last lines, which no result depends on; not the end of the process.
        super().__init__(Path(path), forced=False, mode=PRIVATE)
        self._lock = threading.Lock()

    def __enter__(self) -> Transcript:
        with explained(self.path):
            if self.path.exists():
                with self.path.open("rb") as file:
                    begun = file.read(len(BEGINNING))
                if not BEGINNING.startswith(begun):
                    raise UsageError(f"{self.path} is there and is no transcript; name another file")
        super().__enter__()
        return self

    def __exit__(self, *about: Any) -> None:
        """Close the file; a thread that nobody waits for any more finds it closed."""
        with self._lock:
            super().__exit__(*about)

    def add(self, exchange: Exchange) -> None:
        """Write an exchange as one line; BackendUnavailable where that cannot be."""
        line = json.dumps({"exchange": FORMAT, **asdict(exchange)}, separators=(",", ":"))
        with self._lock:
            self.write(line)


@contextmanager
def transcript(path: Path | str | None) -> Iterator[None]:
    """Add every exchange with a model inside the block to the file at `path`; None: nothing is kept.

    See `Transcript`, and `exchanges_to` for which threads are heard.
    """
    with ExitStack() as opened:
        if path is not None:
            opened.enter_context(exchanges_to(opened.enter_context(Transcript(path)).add))
        yield


def read_transcript(path: Path | str) -> Iterator[Exchange | None]:
    """Every whole line as an exchange, in the order in which they ended; None for a line that is damaged.

    Nothing where there is no file.
    """
    return map(exchange_in, whole_lines(Path(path)))


def exchange_in(line: bytes) -> Exchange | None:
    """The exchange in a line; None where that is damaged, or another version's."""
    try:
        said = parse_json(unsealed(line).decode())
        if said.pop("exchange") != FORMAT:
            return None
        return _EXCHANGE.validate_python(said)
    except (ValueError, AttributeError, KeyError):
        return None
