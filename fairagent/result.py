"""What a person sees of a ranking: titles and groups beside ranks and scores."""

from __future__ import annotations

from fairagent.exposure import ExposureMeter
from fairagent.retrieve.base import Retriever, TextSource
from fairagent.types import Hit, Ranking


def hits_of(ranking: Ranking, meter: ExposureMeter, retriever: Retriever) -> tuple[Hit, ...]:
    """The documents with their titles (where the engine keeps texts) and the known groups they belong to."""
    labels = [(target.dimension, target.labels) for target in meter.targets]
    memberships = [rows[:, 1:].tolist() for rows in meter.memberships(ranking.ids)]
    texts = retriever if isinstance(retriever, TextSource) else None
    hits = []
    for i, (id, score) in enumerate(zip(ranking.ids, ranking.scores.tolist(), strict=True)):
        title = texts.document(id).title if texts else ""
        groups = {
            dimension: {label: share for label, share in zip(names, rows[i], strict=True) if share > 0}
            for (dimension, names), rows in zip(labels, memberships, strict=True)
        }
        hits.append(Hit(i + 1, id, score, title, groups))
    return tuple(hits)
