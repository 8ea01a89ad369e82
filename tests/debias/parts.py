"""An encoder whose vectors can be read off the text, and small libraries and lexicons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.papers.debias_rag.avoid import AvoidIndex, AvoidPassage, Lexicon, load_lexicon
from fairagent.papers.debias_rag.stage import DebiasRAG
from fairagent.retrieve.encoders import Embeddings

WORDS = ("he", "she", "nurse", "late", "mosque", "church", "judge", "rain")


class WordEncoder:
    """A number for each of WORDS: how often it occurs; not of length 1."""

    name = "words"

    def documents(self, texts: Sequence[str]) -> Embeddings:
        rows = [[text.lower().replace(".", "").split().count(word) for word in WORDS] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), len(WORDS))

    def queries(self, texts: Sequence[str]) -> Embeddings:
        return self.documents(texts)


LIBRARY = (
    AvoidPassage("a1", "She is a nurse."),
    AvoidPassage("a2", "She is late.", "gender"),
    AvoidPassage("a3", "The mosque is late."),
)


def lexicon(folder: Path, text: str = "gender: [he <-> she]\nreligion: [mosque <-> church]\n") -> Lexicon:
    return load_lexicon(written(folder / "words.yaml", text))


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def stage(folder: Path, passages: Sequence[AvoidPassage] = LIBRARY, **more: Any) -> DebiasRAG:
    pytest.importorskip("faiss")
    words = lexicon(folder)
    return DebiasRAG(AvoidIndex(passages, words, WordEncoder()), words, WordEncoder(), **more)
