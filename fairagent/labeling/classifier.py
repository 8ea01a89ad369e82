"""Chances of groups from numbers about documents: a calibrated, cross-validated logistic regression (scikit-learn).

Whatever the method, a document comes as a row of numbers: its embedding, how often words of each group occur, what a
model says. How strongly the regression is held back is chosen by cross-validation among REGULARIZATION; a temperature,
by which the log-odds are divided, is fitted to the chances of examples that were held out (Guo et al., ICML 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.storage.packages import expect_installed
from fairagent.storage.threads import one_blas_thread
from fairagent.types import FloatArray

FOLDS = 5
REGULARIZATION = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""The inverse strengths that are tried, up to the first that is no better than the one before."""
TEMPERATURES = (0.25, 8.0)
LEAST = 1e-6
"""A chance that is smaller counts as this: nothing that was learned from examples is impossible."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelClassifier:
    """A fitted classifier: `held_out` (n, g) are the chances of its examples, each by those of the other folds."""

    model: Any
    temperature: float
    held_out: FloatArray

    def chances(self, rows: FloatArray) -> FloatArray:
        """The chance of each group, (n, g), of documents with these numbers, (n, k)."""
        with one_blas_thread():
            found: FloatArray = self.model.predict_proba(np.asarray(rows, np.float64))
        return tempered(found, self.temperature)


def fit(rows: FloatArray, groups: NDArray[np.intp], seed: int = 0) -> LabelClassifier:
    """The classifier of examples with these numbers (n, k) and groups (n,), 0 .. g - 1, three at least of each.

    Raises BackendUnavailable where scikit-learn is missing.
    """
    expect_installed("scikit-learn", "making labels", "labels")
    # Imported here: it takes a second to load.
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    rows = np.asarray(rows, np.float64)
    folds = StratifiedKFold(min(FOLDS, int(np.bincount(groups).min())), shuffle=True, random_state=seed)
    best: tuple[float, float, FloatArray] | None = None
    with one_blas_thread():
        for strength in REGULARIZATION:
            model = LogisticRegression(C=strength, max_iter=2000)
            found = cross_val_predict(model, rows, groups, cv=folds, method="predict_proba")
            loss = log_loss(found, groups)
            if best is not None and loss >= best[0] - 1e-9:
                # Weaker ones overfit more, and take the longest.
                break
            best = loss, strength, found
        assert best
        model = LogisticRegression(C=best[1], max_iter=2000).fit(rows, groups)
    temperature = best_temperature(best[2], groups)
    return LabelClassifier(model, temperature, tempered(best[2], temperature))


def log_loss(chances: FloatArray, groups: NDArray[np.intp]) -> float:
    """The mean of -ln of the true group's chance.

    >>> round(log_loss(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 0])), 4)
    0.3466
    """
    return -float(np.log(np.maximum(chances[np.arange(len(groups)), groups], LEAST)).mean())


def tempered(chances: FloatArray, temperature: float) -> FloatArray:
    """Chances (n, g) whose log-odds are divided by a temperature: above 1 they are less sure.

    >>> tempered(np.array([[0.8, 0.2]]), 2.0).round(4).tolist()
    [[0.6667, 0.3333]]
    """
    powered = np.maximum(chances, LEAST) ** (1.0 / temperature)
    spread: FloatArray = powered / powered.sum(axis=1, keepdims=True)
    return spread


def best_temperature(chances: FloatArray, groups: NDArray[np.intp]) -> float:
    """The temperature with the least log loss."""
    from scipy.optimize import minimize_scalar

    low, high = np.log(TEMPERATURES)
    found = minimize_scalar(
        lambda x: log_loss(tempered(chances, float(np.exp(x))), groups), bounds=(low, high), method="bounded"
    )
    return float(np.exp(found.x))
