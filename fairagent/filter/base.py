"""What a filter is: it may remove documents, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fairagent.types import Document, Filtered


class Filter(Protocol):
    """Takes documents out of a context that would do harm to an answer: any object with this method will do."""

    def filter(self, query: str, documents: Sequence[Document]) -> Filtered:
        """The documents that stay, in the order given, and a verdict on every one of `documents`, in their order.

        Nothing is added and nothing changes its place. Raises FatalModelError and BudgetExceeded where a model was
        asked and none of its calls can succeed.
        """
        ...
