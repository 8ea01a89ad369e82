"""What is fuzzed: each target takes a damaged file, reply or argument to the door that real ones come through."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from faults import tiny
from track_files import FILES_2021, FILES_2022, write_track
from typer.testing import CliRunner

from fairagent import UsageError, load_collection
from fairagent.errors import DataError, Fault
from fairagent.settings import load_settings
from fairagent.storage.packages import is_installed
from fairagent.types.clean import printable
from fuzz.mutate import ODD_TOKENS, Whole, damaged

Target = Callable[[Random, Path], object]
Files = Mapping[str, bytes]

TARGETS: dict[str, Target] = {}
WEIGHTS: dict[str, int] = {}
EVALUATIONS = Path(__file__).parents[2] / "evaluations"
ROOT = Path()
"""Where seeds that have to be made are kept, for one process."""


def target(weight: int = 1) -> Callable[[Target], Target]:
    """A target by its function's name; of all cases it gets a share by its weight."""

    def add(function: Target) -> Target:
        TARGETS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        return function

    return add


def prepare(name: str, place: Path) -> None:
    """Say where seeds may be kept."""
    global ROOT
    ROOT = place
    if name in ("experiment", "commands"):
        for package in filter(is_installed, ("torch", "transformers")):
            # What takes seconds to import is no case's fault.
            import_module(package)


def form_of(name: str) -> str:
    for form in ("jsonl", "json", "yaml"):
        if f".{form}" in name:
            return form
    return ""


def write(random: Random, folder: Path, files: Files, most: int = 1) -> None:
    """Write the files, one to `most` of them damaged."""
    hit = random.sample(sorted(files), min(len(files), random.randint(1, most)))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damaged(random, content, form_of(name)) if name in hit else content)


def content_of(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


SETTINGS = b"""\
n: 10
profile: offline
dimensions: [gender, region]
target: {gender: {female: 0.5, male: 0.5}}
discount: log2-max2
expansion: {documents: 20}
engine: {kind: bm25, k1: 0.9}
refine: {kind: feedback, terms: 5}
rerank: {kind: chain, parts: [mmr, {kind: exposure, fairness: 0.5}]}
model: {name: m, base_url: 'http://127.0.0.1:9/v1'}
budget: {calls: 10, tokens: 1000}
sampling: {alpha: 1, seed: 3}
"""


EXPERIMENT = b"name: e\ncollection: collection.yaml\nsystems: {BM25: {profile: engine}, agent: {n: 5}}\n"


WIDE = b"""\
name: wide
documents: {path: [docs.jsonl, 'more*.jsonl'], id: "{a}-{b}", title: title, text: [text, more]}
topics: {path: topics.tsv, format: tsv, columns: [id, query, kind], group: kind}
qrels: {path: qrels.jsonl, format: jsonl, dimensions: {stance: {separator: "|"}}}
groups:
  - {path: groups.jsonl, dimensions: {gender: {labels: [female, male], map: {f: female, x: []}}}}
  - path: more.tsv
    dimensions: {region: {separator: ";", applies_to: {column: kind, values: [p]}}, age: {predicted: false}}
population: world.json
intersections: {both: [gender, region]}
chunks: {tokens: 64, overlap: 8}
"""
WIDE_FILES = {
    "collection.yaml": WIDE,
    "docs.jsonl": b"".join(
        json.dumps({"a": n, "b": "x", "title": f"T{n}", "text": "law court", "more": "she"}).encode() + b"\n"
        for n in range(4)
    ),
    "more1.jsonl": b'{"a": 9, "b": "y", "text": "river", "more": "", "other": {"z": [1, 2.5, null]}}\n',
    "topics.tsv": b"T1\tlaw\ta\nT2\triver\tb\n",
    "qrels.jsonl": b'{"topic": "T1", "document": "0-x", "relevance": 1, "stance": "pro|con"}\n'
    b'{"topic": "T2", "document": "9-y", "relevance": 2, "stance": ""}\n',
    "groups.jsonl": b'{"id": "0-x", "gender": "f"}\n{"id": "1-x", "gender": {"female": 0.5, "male": 1.5}}\n'
    b'{"id": "2-x", "gender": ["male"]}\n{"id": "9-y", "gender": null}\n',
    "more.tsv": b"id\tregion\tage\tkind\n0-x\tasia;europe\told\tp\n1-x\t\tyoung\tp\n9-y\tasia\t\tq\n",
    "world.json": b'{"gender": {"female": 0.5, "male": 0.5}, "region": {"asia": 0.7, "europe": 0.3}}',
}


def use(file: Path) -> None:
    """Load a collection and read all that is in it, as an index and a search do."""
    loaded = load_collection(file)
    ids = [document.id for document in loaded.documents()]
    loaded.fingerprint()
    for dimension in loaded.groups.dimensions:
        loaded.groups.memberships(dimension, ids)


@target(8)
def collection(random: Random, folder: Path) -> None:
    write(random, folder, WIDE_FILES, most=2)
    use(folder / "collection.yaml")


@target(6)
def plain_collection(random: Random, folder: Path) -> None:
    tiny.write(folder)
    write(random, folder, content_of(folder), most=2)
    use(folder / "collection.yaml")


@target(2)
def track(random: Random, folder: Path) -> None:
    from fairagent.collection.trec_fair import load_track

    year = random.choice((2022, 2021))
    write_track(folder, FILES_2022 if year == 2022 else FILES_2021)
    write(random, folder, content_of(folder))
    list(load_track(folder, year, "eval").documents())


@target(2)
def run_file(random: Random, folder: Path) -> None:
    from fairagent.collection.trec_fair import read_run as read_track_run
    from fairagent.retrieve.run_file import read_run

    lines = [f"{topic} Q0 {page} {rank} {9 - rank} me" for topic in (101, 102) for rank, page in enumerate((5, 7, 9))]
    write(random, folder, {"run.txt": "\n".join(lines).encode()})
    try:
        read_run(folder / "run.txt", ["101", "102"])
    except DataError:
        read_track_run(folder / "run.txt", 2022, 1)


@target(2)
def request_log(random: Random, folder: Path) -> None:
    from fairagent.evaluate.audit import is_account, read_log

    forms = (
        "query,document,rank,time\nq,a,1,2026-01-01\nq,b,2,2026-01-01\n",
        '{"query": "q", "ids": ["a", "b"], "time": 5}\n{"query": {"text": "r"}, "hits": [{"id": "c"}]}\n',
    )
    write(random, folder, {"log": random.choice(forms).encode()})
    is_account(folder / "log")
    list(read_log(folder / "log"))


@cache
def finished_run() -> Files:
    """The folder of a run, made without Java or a model."""
    from fairagent.evaluate.check import check_runs
    from fairagent.evaluate.experiment import run_experiment
    from fairagent.evaluate.workers import threads

    place = ROOT / "finished"
    file = tiny.write(place)
    (place / "one.txt").write_text("T1 Q0 f1 1 2 me\nT1 Q0 m1 2 1 me\nT2 Q0 u1 1 1 me\n")
    (place / "two.txt").write_text("T1 Q0 m1 1 2 me\nT2 Q0 f2 1 1 me\n")
    checked = check_runs([place / "one.txt", place / "two.txt"], file, (), (), None, "")
    with threads(1) as workers:
        run_experiment(checked, place / "run", workers)
    found = content_of(place / "run")
    return {name: content for name, content in found.items() if name in ("run.json", "journal.jsonl")}


@target(3)
def finished(random: Random, folder: Path) -> None:
    from fairagent.evaluate.results import write_results
    from fairagent.evaluate.run import load_run
    from fairagent.report.page import page

    write(random, folder, finished_run())
    run = load_run(folder)
    write_results(run, folder)
    page(run)


HITS: tuple[Any, ...] = (
    [
        {"id": "a", "score": 2.0, "payload": {"gender": "female"}},
        {"id": "b", "score": 1.0, "payload": {"gender": "male"}},
    ],
    {"hits": {"hits": [{"_id": n, "_score": 3.0 - n, "_source": {"gender": "fm"[n % 2]}} for n in range(3)]}},
    {"ids": [["a", "b"]], "distances": [[0.1, 0.2]], "metadatas": [[{"gender": "female"}, {"gender": "male"}]]},
    [[{"id": "a", "gender": ["female", "male"]}, 0.9], [{"id": "b", "gender": {"male": 2}}, 0.1]],
)


@target(3)
def hits(random: Random, folder: Path) -> None:
    """What a search engine's client returned, or a user made of it."""
    from fairagent import fair_rerank

    text = damaged(random, json.dumps(random.choice(HITS)).encode(), "json").decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return
    groups = random.choice(("gender", ["gender"], {"gender": "gender"}))
    target = random.choice(("uniform", {"female": 0.5, "male": 0.5}, None))
    if isinstance(random, Whole):
        target = "uniform"
    fair_rerank(found, groups, target, n=random.choice((1, 2, 10)), unknown=random.choice(("share", "ignore")))


@target(3)
def template(random: Random, folder: Path) -> None:
    from fairagent.llm.prompts import Prompts, shipped_folder
    from fairagent.llm.prompts.template import read_prompt, specimens

    path = random.choice(sorted(shipped_folder().glob("*.j2")))
    write(random, folder, {path.name: path.read_bytes()})
    faults: list[Fault] = []
    read = read_prompt(folder / path.name, faults)
    if random.random() < 0.05:  # all templates are compiled then, which takes a while
        Prompts(folder)
    elif read and path.stem in specimens():
        read.render(specimens()[path.stem])


@target(6)
def replies(random: Random, folder: Path) -> None:
    """A model's text through every reader of replies."""
    from fairagent.answer.citations import CitationReader, sentences, without_citations
    from fairagent.answer.filtering import Verdicts, parse_verdict
    from fairagent.llm.replies import parse_reply
    from fairagent.papers.debias_rag.avoid import Diagnoses
    from fairagent.papers.debias_rag.benchmarks.preference import Order
    from fairagent.search.loop.group_words import GroupKeywords
    from fairagent.search.refine import Keywords, ReasonedKeywords

    text = random.choice(
        (
            b'<think>so</think>Of course:\n```json\n{"keywords": ["judge", "court"]}\n```',
            b'{"verdicts": [{"id": "p1", "pass": true, "reason": "It is."}]}',
            b'{"groups": [{"number": 1, "keywords": ["she"]}]}',
            b'{"order": [3, 1, 2]}',
            b"She was a judge [1, 9], then a senator [2][7-8]. In 1990 she retired [1-3].",
            b"{'Pass': True}",
        )
    )
    said = damaged(random, text, "json").decode("utf-8", "replace")
    parse_verdict(said)
    without_citations(said)
    sentences(said)
    reader = CitationReader(3)
    for place in range(0, len(said), 7):
        reader.read(said[place : place + 7])
    reader.close()
    if not isinstance(random, Whole):
        form: Any = random.choice((Keywords, ReasonedKeywords, Verdicts, GroupKeywords, Order, Diagnoses))
        parse_reply(said, form)


COMMANDS = """\
config --settings fairagent.yaml
config --set n=5 --set rerank.kind=mmr --json
evaluate e.yaml --check-only
evaluate e.yaml --check-only --json --limit 1
estimate e.yaml
evaluate-run one.txt two.txt --collection collection.yaml
evaluate-run one.txt --collection collection.yaml --measure nDCG@5 --n 3 --json
evaluate-run one.txt --data . --task 1 --track trec-fair-2022
prompts list
prompts show refine_query
prompts check --prompts templates
prompts eject new
cache stats
cache clear
labels e.yaml
avoid diagnose --out new.jsonl
--version
"""
REPORTS = """\
report run
report run --baseline one
report run other --join
report run other --join --to new --json
"""
SEARCHES = """\
search law --collection collection.yaml --index index
search law court --collection collection.yaml --index index --n 2 --json
search --collection collection.yaml --index index --set loop=none -- law
index --collection collection.yaml --index index
answer law --collection collection.yaml --index index
"""
EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 130}


def call(random: Random, folder: Path, lines: str) -> None:
    """A command with damaged arguments on damaged files, in a folder of its own."""
    import os

    from fairagent.cli import app

    arguments = shlex.split(random.choice(lines.strip().splitlines()))
    for _ in range(0 if isinstance(random, Whole) else random.choice((0, 1, 1, 2))):
        place = random.randrange(len(arguments) + 1)
        options = "--json", "--set", "--n", "--index", "-h", "=", "a=b", "n=1e9", "n=0x9", "--"
        odd = random.choice((*ODD_TOKENS, *options))
        arguments[place : place + random.choice((0, 1))] = [odd.replace("\x00", "")]
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, arguments, prog_name="fairagent", env={"COLUMNS": "100"})
    finally:
        os.chdir("/")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code not in EXIT_CODES:
        raise AssertionError(f"{arguments}: exit code {done.exit_code}")
    if printable(done.output) != done.output:
        raise AssertionError(f"{arguments}: printed {done.output!r}")
    if done.exit_code and not isinstance(random, Whole):
        raise UsageError(done.output)


@target(3)
def settings_file(random: Random, folder: Path) -> None:
    write(random, folder, {"fairagent.yaml": SETTINGS})
    load_settings(folder / "fairagent.yaml", environ={})


@target(3)
def experiment(random: Random, folder: Path) -> None:
    """Those of the repository that open no model, which would be the bulk of the time."""
    from fairagent.evaluate.check import readiness

    tiny.write(folder)
    contents = [path.read_bytes() for path in sorted(EVALUATIONS.rglob("*.yaml"), key=lambda path: path.as_posix())]
    opening = (b"encoder", b"transformers", b"likelihoods", b"splade", b"dense", b"bert-score")
    seeds = [one for one in contents if b"systems:" in one and not any(word in one for word in opening)]
    write(random, folder, {"e.yaml": random.choice((EXPERIMENT + b"measures: [nDCG@5]\n", random.choice(seeds)))})
    readiness(folder / "e.yaml", environ={})


@cache
def built_index() -> Files:
    from fairagent.retrieve.bm25.build import build_index

    build_index(load_collection(tiny.write(ROOT / "indexed")), ROOT / "index")
    return content_of(ROOT / "index")


@target(10)
def commands(random: Random, folder: Path) -> None:
    tiny.write(folder)
    (folder / "one.txt").write_text("T1 Q0 f1 1 2 me\nT1 Q0 m1 2 1 me\nT2 Q0 u1 1 1 me\n")
    (folder / "two.txt").write_text("T1 Q0 m1 1 2 me\nT2 Q0 f2 1 1 me\n")
    (folder / "fairagent.yaml").write_bytes(b"n: 3\nprofile: engine\n")
    (folder / "e.yaml").write_bytes(EXPERIMENT)
    lines = COMMANDS
    if random.random() < 0.2:
        lines = SEARCHES
        write(random, folder / "index", built_index())
    elif random.random() < 0.4:
        lines = REPORTS
        for place in (folder / "run", folder / "other"):
            place.mkdir()
            for name, content in finished_run().items():
                (place / name).write_bytes(content)
    if random.random() < 0.6:
        write(random, folder, content_of(folder))
    call(random, folder, lines)
