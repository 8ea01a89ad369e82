"""Answers are compared word by word in these tests, unless they are about the comparison."""

from __future__ import annotations

import pytest

from fairagent.evaluate.utility import check, trial

from .library import SameWords


@pytest.fixture
def same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is loaded: `SameWords` stands for the encoder."""
    monkeypatch.setattr(trial, "open_similarity", lambda section: SameWords())
    monkeypatch.setattr(check, "check_similarity", lambda section: None)
