"""`fairagent doctor --verify`: every byte of an index, a model or a run compared with what was written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairagent.cli.doctor import FAULTS_SHOWN
from fairagent.errors import FairAgentError, UsageError
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.folders import recover
from fairagent.types.common import Check


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
    for folder in folders:
        faults = differences(folder, whole=True) or ()
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        yield _check(
            folder.name,
            list(map(str, faults)),
            f"{folder}: {size / 1e6:,.1f} MB as written",
            "",
            "what is damaged has to be made again, or put back from a copy",
        )
    if is_run:
        yield from _run(place)


def _run(folder: Path) -> Iterator[Check]:
    from fairagent.evaluate.results import write_results
    from fairagent.evaluate.run import TRANSCRIPT, load_run, read_outcomes
    from fairagent.llm.exchange import read_transcript

    try:
        run = load_run(folder)
        lines = len(read_outcomes(folder))
    except FairAgentError as error:
        yield Check("run", "problem", "\n".join(str(error).splitlines()[: FAULTS_SHOWN + 1]))
        return
    yield Check("run", "ok", f"{folder}: run.json and {lines:,} lines of the journal as written")
    if (folder / TRANSCRIPT).is_file():
        exchanges = list(read_transcript(folder / TRANSCRIPT))
        damaged = [str(number) for number, exchange in enumerate(exchanges, start=1) if exchange is None]
        yield _check(
            "transcript",
            damaged,
            f"{len(exchanges):,} exchanges with models as written",
            f"{len(damaged):,} of {len(exchanges):,} lines are damaged: ",
            "no result depends on them; put the file back from a copy where they matter",
        )
    with tempfile.TemporaryDirectory() as written:
        write_results(run, Path(written))
        names = [path.relative_to(written) for path in sorted(Path(written).rglob("*")) if path.is_file()]
        yield _check(
            "tables",
            [str(name) for name in names if not _same(folder / name, Path(written) / name)],
            f"{len(names)} files are what the journal says",
            "not what the journal says: ",
            "`fairagent evaluate FILE` writes them again from the journal",
        )


def _check(name: str, faults: list[str], well: str, what: str, fix: str) -> Check:
    if not faults:
        return Check(name, "ok", well)
    return Check(name, "problem", f"{what}{'; '.join(faults[:FAULTS_SHOWN])}", fix)


def _same(file: Path, written: Path) -> bool:
    return file.is_file() and file.read_bytes() == written.read_bytes()
