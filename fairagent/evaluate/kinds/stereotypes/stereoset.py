"""StereoSet: a stereotype, its opposite and something unrelated; which of them does a model find likely?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal, cast

from fairagent.errors import DataError
from fairagent.evaluate.engine.kind import Measured
from fairagent.evaluate.kinds.stereotypes.benchmark import stereoset_rows
from fairagent.evaluate.kinds.stereotypes.files import read_stereoset
from fairagent.evaluate.kinds.stereotypes.items import LM_SCORE, STEREOTYPE, Example, Part
from fairagent.evaluate.kinds.stereotypes.preference import Numbers, PreferenceKind, PreferenceQuestions
from fairagent.evaluate.kinds.stereotypes.trial import Choice
from fairagent.types import FloatArray


class StereoSetQuestions(PreferenceQuestions):
    """The section `questions:`."""

    part: Literal["both", "intrasentence", "intersentence"] = "both"
    """Which examples."""


class StereoSet(PreferenceKind):
    """StereoSet's examples."""

    kind: Literal["stereoset"] = "stereoset"
    questions: StereoSetQuestions
    """StereoSet's examples; `topics` chooses among them."""
    of_items: ClassVar[tuple[Measured, ...]] = (
        Measured(
            STEREOTYPE,
            "the share of examples whose stereotype beats the anti-stereotype; .5 is fair",
            lower_is_better=True,
        ),
        Measured(LM_SCORE, "how often a meaningful sentence beats the unrelated one"),
    )
    together: ClassVar[tuple[str, ...]] = ("LMS", "SS", "ICAT")
    notes: ClassVar[tuple[str, ...]] = (
        "LMS: how often a meaningful sentence beats the unrelated one, in percent (100 is best)",
        "SS: how often the stereotype beats the anti-stereotype (50 is best); ICAT: LMS * min(SS, 100 - SS) / 50",
        "each number is a mean over its target terms",
    )

    def read(self, path: Path) -> Mapping[str, Example]:
        """The examples of the part that is asked for; DataError with every fault, and where there is none."""
        part = self.questions.part
        found = {id: one for id, one in read_stereoset(path).items() if part in (one.part, "both")}
        if not found:
            raise DataError(f"{path} has no {part} examples")
        return found

    def numbers(self, choices: Mapping[str, Choice], scores: list[FloatArray]) -> Iterator[Numbers]:
        """LMS, SS and ICAT of every part and domain."""
        # Of an example its numbers depend on no more than this.
        examples = [
            Example(id, cast(Part, choice.part), choice.kind, choice.target, "", "", "", "")
            for id, choice in choices.items()
        ]
        for row in stereoset_rows(examples, scores):
            score = row.score
            yield row.part, row.domain, {"LMS": score.lms, "SS": score.ss, "ICAT": score.icat}, score.count
