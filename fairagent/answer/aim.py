"""`Aim`: the search's own target, for the documents of a context and those that an answer cites."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median

import numpy as np

from fairagent.answer.citations import sentences, support_of, telling, words
from fairagent.collection.exposure import ExposureMeter, total_gap
from fairagent.errors import BudgetExceeded, ModelError, PromptError
from fairagent.measures import min_max
from fairagent.retrieve.base import as_query
from fairagent.settings.tree import CitationSettings
from fairagent.types import Answer, Document, Exposure, FloatArray, Query, Revision, SearchResult

SHARE_OF_MEDIAN = 0.5
"""How relevant a document has to be, of the median of those that it competes with, to be used for its groups' sake."""
MOST_COUNTS = 100_000
"""Numbers of documents by type that are looked through; beyond them the choice is a local optimum."""
MOST_MEASURED = 5_000
"""Choices that are measured."""
ROUNDING = 1e-9
AS_SET = CitationSettings()
"""The default settings."""


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """What each of a context's documents gives the groups, and what these should get: `due` is `ExposureMeter.due`.

    Documents are named by their numbers in the context, from 1, and count alike; `columns` are theirs, (k, u + g) each.
    """

    meter: ExposureMeter
    columns: tuple[FloatArray, ...]
    due: tuple[FloatArray, ...]
    settings: CitationSettings = AS_SET

    @classmethod
    def of(cls, meter: ExposureMeter, ids: Sequence[str], settings: CitationSettings = AS_SET) -> Aim | None:
        """The aim of these documents; None where there is no group, or no document, to be fair to."""
        return cls(meter, meter.columns(ids), meter.due(), settings) if meter.targets and ids else None

    def exposures(self, numbers: Collection[int]) -> tuple[Exposure, ...]:
        """What these documents give the groups."""
        places = np.array(sorted(set(numbers)), dtype=np.intp) - 1
        return self.meter.exposures([one[places] for one in self.columns], np.ones(len(places)))

    def gap(self, numbers: Collection[int]) -> float:
        """How far that is from the target."""
        return total_gap(self.exposures(numbers))

    def objective(self, numbers: Collection[int], relevance: FloatArray, fairness: float) -> float:
        """J of these documents: their mean `relevance` (k,), 0 where there are none, less the price of their gap."""
        mean = float(np.mean([relevance[number - 1] for number in numbers])) if numbers else 0.0
        return mean - fairness * self.gap(numbers)

    def order(self, relevance: FloatArray, most: int) -> list[int]:
        """At most `most` documents in an order of which every beginning is balanced.

        As in the search's loop, what the groups lack becomes weight: after k documents, group g of target t_g that has
        e_g of them lacks max(0, (k + 1) t_g - e_g), and the next document is the one with the largest product of
        `relevance` (k,), 0 or more, and the sum of what its groups lack. Ties go to the first. A document whose label
        is unknown is of the group of these where they count, else it is shared out as the target is. Documents behind
        the first `most` come in only if they are half as relevant as the median of those.

        >>> from fairagent.collection.targets import Target
        >>> target = Target("gender", ("female", "male"), np.array([0.5, 0.5]), "given")
        >>> rows = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 1, 0], [0, 1, 0.0]])
        >>> Aim(None, (rows,), (np.append(np.nan, target.shares),)).order(np.ones(5), 4)  # no meter is needed for it
        [1, 4, 2, 5]
        """
        least = SHARE_OF_MEDIAN * float(np.median(relevance[:most])) if len(relevance) else 0.0
        left = [place for place, value in enumerate(relevance.tolist()) if place < most or value >= least]
        counts = (self.meter and self.meter.importance) or (1.0,) * len(self.due)
        parts = list(zip(self.columns, self.due, strict=True))
        for place, (rows, due) in enumerate(parts):
            if np.isnan(due[0]):
                # Documents without a label that are ignored are shared out as the target is.
                first = rows.shape[1] - len(due) + 1
                parts[place] = rows[:, first:] + np.outer(rows[:, :first].sum(axis=1), due[1:]), due[1:]
        has = [np.zeros(len(due)) for _, due in parts]
        chosen: list[int] = []
        while left and len(chosen) < most:
            lack = np.zeros(len(relevance))
            for (rows, due), of_groups, count in zip(parts, has, counts, strict=True):
                lack += count * (rows @ np.maximum(0.0, (len(chosen) + 1) * due - of_groups))
            # If no group that is left lacks anything, all values are 0, and relevance alone decides.
            values = (relevance * lack).round(12)
            best = max(left, key=lambda place: (values[place], relevance[place], -place))
            left.remove(best)
            chosen.append(best + 1)
            for (rows, _), of_groups in zip(parts, has, strict=True):
                of_groups += rows[best]
        return chosen

    def choose(self, scores: dict[int, float], most: int) -> tuple[list[int], bool]:
        """The at most `most` documents that come nearest to the target, and whether that is exact.

        `scores` has what each document would add to the answer. Of all choices whose scores add up to 1 - `loss` of
        those of the `most` best or more, it is the one with the smallest gap, then with the largest scores. Documents
        with the same groups differ in their scores alone, so only the best of each type are looked at; where even these
        are too many, single documents are taken out, added and exchanged until nothing gains.
        """

        def summed(numbers: Collection[int]) -> float:
            return sum(scores[number] for number in numbers)

        best_first = sorted(scores, key=lambda number: (-scores[number], number))
        plain = best_first[:most]
        least = (1 - self.settings.loss) * summed(plain) - ROUNDING
        types: dict[bytes, list[int]] = {}
        for number in best_first:
            row = np.concatenate([one[number - 1] for one in self.columns])
            types.setdefault(row.tobytes(), []).append(number)

        def value(numbers: Collection[int]) -> tuple[float, float]:
            return round(self.gap(numbers), 9), -round(summed(numbers), 9)

        queues = list(types.values())
        if not plain:
            return [], True
        if np.prod([len(queue) + 1.0 for queue in queues]) <= MOST_COUNTS:
            sums = [[0.0, *np.cumsum([scores[number] for number in queue]).tolist()] for queue in queues]
            counts = [
                count
                for count in product(*(range(len(queue) + 1) for queue in queues))
                if 0 < sum(count) <= most and sum(map(list.__getitem__, sums, count)) >= least
            ]
            if len(counts) <= MOST_MEASURED:
                choices = [[n for queue, k in zip(queues, count, strict=True) for n in queue[:k]] for count in counts]
                _, chosen = min((value(numbers), numbers) for numbers in choices)
                return sorted(chosen), True
        best = _improved(plain, list(scores), most, lambda numbers: summed(numbers) >= least, value)
        return sorted(best), False


def _improved(
    start: list[int],
    all: list[int],
    most: int,
    allowed: Callable[[Collection[int]], bool],
    value: Callable[[Collection[int]], tuple[float, float]],
) -> list[int]:
    """`start` after the best single change, again and again, until none makes `value` smaller."""
    best, reached = frozenset(start), value(start)
    while True:
        out = [best - {one} for one in sorted(best)] if len(best) > 1 else []
        added = [best | {one} for one in all if one not in best] if len(best) < most else []
        swapped = [best - {one} | {other} for one in sorted(best) for other in all if other not in best]
        nearest = min((one for one in (*out, *added, *swapped) if allowed(one)), key=value, default=best)
        if value(nearest) >= reached:
            return list(best)
        best, reached = nearest, value(nearest)


def relevance_to(search: SearchResult, ids: Sequence[str]) -> FloatArray:
    """The estimated relevance of these documents to the query of `search`, 0 to 1; 0 for what it did not retrieve.

    Scores of a re-ranker may say no more than a rank: they are those of the last list that the search accepted.
    """
    accepted = [step.ranking for step in search.trace.steps if step.accepted] or [search.trace.steps[0].ranking]
    scores = dict(zip(accepted[-1].ids, min_max(accepted[-1].scores).tolist(), strict=True))
    return np.array([scores.get(id, 0.0) for id in ids])


def revised(
    first: Answer, query: str | Query, documents: Sequence[Document], aim: Aim, again: Callable[[Sequence[int]], Answer]
) -> Answer:
    """`first`, or what `again` writes when it is told the numbers of documents that are to be used as well.

    It is asked once, where the gap of the citations is above the tolerance and documents that are not cited would lower
    it and hold something on the question: half of what the median of the cited ones does, or anything where nothing is
    cited. The second answer stays if its gap is smaller and its support not; else, and where it fails or is cut off,
    the first does. `revision` says which, and why; the usage is that of both.
    """
    gap = aim.gap(first.cited)
    if gap <= aim.settings.tolerance or first.truncated or first.abstains:
        return first
    support = support_of(first, documents)

    def stays(why: str, gap_then: float | None = None, support_then: float | None = None) -> Answer:
        return replace(first, revision=Revision(False, why, (gap, gap_then), (support, support_then)))

    nearer = _nearer(first.cited, aim, range(1, len(documents) + 1))
    if not nearer:
        return stays("no source that it does not cite would bring its citations nearer to the target")
    # What share of the query's words each document's best sentence or title holds.
    wanted = telling([word for text, _ in as_query(query).weighted for word in words(text)])
    holding = [
        max((len(wanted & set(words(part))) / len(wanted) for part in (one.title, *sentences(one.text))), default=0.0)
        if wanted
        else 0.0
        for one in documents
    ]
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
