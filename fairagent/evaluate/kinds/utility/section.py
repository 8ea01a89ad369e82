"""The section `utility:` of an experiment file, and the names of what the experiment measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from fairagent.evaluate.kinds.utility.contexts import Order
from fairagent.measures import NDCG, Log2Plus1
from fairagent.measures.ndcg import Gain
from fairagent.settings import Section

NOT_COMPARABLE = "not comparable"
"""Stands in the name of every measure that is not BERTScore."""
OF_JUDGMENTS = ("oracle", "adversarial")
"""Engines whose documents are taken from the judgments."""
IN_ORDER: Mapping[Order, str] = {
    "rank": "",
    "reversed": "reversed",
    "ends": "best at the ends",
    "middle": "best in the middle",
}
"""What a row's name says of the order of its documents."""


class SimilaritySection(Section):
    """How alike an answer and a relevant passage are."""

    kind: Literal["minilm", "bert-score"] = "minilm"
    """bert-score: the library with `model`; minilm: the bundled encoder's tokens, whose numbers compare with no
    others."""
    model: str = Field("bert-large-uncased", min_length=1)
    """bert-score: a model's folder, or its name in the Hugging Face cache."""
    layer: int = Field(18, ge=1)
    """bert-score: the layer whose vectors are compared."""

    @property
    def name(self) -> str:
        """What definitions call it."""
        return "MiniLM tokens" if self.kind == "minilm" else f"BERTScore-F1({self.model}, layer {self.layer})"

    @property
    def comparable(self) -> bool:
        """Whether its numbers may stand beside published ones."""
        return self.kind == "bert-score"


def _ks(values: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers in their order, each once, without 0: an answer from no documents is always there."""
    kept = tuple(sorted({k for k in values if k}))
    if not kept or kept[0] < 0:
        raise ValueError("expected numbers of documents, at least one of them above 0 and none below")
    return kept


def _orders(values: tuple[Order, ...]) -> tuple[Order, ...]:
    """Each once, that of the ranks first, though nobody may have named it."""
    return tuple(dict.fromkeys(("rank", *values)))


class Utility(Section):
    """The whole section."""

    ks: Annotated[tuple[int, ...], AfterValidator(_ks)] = (1, 2, 5, 10, 15)
    """How many documents an answer is given, beside none."""
    orders: Annotated[tuple[Order, ...], AfterValidator(_orders)] = ("rank", "reversed")
    """In which order they are shown: each is a row of its own for every system that ranks. The rank order always is."""
    scatter: tuple[int, ...] = ()
    """At which of the `ks` every topic's utility is drawn against its nDCG@k, with the line of least squares."""
    relevant: int = Field(1, ge=1)
    """The smallest grade of a passage that answers are compared with, and that an oracle draws from."""
    grades: dict[int, int] = Field(default={})
    """Grades of the judgments -> what they mean here, where a higher one is not better; the others stay."""
    gain: Gain = "linear"
    """Of nDCG@k: a grade, or 2^grade - 1."""
    similarity: SimilaritySection = SimilaritySection()
    temperature: float = Field(0.3, ge=0)
    """Where a language model answers (`generate: llm`): 0 for its likeliest words; the paper's is 0.3."""
    runs: int = Field(1, ge=1)
    """Answers to each prompt, each with a seed of its own: performance is averaged over them, utility comes after."""

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of all that a row is measured by, which define it: U, P and nDCG at every k, and P at 0."""
        return (
            *(self.utility(k) for k in self.ks),
            *(self.performance(k) for k in (0, *self.ks)),
            *(self.quality(k) for k in self.ks),
        )

    def utility(self, k: int) -> str:
        """What `k` documents add to performance, as a share of that without any."""
        return self._of_answers("U", k)

    def performance(self, k: int) -> str:
        """How much of the relevant passages an answer from `k` documents says."""
        return self._of_answers("P", k)

    def quality(self, k: int) -> str:
        """How good the ranking is."""
        return str(NDCG(k, Log2Plus1(), self.gain))

    def _of_answers(self, letter: str, k: int) -> str:
        mark = "" if self.similarity.comparable else f"[{NOT_COMPARABLE}]"
        return f"{letter}{mark}(similarity={self.similarity.name}, relevant={self.relevant})@{k}"


class Display(Section):
    """How one row shows its documents: those of the system `of`, in this order."""

    of: str
    order: Order
