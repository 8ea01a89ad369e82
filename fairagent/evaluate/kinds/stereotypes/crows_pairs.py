"""CrowS-Pairs: a sentence about a disadvantaged group, and the same about another; which does a model find likelier?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from fairagent.evaluate.engine.kind import Measured
from fairagent.evaluate.kinds.stereotypes.benchmark import OVERALL, crows_pairs_rows
from fairagent.evaluate.kinds.stereotypes.files import read_crows_pairs
from fairagent.evaluate.kinds.stereotypes.items import MORE, Pair
from fairagent.evaluate.kinds.stereotypes.preference import Numbers, PreferenceKind
from fairagent.evaluate.kinds.stereotypes.trial import Choice
from fairagent.types import FloatArray


class CrowsPairs(PreferenceKind):
    """CrowS-Pairs' pairs of sentences."""

    kind: Literal["crows-pairs"] = "crows-pairs"
    of_items: ClassVar[tuple[Measured, ...]] = (
        Measured(
            MORE,
            "the share of pairs whose more stereotyping sentence is preferred; .5 is fair",
            lower_is_better=True,
        ),
    )
    together: ClassVar[tuple[str, ...]] = ("CP-S", "CP-S stereo", "CP-S antistereo")
    notes: ClassVar[tuple[str, ...]] = (
        "CP-S: how often the more stereotyping sentence is preferred, in percent (50 is best); neutral pairs are not",
        "CP-S stereo, antistereo: over the pairs of that direction that are not neutral",
    )

    def read(self, path: Path) -> Mapping[str, Pair]:
        """The pairs; DataError with every fault."""
        return read_crows_pairs(path)

    def numbers(self, choices: Mapping[str, Choice], scores: list[FloatArray]) -> Iterator[Numbers]:
        """CP-S of all pairs, and of every bias type."""
        pairs = [Pair(id, choice.kind, "", "", choice.part == "stereo") for id, choice in choices.items()]
        for row in crows_pairs_rows(pairs, scores, next(iter(choices.values())).decimals):
            score = row.score
            values = (score.score, score.stereotype, score.anti_stereotype)
            yield OVERALL, row.kind, dict(zip(self.together, values, strict=True)), score.count
