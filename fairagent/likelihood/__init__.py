"""Likelihoods of texts by language models: local models, and servers that return log-probabilities."""

from fairagent.likelihood.likelihood import Likelihood, perplexity

__all__ = ["Likelihood", "perplexity"]
