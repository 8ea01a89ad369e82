"""The `Attributor` protocol, what attributors share, and the group exposures of an attribution."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from fairagent.clean import visible
from fairagent.exposure import ExposureMeter
from fairagent.generate.citations import without_citations
from fairagent.measures import Discount, Uniform
from fairagent.types import Answer, Attribution, Document


class Attributor(Protocol):
    """Weighs the documents of an answer's context: any object with this method will do."""

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """How far `answer` to `query` rests on each of `documents`, the context in rank order.

        An empty answer rests on nothing. Raises ModelError where a model was asked and gave no usable reply.
        """
        ...


def nothing_to_ask(kind: str, said: object, documents: Sequence[Document]) -> Attribution | None:
    """The attribution where the answer says nothing (`said` is empty) or has no context; None where one is to be made.

    >>> nothing_to_ask("nli", "", [Document("d1", "A judge.")]).notes
    ('the answer is empty',)
    """
    if said and documents:
        return None
    return Attribution(kind, np.zeros(len(documents)), () if said else ("the answer is empty",))


def statement(answer: Answer) -> str:
    """What the answer says, without its citations and hidden characters: what is compared with a document.

    >>> statement(Answer("She was a judge [1], then a senator [2, 4-5]."))
    'She was a judge, then a senator.'
    """
    return without_citations(visible(answer.text)).strip()


ALIKE = Uniform()


def with_exposures(
    attribution: Attribution, ids: Sequence[str], meter: ExposureMeter, discount: Discount = ALIKE
) -> Attribution:
    """`attribution` with the exposures of its documents `ids` (the context in rank order), measured by `meter`.

    `retrieved` counts every document of the context, `exposures` each by how far the answer rests on it: the expected
    exposure of a group in what is attributed. All places weigh the same, since a model reads the whole context; another
    `discount` weighs both by rank. An answer that rests on nothing gives all groups 0.
    """
    places = discount(len(ids))
    return replace(
        attribution, exposures=meter.weigh(ids, places * attribution.weights), retrieved=meter.weigh(ids, places)
    )
