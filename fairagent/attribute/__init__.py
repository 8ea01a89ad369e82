"""Attribution: which context documents an answer rests on (citations, entailment, a judge model, embeddings)."""

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
