"""Attribution by entailment (NLI): an answer rests on the documents that entail it.

Source: Kim & Diaz, Towards Fair RAG, ICTIR 2025 (there with roberta-large-mnli).
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fairagent.answer.answering import no_attribution, statement
from fairagent.answer.filtering import page_of
from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.storage.packages import load, read_config
from fairagent.types import Answer, Attribution, Document

WHAT = "classifier of text pairs"
BATCH = 8
"""Pairs that the model reads at a time."""
SHORTEST_PREMISE = 32
"""Tokens of each document that a model reads at least, however long the answer is."""


class NliAttributor:
    """Lets a transformers model for natural language inference decide whether each document entails the answer.

    `name` is a model's folder, or its name in the Hugging Face cache (nothing is downloaded); `device` is torch's. The
    premise is the document, the hypothesis the answer without its citations. A document weighs 1 if "entailment", as
    the model's own `id2label` names it, is the likeliest label, else 0. A pair longer than the model takes loses the
    end of its premise. Threads may share it.

    Raises BackendUnavailable where the package or the model is missing, or the model has no such label.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        self._tokenizer, self._model = load("AutoModelForSequenceClassification", name, device, what=WHAT)
        self._entailment = entailment_label(self._model.config.id2label, name)
        # A tokenizer that knows no limit has 1e30. RoBERTa's positions start at 2.
        longest = int(self._tokenizer.model_max_length)
        positions = int(getattr(self._model.config, "max_position_embeddings", 0)) or 512
        self._limit = min(longest, positions if longest <= positions else positions - 2)
        self._lock = threading.Lock()

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """See `Attributor.attribute`; `notes` says where an answer was too long to be read whole."""
        hypothesis = statement(answer)
        if nothing := no_attribution("nli", "entailing", hypothesis, documents):
            return nothing
        premises = [f"{page.title}\n{page.text}".strip() for page in map(page_of, documents)]
        import torch

        options = {"truncation": "only_first", "max_length": self._limit, "padding": True, "return_tensors": "pt"}
        entailed: list[Any] = []
        # Fast tokenizers change their padding and truncation in place, which other threads would see.
        with self._lock:
            hypothesis, notes = self._fitting(hypothesis)
            for start in range(0, len(premises), BATCH):
                some = premises[start : start + BATCH]
                pairs = self._tokenizer(some, [hypothesis] * len(some), **options).to(self._model.device)
                with torch.inference_mode():
                    labels = self._model(**pairs).logits.argmax(dim=-1)
                entailed.append((labels == self._entailment).cpu().numpy())
        return Attribution("nli", np.concatenate(entailed).astype(np.float64), notes, called="entailing")

    def _fitting(self, hypothesis: str) -> tuple[str, tuple[str, ...]]:
        """The hypothesis, cut only where it would leave no room for a premise; and a note then."""
        marks = self._tokenizer.num_special_tokens_to_add(pair=True)
        room = self._limit - marks - min(SHORTEST_PREMISE, self._limit // 2)
        tokens = self._tokenizer(hypothesis, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets = tokens["offset_mapping"]
        if len(offsets) <= room:
            return hypothesis, ()
        note = f"the answer has {len(offsets)} tokens, of which {self.name} read {room}"
        return hypothesis[: offsets[room - 1][1]], (note,)


def entailment_label(id2label: Mapping[int, str], name: str) -> int:
    """The number of the label "entailment", whatever its case; raises BackendUnavailable where there is none.

    >>> entailment_label({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, "roberta-large-mnli")
    2
    """
    numbers = [int(number) for number, label in id2label.items() if label.strip().lower() in ("entailment", "entail")]
    if len(numbers) != 1:
        raise BackendUnavailable(
            f"the model {name!r} has the labels {', '.join(map(str, id2label.values()))}; a model for natural language "
            'inference is needed, one of whose labels is "entailment"'
        )
    return numbers[0]


class NliConfig(Part):
    """By entailment, with a local model."""

    kind: Literal["nli"] = "nli"
    encoder: str = ""
    """The model's folder, or its name in the Hugging Face cache. It has to be given."""

    def check(self, site: Site) -> None:
        entailment_label(read_config(self._named(), WHAT).id2label, self.encoder)

    def build(self, site: Site) -> NliAttributor:
        return NliAttributor(self._named())

    def _named(self) -> str:
        if not self.encoder:
            raise SettingsError(
                "attribute is nli, which needs a local model for natural language inference: give its folder, or its "
                "name in the Hugging Face cache, as `attribute: {encoder: ...}`"
            )
        return self.encoder
