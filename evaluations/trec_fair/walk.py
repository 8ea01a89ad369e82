"""The TREC Fair Ranking track, from the organizers' files to submissions and tables, in one command.

    python evaluations/trec_fair/walk.py FOLDER [--year 2022] [--work DIR] [--model NAME] [--check-only] [--yes]

FOLDER has the files as they are published, or the public slice of them (../shared/data/trec22_biographies), which has
no metadata: of it there is the table alone. First it says what the rest takes, about: time, disk, memory, calls of a
model; and asks. Then it indexes, evaluates, writes the submissions of both tasks, and judges them as the track does.
Whatever ends it, even kill -9: repeat the command, and it comes to the same results. systems.yaml is what is compared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fairagent import DataError, FairAgentError, UsageError
from fairagent.collection.trec_fair import TrackFiles
from fairagent.evaluate.results import means_table
from fairagent.evaluate.run import load_run
from fairagent.evaluate.tables import aligned
from fairagent.measures.parse import label_of
from fairagent.measures.trec_fair.evaluator import LONGEST, RANKING_LENGTH
from fairagent.storage.files import file_name, locked, whole_file, write_whole
from fairagent.storage.threads import cores

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from needs import PUBLISHED, Files, check_whole, find_files, needs, size, table_of  # noqa: E402

FAIRAGENT = [sys.executable, "-m", "fairagent"]
DIMENSIONS = {2022: ["gender", "sub-geo"], 2021: ["gender", "geo"]}
SAME, DRAWN = "BM25", "BM25, drawn"
"""In Task 2 the baseline shows one ranking every time; beside it stands what drawing alone is worth."""
TABLE, TASK_1, TASK_2 = "table.yaml", "task1.yaml", "task2.yaml"
CALL = 450, 120
"""Tokens that a call for keywords reads and writes, about: FAIR-QR's on the slice."""
PEOPLE = HERE.parent / "collections" / "trec22_biographies.yaml"
TASKS = {1: ("coordinators", "score"), 2: ("editors", "ee_l")}
"""Task -> the track's name for the folder of its runs, and the measure that it ranks systems by."""


@dataclass(frozen=True)
class Walk:
    """What was asked for; all that is made goes to `work`."""

    files: Files
    work: Path
    systems: Mapping[str, Any]
    model: str
    price: tuple[float, float] | None
    alpha: float
    rankings: int
    workers: int

    def submitted(self, n: int = 0) -> dict[str, dict[str, Any]]:
        """The systems whose rankings of `n` pages are submitted: not those that re-rank fewer."""
        systems = self._here(self.systems["submitted"])
        depths = {name: values.get("loop", {}).get("rerank_depth", 0) for name, values in systems.items()}
        return {name: values for name, values in systems.items() if not 0 < depths[name] < n}

    @property
    def compared(self) -> dict[str, dict[str, Any]]:
        """The systems of the table: in 2022 the paper's rows, too."""
        paper = self.systems.get("paper", {}) if self.files.year == 2022 else {}
        return {**self.submitted(), **self._here(paper)}

    def _here(self, systems: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Systems with what depends on the call: without a model FAIR-QR's words are those of feedback.

        The slice has gender alone, and no other split to learn from.
        """
        here: dict[str, dict[str, Any]] = {}
        for name, values in systems.items():
            feedback = values.get("profile", "").startswith("fair-qr") and not self.model
            here[name] = {**values, **({"refine": "feedback"} if feedback else {})}
            if self.files.is_slice and isinstance(rerank := values.get("rerank"), dict):
                here[name]["rerank"] = {key: value for key, value in rerank.items() if key != "train"}
        of = ["gender"] if self.files.is_slice else DIMENSIONS[self.files.year]
        return {name: values for name, values in here.items() if {*values.get("dimensions", of)} <= {*of}}

    def settings_files(self) -> dict[str, dict[str, Any]]:
        """The name of each settings file, and what is in it."""
        files, year = self.files, self.files.year
        shared = {"index": str(self.work / "index"), **({"model": {"name": self.model}} if self.model else {})}
        common: dict[str, Any] = {"collection": "collection.yaml", "seed": 1, "baseline": SAME}
        if self.model and self.price:
            common["prices"] = {self.model: dict(zip(("input", "output"), self.price, strict=True))}
        n, short = LONGEST[year], RANKING_LENGTH[year]
        at_n = [f"nDCG@{n}", f"AWRF@{n}", f"nDCG@{n}*AWRF@{n}"]
        compared, expected = self.compared, self.systems.get("expected", {}) if year == 2022 else {}
        if files.is_slice:
            expected = {
                name: {key: one for key, one in of.items() if key != "sub-geo"} for name, of in expected.items()
            }
        drawn = {name: {**values, "sampling": {"alpha": self.alpha}} for name, values in self.submitted(short).items()}
        return {
            "collection.yaml": self._collection(files.split, files.searched),
            "learned.yaml": self._collection(files.other, files.learned),
            TABLE: {
                "name": f"TREC Fair {year}, {files.split}",
                **common,
                "settings": shared,
                "systems": compared,
                "expected": {name: values for name, values in expected.items() if name in compared},
            },
            # Fair in all that is submitted, and twice as many candidates for it.
            TASK_1: {
                "name": f"TREC Fair {year}, {files.split}, Task 1",
                **common,
                "measures": at_n,
                "run_depth": n,
                "settings": {**shared, "depth": 2 * n},
                "systems": self.submitted(n),
            },
            TASK_2: {
                "rankings": self.rankings,
                "decided_by": [str(path) for path in files.all if path != files.corpus],
                "settings": {**shared, "n": short},
                "systems": {SAME: compared[SAME], DRAWN: drawn.pop(SAME), **drawn},
            },
        }

    def _collection(self, split: str, files: TrackFiles | None) -> dict[str, Any]:
        if self.files.is_slice:
            return {**yaml.safe_load(PEOPLE.read_text(encoding="utf-8")), "root": str(self.files.folder)}
        keywords = files and files.keywords
        query = "title" if keywords is None and (self.files.year, split) != (2021, "train") else "keywords"
        track = {"year": self.files.year, "split": split, "folder": str(self.files.folder), "query": query}
        return {"name": f"{split}", "track": {**track, "dimensions": DIMENSIONS[self.files.year]}}

    def runs(self, task: int) -> dict[str, Path]:
        """System -> the file that is submitted."""
        systems = self.settings_files()[TASK_1 if task == 1 else TASK_2]["systems"]
        return {name: self.work / "submissions" / TASKS[task][0] / f"{file_name(name)}.gz" for name in systems}

    def call(self, *command: str) -> str:
        """What a command, run in `work`, prints; its own exit code where it fails."""
        done = subprocess.run(command, cwd=self.work, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        if done.returncode:
            print(done.stdout, end="")
            raise SystemExit(done.returncode)
        return done.stdout


def main() -> None:
    """Do what the command line says; errors as the program prints them."""
    try:
        walk, missing, check_only, yes = asked()
        plan(walk)
        if missing:
            raise missing
        if not check_only:
            confirm(yes)
            with locked(walk.work):
                go(walk)
    except FairAgentError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


def asked() -> tuple[Walk, DataError | None, bool, bool]:
    """The walk, which files are missing, whether it is to be checked only, and whether nobody has to be asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the organizers' files")
    parser.add_argument("--year", type=int, choices=DIMENSIONS, default=2022)
    parser.add_argument("--split", choices=("train", "eval"), default="eval", help="the topics that are searched")
    parser.add_argument("--work", type=Path, help="what is made goes here (default: runs/trec-fair-YEAR-SPLIT)")
    parser.add_argument("--systems", type=Path, default=HERE / "systems.yaml", help="what is compared")
    parser.add_argument("--model", default="", help="a language model for the agent and FAIR-QR (default: none)")
    parser.add_argument("--price", type=float, nargs=2, metavar=("IN", "OUT"), help="its dollars per million tokens")
    parser.add_argument("--alpha", type=float, default=8.0, help="how closely Task 2's draws keep to the scores")
    parser.add_argument("--rankings", type=int, default=100, help="rankings a topic in Task 2")
    parser.add_argument("--workers", type=int, default=min(4, cores()), help="topics at a time")
    parser.add_argument("--check-only", action="store_true", help="say what it takes, and stop")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    given = parser.parse_args()
    files, missing = Files(given.folder.absolute(), given.year, given.split), None
    if not files.is_slice:
        try:
            files = find_files(files.folder, files.year, files.split)
        except DataError as error:
            missing = error
    work = given.work or Path("runs") / f"trec-fair-{given.year}-{given.split}"
    systems = yaml.safe_load(given.systems.read_text(encoding="utf-8"))
    of_model = given.model, given.price and tuple(given.price)
    walk = Walk(files, work.absolute(), systems, *of_model, given.alpha, given.rankings, given.workers)
    return walk, missing, given.check_only, given.yes


def plan(walk: Walk) -> None:
    """Print what it takes, about."""
    files = walk.files
    print(f"TREC Fair {files.year}, {files.split}, from {files.folder}")
    if files.all:
        print("".join(f"  {path.name}, {path.stat().st_size / 1e6:,.1f} MB\n" for path in files.all))
    else:
        articles, _, packed = PUBLISHED[files.year]
        print(f"  not there yet ({size(packed)}): reckoned by {articles:,} articles, and what made-up ones took\n")
    settings = walk.settings_files()
    searches = {
        "table": len(settings[TABLE]["systems"]),
        "Task 1": len(settings[TASK_1]["systems"]),
        "Task 2": len(settings[TASK_2]["systems"]),
    }
    if files.is_slice:
        searches = {"table": searches["table"]}
    print("\n".join(table_of(needs(files, searches, walk.workers), walk.work)))
    print(
        "Times are of another machine, but of BM25's index where the track's articles are there. Nothing is embedded by"
    )
    print("a neural model (MiniLM would take days): vectors are light ones, made of the index.")
    if not walk.model:
        print("Language model: none is asked (--model NAME for one), and nothing is paid.")
    if not files.all:
        print(without_files(walk, list(searches)) if walk.model else "", end="")
        return
    for name, values in settings.items():
        write_whole(walk.work / name, yaml.safe_dump(values, sort_keys=False, allow_unicode=True))
    if not walk.model:
        return
    # Task 2 asks as often as Task 1.
    counted = [TABLE] if files.is_slice else [TABLE, TASK_1, TASK_1]
    bounds = [json.loads(walk.call(*FAIRAGENT, "estimate", name, "--json")) for name in counted]
    rows = [row for bound in bounds for row in bound["systems"]]
    calls, tokens = (
        sum(row[key] for row in rows for key in keys) for keys in (["calls"], ["input_tokens", "output_tokens"])
    )
    dollars = [bound["dollars"] for bound in bounds]
    money = "its price is not known (--price)" if None in dollars else f"${sum(dollars):,.2f}"
    print(f"Language model {walk.model}: at most {calls:,} calls, {tokens:,} tokens, {money}.")


def without_files(walk: Walk, steps: Sequence[str]) -> str:
    """What a model would be asked in all steps, before the files are there: five calls a FAIR-QR, one an agent."""
    systems = {"table": walk.compared, "Task 1": walk.submitted(LONGEST[walk.files.year])}
    asking = [one for step in steps for one in systems.get(step, systems["Task 1"]).values()]
    each = [5 if one.get("profile", "").startswith("fair-qr") else int(not one.get("profile")) for one in asking]
    calls = sum(each) * PUBLISHED[walk.files.year][1]
    price = walk.price and sum(calls * tokens * price / 1e6 for tokens, price in zip(CALL, walk.price, strict=True))
    money = "its price is not known (--price)" if price is None else f"about ${price:,.2f}"
    return f"Language model {walk.model}: at most {calls:,} calls, about {sum(CALL) * calls:,} tokens, {money}.\n"


def confirm(yes: bool) -> None:
    """Ask whether to go on; UsageError where nobody says yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to be asked: --yes goes on, --check-only stops here")
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was begun")


def go(walk: Walk) -> None:
    """All steps, each of which does what is not done yet."""
    check_whole(walk.files.all, walk.work / "whole.json")
    say("index")
    print(walk.call(*FAIRAGENT, "index", "--collection", "collection.yaml", "--index", "index"), end="")
    for file in [TABLE] if walk.files.is_slice else [TABLE, TASK_1]:
        say(file)
        run = walk.work / Path(file).stem
        walk.call(*FAIRAGENT, "evaluate", file, "--run", str(run), "--workers", str(walk.workers))
    if walk.files.is_slice:
        print("\n".join(compared(walk)), "submissions and official measures need the track's metadata", sep="\n")
        return
    say("submissions")
    for system, place in walk.runs(1).items():
        submit(walk.work / "task1" / "runs" / f"{file_name(system)}.tsv", place)
    print(walk.call(sys.executable, str(HERE / "draw.py"), TASK_2), end="")
    say("official measures")
    tables = "\n".join([*compared(walk), *(line for task in TASKS for line in official(walk, task))])
    write_whole(walk.work / "tables.txt", tables + "\n")
    print(f"\n{tables}\n\nsubmissions: {walk.work / 'submissions'}; tables: {walk.work / 'tables.txt'}")


def say(step: str) -> None:
    """Tell which step begins."""
    print(f"-- {step}", flush=True)


def submit(run: Path, place: Path) -> None:
    """A run of Task 1 as the track takes it: gzipped, topic and page on each line."""
    with whole_file(place) as file:
        file.write(gzip.compress(run.read_bytes(), mtime=0))


def compared(walk: Walk) -> Iterator[str]:
    """The table, and its numbers beside those that the paper printed."""
    run = load_run(walk.work / "table")
    yield from (run.name, "", means_table(run).text(), "")
    rows = [["system", "", "measure", "here", "the paper"]]
    for row in run.comparisons:
        if (value := run.expected_of(row)) is not None:
            rows.append([row.system, row.dimension, label_of(row.measure), f"{row.mean:.4f}", f"{value:.4f}"])
    if len(rows) > 1:
        yield from (*aligned(rows), "")


def official(walk: Walk, task: int) -> Iterator[str]:
    """The track's own measures of what is submitted: a row a system, a column for each set of dimensions."""
    runs, files = walk.runs(task), walk.files
    arguments = ["--data", str(files.folder), "--track", f"trec-fair-{files.year}", "--split", files.split]
    command = [*FAIRAGENT, "evaluate-run", *map(str, runs.values()), *arguments, "--task", str(task), "--json"]
    judged = json.loads(walk.call(*command))["runs"]
    measure = TASKS[task][1]
    sets = [one["name"] for one in judged[0]["evaluations"]]
    rows: list[Sequence[str]] = [["system", *(["nDCG"] if task == 1 else []), *sets]]
    for system, one in zip(runs, judged, strict=True):
        means = [evaluation["means"] for evaluation in one["evaluations"]]
        first = [means[0]["ndcg"]] if task == 1 else []
        rows.append([system, *(f"{value:.4f}" for value in [*first, *(mean[measure] for mean in means)])])
    names = {1: "nDCG, then nDCG x AWRF", 2: "EE-L, lower is better"}
    yield from (
        f"Task {task}, {len(judged[0]['evaluations'][0]['topics'])} topics: {names[task]}",
        "",
        *aligned(rows),
        "",
    )


if __name__ == "__main__":
    main()
