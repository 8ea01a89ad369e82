"""Attribution by Shapley values: what each document of a context adds to the answer, over all orders of adding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fairagent.answer.answering import no_attribution, statement
from fairagent.answer.citations import claims_of, telling
from fairagent.measures.answers import max_shapley
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.types import Answer, Attribution, Document


@dataclass(frozen=True, slots=True)
class ShapleyAttributor:
    """A document weighs its Shapley value, whatever the answer cites; documents that say the same share it.

    A set of documents is worth the mean, over the answer's sentences, of the share of a sentence's words that the best
    of them holds: words of four letters or more, where it has any. As MaxShapley's (arXiv 2512.05958), with sentences
    in the place of the key points, and shared words in that of the scores, that a language model gives there. Exact for
    a context of any size.
    """

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """See `Attributor.attribute`; the weights add up to what all documents hold of the answer.

        >>> context = [Document("d7", "A court. A judge."), Document("d3", "A judge."), Document("d4", "A river.")]
        >>> ShapleyAttributor().attribute("law", Answer("A judge. The court [1]."), context).weights.tolist()
        [0.75, 0.25, 0.0]
        """
        if nothing := no_attribution("shapley", "credited", statement(answer), documents):
            return nothing
        claims, held = claims_of(answer, documents)
        wanted = [telling(words) for words, _ in claims]
        scores = [[len(claim & of) / len(claim) for of in held] for claim in wanted] or [[0.0] * len(held)]
        return Attribution("shapley", max_shapley(scores), called="credited")


class ShapleyConfig(Part):
    """By Shapley values: what each document adds to what the context holds of the answer's words; asks no model."""

    kind: Literal["shapley"] = "shapley"

    def build(self, site: Site) -> ShapleyAttributor:
        return ShapleyAttributor()
