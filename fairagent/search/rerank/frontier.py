"""The frontier: lists of the same candidates from the most relevant to the fairest, none of which is best in nothing.

It is walked. From the most relevant list on, at one price of the gap after the other, documents are exchanged (one for
another candidate, or two of them for each other) as long as that raises the objective J at that price; every list on
the way is kept, and the engine's own is one more. Which lists these are does not depend on the user's price: it
chooses among them the one with the largest J. So a larger price never gives a larger gap, and nothing served has a
smaller J than the engine's own list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairagent.measures.objective import GapColumns, list_relevance, objective
from fairagent.retrieve.base import placed
from fairagent.types import Dial, FloatArray, Ranking

PRICES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
"""The prices at which lists are made; a price in between gets one of these lists."""
GAIN = 5e-4
"""An exchange that raises the objective by less is none."""
BOUND = 1.0
"""What exposure out of its bounds costs while lists are made; none that is served is further out than the first."""
ROUNDING = 1e-9
HEAD = 32
"""Ranks in which documents are exchanged; those behind are filled one by one."""
NEAR = 64
"""Types of documents, those with the most relevant next document, that are looked at for a rank behind the head."""
LISTS = 24
"""Lists that are filled behind the head."""

Places = NDArray[np.intp]


class Moves(NamedTuple):
    """The exchanges of one list, (k,) each: what they change in relevance, in the gap, and in what is out of bounds."""

    relevance: FloatArray
    gap: FloatArray
    excess: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Lists of the candidates `ids`, by their `places` (k, n), with their `relevance` (k,) and `gap` (k,).

    None of them is at once less relevant and less fair than another, but for that at the place `own`, the engine's own.
    The most relevant comes first.
    """

    ids: tuple[str, ...]
    places: Places
    relevance: FloatArray
    gap: FloatArray
    own: int | None

    def ranking(self, number: int) -> Ranking:
        """A list; its scores fall strictly from 1, since the order is no engine's."""
        return placed(self.ids, self.places[number].tolist())

    def choose(self, dial: Dial) -> int:
        """The number of the list that is served."""
        if dial.keep is not None:
            return self.keeping(dial.keep)
        return self.at_price(dial.price) if dial.gap is None else self.within(dial.gap)

    def at_price(self, fairness: float) -> int:
        """The number of the list with the largest J; of equals the fairest."""
        value = objective(self.relevance, self.gap, fairness)
        best = np.flatnonzero(value >= value.max() - ROUNDING)
        return int(best[np.argmin(self.gap[best])])

    def keeping(self, share: float) -> int:
        """The fairest list that keeps this share (0 to 1) of the relevance of the most relevant one."""
        enough = np.flatnonzero(self.relevance >= share * self.relevance.max() - ROUNDING)
        return int(enough[np.lexsort((-self.relevance[enough], self.gap[enough]))[0]])

    def within(self, gap: float) -> int:
        """The most relevant list whose gap is not above this; where none is within, the fairest."""
        near = np.flatnonzero(self.gap <= max(gap, float(self.gap.min())) + ROUNDING)
        return int(near[np.lexsort((self.gap[near], -self.relevance[near]))[0]])

    @property
    def kept(self) -> FloatArray:
        """The share of the most relevant list's relevance that each keeps, (k,); 1 where nothing is relevant."""
        most = float(self.relevance.max(initial=0.0))
        return self.relevance / most if most > 0 else np.ones(len(self.relevance))


def worth(dial: Dial, relevance: float, gap: float) -> tuple[float, ...]:
    """What a list with this R and G is worth beside another: larger is better, the first number first."""
    if dial.keep is not None:
        return -gap, relevance
    if dial.gap is not None:
        return (1.0, relevance) if gap <= dial.gap else (0.0, -gap)
    return tuple(objective(np.array([relevance]), np.array([gap]), dial.price).tolist())


class Walk:
    """Makes the frontier of candidates whose groups are `rows` (m, c) of `columns`, with a `relevance` (m,).

    `weights` (n,) are those of the ranks. What columns get of the exposure stays between `least` and `most` (c,), as
    far as it does in the most relevant list. Documents with the same row differ in relevance alone, so a list is made
    of types: the first place of a type goes to its best document. Ties go to the better placed.
    """

    def __init__(
        self,
        columns: GapColumns,
        rows: FloatArray,
        relevance: FloatArray,
        weights: FloatArray,
        least: FloatArray,
        most: FloatArray,
    ) -> None:
        self.columns, self.weights, self.total = columns, weights, float(weights.sum())
        self.least, self.most = least * self.total, most * self.total
        self.relevance, self.rows = relevance, rows
        self.order: Places = np.argsort(-relevance, kind="stable")
        numbers: dict[bytes, int] = {}
        # By the best document of each, so that the order of the candidates is of no account.
        self.type_of = np.empty(len(rows), dtype=np.intp)
        first = []
        for place in self.order.tolist():
            known = len(numbers)
            number = self.type_of[place] = numbers.setdefault(rows[place].tobytes(), known)
            if number == known:
                first.append(place)
        self.types = rows[first]
        self.mass = self.types @ columns.member
        # The best documents of each type, as many as there are ranks, and their relevance; -1 and -inf behind the last.
        self.best = np.full((len(first), len(weights) + 1), -1, dtype=np.intp)
        filled = [0] * len(first)
        for place in self.order.tolist():
            number = int(self.type_of[place])
            if filled[number] < len(weights):
                self.best[number, filled[number]] = place
                filled[number] += 1
        self.gains = np.where(self.best >= 0, relevance[self.best], -np.inf)
        pairs = np.triu_indices(min(len(weights), HEAD), 1)
        self._pairs: tuple[Places, Places] = (pairs[0], pairs[1])
        shown = self.types > 0
        self._wide = shown.shape[1] > 2 * HEAD
        if self._wide:
            most_columns = max(int(shown.sum(axis=1).max(initial=0)), 1)
            self._columns = np.argsort(~shown, axis=1, kind="stable")[:, :most_columns]
            self._shares = np.take_along_axis(self.types, self._columns, axis=1)

    def frontier(
        self, ids: tuple[str, ...], own: Sequence[int] | None = None, others: Sequence[Sequence[int]] = ()
    ) -> Frontier:
        """The frontier of the candidates `ids`, with the engine's `own` list and the `others`, as places of theirs."""
        heads = self._heads()
        lists = np.array([self.order[: len(self.weights)], *heads, *([own] if own is not None else []), *others])
        exposure = np.einsum("i,kic->kc", self.weights, self.rows[lists])
        relevance, gap = list_relevance(self.relevance[lists], self.weights), self.columns.gaps(exposure)
        excess = self._excess(exposure)
        kept = np.flatnonzero(excess <= excess[0] + ROUNDING * self.total)
        number = None if own is None else 1 + len(heads)
        order = kept[np.lexsort((gap[kept], -relevance[kept]))]
        # Along falling relevance each has to be fairer than all before it.
        fairest = np.minimum.accumulate(np.append(np.inf, gap[order][:-1]))
        order = order[gap[order] < fairest - ROUNDING]
        if number is not None and number not in order:
            order = np.append(order, number)
        place = None if number is None else int(np.flatnonzero(order == number)[0])
        return Frontier(ids, lists[order], relevance[order], gap[order], place)

    def _heads(self) -> list[Places]:
        """All lists on the way, each once."""
        n = min(len(self.weights), HEAD)
        kinds = self.type_of[self.order[:n]]
        found: dict[bytes, float] = {}
        moves, choices = self._moves(kinds)
        for price in PRICES:
            while True:
                value = (moves.relevance - BOUND * moves.excess) / self.total - price * moves.gap
                best = int(value.argmax()) if len(value) else 0
                if not len(value) or value[best] <= GAIN:
                    break
                kinds = self._moved(kinds, *choices, best)
                moves, choices = self._moves(kinds)
                found.setdefault(kinds.tobytes(), price)
        heads, prices = [np.frombuffer(one, dtype=np.intp) for one in found], list(found.values())
        if n == len(self.weights):
            return [self._documents(kinds) for kinds in heads]
        some = sorted({*range(0, len(heads), -(-len(heads) // LISTS) or 1), len(heads) - 1} - {-1})
        return self._filled([heads[place] for place in some], [prices[place] for place in some]) if some else []

    def _documents(self, kinds: Places) -> Places:
        """The documents of a list of these types (n,)."""
        order = np.argsort(kinds, kind="stable")
        of = kinds[order]
        start = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
        number = np.arange(len(of)) - np.repeat(start, np.diff(np.append(start, len(of))))
        places = np.empty(len(kinds), dtype=np.intp)
        places[order] = self.best[of, number]
        return places

    def _moves(self, kinds: Places) -> tuple[Moves, tuple[NDArray[np.bool_], Places, Places]]:
        """What each exchange of a list of these types would do, and the exchanges.

        First a document at each rank for the next one of each type, then those at two ranks for each other.
        """
        weights, n, count = self.weights[: len(kinds)], len(kinds), len(self.types)
        relevance = self.relevance[self._documents(kinds)]
        next_one = self.gains[np.arange(count), np.bincount(kinds, minlength=count)]
        rows, mass = self.types[kinds], self.mass[kinds]
        exposure, masses = weights @ rows, weights @ mass
        seen = np.flatnonzero(exposure > 0) if self._wide else np.arange(rows.shape[1])
        open_ = np.broadcast_to(next_one > -np.inf, (n, count)) & (kinds[:, None] != np.arange(count))
        rank, into = np.nonzero(open_)
        one, other = self._pairs
        differ = kinds[one] != kinds[other]
        one, other = one[differ], other[differ]
        # Both are a weight that moves from one row to another.
        moved = np.concatenate([weights[rank], weights[one] - weights[other]])
        from_, to = np.concatenate([kinds[rank], kinds[one]]), np.concatenate([into, kinds[other]])
        types = self.types[:, seen] if self._wide else self.types
        change = moved[:, None] * (types[to] - types[from_])
        after = np.maximum(exposure[seen] + change, 0.0)
        mass_after = masses + moved[:, None] * (self.mass[to] - self.mass[from_])
        mass_after[mass_after < ROUNDING] = 0.0
        before = self.columns.terms(exposure[seen], masses, seen).sum() + self.columns.missing(masses)
        gap = self.columns.terms(after, mass_after, seen).sum(axis=1) + self.columns.missing(mass_after) - before
        excess = self._excess(after, seen) - self._excess(exposure[seen], seen)
        if self._wide:
            outside = self._outside(moved[: len(rank)], into, mass_after[: len(rank)], exposure)
            gap[: len(rank)] += outside[0]
            excess[: len(rank)] += outside[1]
        gained = np.concatenate([next_one[into] - relevance[rank], relevance[other] - relevance[one]])
        return Moves(moved * gained, gap, excess), (open_, one, other)

    def _outside(
        self, weights: FloatArray, into: Places, mass: FloatArray, exposure: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What documents of these types add in columns that the list does not have, to the gap and to the excess."""
        columns, exposed = self._columns[into], weights[:, None] * self._shares[into]
        new = (exposure[columns] <= 0) & (exposed > 0)
        gap, excess = np.zeros(len(into)), np.zeros(len(into))
        for k in range(columns.shape[1]):
            some = np.flatnonzero(new[:, k])
            if len(some):
                of = columns[some, k]
                gap[some] += self.columns.terms_of_each(exposed[some, k], mass[some], of)
                excess[some] += self._excess_of_each(exposed[some, k], of)
        return gap, excess

    def _moved(self, kinds: Places, open_: NDArray[np.bool_], one: Places, other: Places, best: int) -> Places:
        """The list after its exchange number `best`."""
        kinds = kinds.copy()
        rank, into = np.nonzero(open_)
        if best < len(rank):
            kinds[rank[best]] = into[best]
        else:
            swap = [one[best - len(rank)], other[best - len(rank)]]
            kinds[swap] = kinds[swap[::-1]]
        return kinds

    def _excess(self, exposure: FloatArray, columns: Places | slice = slice(None)) -> FloatArray:
        """How much exposure (..., k) in these columns is out of bounds, (...,)."""
        lacking = np.maximum(self.least[columns] - exposure, 0.0)
        return np.asarray((lacking + np.maximum(exposure - self.most[columns], 0.0)).sum(axis=-1))

    def _excess_of_each(self, exposure: FloatArray, columns: Places) -> FloatArray:
        """As `_excess`, less that of no exposure, of each by itself."""
        lacking = np.maximum(self.least[columns] - exposure, 0.0) - self.least[columns]
        return np.asarray(lacking + np.maximum(exposure - self.most[columns], 0.0))

    def _filled(self, heads: Sequence[Places], prices: Sequence[float]) -> list[Places]:
        """The lists with the ranks behind their head: at each the document that raises J of the list so far most."""
        kinds, price = np.array(heads), np.array(prices)[:, None]
        lists = np.arange(len(heads))
        counts = np.array([np.bincount(one, minlength=len(self.types)) for one in heads])
        weights = self.weights[: kinds.shape[1]]
        exposure = np.einsum("i,kic->kc", weights, self.types[kinds])
        chosen = [kinds]
        for rank in range(kinds.shape[1], len(self.weights)):
            weight, total = self.weights[rank], self.weights[: rank + 1].sum()
            gains = self.gains[np.arange(len(self.types)), counts]
            near = np.argsort(-gains, axis=1, kind="stable")[:, :NEAR]
            after = exposure[:, None] + weight * self.types[near]
            value = (weight * np.take_along_axis(gains, near, 1) - BOUND * self._excess(after)) / total
            best = near[lists, (value - price * self.columns.gaps(after)).argmax(axis=1)]
            exposure = exposure + weight * self.types[best]
            counts[lists, best] += 1
            chosen.append(best[:, None])
        return [self._documents(one) for one in np.concatenate(chosen, axis=1)]
