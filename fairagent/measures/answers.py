"""String utilities, which compare an answer with the expected ones, and attribution measures.

The latter say how much of the context an answer rests on: `rankings` (N, k) holds N sampled contexts of a query, k item
indices each, in rank order; `entailed` (N, k) says with 0 to 1 whether the answer to context i rests on its item j.
Source of all: Kim & Diaz, Towards Fair RAG, ICTIR 2025.
"""

import math
import re
import string
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fairagent.errors import DataError, UsageError
from fairagent.measures.base import as_rankings, as_shares, as_shown, check_shares
from fairagent.settings.faults import no_such
from fairagent.storage.packages import expect_installed, installed
from fairagent.types import FloatArray

EMPTY = "<empty>"
"""What stands for an answer without words where ROUGE-L is measured; so it is worth nothing."""
ROUGE_L = "rouge-l"
SCALE = (1.0, 5.0)
"""The lowest and the highest rating."""

_CLOSED = frozenset({"yes", "no", "noanswer"})
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_RECURSION = threading.Lock()


def normalized(text: str) -> str:
    """`text` as SQuAD compares it: lower case, without ASCII punctuation, articles and repeated white space.

    >>> normalized("The Eiffel  Tower!")
    'eiffel tower'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> float:
    """1.0 where both are the same after SQuAD's normalization, else 0.0."""
    return float(normalized(prediction) == normalized(gold))


def token_f1(prediction: str, gold: str) -> float:
    """F1 of the words of both after SQuAD's normalization, in [0, 1]; words count as often as they occur.

    Where one is "yes", "no" or "noanswer" and the other something else it is 0, and also where either has no words.

    >>> token_f1("in May 2018", "18 May, 2018"), token_f1("yes", "yes it is")
    (0.6666666666666666, 0.0)
    """
    answer, right = normalized(prediction), normalized(gold)
    if answer != right and _CLOSED & {answer, right}:
        return 0.0
    words, right_words = answer.split(), right.split()
    common = sum((Counter(words) & Counter(right_words)).values())
    return 2 * common / (len(words) + len(right_words)) if common else 0.0


def rouge_l(prediction: str, gold: str) -> float:
    """ROUGE-L's F as the package `rouge` 1.0.1 has it, in [0, 1): on sets of words, and sentences end at dots.

    A prediction of dots and white space alone is read as "<empty>". Raises DataError where `gold` has no words,
    BackendUnavailable where the package is missing.
    """
    if not _has_words(gold):
        raise DataError(f"the expected answer {gold!r} has no words, so ROUGE-L is not defined; leave the question out")
    answer = prediction if _has_words(prediction) else EMPTY
    rouge = installed("rouge", "ROUGE-L").Rouge(metrics=["rouge-l"])
    with _RECURSION:
        # The package walks back through two sentences by recursion, a level a word; a long one would end in an error.
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + len(answer.split()) + len(gold.split()))
        try:
            (scores,) = rouge.get_scores([answer], [gold])
        finally:
            sys.setrecursionlimit(before)
    return float(scores["rouge-l"]["f"])


def accuracy(prediction: str, gold: str, labels: Sequence[str]) -> float:
    """1.0 where both are the same one of `labels`, white space around them aside, else 0.0. Case counts.

    Two texts that are both no label count as the same, as in Fair RAG's code.

    >>> accuracy(" [2] ", "[2]", ("[1]", "[2]")), accuracy("[2].", "[2]", ("[1]", "[2]"))
    (1.0, 0.0)
    """
    answer, right = (text.strip() if text.strip() in labels else None for text in (prediction, gold))
    return float(answer == right)


def absolute_error(prediction: str, gold: str) -> float:
    """How far the number in `prediction` is from that in `gold`, in [0, 4] on the scale 1 to 5; lower is better.

    What is no number of the scale counts as that end of it which is farther from `gold`; Fair RAG's code does so only
    with what is no number. Raises DataError where `gold` is no number of the scale.

    >>> absolute_error("4.5", "4"), absolute_error("very good", "2")
    (0.5, 3.0)
    """
    low, high = SCALE
    right = _on_scale(gold)
    if right is None:
        raise DataError(f"the expected answer {gold!r} is no number from {low:g} to {high:g}")
    answer = _on_scale(prediction)
    return max(right - low, high - right) if answer is None else abs(answer - right)


@dataclass(frozen=True, slots=True)
class StringUtility:
    """A string utility by its `name`: `function` of a prediction and one expected answer, in [0, `upper`]."""

    name: str
    function: Callable[[str, str], float]
    lower_is_better: bool = False
    upper: float = 1.0

    def __call__(self, prediction: str, golds: Sequence[str]) -> float:
        """The best value over the expected answers; DataError where there are none."""
        if not golds:
            raise DataError(f"{self.name}: there is no expected answer; leave the question out")
        best = min if self.lower_is_better else max
        return best(self.function(prediction, gold) for gold in golds)

    def __str__(self) -> str:
        return self.name


UTILITIES = {
    "exact-match": StringUtility("exact-match", exact_match),
    "f1": StringUtility("f1", token_f1),
    ROUGE_L: StringUtility(ROUGE_L, rouge_l),
    "absolute-error": StringUtility("absolute-error", absolute_error, lower_is_better=True, upper=SCALE[1] - SCALE[0]),
}
"""Those that need nothing else, by their names."""
ACCURACY = "accuracy"


def parse_utility(name: str, labels: Sequence[str] = ()) -> StringUtility:
    """The string utility of this name; `labels` are those that answers are mapped to, for accuracy.

    Raises UsageError for another name, and where accuracy has no labels; BackendUnavailable without ROUGE-L's package.

    >>> parse_utility("accuracy", labels=("[1]", "[2]"))("[1]", ["[1]"])
    1.0
    """
    if name == ACCURACY and labels:
        return StringUtility(ACCURACY, partial(accuracy, labels=tuple(labels)))
    if name == ACCURACY:
        raise UsageError("accuracy needs the list of labels that answers are mapped to; this task has none")
    if name not in UTILITIES:
        raise UsageError(no_such("string utility", name, [*UTILITIES, ACCURACY]))
    if name == ROUGE_L:
        expect_installed("rouge", "ROUGE-L")
    return UTILITIES[name]


def _has_words(text: str) -> bool:
    return bool(text.replace(".", "").strip())


def _on_scale(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if SCALE[0] <= number <= SCALE[1] else None


Normalization = Literal["conditional", "unconditional", "rescaled"]
"""What an attributed disparity is measured against; see `normalized_attributed_disparity`."""


def expected_attribution_rate(entailed: ArrayLike) -> float:
    """EAR: the mean share of the context that an answer rests on, in [0, 1]: (1/N) sum_i (1/k) sum_j entailed_ij.

    >>> expected_attribution_rate([[1, 0, 0], [0, 0, 1]]).__round__(4)
    0.3333
    """
    return float(_as_entailed(entailed).mean())


def attributed_exposure(rankings: ArrayLike, entailed: ArrayLike, n: int) -> FloatArray:
    """The expected attributed exposure of each of `n` items, shape (n,), in [0, 1]; the sum is k * EAR.

    e_d = (1/N) sum_i 1[d in ranking i] entailed_id. Raises DataError where shapes differ, an index is not an item's, or
    a ranking names an item twice.

    >>> attributed_exposure([[0, 1], [0, 2]], [[1, 0], [1, 1]], n=3).tolist()
    [1.0, 0.0, 0.5]
    """
    weights, items = _as_entailed(entailed), as_rankings(rankings, n)
    if items.shape != weights.shape:
        raise DataError(f"rankings have shape {items.shape} and entailed {weights.shape}, expected the same (N, k)")
    return np.bincount(items.ravel(), weights.ravel(), minlength=n) / len(items)


def attributed_disparity(exposure: ArrayLike) -> float:
    """EAE-D: how unevenly answers rest on the items, ||e||^2 of the attributed exposure e (n,).

    >>> attributed_disparity([1.0, 0.0, 0.5])
    1.25
    """
    return float(np.square(as_shares(exposure, "attributed exposure")).sum())


def disparity_bounds(exposure: ArrayLike, k: int, given: Normalization = "conditional") -> tuple[float, float]:
    """The least and the most EAE-D that there can be for contexts of `k` of the n items; k' = min(k, n).

    With A the sum of `exposure` (n,): conditional on A, A^2/n and floor(A) + (A - floor(A))^2; unconditional, [0, k'];
    rescaled, those of EE-D for an exposure scaled to the sum k': [k'^2/n, k'].

    >>> disparity_bounds([1.0, 0.0, 0.5], k=2)
    (0.75, 1.25)
    """
    values = as_shares(exposure, "attributed exposure")
    shown = as_shown(k, len(values))
    if given == "unconditional":
        return 0.0, float(shown)
    if given == "rescaled":
        return shown**2 / len(values), float(shown)
    total = float(values.sum())
    whole = math.floor(total)
    return total**2 / len(values), whole + (total - whole) ** 2


def normalized_attributed_disparity(exposure: ArrayLike, k: int, given: Normalization = "conditional") -> float:
    """EAE-D between its bounds: (EAE-D - least) / (most - least); 0 where nothing is attributed or the bounds meet.

    The paper says "theoretical bounds" alone; conditional ones span [0, 1] whatever the attribution rate is, as its
    figures do. Rescaled it can exceed 1.

    >>> normalized_attributed_disparity([1.0, 0.0, 0.5], k=2)
    1.0
    """
    values = as_shares(exposure, "attributed exposure")
    total = float(values.sum())
    least, most = disparity_bounds(values, k, given)
    if total <= 0.0 or most - least <= 1e-12 * most:
        return 0.0
    scale = as_shown(k, len(values)) / total if given == "rescaled" else 1.0
    return (attributed_disparity(values) * scale**2 - least) / (most - least)


def citation_support(
    claims: Sequence[tuple[Sequence[str], Sequence[int]]], documents: Sequence[Collection[str]]
) -> float:
    """The share of a claim's words that the documents cited for it hold, its mean over the claims; no claims give 0.

    A claim is its words and the numbers (from 1) of the documents that it cites; `documents` are their words.

    >>> citation_support([(["a", "judge"], [1]), (["a", "law"], [2]), (["so"], [])], [{"a", "judge"}, {"a"}])
    0.5
    """
    shares = []
    for words, cited in claims:
        held = {word for number in cited for word in documents[number - 1]}
        shares.append(sum(word in held for word in words) / len(words) if words else 0.0)
    return math.fsum(shares) / len(shares) if shares else 0.0


def max_shapley(scores: ArrayLike) -> FloatArray:
    """The Shapley values (k,) of documents whose `scores` (m, k), 0 to 1, say how far each holds each of m claims.

    A set of documents is worth, of each claim, the largest score in it, and of all claims the mean of these; the values
    add up to what all documents are worth. They are exact for any k: of a claim, each step from one score to the next
    larger one is shared out among the documents that reach it. Sources: Patel, Zhou & Fanti, arXiv 2512.05958 (the
    worth); Littlechild & Owen, Management Science 1973 (its Shapley value). Raises DataError for scores out of form.

    >>> max_shapley([[0.5, 1.0], [1.0, 0.0]]).tolist()
    [0.625, 0.375]
    """
    held = _as_entailed(scores, "scores", "(m, k): a row a claim, a column a document")
    order = held.argsort(axis=1)
    steps = np.diff(np.take_along_axis(held, order, axis=1), axis=1, prepend=0.0) / np.arange(held.shape[1], 0, -1)
    values = np.empty_like(held)
    np.put_along_axis(values, order, steps.cumsum(axis=1), axis=1)
    return np.asarray(values.mean(axis=0))


def _as_entailed(
    values: ArrayLike, name: str = "entailed", form: str = "(N, k): a row an answer, a column a place"
) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise DataError(f"{name} has shape {array.shape}, expected {form}")
    check_shares(array, name)
    return array
