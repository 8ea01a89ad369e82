"""Runs whose systems ask a model, which says hostile things, fails and is corrected; for the pages of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from studio_server import HOSTILE
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.guests.testing import LoopbackServer, ServerReply, completion, error

EXPERIMENT = """\
kind: ranking
name: {name}
collection: {collection}
topics: all
baseline: BM25
cache: ''
measures: [AWRF@10, nDCG@10]
settings: {{engine: bm25, index: {index}, target: population, depth: 24,
  model: {{name: tiny, temperature: {temperature}}}}}
systems:
  BM25: {{profile: engine}}
  asked: {{profile: offline, engine: bm25, loop: fair-qr, refine: llm, iterations: 1, expansion: {{documents: 0}}}}
"""
TOPICS = {"T1": "lawyer", "T2": "court town", "T3": "judges before a case"}
SAID = f'{HOSTILE} Of course: {{"keywords": ["she", "town"]}} zanzibar'


def judged(folder: Path, root: Path) -> Path:
    """The studio's collection with judgments and three topics, as a file beside it."""
    (root / "qrels.tsv").write_text("".join(f"{id} 0 d{n:02d} 1\n" for id in TOPICS for n in (1, 20, 22)), "utf-8")
    (root / "topics.jsonl").write_text(
        "".join(json.dumps({"id": id, "title": query}) + "\n" for id, query in TOPICS.items()), "utf-8"
    )
    text = (folder / "collection.yaml").read_text(encoding="utf-8")
    text = text.replace("path: topics.jsonl", f"path: {root / 'topics.jsonl'}")
    file = folder / "asked.yaml"
    file.write_text(f"{text}qrels: {{path: {root / 'qrels.tsv'}, format: trec}}\n", encoding="utf-8")
    return file


def answer(request: dict[str, Any], seen: list[str]) -> ServerReply:
    """The first topic's first request meets an overload, its second a reply that is no JSON."""
    text = request["messages"][-1]["content"]
    seen.append(text)
    if "lawyer" in text and len(seen) == 1:
        return error(503, "the server is busy")
    if "lawyer" in text and "could not be used" not in text:
        return completion("I would rather not.")
    return completion(SAID)


def make_runs(folder: Path, root: Path, **names: float) -> Path:
    """The folder of runs, one for each name, with this temperature of its model."""
    collection = judged(folder, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.delenv("OPENAI_API_KEY", raising=False)
        for name, temperature in names.items():
            seen: list[str] = []
            with LoopbackServer(lambda request, seen=seen: answer(request, seen)) as server:
                patch.setenv("OPENAI_BASE_URL", server.url)
                file = root / f"{name}.yaml"
                file.write_text(
                    EXPERIMENT.format(
                        name=name, collection=collection, index=folder / "index", temperature=temperature
                    ),
                    encoding="utf-8",
                )
                done = CliRunner().invoke(
                    app, ["evaluate", str(file), "--workers", "1", "--run", str(root / "runs" / name)]
                )
                assert done.exit_code == 0, done.output
    return root / "runs"
