"""Several runs as one table: a row for each system, columns for the measures of each run.

A row is one system: those of the same name have to be made with the same settings, prompts and files (a trained model's
folder is one), or the runs are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from fairagent.errors import UsageError
from fairagent.evaluate.comparison import SIGNIFICANT, Comparison
from fairagent.evaluate.findings import best_mean, mark
from fairagent.evaluate.fingerprint import changes
from fairagent.evaluate.results import results_table
from fairagent.evaluate.run import Results, load_run, read_head
from fairagent.evaluate.tables import ORACLE, WIDTH, Cell, Column, Table
from fairagent.measures.parse import labels_of
from fairagent.storage.files import write_whole
from fairagent.types.common import counted

NAME = "joined"
"""The name of the files, without the ending."""

Place = tuple[str, str]
"""(dimension, measure)"""


@dataclass(frozen=True, slots=True)
class JoinedRun:
    """A run in its folder, and the hash of the documents that its systems search.

    `places` are its columns: those that numbers are expected in, where the run's file has such, else all.
    """

    folder: Path
    run: Results
    documents: object
    places: tuple[Place, ...]

    @property
    def systems(self) -> Mapping[str, Mapping[str, Any]]:
        """System -> what it was made from, as its run's fingerprint has it."""
        made: Any = self.run.provenance["systems"]
        return made  # type: ignore[no-any-return]

    def rows(self, systems: Sequence[str]) -> dict[str, list[Comparison | None]]:
        """What came out for each system in each of `places`; None where it was not measured."""
        return {system: [self.run.compared.get((system, *place)) for place in self.places] for system in systems}


@dataclass(frozen=True, slots=True)
class JoinedRuns:
    """Runs whose rows are of the same systems; see `join_runs`."""

    runs: tuple[JoinedRun, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        """Every system once, in the order of the first run that has it."""
        return tuple(dict.fromkeys(system for one in self.runs for system in one.run.systems))

    def tables(self) -> list[Table]:
        """The means, with `mark` against each run's own baseline (None where a run has no such system).

        Then the numbers that are expected in these places, where a file has any.
        """
        names, columns = [], []
        lines: dict[str, list[object]] = {name: [f"{name}{f' {ORACLE}' * self._oracle(name)}"] for name in self.systems}
        expected: dict[str, list[object]] = {name: [name] for name in self.systems}
        for one in self.runs:
            run, rows, labels = one.run, one.rows(self.systems), labels_of(list(one.run.measures))
            for number, (dimension, measure) in enumerate(one.places):
                column = {system: of_system[number] for system, of_system in rows.items()}
                top = best_mean(run, [row for row in column.values() if row])
                for system, row in column.items():
                    lines[system].append(row and Cell(row.mean, mark(run, row), row.mean == top))
                    paper = (run.expected or {}).get(system, {}).get(dimension, {})
                    expected[system].append(paper.get(measure))
                names.append((dimension or run.kind.overall, labels[measure]))
                columns.append((run.name, *names[-1]))
        # Named as in a run's own table; with the run's name where two runs have the same.
        heads = [
            Column(name, above=f"{run}: {above}" if names.count((above, name)) > 1 else above)
            for run, above, name in columns
        ]
        tables = [Table.of(["system", *heads], lines.values(), notes=self.notes())]
        if any(one.run.expected for one in self.runs):
            tables.append(Table.of(["expected", *heads], expected.values(), "expected in these places"))
        return tables

    def notes(self) -> Iterator[str]:
        """What is to be known of the table, a line each; what is to be minded begins with "! "."""
        for each in self.runs:
            run = each.run
            count = counted(max((row.topics for row in run.comparisons), default=0), "topic")
            target = run.target_text and f", target {run.target_text}"
            partial = "; PARTIAL: not finished" if run.partial else ""
            yield f"{run.name} ({each.folder}): {run.collection}, {count}, baseline {run.baseline}{target}{partial}"
        yield f"+ and -: better and worse than a run's own baseline (randomization test, p < {SIGNIFICANT} after Holm)"
        if any(map(self._oracle, self.systems)):
            yield f"{ORACLE} looked at the judgments"
        for each in self.runs:
            if lacking := [system for system in self.systems if system not in each.systems]:
                yield f"! not in {each.folder}: {', '.join(lacking)}"
        for left, right in combinations(self.runs, 2):
            one, two = left.run, right.run
            names = f"{one.name} and {two.name}"
            if left.documents != right.documents:
                yield f"! {names} search different documents"
            topics = [{outcome.topic: outcome.query for outcome in run.answered} for run in (one, two)]
            if topics[0] != topics[1]:
                common = len(topics[0].items() & topics[1].items())
                of = counted(max(len(topics[0]), len(topics[1])), "topic")
                yield f"! {names} are over different topics: {common:,} of at most {of} in common"
            if one.target_text and two.target_text and one.target_text != two.target_text:
                yield f"! {names} are judged by different targets"
            if one.kind.seed != two.kind.seed:
                yield f"! {names} have different seeds, {one.kind.seed} and {two.kind.seed}"

    def text(self, form: str = "text", width: int = WIDTH) -> str:
        """The tables in a form of `Table`: `text` (of that `width`), `markdown` or `latex`."""
        written = [table.text(width) if form == "text" else getattr(table, form)() for table in self.tables()]
        return "\n\n".join(one.rstrip("\n") for one in written) + "\n"

    def csv(self) -> str:
        """One line for each run, system, dimension and measure: results.csv of every run, with the run before it."""
        tables = [(one.run.name, results_table(one.run)) for one in self.runs]
        rows = [(name, *row) for name, table in tables for row in table.rows]
        return Table.of(["run", *tables[0][1].columns], rows).csv()

    def write(self, folder: Path) -> None:
        """Write the table as joined.txt, .md, .tex and .csv."""
        forms = {"txt": self.text(), "md": self.text("markdown"), "tex": self.text("latex"), "csv": self.csv()}
        for ending, text in forms.items():
            write_whole(folder / f"{NAME}.{ending}", text)

    def record(self) -> dict[str, Any]:
        """The table as plain values: for each run the means and what is expected, system by system."""
        runs = []
        for one in self.runs:
            rows = one.rows(one.run.systems)
            columns = [{"dimension": dimension, "measure": measure} for dimension, measure in one.places]
            means = {system: [row and row.mean for row in values] for system, values in rows.items()}
            runs.append({"name": one.run.name, "folder": str(one.folder), "columns": columns, "means": means})
        return {"runs": runs, "notes": list(self.notes())}

    def _oracle(self, system: str) -> bool:
        return any(system in one.run.oracle_systems for one in self.runs)


def join_runs(folders: Sequence[Path]) -> JoinedRuns:
    """The runs in `folders`, finished or not, as one table.

    Raises UsageError for fewer than two, for a folder that stands twice, where no system is in two of them, and where
    systems of the same name were made from something else; what `load_run` raises.
    """
    if len(folders) < 2 or len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError(f"--join takes two or more runs, each once; given: {', '.join(map(str, folders)) or 'none'}")
    runs = []
    for folder in folders:
        documents = read_head(folder)["fingerprint"].get("collection", {}).get("documents")
        run = load_run(folder)
        expected = {
            (dimension, measure)
            for of_system in (run.expected or {}).values()
            for dimension, of_measure in of_system.items()
            for measure in of_measure
        }
        places = tuple(place for place in run.columns if not expected or place in expected)
        runs.append(JoinedRun(folder, run, documents, places))
    if not any(one.systems.keys() & two.systems.keys() for one, two in combinations(runs, 2)):
        raise UsageError("these runs have no system in common; give the same systems the same names in their files")
    faults = []
    for left, right in combinations(runs, 2):
        for name in (one for one in left.systems if one in right.systems):
            # What has to be equal: not the price, nor the prompts that one experiment alone has. What a kind of
            # experiment says of a row is of no other kind; a file is, wherever it is missing.
            one, other = left.systems[name], right.systems[name]
            both = [key for key in one if key in other and key != "price"]
            both += [key for key in ("files",) if (key in one) != (key in other)]
            sides = [{key: of.get(key, {}) for key in both} for of in (one, other)]
            for side in sides:
                if "prompts" in side:
                    common = one["prompts"].keys() & other["prompts"].keys()
                    side["prompts"] = {id: digest for id, digest in side["prompts"].items() if id in common}
                if left.documents != right.documents:
                    # These follow the collection where a file does not set them.
                    own = side["settings"].items()
                    side["settings"] = {key: value for key, value in own if key not in ("dimensions", "target")}
            for change in changes(*({"systems": {name: side}} for side in sides)):
                faults.append(f"  {change} ({left.folder} was, {right.folder} is)")
    if faults:
        advice = "give them other names, or run the older one again with --new"
        raise UsageError("\n".join(["rows of the same name are not of the same system; " + advice, *faults]))
    return JoinedRuns(tuple(runs))
