"""What a search has moved: what it keeps of the estimated relevance, and what was pushed down, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairagent.extend import ABOUT, Exposure, Hit, PlainRecord, SearchResult, exposure_rows, ordinal, percent

Excess = tuple[float, str]
"""By how much more attention than its target a group of a document had, and that as a sentence."""


def moves_record(result: SearchResult, engine_hits: Sequence[Hit]) -> PlainRecord:
    """What the list costs and whom, beside the engine's own of the same length (`engine_hits`).

    `cost` says how much of the estimated relevance is left (None: there is no dial); `pushed_down` are the documents of
    the engine's list that left or fell, those first that left, each with the rank it `was` at, `now` (None: it left)
    and the `reason`.
    """
    kept = result.trace.relevance_kept
    cost = None if kept is None else f"keeps {percent(kept)} of the estimated relevance"
    return {"cost": cost, "pushed_down": _pushed_down(result, engine_hits)}


def _pushed_down(result: SearchResult, engine_hits: Sequence[Hit]) -> list[PlainRecord]:
    now = {id: rank for rank, id in enumerate(result.ranking.ids, start=1)}
    found = {id: rank for rank, id in enumerate(result.retrieved, start=1)}
    shown = len(result.ranking)
    fallen = [hit for hit in engine_hits if now.get(hit.id, shown + 1) > hit.rank]
    fallen.sort(key=lambda hit: (hit.id in now, hit.rank - now.get(hit.id, 0)))
    return [
        {
            "id": hit.id,
            "title": hit.title,
            "was": hit.rank,
            "now": now.get(hit.id),
            "text": f"{ordinal(hit.rank)} → {ordinal(now[hit.id]) if hit.id in now else f'out of the first {shown}'}",
            "reason": _reason(hit, now.get(hit.id, shown + 1), found, result),
        }
        for hit in fallen
    ]


def _reason(hit: Hit, rank: int, found: Mapping[str, int], result: SearchResult) -> str:
    """Why a document is now at `rank`: by relevance alone it would not be higher, or a group of it has had too much."""
    place = found.get(hit.id)
    if place is None:
        return "the agent's own searches have dropped it from the candidates"
    if place >= rank:
        return f"the agent's own searches put it {ordinal(place)} by relevance, before groups are looked at"
    trace = result.trace
    pairs = list(zip(trace.steps[0].exposures, trace.exposures, strict=True))
    excess, reason = max((_excess(hit, was, is_) for was, is_ in pairs), default=(0.0, ""))
    if excess >= ABOUT:
        return reason
    lacking = [
        (due - share, label, share, due) for was, _ in pairs for label, share, due in exposure_rows(was)[:-1] if due
    ]
    lack, label, share, due = max(lacking, default=(0.0, "", 0.0, 0.0))
    if lack >= ABOUT:
        return f"documents of a group that lacked attention came up ({label}: {percent(share)}, target {percent(due)})"
    return "documents of about the same relevance came up"


def _excess(hit: Hit, before: Exposure, after: Exposure) -> Excess:
    """The group of a document in one dimension that had most more than its target, or that it has no label there."""
    theirs = hit.groups.get(before.dimension, {})
    *known, unlabeled = zip(exposure_rows(before), exposure_rows(after), strict=True)
    rows = [(was, now, f"its group ({was.label})") for was, now in known if was.label in theirs]
    if not theirs:
        rows = [(*unlabeled, f"it has no label in {before.dimension}: such documents")]
    return max(
        (
            (
                was.share - now.target,
                f"{whose} had {percent(was.share)} of the attention and has {percent(now.share)}, "
                f"target {percent(now.target)}",
            )
            for was, now, whose in rows
            if now.target is not None
        ),
        default=(0.0, ""),
    )
