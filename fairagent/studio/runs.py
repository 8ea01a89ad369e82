"""The run folders of a folder: how far each has come, its page, and two of them compared."""

from pathlib import Path

from fairagent.errors import FairAgentError, UsageError
from fairagent.evaluate.engine.results import PAGE
from fairagent.evaluate.engine.run import HEAD, JOURNAL, read_head
from fairagent.evaluate.engine.two_runs import differences, side_by_side
from fairagent.lines import whole_lines
from fairagent.measures.parse import labels_of
from fairagent.report.record import Record
from fairagent.studio.run_folder import whole_run


def run_records(root: Path) -> list[Record]:
    """Every run in `root`, by name: its systems and topics, how many outcomes it has of how many, and what is wrong."""
    return [_record(folder) for folder in _folders(root)]


def folder_of(root: Path, name: str) -> Path:
    """The folder of a run; UsageError where there is no such run in `root`.

    The name is compared with those of the folders that there are: it leads nowhere else.
    """
    for folder in _folders(root):
        if folder.name == name:
            return folder
    raise UsageError(f"no run {name!r} in {root}")


def page_of(root: Path, name: str) -> Path:
    """The page of a run; UsageError where there is no such run in `root`, or no page yet."""
    page = folder_of(root, name) / PAGE
    if not page.is_file():
        raise UsageError(f"the run {name!r} in {root} has no page yet; fairagent report makes one")
    return page


def compared(root: Path, left: str, right: str) -> Record:
    """Two runs side by side: their systems by their measures, and what these systems were made from.

    Raises UsageError where there is no such run, DataError where one is damaged.
    """
    first, second = (whole_run(folder_of(root, name)) for name in (left, right))
    rows = side_by_side(first, second)
    names = labels_of(first.measures)
    return {
        "left": left,
        "right": right,
        "collections": [first.collection, second.collection],
        "systems": [one for one in first.systems if one in second.systems],
        "only_left": [one for one in first.systems if one not in second.systems],
        "only_right": [one for one in second.systems if one not in first.systems],
        "rows": [
            {
                "system": row.system,
                "dimension": row.left.dimension,
                "measure": names[row.left.measure],
                "definition": row.left.measure,
                "left": row.left.mean,
                "right": row.right.mean,
                "difference": row.right.difference,
                "better": first.gain(row.left.measure, row.right.mean, row.left.mean),
                "neutral": row.left.measure in first.neutral,
                "p": row.right.randomization_p,
                "wins": row.right.wins,
                "ties": row.right.ties,
                "losses": row.right.losses,
                "topics": row.right.topics,
            }
            for row in rows
        ],
        "differences": differences(first, second),
    }


def _folders(root: Path) -> list[Path]:
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [folder for folder in folders if (folder / HEAD).is_file() and not folder.is_symlink()]


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
