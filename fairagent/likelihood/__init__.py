"""How likely language models find texts: models on this machine, and servers that tell their log-probabilities."""

from fairagent.likelihood.likelihood import Likelihood, perplexity

__all__ = ["Likelihood", "perplexity"]
