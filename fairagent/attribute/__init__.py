"""Attribution: which context documents an answer rests on (citations, entailment, a judge model, embeddings)."""

from fairagent.attribute.attributor import Attributor, with_exposures
from fairagent.attribute.citations import CitationAttributor

__all__ = [
    "Attributor",
    "CitationAttributor",
    "with_exposures",
]
