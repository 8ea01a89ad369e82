"""FairFT: fine-tuning a retriever against a frozen language model's likelihood of the fair answer.

Source: the FairFT paper (a retriever that learns from what lets a model give the fair answer); nothing here loads
torch before a model is opened.
"""

from fairagent.papers.fairft.loss import kl_gradient, kl_loss, log_target
from fairagent.papers.fairft.settings import TrainingExample, read_examples

__all__ = ["TrainingExample", "kl_gradient", "kl_loss", "log_target", "read_examples"]
