"""A small training: a collection of made-up documents, questions, a tiny language model and a tiny retriever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tiny_models
import yaml

WORDS = [word for word in tiny_models.WORDS if len(word) > 2]


def save_retriever(folder: Path, seed: int = 5) -> Path:
    """A sentence-transformers model of a two-layer BERT."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    plain = tiny_models.save_bert(folder.with_name(f"{folder.name}-bert"), seed=seed, limit=64)
    body = Transformer(str(plain), max_seq_length=64)
    SentenceTransformer(modules=[body, Pooling(16)], device="cpu").save_pretrained(str(folder))
    return folder


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_task(folder: Path, **training: Any) -> Path:
    """Everything that a training needs, in `folder`; the settings file."""
    save_retriever(folder / "retriever")
    tiny_models.save_causal(folder / "causal", limit=256)
    documents = [
        {"id": f"d{i}", "text": " ".join(WORDS[(i * 7 + j * (1 + i % 3)) % len(WORDS)] for j in range(4))}
        for i in range(24)
    ]
    write_lines(folder / "documents.jsonl", documents)
    collection = {"name": "small", "documents": {"path": "documents.jsonl", "id": "id", "text": ["text"]}}
    (folder / "collection.yaml").write_text(yaml.safe_dump(collection), encoding="utf-8")
    questions = [
        {"id": f"q{i}", "query": f"{WORDS[i]} {WORDS[(i * 5 + 3) % len(WORDS)]}", "answer": ("yes", "no")[i % 2]}
        for i in range(12)
    ]
    write_lines(folder / "questions.jsonl", questions)
    settings = {
        "name": "small",
        "collection": "collection.yaml",
        "examples": {"path": "questions.jsonl", "held_out": 0.25},
        "retriever": {"model": "retriever", "device": "cpu"},
        "signal": {"model": "causal", "device": "cpu"},
        "training": {"documents": 5, "batch": 2, "epochs": 2, "rate": 0.0001, "checkpoint": 1, **training},
    }
    file = folder / "fairft.yaml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return file
