"""Who says how a text speaks of people: a classifier of texts on this machine, or a list of words in its place."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol, Self

from pydantic import Field

from fairagent.extend import (
    LABELS,
    BackendUnavailable,
    DataError,
    FileSection,
    JsonObject,
    Label,
    SettingsError,
    file_hash,
    load,
    longest_input,
    read_config,
    read_yaml,
)

SHIPPED = Path(__file__).with_name("regard.yaml")
WHAT = "classifier of texts"
_WORD = re.compile(r"[^\W\d_]+")


class Classifier(Protocol):
    """Anything that says how a text speaks of people; threads may share it."""

    def label(self, text: str) -> Label:
        """The class of a text."""
        ...


class WordList:
    """By the words of a text: more good ones than bad ones is positive, fewer negative, as many other, none neutral.

    >>> WordList({"kind"}, {"lazy"}).label("The kind clerk was lazy, and kind.")
    'positive'
    """

    def __init__(self, positive: set[str], negative: set[str]) -> None:
        self._positive, self._negative = positive, negative

    @classmethod
    def read(cls, path: Path) -> WordList:
        """The words of a YAML file, lists under `positive` and `negative`; SettingsError, DataError for another."""
        tree = read_yaml(path)
        lists = [tree.get(name) for name in ("positive", "negative")]
        if not all(
            isinstance(words, list) and words and all(isinstance(word, str) for word in words) for words in lists
        ):
            raise DataError(f"{path}: expected lists of words under `positive` and `negative`")
        positive, negative = ({word.lower() for word in words or ()} for words in lists)
        if both := sorted(positive & negative):
            raise DataError(f"{path}: {both[0]!r} is both positive and negative")
        return cls(positive, negative)

    def label(self, text: str) -> Label:
        """See `Classifier.label`."""
        words = _WORD.findall(text.lower())
        good, bad = (sum(word in found for word in words) for found in (self._positive, self._negative))
        if good == bad:
            return "other" if good else "neutral"
        return "positive" if good > bad else "negative"


class TextClassifier:
    """By a transformers model for text classification, whose labels mean what `meaning` says (number -> class).

    A text that is longer than the model reads loses its end. Raises what `fairagent.storage.packages.load` raises.
    """

    def __init__(self, name: str, meaning: Mapping[int, Label], device: str = "") -> None:
        self._tokenizer, self._model = load("AutoModelForSequenceClassification", name, device, what=WHAT)
        self._meaning = meaning
        self._limit = min(longest_input(self._tokenizer, self._model), 512)
        self._lock = threading.Lock()

    def label(self, text: str) -> Label:
        """See `Classifier.label`."""
        torch = importlib.import_module("torch")
        # Fast tokenizers change their truncation in place, which other threads would see.
        with self._lock:
            read = self._tokenizer(text, truncation=True, max_length=self._limit, return_tensors="pt")
        with torch.inference_mode():
            scores = self._model(**read.to(self._model.device)).logits
        return self._meaning[int(scores[0].argmax())]


class RegardSection(FileSection):
    """The section `regard:`: who says how a text speaks of people."""

    kind: Literal["lexicon", "transformers"] = "lexicon"
    """transformers: a classifier of texts on this machine; lexicon: a list of words, a stand-in that is no judge."""
    name: str = ""
    """transformers: the model's folder, or its name in the Hugging Face cache."""
    labels: dict[str, Label] = Field(default={}, examples=[{"toxic": "negative", "non-toxic": "neutral"}])
    """transformers: what its labels mean, where they are not called positive, neutral, negative and other."""
    path: str = ""
    """lexicon: a YAML file with lists under `positive` and `negative`, relative to this file; empty: a short one in
    English."""
    device: str = ""
    """transformers: torch's; empty: a GPU where there is one."""

    def relative_to(self, folder: Path) -> Self:
        """With the path from anywhere."""
        return super().relative_to(folder) if self.path else self

    @property
    def way(self) -> str:
        """Who says it, for tables."""
        return f"the classifier {self.name}" if self.kind == "transformers" else "a list of words, which is no judge"

    @property
    def _words(self) -> Path:
        return Path(self.path) if self.path else SHIPPED

    def fingerprint(self) -> JsonObject:
        """What the classes depend on."""
        if self.kind == "lexicon":
            return {"kind": self.kind, "words": file_hash(self._words)}
        return self.model_dump(exclude={"path", "device"})

    def check(self) -> None:
        """Raise what `open` would, without reading the weights."""
        if self.kind == "lexicon":
            WordList.read(self._words)
        else:
            self._meaning()

    def open(self) -> Classifier:
        """The classifier.

        BackendUnavailable where the model or its package is missing, or a label of it is none of ours and not told;
        SettingsError without a name, DataError for a list with faults.
        """
        if self.kind == "lexicon":
            return WordList.read(self._words)
        return TextClassifier(self.name, self._meaning(), self.device)

    def _meaning(self) -> dict[int, Label]:
        if not self.name:
            raise SettingsError("regard is transformers, which needs a model: give its folder or name as `name`")
        told: dict[str, Label] = {label: label for label in LABELS}
        told |= {name.lower(): label for name, label in self.labels.items()}
        own = {int(number): str(name) for number, name in read_config(self.name, WHAT).id2label.items()}
        if strange := [name for name in own.values() if name.lower() not in told]:
            raise BackendUnavailable(
                f"the model {self.name!r} has the label {strange[0]!r}: say under `labels` which of "
                f"{', '.join(LABELS)} it means"
            )
        return {number: told[name.lower()] for number, name in own.items()}
