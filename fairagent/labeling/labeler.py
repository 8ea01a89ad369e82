"""Making labels: from examples and evidence to chances, and what their errors do to the AWRF of a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.known import KnownIds
from fairagent.collection.target_choice import judged_by
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.judging import Judge, judged_topics, standard_measures
from fairagent.evaluate.outcome import GroupShares
from fairagent.labeling.classifier import fit
from fairagent.labeling.evidence import Evidence
from fairagent.labeling.examples import FEWEST, Examples
from fairagent.labeling.made import MadeLabels, errors_of, with_labels
from fairagent.measures import Interval
from fairagent.measures.unawareness import mean_under_error
from fairagent.retrieve.manifest import indexed_documents
from fairagent.retrieve.site import Site
from fairagent.storage.files import file_name
from fairagent.types import Ranking
from fairagent.types.common import counted


def known_documents_of(site: Site) -> KnownIds:
    """The documents that labels can be made of; UsageError where there are none."""
    if (known := indexed_documents(site.collection, site.index)) is None:
        raise UsageError(f"collection {site.collection.name!r} has no documents to label")
    return known


def labels_file(site: Site, dimension: str, what: str = "labels") -> Path:
    """Where labels, or examples, are written unless the call says so: beside the collection's file."""
    name = file_name(f"{site.collection.name}.{dimension}.{what}.jsonl")
    origin = site.collection.origin
    return origin.file.with_name(name) if origin else Path(name)


def unlabeled_ids(collection: Collection, dimension: str, given: frozenset[str]) -> list[str]:
    """The documents without a label, in their order; those that are not of the dimension's type are left out."""
    ids = [document.id for document in collection.source if document.id not in given]
    if dimension in collection.groups.dimensions:
        of_type = collection.groups.of_type(dimension, ids)
        if of_type is not None:
            return [id for id, own in zip(ids, of_type.tolist(), strict=True) if own]
    return ids


def make_labels(
    examples: Examples, evidence: Evidence, ids: Sequence[str], confidence: float = 0.0, seed: int = 0
) -> MadeLabels:
    """Labels of the documents `ids` by the evidence, learned from the examples.

    It abstains where the evidence says nothing, and where the likeliest label has a chance below `confidence`. Raises
    DataError where the evidence says nothing of most examples, BackendUnavailable without scikit-learn, and what the
    evidence raises.
    """
    rows, usable = evidence.rows(examples.ids)
    if usable.sum() < FEWEST or len(set(examples.groups[usable].tolist())) < len(examples.labels):
        raise DataError(
            f"{evidence.source} says something of {counted(int(usable.sum()), 'example')} of {len(usable):,}, too few "
            "to learn from; every group needs some, and all together ten"
        )
    # Those that it says nothing of are learned from as well: nothing is evidence, too.
    classifier = fit(rows, examples.groups, seed)
    errors, bins = errors_of(examples, classifier, evidence.source)
    new, spoken = evidence.rows(ids)
    chances = classifier.chances(new) if len(ids) else np.zeros((0, len(examples.labels)))
    sure = spoken & (chances.max(axis=1, initial=0.0) >= confidence)
    return MadeLabels(examples, evidence.source, tuple(ids), chances, sure, errors, bins)


def awrf_of_lists(
    collection: Collection, made: MadeLabels, lists: Mapping[str, Ranking], n: int
) -> tuple[list[float], Interval, str] | None:
    """AWRF@n of `lists` (topic -> ranking): by topic, were chances exact; the mean under error; the target's name."""
    labeled, dimension = with_labels(collection, made), made.examples.dimension
    topics = tuple(topic for topic in judged_topics(labeled, dimension).counted if len(lists.get(topic, ())))
    measures = {str(one): one for one in standard_measures(n)[1:2]}
    judge = Judge(labeled, measures, {dimension: frozenset(topics)}, None, False, n)
    certain, likely = list[float](), []
    for topic in topics:
        (exposure,) = map(GroupShares.of, judge.exposures(topic, lists[topic]))
        values = judge.values(topic, lists[topic])
        if exposure.likely is not None and dimension in values:
            certain += values[dimension].values()
            likely.append(exposure.likely)
    target = judged_by(dimension, labeled).name
    return (certain, mean_under_error(np.array(likely)), target) if likely else None


def engine_lists(site: Site, n: int) -> dict[str, Ranking]:
    """The engine's own list of each topic, best `n` documents."""
    from fairagent.search.pipeline import engine_alone

    agent = engine_alone(site)
    return {topic.id: agent.search(topic).ranking.top(n) for topic in site.collection.topics.values()}
