"""The `Generator` protocol: it answers a query from documents, and cites those that it used."""

from collections.abc import Callable, Sequence
from typing import Protocol

from fairagent.types import Answer, Document, Query

OnText = Callable[[str], None]
"""Is told the answer piece by piece while it is being written; all pieces together are its text."""


class Generator(Protocol):
    """Writes answers: any object with this method will do. Several threads may call it."""

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """An answer from `documents`, the context in rank order, that cites them by number from 1; there may be none.

        What `on_text` raises ends the answer. Raises ModelError where a model was asked and gave no usable answer.
        """
        ...
