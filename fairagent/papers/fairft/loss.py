"""FairFT's loss: the divergence between the retriever's and the language model's distribution over documents.

With cosines s, the log-likelihoods l of the answer, and temperatures gamma and beta (both > 0):
    P_R(d|q) = softmax_d(s_d / gamma)        Q_LM(d|q, a) = softmax_d(exp(l_d) / beta)
The paper's loss is KL(P_R || Q_LM), its mean over the questions; the released code computes KL(Q_LM || P_R) / k.
Arrays have the shape (b, k): b questions, k documents each. Everything is done in logarithms until exp(l).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import log_softmax

from fairagent.errors import DataError
from fairagent.types import FloatArray

if TYPE_CHECKING:
    import torch

Direction = Literal["p-q", "q-p"]
"""KL(P_R || Q_LM), the paper's, or KL(Q_LM || P_R), the code's."""
Reduction = Literal["mean", "documents"]
"""The mean over the questions, or that divided by k, as the code has it."""


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
