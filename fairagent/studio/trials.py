"""What comes of two versions of a template together: their mean gaps and nDCG, and why they make no difference."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from fairagent.extend import NDCG, Collection, PlainRecord, Query, Ranking, Settings, UsageError, counted, judged_value

LOOPS = ("choose_action", "group_keywords", "group_passages", "group_sentences", "judge_relevance")
"""Templates that the loop asks with, as its settings say."""
Pair = tuple[PlainRecord, PlainRecord]


def pairs_of(trials: Sequence[PlainRecord], sides: Sequence[str]) -> list[Pair]:
    """The trials of the first and of the second of the `sides` on each topic on which both came to something."""
    topics: dict[Any, dict[str, PlainRecord]] = {}
    for trial in trials:
        if "error" not in trial:
            topics.setdefault((trial["topic"], trial["query"]), {})[trial["side"]] = trial
    return [(one[sides[0]], one[sides[1]]) for one in topics.values() if len(one) == 2]


def mean_gaps(pairs: Sequence[Pair], sides: Sequence[str]) -> PlainRecord | None:
    """The mean gaps of both sides, and on how many topics the second's is lower or higher; None without a ranking."""
    gaps = [(left["gap"]["after"], right["gap"]["after"]) for left, right in pairs if "gap" in left and "gap" in right]
    if not gaps:
        return None
    return {
        "topics": len(gaps),
        sides[0]: fmean(left for left, _ in gaps),
        sides[1]: fmean(right for _, right in gaps),
        "lower": sum(right < left for left, right in gaps),
        "higher": sum(right > left for left, right in gaps),
    }


def mean_ndcg(pairs: Sequence[Pair], sides: Sequence[str]) -> PlainRecord | None:
    """The mean nDCG of the first list and of both sides' over the topics that are judged; None where none is."""
    judged = [(left["ndcg"], right["ndcg"]) for left, right in pairs if left.get("ndcg") and right.get("ndcg")]
    if not judged:
        return None
    return {
        "topics": len(judged),
        "measure": judged[0][0]["measure"],
        "before": fmean(left["before"] for left, _ in judged),
        sides[0]: fmean(left["after"] for left, _ in judged),
        sides[1]: fmean(right["after"] for _, right in judged),
    }


def ndcg_of(collection: Collection, query: Query, first: Ranking, served: Ranking, n: int) -> PlainRecord | None:
    """The nDCG of a topic's first list and of the one served; None where nobody has judged what it asks for."""
    topic = collection.topics.get(query.id)
    if topic is None or topic.query != query.text:
        return None
    values = [judged_value(NDCG(n), collection, query.id, ranking.top(n).ids) for ranking in (first, served)]
    return None if None in values else {"measure": f"nDCG@{n}", "before": values[0], "after": values[1]}


def no_effect(pairs: Sequence[Pair]) -> str:
    """That and why the second version changes nothing against the first, in a sentence; "" where it changes something.

    Where there are rankings these are compared, and else the replies.
    """
    if not pairs:
        return ""
    on = "on this query" if len(pairs) == 1 else f"on all {counted(len(pairs), 'topic')}"
    if not any(trial["replies"] for pair in pairs for trial in pair):
        return f"This text changes nothing: nothing was asked {on} ({pairs[0][0]['about']})."

    def equal(key: str) -> bool:
        return all(left.get(key) == right.get(key) for left, right in pairs)

    if not any("hits" in trial for pair in pairs for trial in pair):
        if not equal("replies"):
            return ""
        return f"This text changes nothing: the replies are equal {on}{', since both prompts are' * equal('prompt')}."
    if any(_ids(left) != _ids(right) for left, right in pairs):
        return ""
    if equal("prompt"):
        why = "both texts are filled to the same prompt"
    elif equal("replies"):
        why = "the replies are equal"
    elif equal("rows"):
        why = "other replies come to the same keywords"
    elif not any(trial.get("kept") for pair in pairs for trial in pair):
        why = "the loop keeps the keywords of neither, since the gap does not fall or no keyword is in the index"
    else:
        why = "other keywords bring the same documents in the same order"
    return f"This text changes nothing: the rankings are equal {on}; {why}."


def _ids(trial: PlainRecord) -> list[str]:
    return [hit["id"] for hit in trial.get("hits", ())]


def unused(id: str, refines: bool, settings: Settings) -> str:
    """Why searches with these settings do not depend on a template, though a trial asks with it; "" where they do."""
    try:
        if id in settings.loop.asks_with(settings):
            return ""
    except UsageError:
        return ""
    if refines or id in LOOPS:
        how = f"loop: {settings.loop}, refine: {settings.refine}" if refines else f"loop: {settings.loop}"
        return f"Searches with this studio's settings ({how}) do not ask with {id}: saving it changes none of them."
    return f"Rankings do not depend on {id}, which asks for something else."
