"""A second pass over an answer whose citations miss the target: when it is asked for, and which answer stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from fairagent.answer.aim import ROUNDING, SHARE_OF_MEDIAN, Aim
from fairagent.answer.citations import sentences, words
from fairagent.answer.citing import support_of
from fairagent.errors import BudgetExceeded, ModelError, PromptError
from fairagent.retrieve.base import as_query
from fairagent.types import Answer, Document, Query, Revision


def revised(
    first: Answer, query: str | Query, documents: Sequence[Document], aim: Aim, again: Callable[[Sequence[int]], Answer]
) -> Answer:
    """`first`, or what `again` writes when it is told the numbers of documents that are to be used as well.

    It is asked once, where the gap of the citations is above the tolerance and documents that are not cited would lower
    it and hold something on the question: half of what the median of the cited ones does, or anything where nothing is
    cited. The second answer stays if its gap is smaller and its support not; else, and where it fails, is cut off, or
    the budget is used up, the first one stays. `revision` says which, and why; the usage is that of both.
    """
    gap = aim.gap(first.cited)
    if gap <= aim.settings.tolerance or first.truncated:
        return first
    support = support_of(first, documents)

    def stays(why: str, gap_then: float | None = None, support_then: float | None = None) -> Answer:
        return replace(first, revision=Revision(False, why, (gap, gap_then), (support, support_then)))

    nearer = _nearer(first.cited, aim, range(1, len(documents) + 1))
    if not nearer:
        return stays("no source that it does not cite would bring its citations nearer to the target")
    holding = _strengths(query, documents)
    least = SHARE_OF_MEDIAN * median(holding[number - 1] for number in first.cited) if first.cited else 0.0
    able = [number for number, held in enumerate(holding, start=1) if held > 0 and held >= least]
    unused = _nearer(first.cited, aim, able)
    if not unused:
        return stays("the sources that would bring its citations nearer to the target say too little on the question")
    try:
        second = again(unused)
    except PromptError as error:
        return stays(f"the template cannot ask for it: {error}")
    except (ModelError, BudgetExceeded) as error:
        kept = stays(f"the second pass came to nothing: {error}")
        return replace(kept, usage=first.usage + error.usage)
    gap_then, support_then = aim.gap(second.cited), support_of(second, documents)
    usage = first.usage + second.usage
    if gap_then < gap - ROUNDING and support_then >= support - ROUNDING:
        why = f"told of sources that it had not used: {', '.join(map(str, unused))}"
        revision = Revision(True, why, (gap, gap_then), (support, support_then))
        return replace(second, usage=usage, revision=revision)
    why = "its citations are no nearer to the target" if gap_then >= gap - ROUNDING else "its sources hold it up less"
    return replace(stays(f"the second pass is not better: {why}", gap_then, support_then), usage=usage)


def _nearer(cited: Sequence[int], aim: Aim, numbers: Sequence[int]) -> list[int]:
    """Those of `numbers` that, one after the other, lower the gap of the citations most."""
    chosen, left = list(cited), [number for number in numbers if number not in cited]
    while left:
        best = min(left, key=lambda number: (round(aim.gap([*chosen, number]), 9), number))
        if aim.gap([*chosen, best]) >= aim.gap(chosen) - ROUNDING:
            break
        chosen.append(best)
        left.remove(best)
    return chosen[len(cited) :]


def _strengths(query: str | Query, documents: Sequence[Document]) -> list[float]:
    """What share of the query's words, of four letters or more if any, each document's best sentence or title holds."""
    asked = {word for text, _ in as_query(query).weighted for word in words(text) if len(word) > 3} or {
        word for text, _ in as_query(query).weighted for word in words(text)
    }
    best = []
    for one in documents:
        parts = [set(words(text)) for text in [one.title, *sentences(one.text)]]
        best.append(max((len(asked & part) / len(asked) for part in parts), default=0.0) if asked else 0.0)
    return best
