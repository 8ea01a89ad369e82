"""`fairagent doctor --verify`: every byte of an index, a model or a run compared with what was written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairagent.cli.checks import FAULTS_SHOWN, Check
from fairagent.errors import FairAgentError, UsageError
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.folders import recover

NO_RESULT = "no result depends on them; put the file back from a copy where they matter"


def verify(place: Path) -> Iterator[Check]:
    """A line for `place` and for each folder in or beside it (`<place>-...`) that has a record, and for a run's files.

    Raises UsageError where nothing there can be compared.
    """
    from fairagent.evaluate.run import HEAD

    recover(place)
    near = (place, *sorted(place.parent.glob(f"{place.name}-*")), *sorted(place.glob("*")))
    folders = [folder for folder in near if (folder / RECORD).is_file()]
    is_run = (place / HEAD).is_file()
    if not folders and not is_run:
        raise UsageError(
            f"nothing to verify at {place}: no run ({HEAD}) and no folder with checksums ({RECORD}); an index from "
            "before there were any gets them when it is built again (`fairagent index --force`)"
        )
    yield from map(_folder, folders)
    if is_run:
        yield from _run(place)


def _folder(folder: Path) -> Check:
    faults = differences(folder, whole=True) or ()
    if not faults:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return Check(folder.name, "ok", f"{folder}: {size / 1e6:,.1f} MB as written")
    said = "; ".join(map(str, faults[:FAULTS_SHOWN]))
    return Check(folder.name, "problem", said, "what is damaged has to be made again, or put back from a copy")


def _run(folder: Path) -> Iterator[Check]:
    from fairagent.evaluate.results import write_results
    from fairagent.evaluate.run import TRANSCRIPT, load_run, read_outcomes

    try:
        run = load_run(folder)
        lines = len(read_outcomes(folder))
        yield Check("run", "ok", f"{folder}: run.json and {lines:,} lines of the journal as written")
    except FairAgentError as error:
        yield Check("run", "problem", "\n".join(str(error).splitlines()[: FAULTS_SHOWN + 1]))
        return
    if (folder / TRANSCRIPT).is_file():
        yield _transcript(folder / TRANSCRIPT)
    with tempfile.TemporaryDirectory() as made:
        write_results(run, Path(made))
        names = [path.relative_to(made) for path in sorted(Path(made).rglob("*")) if path.is_file()]
        other = [str(name) for name in names if _bytes(folder / name) != (Path(made) / name).read_bytes()]
    if other:
        said = f"not what the journal says: {', '.join(other[:FAULTS_SHOWN])}"
        yield Check("tables", "problem", said, "`fairagent evaluate FILE` writes them again from the journal")
    else:
        yield Check("tables", "ok", f"{len(names)} files are what the journal says")


def _transcript(path: Path) -> Check:
    from fairagent.llm.exchange import read_transcript

    lines = list(read_transcript(path))
    damaged = [number for number, exchange in enumerate(lines, start=1) if exchange is None]
    if not damaged:
        return Check("transcript", "ok", f"{len(lines):,} exchanges with models as written")
    said = ", ".join(map(str, damaged[:FAULTS_SHOWN]))
    return Check("transcript", "problem", f"{len(damaged):,} of {len(lines):,} lines are damaged: {said}", NO_RESULT)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
