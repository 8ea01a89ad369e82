"""Which documents of its context an answer rests on, by its citations, by entailment, by a judge, by likeness."""

from fairagent.attribute.attributor import Attributor, with_exposures
from fairagent.attribute.citations import CitationAttributor
from fairagent.attribute.embeddings import EmbeddingAttributor
from fairagent.attribute.judge import JudgeAttributor
from fairagent.attribute.nli import NliAttributor

__all__ = [
    "Attributor",
    "CitationAttributor",
    "EmbeddingAttributor",
    "JudgeAttributor",
    "NliAttributor",
    "with_exposures",
]
