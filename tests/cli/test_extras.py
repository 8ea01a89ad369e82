"""What needs an extra that is not installed ends with 3 and the command that installs it, before any work."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from running import hiding, python

from fairagent.storage.packages import EXTRAS, MODULES, module_of

from .conftest import write_collection

FILES = {
    "chunks.yaml": "{name: chunks, documents: {path: docs.jsonl, title: title}, chunks: {tokens: 16, overlap: 4}}",
    "parquet.yaml": "{name: parquet, documents: {path: docs.parquet, title: title}}",
    "dataset.yaml": "{name: dataset, documents: {path: saved, title: title}}",
    "saved/state.json": "{}",
    "plain.yaml": "{name: plain, collection: collection.yaml, systems: {plain: {profile: engine, engine: bm25}}}",
    "utility.yaml": (
        "{name: useful, kind: utility, collection: collection.yaml, utility: {similarity: {kind: bert-score}}, "
        "systems: {plain: {profile: engine, engine: bm25, model: {name: m, base_url: 'http://127.0.0.1:9/v1'}}}}"
    ),
    "avoid.jsonl": '{"id": "a", "text": "x"}\n',
    "one.run": "T1 Q0 d00 1 1.0 x\n",
    "fairft.yaml": "{}",
}
COMMANDS = {
    "minilm": [
        "index {collection} --set encoder=minilm",
        "index {collection} --set 'engine={{kind: dense, encoder: minilm, ann: always}}'",
        "index {collection} --set 'rerank={{kind: mmr, by: embeddings, encoder: minilm}}'",
        "index {collection} --set profile=offline --set 'debias={{kind: debias-rag, library: avoid.jsonl}}'",
    ],
    "dense": [
        "index {collection} --set encoder=x",
        "index {collection} --set 'rerank={{kind: cross-encoder, scorer: x}}'",
        "index {collection} --set 'engine={{kind: splade, model: x}}'",
        "index {collection} --set profile=offline --set 'attribute={{kind: nli, encoder: x}}'",
        "fairft train fairft.yaml",
    ],
    "lucene": ["index {collection} --set 'engine={{kind: lucene, index: x}}'"],
    "llama-index": ["index -c chunks.yaml", "search law -c chunks.yaml"],
    "parquet": ["index -c parquet.yaml", "index -c dataset.yaml", "init docs.parquet --output new.yaml"],
    "rag": ["evaluate utility.yaml"],
    "measures": ["evaluate-run one.run {collection} --measure AP"],
    "studio": ["serve {collection}", "mcp {collection}"],
    "labels": ["label {collection} --dimension gender"],
    "opensearch": ["search law {collection} --set 'engine={{kind: opensearch, index: i}}'"],
    "local": ["model serve --model small.gguf"],
}
LIBRARY = {
    "pyterrier": "from fairagent.guests.pyterrier import fair_transformer; fair_transformer(None)",
    "measures": "import fairagent.guests.ir_measures",
    "llama-index": "from fairagent.guests.llama_index import fair_agent",
    "langchain": "import fairagent.guests.langchain",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_collection(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "docs.parquet").write_bytes(b"PAR1")
    (tmp_path / "small.gguf").touch()
    return tmp_path


PROGRAM = """
import json, sys
from typer.testing import CliRunner
from fairagent.cli import app
from fairagent.errors import FairAgentError
commands, codes = json.load(sys.stdin)
said = []
for command in commands:
    done = CliRunner().invoke(app, command)
    said.append([done.exit_code, done.stderr])
for code in codes:
    try:
        exec(code)
        said.append([0, ""])
    except FairAgentError as error:
        said.append([error.exit_code, str(error)])
print(json.dumps(said))
"""
"""Runs commands and lines of Python, and says how each ended."""


def test_what_to_install_is_said_before_any_work(folder: Path) -> None:
    """One Python that has none of the packages of any extra."""
    before = {path for path in folder.rglob("*") if path.is_file()}
    commands = [(extra, command) for extra, some in COMMANDS.items() for command in some]
    asked = [shlex.split(one.format(collection="--collection collection.yaml")) for _, one in commands]
    code = hiding({module_of(package) for packages in EXTRAS.values() for package in packages}, PROGRAM)
    done = python("-c", code, folder=folder, given=json.dumps([asked, list(LIBRARY.values())]))
    cases = [*commands, *LIBRARY.items()]
    said = {case: tuple(found) for case, found in zip(cases, json.loads(done.stdout.splitlines()[-1]), strict=True)}
    assert {
        case: (ended, text)
        for case, (ended, text) in said.items()
        if ended != 3 or f"pip install 'fairagent[{case[0]}]'" not in text
    } == {}
    assert {path for path in folder.rglob("*") if path.is_file()} == before


def test_every_extra_is_missed_somewhere() -> None:
    # Without `otel` a search has no spans, and nothing fails.
    assert COMMANDS.keys() | LIBRARY.keys() | {"otel"} == EXTRAS.keys()
    assert MODULES.keys() <= {package for packages in EXTRAS.values() for package in packages}
