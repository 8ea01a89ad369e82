"""The run folders of a folder: how far each has come, and its page."""

from pathlib import Path

from fairagent.errors import FairAgentError, UsageError
from fairagent.evaluate.engine.results import PAGE
from fairagent.evaluate.engine.run import HEAD, JOURNAL, read_head
from fairagent.lines import whole_lines
from fairagent.report.record import Record


def run_records(root: Path) -> list[Record]:
    """Every run in `root`, by name: its systems and topics, how many outcomes it has of how many, and what is wrong."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [_record(folder) for folder in folders if (folder / HEAD).is_file() and not folder.is_symlink()]


def page_of(root: Path, name: str) -> Path:
    """The page of a run; UsageError where there is no such run in `root`, or no page yet.

    The name is compared with those of the folders that there are: it leads nowhere else.
    """
    if name not in {record["name"] for record in run_records(root)} or not (root / name / PAGE).is_file():
        raise UsageError(f"no run {name!r} with a page in {root}")
    return root / name / PAGE


def _record(folder: Path) -> Record:
    try:
        plan = read_head(folder)["plan"]
    except FairAgentError as error:
        return {"name": folder.name, "fault": str(error)}
    systems, topics = list(plan["systems"]), len(plan["topics"])
    return {
        "name": folder.name,
        "kind": plan["experiment"]["kind"],
        "systems": systems,
        "topics": topics,
        "outcomes": min(sum(1 for _ in whole_lines(folder / JOURNAL)), len(systems) * topics),
        "planned": len(systems) * topics,
        "page": (folder / PAGE).is_file(),
    }
