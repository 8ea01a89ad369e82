"""Attribution by the answer's own citations: costs nothing, and trusts the generator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairagent.errors import UsageError
from fairagent.settings import Part
from fairagent.site import Site
from fairagent.types import Answer, Attribution, Document


@dataclass(frozen=True, slots=True)
class CitationAttributor:
    """An answer rests on the documents that it cites: weight 1, all others 0."""

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """See `Attributor.attribute`. Raises UsageError where a citation is no document's number.

        >>> context = [Document("d7", "A court."), Document("d3", "A judge.")]
        >>> CitationAttributor().attribute("law", Answer("A judge [2].", cited=(2,)), context).weights.tolist()
        [0.0, 1.0]
        """
        weights = np.zeros(len(documents))
        for number in answer.cited:
            if not 1 <= number <= len(documents):
                raise UsageError(f"the answer cites document {number}, but its context has {len(documents)}")
            weights[number - 1] = 1.0
        notes = () if answer.cited else ("the answer cites nothing",)
        return Attribution("citations", weights, notes)


class CitationConfig(Part):
    """By the answer's citations."""

    kind: Literal["citations"] = "citations"

    def build(self, site: Site) -> CitationAttributor:
        """The attributor."""
        return CitationAttributor()
