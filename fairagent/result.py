"""What a person sees of a ranking: titles and groups beside ranks and scores."""

from __future__ import annotations

from collections.abc import Sequence

from fairagent.exposure import ExposureMeter
from fairagent.retrieve.base import Retriever, TextSource
from fairagent.types import FloatArray, Hit, Ranking


def hits_of(ranking: Ranking, meter: ExposureMeter, retriever: Retriever) -> tuple[Hit, ...]:
    """The documents with their titles (where the engine keeps texts) and the known groups they belong to."""
    memberships = meter.memberships(ranking.ids)
    texts = retriever if isinstance(retriever, TextSource) else None
    hits = []
    for i, (id, score) in enumerate(zip(ranking.ids, ranking.scores.tolist(), strict=True)):
        title = texts.document(id).title if texts else ""
        groups = {
            target.dimension: _known(target.labels, rows[i])
            for target, rows in zip(meter.targets, memberships, strict=True)
        }
        hits.append(Hit(i + 1, id, score, title, groups))
    return tuple(hits)


def _known(labels: Sequence[str], row: FloatArray) -> dict[str, float]:
    return {label: share for label, share in zip(labels, row[1:].tolist(), strict=True) if share > 0}
