"""What needs no model."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.llm.likelihood import check_texts, perplexity


def test_perplexity_of_certain_words_is_one() -> None:
    assert perplexity(np.zeros(3)) == 1


def test_empty_texts_are_counted() -> None:
    with pytest.raises(DataError, match="2 of 3"):
        check_texts([("a", ""), ("", "b"), ("", "")])
    check_texts([])
