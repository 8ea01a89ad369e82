"""Checking what an experiment says about utility: the section, its systems, and that every text is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fairagent.collection import Collection
from fairagent.collection.faults import listed
from fairagent.errors import DataError, FairAgentError, SettingsError
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.utility.passages import check_texts, grades_of, judged_ids, ranked_ids, read_passages
from fairagent.evaluate.utility.rows import generator, rows
from fairagent.evaluate.utility.section import Utility
from fairagent.evaluate.utility.similarity import check_similarity
from fairagent.retrieve.run_file import RunFile, RunFileConfig, read_run
from fairagent.types import Document

DECIDED = ("measures", "dimensions", "per_group", "questions", "fair_rag")
"""Keys of the file that do not go with the section."""


def check_section(
    described: ExperimentFile, section: Utility, systems: Mapping[str, SystemPlan], problems: Problems
) -> None:
    """Add what is wrong with the section, what does not go with it, and systems that cannot be compared by it."""
    for key in DECIDED:
        if key in described.model_fields_set:
            problems.add(SettingsError, f"{key}: does not go with `utility`, which says itself what is measured")
    for stage in ("filter", "debias"):
        if any(getattr(system.settings, stage).kind != "none" for system in systems.values()):
            problems.add(SettingsError, f"{stage}: cannot be set: here a generator is given all k documents")
    problems.attempt("utility.similarity", check_similarity, section.similarity)
    if len({generator(system) for system in systems.values()}) > 1:
        problems.add(
            SettingsError,
            "systems: generate, model, prompts and context.tokens are one for all in a utility experiment: every row "
            "is measured against the same answer from no documents; put them into `settings`",
        )
    if len(rows(systems, section)) < sum(len(rows({name: one}, section)) for name, one in systems.items()):
        named = listed([row for name, one in systems.items() for row in rows({name: one}, section)])
        problems.add(SettingsError, f"systems: a name is that of another's row; the rows are: {named}")


def counted_topics(
    collection: Collection,
    chosen: Sequence[str],
    section: Utility,
    systems: Mapping[str, SystemPlan],
    problems: Problems,
) -> tuple[list[str], dict[str, str]]:
    """The topics with a relevant passage that has a text, and why the others do not count; adds texts that lack."""
    excluded: dict[str, str] = {}
    relevant: dict[str, list[str]] = {}
    wanted = f"grade of {section.relevant} or more"
    for topic in chosen:
        grades = grades_of(collection, topic, section.grades)
        if found := [id for id, grade in grades.items() if grade >= section.relevant]:
            relevant[topic] = found
        else:
            excluded[topic] = f"no passage has a {wanted}"
    if not relevant:
        problems.add(DataError, f"none of {len(chosen)} topics has a passage with a {wanted}")
        return [], excluded
    texts = _checked_texts(collection, list(relevant), section, systems, problems)
    for topic, found in relevant.items():
        if not any(texts[id].text.strip() for id in found if id in texts):
            excluded[topic] = "no relevant passage has a text"
    return [topic for topic in relevant if topic not in excluded], excluded


def _checked_texts(
    collection: Collection,
    topics: Sequence[str],
    section: Utility,
    systems: Mapping[str, SystemPlan],
    problems: Problems,
) -> dict[str, Document]:
    """The texts of all that is judged and of what run files name; adds what is not there."""
    wanted = {"the judgments": judged_ids(collection, topics)}
    for name, system in systems.items():
        engine = system.settings.engine
        if isinstance(engine, RunFileConfig):
            path, tag = Path(engine.path), engine.tag
            # A file with faults has been reported with the system's engine.
            try:
                run = RunFile(read_run(path, collection.topics, tag))
            except FairAgentError:
                continue
            if without := [topic for topic in topics if topic not in run.rankings]:
                message = f"systems.{name}: {path} has no ranking for {len(without)} of {len(topics)} topics"
                problems.add(DataError, f"{message}: {listed(without)}")
            wanted[f"systems.{name}"] = ranked_ids(run, [collection.topics[id] for id in topics], max(section.ks))
    texts = problems.attempt("", read_passages, collection, set().union(*wanted.values()))
    if texts is None:
        return {}
    for what, ids in wanted.items():
        problems.attempt("", check_texts, collection, ids, texts, what)
    return texts
