"""FairFT: a retriever learns to rank as a frozen language model values the documents; how it stands before and after.

With cosines s, the log-likelihoods l of the answer, and temperatures gamma and beta (both > 0):
    P_R(d|q) = softmax_d(s_d / gamma)        Q_LM(d|q, a) = softmax_d(exp(l_d) / beta)
The paper's loss is KL(P_R || Q_LM), its mean over the questions; the released code computes KL(Q_LM || P_R) / k.
Checkpoints are written atomically, so that a training goes on after whatever ended it. The signal, a language model's
likelihood of the fair answer given each document, is cached on disk.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from fairagent.answer.context import fit, numbered
from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.llm.likelihood import Likelihood
from fairagent.llm.prompts import Prompts
from fairagent.papers.fairft.settings import Direction, FairFTFile, Reduction, TrainingExample, TrainingSection
from fairagent.retrieve.base import full_text
from fairagent.retrieve.encoders import Embeddings, open_sentence_model
from fairagent.storage.arrays import read_array
from fairagent.storage.files import LineFile, unsealed, whole_file, whole_lines
from fairagent.storage.folders import workshop
from fairagent.storage.packages import pick_device
from fairagent.storage.readers import parse_json
from fairagent.types import Document, FloatArray
from fairagent.types.clean import logger, query_shown

if TYPE_CHECKING:
    import torch


def log_target(likelihoods: FloatArray, beta: float) -> FloatArray:
    """Ln Q_LM, (..., k), of the log-likelihoods l (<= 0), (..., k). DataError where one is nan or above 0.

    >>> log_target(np.log([[0.5, 0.5]]), 0.1).round(4).tolist()
    [[-0.6931, -0.6931]]
    """
    # Rounding may lift the likelihood of what is certain a little above 1.
    if not (likelihoods <= 1e-6).all():
        raise DataError("a log-likelihood is nan or above 0: the model's signal cannot be used")
    return np.asarray(log_softmax(np.exp(likelihoods) / beta, axis=-1))


def kl_loss(
    scores: torch.Tensor, log_q: torch.Tensor, gamma: float, direction: Direction = "p-q", reduction: Reduction = "mean"
) -> torch.Tensor:
    """The loss, in nats, >= 0, of cosines (b, k) against ln Q_LM (b, k), for torch to find the gradient of."""
    log_p = (scores / gamma).log_softmax(dim=-1)
    one, other = (log_p, log_q) if direction == "p-q" else (log_q, log_p)
    questions, documents = scores.shape
    divisor = questions * documents if reduction == "documents" else questions
    return (one.exp() * (one - other)).sum() / divisor


log = logger(__name__)

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
            "ask", query=query_shown(example.query), documents=numbered([shown], "rank"), brief=False
        )
        return "\n\n".join([*(text.strip() for _, text in messages), ""])

    def _open(self) -> dict[str, Any]:
        """The first line of the file, after its signals are read; a new file begins with it."""
        probe = float(self.model.score([PROBE])[0].sum())
        longest = self.prompt(TrainingExample("", "q", "a"), Document("", "d" * 5 * self._tokens))
        prompt = hashlib.sha256(longest.encode()).hexdigest()
        manifest: dict[str, Any] = {"format": 1, "model": self.model.name, "prompt": prompt, "probe": probe}
        head, *lines = list(whole_lines(self._path)) or [b""]
        if not head:
            self._append(manifest)
            return manifest
        try:
            have: dict[str, Any] = parse_json(unsealed(head).decode())
        except ValueError:
            advice = "damaged, or from an earlier version; name another file, or remove it"
            raise IndexMismatch(f"{self._path}:1 cannot be read: {advice}") from None
        differ = [name for name in ("format", "prompt") if have.get(name) != manifest[name]]
        before = have.get("probe")
        # Other hardware rounds otherwise, and a model may be named by another folder.
        if not isinstance(before, float) or not np.isclose(before, probe, rtol=0.02, atol=0.02):
            differ.append("model")
        if differ:
            raise IndexMismatch(
                f"{self._path} holds signals of another {' and '.join(differ)} (model {have.get('model')!r}, now "
                f"{self.model.name!r}); name another file, or remove it"
            )
        for number, text in enumerate(lines, start=2):
            try:
                line = parse_json(unsealed(text).decode())
            except ValueError:
                log.warning("%s:%d cannot be read; what it held is computed again", self._path, number)
                continue
            self._cached.setdefault(line["question"], {}).update(line["documents"])
        return have

    def _append(self, line: dict[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with LineFile(self._path) as file:
            file.write(json.dumps(line))


def _hash(*texts: str) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]


Kind = Literal["query", "document"]

PROMPTS: Mapping[Kind, Sequence[str]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Under which names models keep what stands before a query or a document."""


class Tower:
    """A sentence-transformers model whose vectors have length 1, so that inner products are cosines.

    It is in evaluation mode even while it is trained, as in the paper's code: nothing is dropped out.
    """

    def __init__(self, name: str, device: str = "", dtype: str = "float32", batch: int = 64) -> None:
        self.name = name
        self.device = pick_device(device)
        self.model: Any = open_sentence_model(name, self.device).model.eval().float()
        # Whoever searches with the saved model compares as it was trained.
        self.model.similarity_fn_name = "cosine"
        self._half = dtype == "bfloat16"
        self._batch = batch

    def vectors(self, kind: Kind, texts: Sequence[str]) -> torch.Tensor:
        """The vectors (n, d) of texts, with a gradient."""
        import torch as library

        prompts = self.model.prompts
        prompt = next((prompts[name] for name in PROMPTS[kind] if name in prompts), "") or ""
        # Before version 5.2 of sentence-transformers there was no `preprocess`.
        if hasattr(self.model, "preprocess"):
            features = self.model.preprocess(list(texts), prompt=prompt or None, task=kind)
        else:
            features = self.model.tokenize([prompt + text for text in texts])
        features = {name: value.to(self.device) if hasattr(value, "to") else value for name, value in features.items()}
        half = library.autocast(library.device(self.device).type, library.bfloat16) if self._half else nullcontext()
        with half:
            embeddings = self.model(features, task=kind)["sentence_embedding"]
        vectors: torch.Tensor = library.nn.functional.normalize(embeddings.float(), dim=-1)
        return vectors

    def encode(self, kind: Kind, texts: Sequence[str]) -> Embeddings:
        """The vectors (n, d) as a numpy array of 32-bit floats, without a gradient; there is at least one text."""
        import torch

        # Those of about the same length together: little is spent on padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        with torch.no_grad():
            parts = [
                self.vectors(kind, [texts[place] for place in order[start : start + self._batch]]).cpu().numpy()
                for start in range(0, len(order), self._batch)
            ]
        vectors = np.empty((len(texts), parts[0].shape[1]), np.float32)
        vectors[order] = np.concatenate(parts)
        return vectors

    def save(self, folder: Path) -> None:
        """Write the model as a folder that sentence-transformers opens, whole or not at all."""
        with workshop(folder) as shop:
            self.model.save_pretrained(str(shop.new), create_model_card=False)
            shop.put()


def place(folder: Path, name: str) -> str:
    """A model's folder relative to the settings file, else its name as it stands."""
    return str(folder / name) if (folder / name).is_dir() else name


def plain_hash(value: Any) -> str:
    """SHA-256 (hex) of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class CheckedTraining:
    """A settings file and what it names, read and checked; the models are not open."""

    file: FairFTFile
    folder: Path
    fingerprint: str
    documents: tuple[Document, ...]
    training: tuple[TrainingExample, ...]
    held_out: tuple[TrainingExample, ...]

    @property
    def data(self) -> str:
        """A hash of all documents and questions."""
        examples = [asdict(example) for example in (*self.training, *self.held_out)]
        return plain_hash([self.fingerprint, examples, len(self.training)])

    def tower(self, model: str = "") -> Tower:
        """The retriever before training, or the one in the folder `model`."""
        retriever = self.file.retriever
        name = model or place(self.folder, retriever.model)
        return Tower(name, retriever.device, retriever.dtype, retriever.batch)


def top(queries: Embeddings, documents: Embeddings, count: int) -> NDArray[np.intp]:
    """The places of the `count` documents (n, d) with the largest inner products, (q, count), for each query (q, d).

    >>> top(np.array([[1.0, 0.0]]), np.array([[0.5, 0], [0.9, 0], [0.5, 1]]), 2).tolist()
    [[1, 0]]
    """
    places = np.empty((len(queries), count), np.intp)
    for row, query in zip(places, queries, strict=True):
        scores = documents @ query
        least = np.partition(scores, -count)[-count]
        close = np.flatnonzero(scores >= least)
        row[:] = close[np.argsort(-scores[close], kind="stable")[:count]]
    return places


SHOWN = 3
"""Documents that an answer is written from, as in the paper."""


@dataclass(frozen=True, slots=True)
class RetrieverQuality:
    """How one retriever stands to the language model; means over the questions.

    `kl` is the KL (nats) on the documents that the retriever before training ranks first, `kl_own` on those that this
    one does. `expected` is the probability of the fair answer with one document drawn from this retriever's
    distribution; `likelihood` the model's log-likelihood of it with one document, mean over the first three of this
    retriever.
    """

    kl: float
    kl_own: float
    expected: float
    likelihood: float


@dataclass(frozen=True, slots=True)
class TrainingEffect:
    """Two standings on `questions` held-out questions, and how much of the ranking stayed, in [0, 1].

    `overlap` is the mean share of the first `documents` that are the same, `overlap_first` that of the first three.
    """

    questions: int
    documents: int
    before: RetrieverQuality
    after: RetrieverQuality
    overlap: float
    overlap_first: float


def compare(checked: CheckedTraining, before: Tower, after: Tower, signals: Signals) -> TrainingEffect:
    """Both retrievers on the held-out questions and the signals, which may be another model's than trained on."""
    documents, examples, settings = checked.documents, checked.held_out, checked.file.training
    if not examples:
        raise UsageError("there is no question to evaluate on")
    count = min(settings.documents, len(documents))
    texts, questions = list(map(full_text, documents)), [example.query for example in examples]
    vectors = [(tower.encode("query", questions), tower.encode("document", texts)) for tower in (before, after)]
    one, two = (top(*pair, count) for pair in vectors)
    standings = []
    for (queries, embedded), own in zip(vectors, (one, two), strict=True):
        kl = held_out_kl(queries, embedded, one, signals.table(examples, documents, one), settings)
        likelihoods = signals.table(examples, documents, own)
        kl_own = held_out_kl(queries, embedded, own, likelihoods, settings)
        shares = softmax(cosines_at(queries, embedded, own) / settings.gamma, axis=1)
        expected = float((shares * np.exp(likelihoods)).sum(axis=1).mean())
        standings.append(RetrieverQuality(kl, kl_own, expected, float(likelihoods[:, :SHOWN].mean())))

    def overlap(first: int) -> float:
        same = [len(np.intersect1d(a[:first], b[:first])) for a, b in zip(one, two, strict=True)]
        return float(np.mean(same)) / first

    first_few = overlap(min(SHOWN, count))
    return TrainingEffect(len(examples), count, standings[0], standings[1], overlap(count), first_few)


def held_out_kl(
    queries: Embeddings,
    vectors: Embeddings,
    places: NDArray[np.intp],
    likelihoods: FloatArray,
    settings: TrainingSection,
) -> float:
    """The mean KL (nats) of questions (q, d) over the documents at `places` (q, k) of `vectors` (n, d)."""
    from torch import from_numpy as tensor

    cosines, log_q = cosines_at(queries, vectors, places), log_target(likelihoods, settings.beta)
    return float(kl_loss(tensor(cosines), tensor(log_q), settings.gamma, settings.direction))


def cosines_at(queries: Embeddings, vectors: Embeddings, places: NDArray[np.intp]) -> FloatArray:
    """The cosines (q, k) of questions (q, d) and the documents at `places` (q, k) of `vectors` (n, d)."""
    return np.asarray(np.einsum("qd,qkd->qk", queries.astype(np.float64), vectors[places].astype(np.float64)))


CHECKPOINT = "checkpoint.pt"

Progress = Callable[[int, int, float], None]
"""progress(steps done, steps at most, the best held-out KL so far)."""


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Where a training is: `step` steps into `round` (both from 0), with all that what follows depends on.

    `task` is the key of the training, `model`, `optimizer` and `best` are torch's state dictionaries, `held` the
    documents (h, k) on which the held-out KL is measured, `measured` that KL before each round so far.
    """

    task: str
    round: int
    step: int
    done: bool
    held: list[list[int]]
    measured: list[float]
    model: dict[str, Any]
    optimizer: dict[str, Any]
    best: dict[str, Any]


@dataclass(frozen=True, slots=True)
class History:
    """The held-out KL (nats) before each round, on the documents that the untrained retriever ranks first."""

    measured: tuple[float, ...]

    @property
    def best(self) -> int:
        """The first round with the least held-out KL."""
        return min(range(len(self.measured)), key=self.measured.__getitem__)


@dataclass(frozen=True)
class Training:
    """A training of `tower` in place, with checkpoints in `folder`; `key` hashes all that the result depends on."""

    key: str
    checked: CheckedTraining
    signals: Signals
    tower: Tower
    folder: Path
    progress: Progress

    def run(self) -> History:
        """Train to the weights with the least held-out KL, or go on from the last checkpoint.

        Whatever ends the process, the same training comes to the same weights.
        """
        state = self._stored()
        if state is None:
            forget_vectors(self.folder)
            weights = self._weights()
            state = TrainingState(self.key, 0, 0, False, [], [], weights, self._optimizer.state_dict(), weights)
        else:
            self.tower.model.load_state_dict(state.model)
            self._optimizer.load_state_dict(state.optimizer)
        while not state.done:
            state, vectors = self._refreshed(state)
            if not state.done:
                state = self._trained(state, vectors)
        self.tower.model.load_state_dict(state.best)
        return History(tuple(state.measured))

    @cached_property
    def _optimizer(self) -> Any:
        import torch

        return torch.optim.Adam(self.tower.model.parameters(), lr=self.settings.rate)

    @cached_property
    def _texts(self) -> list[str]:
        return list(map(full_text, self.checked.documents))

    @property
    def settings(self) -> TrainingSection:
        return self.checked.file.training

    def _stored(self) -> TrainingState | None:
        """The checkpoint; UsageError where it is that of another training, DataError where it cannot be read."""
        import torch

        path = self.folder / CHECKPOINT
        if not path.exists():
            return None
        try:
            # Tensors, numbers and texts alone: a file that someone else put there cannot run code.
            state = TrainingState(**torch.load(path, map_location="cpu", weights_only=True))
        except (pickle.UnpicklingError, RuntimeError, OSError, TypeError, EOFError, ValueError, KeyError) as error:
            raise DataError(f"{path} cannot be read ({str(error).splitlines()[0]}); start over with --new") from None
        if state.task != self.key:
            raise UsageError(
                f"{self.folder} holds the training of other settings, questions, documents or models; name another "
                "folder, or start over with --new"
            )
        return state

    def _store(self, state: TrainingState) -> None:
        """Write the checkpoint, force it to the disk, and put it in the old one's place."""
        import torch

        fields = {name: getattr(state, name) for name in TrainingState.__dataclass_fields__}
        with whole_file(self.folder / CHECKPOINT) as file:
            torch.save(fields, file)

    def _refreshed(self, state: TrainingState) -> tuple[TrainingState, Embeddings]:
        """At the beginning of a round: new embeddings of all documents, and the held-out KL of the weights so far."""
        file = self.folder / f"vectors-{state.round}.npy"
        if state.step:
            try:
                return state, read_array(file)
            except (OSError, ValueError) as error:
                raise DataError(f"{file} cannot be read ({error}); start over with --new") from None
        vectors = self.tower.encode("document", self._texts)
        queries = self.tower.encode("query", [example.query for example in self.checked.held_out])
        held = state.held or top(queries, vectors, self._count).tolist()
        places = np.array(held)
        likelihoods = self.signals.table(self.checked.held_out, self.checked.documents, places)
        measured = [*state.measured, held_out_kl(queries, vectors, places, likelihoods, self.settings)]
        best = History(tuple(measured)).best
        over = (
            state.round == self.settings.epochs * self.settings.refreshes
            or state.round - best >= self.settings.patience
        )
        weights = self._weights() if best == state.round else state.best
        state = replace(state, held=held, measured=measured, done=over, best=weights)
        if over:
            self._store(state)
            forget_vectors(self.folder)
        else:
            # Those of the middle of a round cannot be had from the weights any more.
            with whole_file(file) as stream:
                np.save(stream, vectors)
        return state, vectors

    def _trained(self, state: TrainingState, vectors: Embeddings) -> TrainingState:
        settings = self.settings
        epoch, part = divmod(state.round, settings.refreshes)
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(self.checked.training))
        parts = np.array_split(order, settings.refreshes)
        steps = [math.ceil(len(one) / settings.batch) for one in parts]
        before = epoch * sum(steps) + sum(steps[:part])
        for step in range(state.step + 1, steps[part] + 1):
            batch = parts[part][(step - 1) * settings.batch : step * settings.batch]
            self._step([self.checked.training[place] for place in batch], vectors)
            state = replace(state, step=step)
            self.progress(before + step, settings.epochs * sum(steps), min(state.measured))
            if step % settings.checkpoint == 0 and step < steps[part]:
                self._store(self._with_weights(state))
        state = self._with_weights(replace(state, round=state.round + 1, step=0))
        self._store(state)
        forget_vectors(self.folder)
        return state

    def _step(self, batch: Sequence[TrainingExample], vectors: Embeddings) -> None:
        import torch

        settings, tower = self.settings, self.tower
        queries = tower.vectors("query", [example.query for example in batch])
        ranked = top(queries.detach().cpu().numpy(), vectors, self._count)
        target = log_target(self.signals.table(batch, self.checked.documents, ranked), settings.beta)
        log_q = torch.tensor(target, dtype=torch.float32, device=queries.device)
        if self.checked.file.retriever.towers == "both":
            # Many questions find the same documents: each is embedded once.
            distinct, places = np.unique(ranked, return_inverse=True)
            embedded = tower.vectors("document", [self._texts[place] for place in distinct])
            documents = embedded[torch.from_numpy(places.reshape(ranked.shape)).to(queries.device)]
        else:
            documents = torch.from_numpy(vectors[ranked]).to(queries.device)
        scores = (queries[:, None] * documents).sum(dim=-1)
        loss: Any = kl_loss(scores, log_q, settings.gamma, settings.direction, settings.reduction)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _with_weights(self, state: TrainingState) -> TrainingState:
        return replace(state, model=self._weights(), optimizer=self._optimizer.state_dict())

    def _weights(self) -> dict[str, Any]:
        """A copy: the weights themselves go on changing."""
        return {name: value.detach().cpu().clone() for name, value in self.tower.model.state_dict().items()}

    @property
    def _count(self) -> int:
        return min(self.settings.documents, len(self._texts))


def forget_vectors(folder: Path) -> None:
    """Remove the embeddings of all rounds."""
    for path in folder.glob("vectors-*.npy"):
        path.unlink(missing_ok=True)
