"""Checking the local model of an experiment before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from fairagent.evaluate.answers.questions import Question
from fairagent.evaluate.stereotypes.section import LocalModel
from fairagent.stereotypes.items import Example
from fairagent.stereotypes.local import local_scorer


def check_local(local: LocalModel, questions: Mapping[str, Question]) -> None:
    """Raise BackendUnavailable where the model is not there or cannot score some part of the benchmark."""
    scorer = local_scorer(local.kind, local.name, local.device, local.dtype, local.batch)
    parts = {item.part: item for question in questions.values() if isinstance(item := question.item, Example)}
    if item := parts.get("intersentence"):
        scorer.score(item)
