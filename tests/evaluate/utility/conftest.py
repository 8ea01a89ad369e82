"""Answers are compared word by word in these tests, unless they are about the comparison."""

from __future__ import annotations

import pytest

from fairagent.papers.utility import kind, trial

from .library import SameWords


@pytest.fixture
def same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is loaded: `SameWords` stands for the encoder."""
    monkeypatch.setattr(trial, "open_similarity", lambda section: SameWords())
    monkeypatch.setattr(kind, "check_similarity", lambda section: None)
