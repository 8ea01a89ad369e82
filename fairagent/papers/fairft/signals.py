"""The training signal: a language model's likelihood of the fair answer given each document, cached on disk."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.answer.context import fit, numbered
from fairagent.errors import IndexMismatch
from fairagent.llm.likelihood import Likelihood
from fairagent.llm.prompts import Prompts
from fairagent.papers.fairft.settings import TrainingExample
from fairagent.storage.files import LineFile, unsealed, whole_lines
from fairagent.storage.readers import parse_json
from fairagent.types import Document, FloatArray
from fairagent.types.clean import logger, query_shown

log = logger(__name__)

FORMAT = 1
TEMPLATE = "ask"
"""The template of the prompt: as for answers from the retrieved documents."""
PROBE = ("Question: Is the sky blue?\nAnswer:", " Yes, it is.")
"""Scored with every file of signals: a model that finds it otherwise is another model."""


class Signals:
    """The log-likelihood ln P_LM(a | d, q) of an example's answer after the prompt with one document, by `model`.

    What was computed once is cached in the file `path` (JSON lines); several processes may share it. Texts longer than
    `tokens` (about) are cut. Raises IndexMismatch where the file holds the signals of another model, prompt or length.
    """

    def __init__(self, model: Likelihood, prompts: Prompts, path: Path, tokens: int = 512) -> None:
        self.model = model
        self.computed = 0
        self._prompts, self._path, self._tokens = prompts, path, tokens
        self._cached: dict[str, dict[str, float]] = {}
        self.manifest = self._open()

    def likelihoods(self, example: TrainingExample, documents: Sequence[Document]) -> FloatArray:
        """The log-likelihoods (<= 0), (k,), of the answer with each of the documents alone."""
        question = _hash(example.query, example.answer)
        keys = [_hash(document.title, document.text) for document in documents]
        cached = self._cached.setdefault(question, {})
        # Two documents may be the same text.
        missing = {key: place for place, key in enumerate(keys) if key not in cached}
        if missing:
            scores = self.model.score([(self.prompt(example, documents[p]), example.answer) for p in missing.values()])
            scored = {key: float(score.sum()) for key, score in zip(missing, scores, strict=True)}
            self._append({"question": question, "documents": scored})
            cached |= scored
            self.computed += len(scored)
        return np.array([cached[key] for key in keys])

    def table(
        self, examples: Sequence[TrainingExample], documents: Sequence[Document], places: NDArray[np.intp]
    ) -> FloatArray:
        """The log-likelihoods (q, k) of each example's answer with the documents at its row of `places` (q, k)."""
        rows = zip(examples, places, strict=True)
        return np.array([self.likelihoods(example, [documents[place] for place in row]) for example, row in rows])

    def prompt(self, example: TrainingExample, document: Document) -> str:
        (shown,), _ = fit([document], self._tokens)
        messages = self._prompts.render(
            TEMPLATE, query=query_shown(example.query), documents=numbered([shown], "rank"), brief=False
        )
        return "\n\n".join([*(text.strip() for _, text in messages), ""])

    def _open(self) -> dict[str, Any]:
        """The first line of the file, after its signals are read; a new file begins with it."""
        probe = float(self.model.score([PROBE])[0].sum())
        longest = self.prompt(TrainingExample("", "q", "a"), Document("", "d" * 5 * self._tokens))
        prompt = hashlib.sha256(longest.encode()).hexdigest()
        manifest: dict[str, Any] = {"format": FORMAT, "model": self.model.name, "prompt": prompt, "probe": probe}
        lines = self._lines()
        if not lines:
            self._append(manifest)
            return manifest
        have, *rest = lines
        differ = [name for name in ("format", "prompt") if have.get(name) != manifest[name]]
        # Other hardware rounds otherwise, and a model may be named by another folder.
        if not isinstance(before := have.get("probe"), float) or not np.isclose(before, probe, rtol=0.02, atol=0.02):
            differ.append("model")
        if differ:
            raise IndexMismatch(
                f"{self._path} holds signals of another {' and '.join(differ)} (model {have.get('model')!r}, now "
                f"{self.model.name!r}); name another file, or remove it"
            )
        for line in rest:
            self._cached.setdefault(line["question"], {}).update(line["documents"])
        return have

    def _lines(self) -> list[dict[str, Any]]:
        """Every whole line; what cannot be read is computed again."""
        lines: list[dict[str, Any]] = []
        for number, text in enumerate(whole_lines(self._path), start=1):
            try:
                line = parse_json(unsealed(text).decode())
                if not isinstance(line, dict) or (lines and not _is_signal(line)):
                    raise ValueError("no line of signals")
                lines.append(line)
            except ValueError:
                if number == 1:
                    advice = "damaged, or from an earlier version; name another file, or remove it"
                    raise IndexMismatch(f"{self._path}:1 cannot be read: {advice}") from None
                log.warning("%s:%d cannot be read; what it held is computed again", self._path, number)
        return lines

    def _append(self, line: dict[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with LineFile(self._path) as file:
            file.write(json.dumps(line))


def _is_signal(line: dict[str, Any]) -> bool:
    scores = line.get("documents")
    return (
        isinstance(line.get("question"), str)
        and isinstance(scores, dict)
        and all(isinstance(score, float) and score <= 1e-6 for score in scores.values())
    )


def _hash(*texts: str) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]
