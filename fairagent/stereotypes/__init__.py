"""What language models and encoders prefer: StereoSet, CrowS-Pairs, SEAT and WEAT."""

from fairagent.stereotypes.items import Example, Item, Pair
from fairagent.stereotypes.scorers import CausalScorer, MaskedScorer, Scored, Scorer

__all__ = ["CausalScorer", "Example", "Item", "MaskedScorer", "Pair", "Scored", "Scorer"]
