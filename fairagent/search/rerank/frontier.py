"""The frontier: lists of the same candidates, from the most relevant to the fairest.

It is walked. From the most relevant list on, at one price of the gap after the other, documents are exchanged (one for
another candidate, or two of them for each other) as long as that raises the objective J at that price; every list on
the way is kept, and the engine's own is one more. Which lists these are does not depend on the user's price: it
chooses among them the one with the largest J. So a larger price never gives a larger gap, and nothing served has a
smaller J than the engine's own list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
NONE = -1e9
"""The relevance of a document that is not there: so low that none enters, and a number where a rank has no weight."""
HEAD = 32
"""Ranks in which documents are exchanged; those behind are filled one by one."""

Places = NDArray[np.intp]
Moves = tuple[FloatArray, FloatArray, Callable[[int], Places]]
"""What can be done with one list: (k,) each, what it adds to J but for the gap, and to the gap; and its result."""


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Lists of the candidates `ids`, by their `places` (k, n), with their `relevance` (k,) and `gap` (k,), best first.

    None is at once less relevant and less fair than another, but for that at the place `engine`, the engine's own.
    """

    ids: tuple[str, ...]
    places: Places
    relevance: FloatArray
    gap: FloatArray
    engine: int | None

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

    def share(self, relevance: float) -> float:
        """A relevance as a share of the most relevant list's; 1 where nothing is relevant."""
        most = float(self.relevance.max(initial=0.0))
        return relevance / most if most > 0 else 1.0


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
        # There may be many columns; a document has a value in few of them.
        number, column = np.nonzero(rows)
        counts = np.bincount(number, minlength=len(rows))
        starts = np.cumsum(counts) - counts
        column, shares = np.append(column, 0), np.append(rows[number, column], 0.0)
        # Types are numbered by their best documents, so that the order of the candidates does not matter.
        written = np.column_stack([column, shares]).tobytes()
        sizes, ends = (16 * counts).tolist(), (16 * (starts + counts)).tolist()
        of_type: dict[bytes, list[int]] = {}
        for place in self.order.tolist():
            of_type.setdefault(written[ends[place] - sizes[place] : ends[place]], []).append(place)
        self.type_of = np.empty(len(rows), dtype=np.intp)
        # The best documents of each type, as many as there are ranks, and their relevance; -1 and NONE behind the last.
        self.best = np.full((len(of_type), len(weights) + 1), -1, dtype=np.intp)
        for number_of_type, places in enumerate(of_type.values()):
            self.type_of[places] = number_of_type
            some = places[: len(weights)]
            self.best[number_of_type, : len(some)] = some
        self.gains = np.where(self.best >= 0, relevance[self.best], NONE)
        first, within = self.best[:, 0], np.arange(max(int(counts.max(initial=0)), 1))
        # Most types have the same mass in each part (all that have a label, all that have none).
        self.masses, self.mass_of = np.unique((rows @ columns.member)[first], axis=0, return_inverse=True)
        # Few cells of the types' rows differ: (column, share, place of the masses), and how many of each a type has.
        cells = np.where(within < counts[first, None], starts[first, None] + within, -1)
        every = np.stack(
            [column[cells], shares[cells], np.broadcast_to(self.mass_of.reshape(-1, 1), cells.shape)], axis=-1
        )
        different, cell = np.unique(every.reshape(-1, 3), axis=0, return_inverse=True)
        self._column, self._mass = different[:, 0].astype(np.intp), different[:, 2].astype(np.intp)
        self._share = different[:, 1]
        self._cells = np.zeros((len(different), len(first)))
        np.add.at(self._cells, (cell.reshape(-1), np.repeat(np.arange(len(first)), cells.shape[1])), 1.0)
        # The columns of each type, then what it has of whole parts; where there are few, all are looked at.
        self._wide = np.hstack([rows[first], self.masses[self.mass_of]])
        self._few = rows.shape[1] <= HEAD
        pairs = np.triu_indices(min(len(weights), HEAD), 1)
        self._pairs = np.append(0, pairs[0]), np.append(0, pairs[1])

    def frontier(
        self, ids: tuple[str, ...], engine: Sequence[int] | None = None, others: Sequence[Sequence[int]] = ()
    ) -> Frontier:
        """The frontier of the candidates `ids`, with the `engine`'s list and the `others`, as places of theirs."""
        heads = self._heads()
        lists = np.array([self.order[: len(self.weights)], *heads, *([engine] if engine is not None else []), *others])
        exposure = np.array([self.weights @ self.rows[one] for one in lists])
        relevance, gap = list_relevance(self.relevance[lists], self.weights), self.columns.gaps(exposure)
        excess = self._excess(exposure).sum(axis=1)
        within = np.flatnonzero(excess <= excess[0] + ROUNDING * self.total)
        number = None if engine is None else 1 + len(heads)
        order = within[np.lexsort((gap[within], -relevance[within]))]
        # Along falling relevance each has to be fairer than all before it.
        fairest = np.minimum.accumulate(np.append(np.inf, gap[order][:-1]))
        order = order[gap[order] < fairest - ROUNDING]
        if number is not None and number not in order:
            order = np.append(order, number)
        place = None if number is None else int(np.flatnonzero(order == number)[0])
        return Frontier(ids, lists[order], relevance[order], gap[order], place)

    def _heads(self) -> list[Places]:
        """All lists on the way, each once."""
        kinds = self.type_of[self.order[: min(len(self.weights), HEAD)]]
        price_of: dict[bytes, float] = {}
        # The moves from a list do not depend on the price.
        ways, way, known = (self._entering, self._swapped), 0, dict[int, Moves]()
        for price in PRICES:
            failed = 0
            while failed < len(ways):
                relevance, gap, made = known.get(way) or known.setdefault(way, ways[way](kinds))
                value = relevance - price * gap
                best = int(value.argmax())
                if value[best] <= GAIN:
                    failed, way = failed + 1, 1 - way
                    continue
                kinds = made(best)
                price_of.setdefault(kinds.tobytes(), price)
                failed = 0
                known.clear()
        heads, prices = [np.frombuffer(one, dtype=np.intp) for one in price_of], list(price_of.values())
        if len(kinds) == len(self.weights):
            return [self._documents(one) for one in heads]
        # Where lists are longer than their head, about 24 of them are filled up.
        some = sorted({*range(0, len(heads), -(-len(heads) // 24) or 1), len(heads) - 1} - {-1})
        return self._filled([heads[place] for place in some], [prices[place] for place in some]) if some else []

    def _rows(self, kinds: Places) -> FloatArray:
        """The groups of these types (...,), (..., c)."""
        return np.asarray(self.rows[self.best[kinds, 0]])

    def _documents(self, kinds: Places) -> Places:
        """The documents of a list of these types (n,)."""
        order = np.argsort(kinds, kind="stable")
        of = kinds[order]
        places = np.empty(len(kinds), dtype=np.intp)
        places[order] = self.best[of, np.arange(len(of)) - np.searchsorted(of, of)]
        return places

    def _entering(self, kinds: Places) -> Moves:
        """What the next document of each type would do at each rank of a list of these types."""
        weights, count, part = self.weights[: len(kinds), None], len(self.best), self.columns.part
        wide = self._wide[kinds]
        types, masses = wide[:, : len(part)], wide[:, len(part) :]
        gained = self.gains[np.arange(count), np.bincount(kinds, minlength=count)]
        gained = weights * (gained - self.relevance[self._documents(kinds)][:, None])
        # First the list without the document at a rank: most columns keep that exposure. Then the few columns that the
        # entering document changes.
        without = np.maximum(weights.T @ types - weights * types, 0.0)
        mass = (weights.T @ masses - weights * masses)[:, None] + weights[:, None] * self.masses
        mass[mass < ROUNDING] = 0.0
        seen = self._seen(without)
        rest = self.columns.terms(without[:, None, seen], mass[..., part[seen]], seen).sum(axis=-1)
        before = without[:, self._column]
        after = before + weights * self._share
        whole = mass[:, self._mass, part[self._column]]
        terms = self.columns.terms(np.array((after, before)), whole, self._column)
        gap = (rest + self.columns.missing(mass))[:, self.mass_of] + (terms[0] - terms[1]) @ self._cells
        outside = self._excess(without)
        excess = (self._excess(after, self._column) - outside[:, self._column]) @ self._cells
        excess += outside[:, seen].sum(axis=-1)[:, None]
        # A list into which a document of the same type enters stays as it is.
        gap, excess = gap - gap[0, kinds[0]], excess - excess[0, kinds[0]]

        def made(number: int) -> Places:
            changed = kinds.copy()
            changed[number // count] = number % count
            return changed

        return ((gained - BOUND * excess) / self.total).ravel(), gap.ravel(), made

    def _swapped(self, kinds: Places) -> Moves:
        """What two documents of a list of these types would do in each other's place."""
        one, other = self._pairs
        # The first pair stands for no change.
        differ = kinds[one] != kinds[other]
        differ[0] = True
        one, other = one[differ], other[differ]
        weights, shares, count = self.weights[: len(kinds)], self._wide[kinds], self.rows.shape[1]
        relevance = self.relevance[self._documents(kinds)]
        seen = self._seen(shares[:, :count])
        if not self._few:
            shares = np.hstack([shares[:, seen], shares[:, count:]])
            count = shares.shape[1] - self.masses.shape[1]
        moved = weights[one] - weights[other]
        after = np.maximum(weights @ shares + moved[:, None] * (shares[other] - shares[one]), 0.0)
        exposure, mass = after[:, :count], after[:, count:]
        mass[mass < ROUNDING] = 0.0
        gap = self.columns.terms(exposure, mass[:, self.columns.part[seen]], seen).sum(axis=1)
        gap += self.columns.missing(mass)
        excess = self._excess(exposure, seen).sum(axis=1)
        gained = moved * (relevance[other] - relevance[one])

        def made(number: int) -> Places:
            changed, pair = kinds.copy(), [one[number], other[number]]
            changed[pair] = kinds[pair[::-1]]
            return changed

        return (gained - BOUND * (excess - excess[0])) / self.total, gap - gap[0], made

    def _seen(self, exposure: FloatArray) -> Places | slice:
        """The columns that have to be looked at."""
        return slice(None) if self._few else np.flatnonzero(exposure.any(axis=0))

    def _excess(self, exposure: FloatArray, columns: Places | slice = slice(None)) -> FloatArray:
        """How much exposure (..., k) in these columns is out of bounds, of each."""
        lacking = np.maximum(self.least[columns] - exposure, 0.0)
        return np.asarray(lacking + np.maximum(exposure - self.most[columns], 0.0))

    def _filled(self, heads: Sequence[Places], prices: Sequence[float]) -> list[Places]:
        """The lists with the ranks behind their head: at each the document that raises J of the list so far most."""
        kinds, price = np.array(heads), np.array(prices)[:, None]
        lists = np.arange(len(heads))
        counts = np.array([np.bincount(one, minlength=len(self.best)) for one in heads])
        weights = self.weights[: kinds.shape[1]]
        exposure = np.array([weights @ self._rows(one) for one in kinds])
        chosen = [kinds]
        for rank in range(kinds.shape[1], len(self.weights)):
            weight, total = self.weights[rank], self.weights[: rank + 1].sum()
            gains = self.gains[np.arange(len(self.best)), counts]
            # The 64 types with the most relevant next documents.
            near = np.argsort(-gains, axis=1, kind="stable")[:, :64]
            after = exposure[:, None] + weight * self._rows(near)
            value = (weight * np.take_along_axis(gains, near, 1) - BOUND * self._excess(after).sum(axis=-1)) / total
            best = near[lists, (value - price * self.columns.gaps(after)).argmax(axis=1)]
            exposure = exposure + weight * self._rows(best)
            counts[lists, best] += 1
            chosen.append(best[:, None])
        return [self._documents(one) for one in np.concatenate(chosen, axis=1)]
