"""Accuracy on CRAG's questions: a rule grades what is plain, and a judge the rest (seed_systems.md, section 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNSURE = ("i don't know", "i don’t know")


def read_accuracy(answer: str, expected: str, alternatives: Sequence[object] = ()) -> bool | None:
    """Whether `answer` is right; None where it is neither the expected words nor "I don't know", and a judge must say.

    Case does not count. Not to know is wrong, whatever is asked.

    >>> read_accuracy("Paris", "paris"), read_accuracy("I don't know.", "Paris"), read_accuracy("in Paris", "Paris")
    (True, False, None)
    """
    said = answer.strip().lower()
    if any(words in said for words in UNSURE):
        return False
    if said in {str(right).strip().lower() for right in (expected, *alternatives)}:
        return True
    return None


def accuracy(answer: str, expected: str, alternatives: Sequence[object], judge: Callable[[str], bool]) -> float:
    """1.0 where `answer` is right, else 0.0; `judge` says so of what the rule cannot read."""
    right = read_accuracy(answer, expected, alternatives)
    return float(judge(answer) if right is None else right)
