"""Checking what an experiment says about the rankings that it draws."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from fairagent.collection.faults import listed
from fairagent.errors import SettingsError, UsageError
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.evaluate.fair_rag.section import FairRag
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.problems import Problems

DECIDED = {
    "measures": "the measures are those of `fair_rag`",
    "questions": "an experiment has questions or draws rankings",
}
"""Keys of the file that do not go with the section, and why."""


def check_fair_rag(described: ExperimentFile, section: FairRag, problems: Problems) -> None:
    """Add what is wrong with the section, and what does not go with it."""
    for key, why in DECIDED.items():
        if key in described.model_fields_set:
            problems.add(SettingsError, f"{key}: does not go with `fair_rag`: {why}")
    for alpha in section.alphas:
        if alpha < 0 or alpha == float("inf"):
            problems.add(SettingsError, f"fair_rag.alphas: {alpha:g} is no finite number of 0 or more")
    if any(before == after for before, after in pairwise(sorted(section.alphas))):
        problems.add(SettingsError, "fair_rag.alphas: a value stands there twice")
    if section.pool < section.k:
        problems.add(SettingsError, f"fair_rag.pool: {section.pool} candidates are fewer than k = {section.k}")
    if section.lamp and described.collection:
        problems.add(
            SettingsError, "collection: does not go with `fair_rag.lamp`, whose questions have their own items"
        )


LAMP_KINDS = ("okapi", "dense", "splade")
"""What can score a question's own items."""


def check_rows(systems: Mapping[str, SystemPlan], section: FairRag, problems: Problems) -> None:
    """Add what is wrong with the systems that rankings are drawn from."""
    for name, system in systems.items():
        attribution = system.settings.attribute.kind
        if system.settings.debias.kind != "none":
            message = f"systems.{name}.debias: cannot be set: it is about what is drawn, and adds nothing to that"
            problems.add(SettingsError, message)
        if not section.lamp:
            if attribution == "none":
                message = f"systems.{name}: attribute is none, and EAR and EAE-D are about what answers rest on"
                problems.add(UsageError, message)
            continue
        if system.settings.engine.kind not in LAMP_KINDS:
            kind = system.settings.engine.kind
            message = f"systems.{name}.engine: LaMP's items are scored by {listed(LAMP_KINDS)}, not by {kind!r}"
            problems.add(SettingsError, message)
        if attribution == "citations":
            message = f"systems.{name}: LaMP's answers cite nothing; set attribute to nli, judge, embeddings or none"
            problems.add(UsageError, message)
