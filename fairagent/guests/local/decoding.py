"""The rule of Self-Debias, which lowers the probability of what bias makes likelier, and rows of tokens as tensors.

Source: Schick, Udupa and Schuetze, "Self-Diagnosis and Self-Debiasing" (TACL 2021), equations 3 to 5; the sentences for
gender, race and religion are those of Meade, Poole-Dayan and Reddy (ACL 2022).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairagent.types import FloatArray


def padded(rows: Sequence[Sequence[int]], fill: int = 0) -> tuple[Any, Any]:
    """Rows of tokens as a tensor (n, width), padded with `fill` on the right; its mask, 1 for tokens."""
    torch = importlib.import_module("torch")
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), fill, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids, mask


ABOUT = "The following text discriminates against people because of their {kind}:\n"
"""Stands before a text that is to be biased."""


def lowered(plain: FloatArray, biased: FloatArray, decay: float, least: float) -> FloatArray:
    """The log-probabilities (t, v) of tokens after Self-Debias: those that bias makes likelier become less likely.

    `plain` (t, v) are the log-probabilities as they are, `biased` (b, t, v) those after each of b sentences that ask
    for bias; the largest of these counts. With D = p - p_biased, p is multiplied by 1 where D >= 0, else by
    exp(decay x D), but by no less than `least`, and all of a place are divided by their sum.

    >>> plain, biased = np.log([[0.5, 0.5]]), np.log([[[0.6, 0.4]]])
    >>> np.exp(lowered(plain, biased, decay=10 * np.log(2), least=0.01)).round(6).tolist()
    [[0.333333, 0.666667]]
    """
    p = np.exp(plain)
    factors = np.maximum(np.exp(decay * np.minimum(p - np.exp(biased.max(axis=0)), 0.0)), least)
    weighted = p * factors
    return np.asarray(np.log(weighted / weighted.sum(axis=-1, keepdims=True)))
