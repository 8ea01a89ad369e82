"""Every code block of docs/ and the README: run, read by what would read it, or marked as neither.

A mark is a comment right above a block: `<!-- illustration: why -->`, or `<!-- checked by tests/... -->` where another
test knows more about it. Python blocks run page by page, in order, in a folder that holds the files they name.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lamp_files
import pytest
import tiny_models
import typer
import yaml
from collecting import faults
from pydantic import TypeAdapter, ValidationError
from typer.main import get_command

from fairagent.cli import app
from fairagent.cli.options import overrides
from fairagent.collection import load_collection
from fairagent.collection.config import CollectionFile
from fairagent.collection.demo import write_demo
from fairagent.evaluate.kind import shipped_kinds
from fairagent.guests.testing import LoopbackServer
from fairagent.papers.fairft.settings import FairFTFile
from fairagent.retrieve.bm25.build import build_index
from fairagent.settings import Settings, lay, load_settings, validate

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "fairagent").rglob("README.md")),
]
MARK = re.compile(r"<!-- (illustration|checked by)[: ] ?(.+) -->")
PROMPT = "$ "


@dataclass(frozen=True)
class Block:
    """A block of code; `mark` is what the comment above it says, (word, what), where there is one."""

    page: str
    line: int
    language: str
    text: str
    mark: tuple[str, str] | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """The fenced blocks, and the indented ones, whose language is ""."""
    lines, above, number = text.split("\n"), "", 0
    while number < len(lines):
        start, line = number, lines[number]
        number += 1
        if line.startswith("```"):
            while lines[number] != "```":
                number += 1
            body, language = lines[start + 1 : number], line[3:]
            number += 1
        elif line.startswith("    ") and (not start or not lines[start - 1]):
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number]):
                number += 1
            body, language = lines[start:number], ""
        else:
            above = line or above
            continue
        mark = MARK.fullmatch(above)
        above = ""
        yield Block(page, start + 1, language, "\n".join(body) + "\n", (mark[1], mark[2]) if mark else None)


BLOCKS = [block for path in PAGES for block in blocks_of(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))]


def unmarked(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language and block.mark is None]


def test_blocks_are_found() -> None:
    text = "# A\n\n<!-- illustration: a picture -->\n\n    a -> b\n\n    c\n\n```yaml\nn: 1\n```\n"
    first, second = blocks_of("a.md", text)
    assert (first.language, first.text.split()) == ("", ["a", "->", "b", "c"])
    assert (first.mark, second.mark) == (("illustration", "a picture"), None)
    assert (second.language, second.line) == ("yaml", 9)
    assert len(BLOCKS) > 60


def checked_or_marked(block: Block) -> None:
    if block.mark is None:
        assert block.language in {"python", "yaml", "console"}, "mark it, or say what it is"
    elif block.mark[0] == "checked by":
        assert Path(block.page).name in (ROOT / block.mark[1]).read_text(encoding="utf-8")


def test_every_block_is_checked_or_marked() -> None:
    assert faults(checked_or_marked, BLOCKS) == []


# --- Python -------------------------------------------------------------------------------------------------------

PYTHON = sorted({block.page for block in unmarked("python")} - {"README.md"})
"""The README's example is run by tests/test_readme.py, which goes on in the folder that it leaves."""
EXAMPLE = {"id": "i1", "bias_type": "gender", "target": "judge", "context": "The BLANK judge."}
SENTENCES = {"old": "stereotype", "young": "anti-stereotype", "green": "unrelated"}
SERVED = "http://localhost:8000/v1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader has who follows the pages: an indexed collection, a run, benchmarks' files, local models."""
    folder = tmp_path_factory.mktemp("reader")
    demo = load_collection(write_demo(folder / "fairagent-demo", people=200))
    for path in (folder / "fairagent-demo").iterdir():
        (folder / path.name).symlink_to(path)
    build_index(demo, folder / "indexes" / "demo")
    (folder / "run.txt").write_text("T01 Q0 D00001 1 2.5 mine\nT01 Q0 D00002 2 1.5 mine\n", encoding="utf-8")
    (folder / "avoid.jsonl").write_text('{"id": "a1", "text": "She is a nurse."}\n', encoding="utf-8")
    lamp_files.load(folder, "LaMP-4")
    sentences = [{"sentence": f"The {word} judge.", "gold_label": label} for word, label in SENTENCES.items()]
    dev = {"data": {"intrasentence": [{**EXAMPLE, "sentences": sentences}], "intersentence": []}}
    (folder / "dev.json").write_text(json.dumps(dev), encoding="utf-8")
    tiny_models.save_causal(folder / "gpt2")
    tiny_models.save_causal(folder / "path" / "to" / "a" / "causal" / "model")
    tiny_models.save_masked(folder / "bert-base-uncased")
    return folder


def reply(request: Mapping[str, Any]) -> str:
    """What a model says: that every document is biased, where it is asked; else a color."""
    asked = request["messages"][-1]["content"]
    ids = re.findall(r'"id": "(\w+)"', asked) if "diagnoses" in str(request["messages"]) else []
    return json.dumps({"diagnoses": [{"id": id, "biased": True, "kind": "gender"} for id in ids]}) if ids else "Red"


@pytest.mark.slow
@pytest.mark.vectors
def test_python_runs(folder: Path, no_variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    def runs(page: str) -> None:
        names: dict[str, Any] = {"__name__": "__main__"}
        for block in unmarked("python"):
            if block.page == page:
                code = "\n" * block.line + block.text.replace(SERVED, server.url)
                exec(compile(code, str(ROOT / page), "exec", dont_inherit=True), names)

    with LoopbackServer(reply) as server:
        variables = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
        for name, value in (variables | {"FAIRAGENT_MODEL__NAME": "tiny", "FAIRAGENT_ENGINE": "bm25"}).items():
            monkeypatch.setenv(name, value)
        assert faults(runs, PYTHON) == []


# --- YAML ---------------------------------------------------------------------------------------------------------

FILES = {"settings": Settings, "collection": CollectionFile, "fairft": FairFTFile, **shipped_kinds()}


def faults_of(values: Mapping[str, Any], model: Any) -> list[str]:
    """What is wrong with a part of a file; that other keys are missing is not."""
    try:
        TypeAdapter(model).validate_python(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [str(fault) for fault in found if (fault["type"], len(fault["loc"])) != ("missing", 1)]
    return []


def part_of_a_file(block: Block) -> None:
    values = yaml.safe_load(block.text)
    wrong = {name: faults_of(values, model) for name, model in FILES.items()}
    assert [] in wrong.values(), wrong
    for system in values.get("systems", {}).values():
        validate(Settings, lay(values.get("settings", {}), system), str(block))


def test_yaml_is_part_of_a_file() -> None:
    assert faults(part_of_a_file, unmarked("yaml")) == []
    assert faults_of({"rerank": "mrr"}, Settings)
    assert faults_of({"systems": {"a": {}}, "measure": []}, shipped_kinds()["ranking"])
    assert not faults_of({"systems": {"a": {}}}, shipped_kinds()["ranking"])


# --- commands -----------------------------------------------------------------------------------------------------


def parse(line: str) -> list[str]:
    """Read a command as the program does, and run nothing; its settings (`--set`)."""
    program, *words = shlex.split(line, comments=True)
    assert program == "fairagent"
    command: Any = get_command(app)
    context = None
    try:
        while hasattr(command, "commands"):
            context = command.make_context("fairagent", list(words), parent=context)
            _, command, words = command.resolve_command(context, words)
        context = command.make_context("fairagent", list(words), parent=context)
    except typer.Exit:
        return []
    return list(context.params.get("assignments") or [])


def commands_can_be_read(block: Block) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        assert line.startswith(PROMPT)
        assignments = parse(line.removeprefix(PROMPT))
        if block.mark is None:
            load_settings(None, overrides(assignments), {})


SPANS = sorted(
    {
        (str(path.relative_to(ROOT)), " ".join(span.split()))
        for path in PAGES
        for span in re.findall(r"`(fairagent [^`]+)`", re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.S))
    }
)


def command_can_be_read(page: str, line: str) -> None:
    try:
        parse(line.replace("--template KIND", "--template ranking"))
    except Exception as error:
        # A command may be named without what it needs; a word of it that there is not is a fault.
        if type(error).__name__ != "MissingParameter":
            raise


def test_commands_can_be_read() -> None:
    blocks = [block for block in BLOCKS if block.language == "console"]
    assert faults(commands_can_be_read, blocks) + faults(command_can_be_read, SPANS) == []
    wrong = ["fairagent serch x", "fairagent search x --deep", "fairagent prompts"]
    assert len(faults(parse, wrong)) == len(wrong)


# --- links --------------------------------------------------------------------------------------------------------


def links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith("http"):
            file, _, heading = target.partition("#")
            page = path.parent / file if file else path
            assert page.is_file(), target
            titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
            assert not heading or heading in {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in titles}


def test_links_lead_to_files_and_headings() -> None:
    assert faults(links_lead_somewhere, PAGES) == []


def test_the_site_has_every_page() -> None:
    site = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))
    parts = [found for part in site["nav"] for found in part.values()]
    named = [
        page for some in parts for one in ([{"": some}] if isinstance(some, str) else some) for page in one.values()
    ]
    # Notebooks become pages when the site is built.
    assert all((ROOT / page).is_file() or (ROOT / page).with_suffix(".ipynb").is_file() for page in named)
    assert {str(path.relative_to(ROOT)) for path in PAGES} <= set(named)


def test_the_python_reference_names_what_there_is() -> None:
    for host in ("llama_index.core", "langchain_core"):
        pytest.importorskip(host)
    names = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) > 5
    for name in names:
        assert importlib.import_module(name).__doc__
