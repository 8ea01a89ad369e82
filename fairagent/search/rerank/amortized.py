"""The amortized re-ranker: what documents or groups were owed after earlier requests is paid in this one.

After Biega, Gummadi and Weikum (SIGIR 2018, documents) and Singh and Joachims (KDD 2018, groups): see
`fairagent.measures.amortized`. Groups are paid by the frontier, whose target is then what each is owed. Relevance is
the min-max score of the candidates: an estimate, so that `tolerance` bounds what is lost of estimated nDCG. The account
counts what is served in the end (after a draw), and relevance by the candidates' own scores, before any other re-ranker
of a chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field

from fairagent.collection.exposure import dimensions_of
from fairagent.errors import BackendUnavailable
from fairagent.measures import Discount, min_max, parse_discount
from fairagent.measures.amortized import as_shares_of_one, attention, deserved, pay_documents
from fairagent.retrieve.base import placed
from fairagent.retrieve.site import Site
from fairagent.search.account import Account, Column, Entry
from fairagent.search.rerank.base import NO_LIST, Pool, UnlabeledColumns
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.settings.parts import Part
from fairagent.types import UNKNOWN, Dial, FloatArray, Ranking
from fairagent.types.clean import logger

Unit = Literal["group", "individual"]
Due = Literal["relevance", "target"]

log = logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class AmortizedReranker:
    """Orders the candidates so that debts shrink, and counts what is served in the `account` (None: nothing is owed).

    `columns` are the groups of all dimensions as a pool's memberships have them, those without a label included.
    """

    account: Account | None
    columns: tuple[Column, ...]
    unit: Unit
    due: Due
    tolerance: float
    discount: Discount

    @property
    def keeps(self) -> bool:
        """Whether there is an account."""
        return self.account is not None

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; where the account cannot be read now, nothing is owed, and the log says so."""
        ids = pool.ranking.ids
        if not ids or self.tolerance == 0:
            return placed(ids, range(min(pool.n, len(ids))))
        if self.unit == "group":
            payer = ExposureReranker(Dial(keep=1 - self.tolerance), discount=self.discount, margin=1.0)
            return payer.rerank(self._owing(pool))
        relevance, weights = min_max(pool.ranking.scores), self.discount(min(pool.n, len(ids)))
        return placed(ids, pay_documents(self._debts(ids), relevance, weights, self.tolerance))

    def _owing(self, pool: Pool) -> Pool:
        """The pool in which every group, and documents without a label, should get their part of what is owed now."""
        spread = _spread(pool)
        owed = np.split(self._debts() + self._due_of(pool), np.cumsum([rows.shape[1] for rows in spread])[:-1])
        shares = [as_shares_of_one(np.maximum(one, 0.0), "what is owed") for one in owed]
        # No group's present share is protected: it may be the one that got too much.
        none = tuple(
            UnlabeledColumns(rows[:, :1], of[:1], np.zeros(len(of))) for rows, of in zip(spread, shares, strict=True)
        )
        targets = tuple(as_shares_of_one(of[1:], "what is owed") for of in shares)
        return replace(
            pool, memberships=tuple(spread), targets=targets, unlabeled=none, importance=(), engine_list=NO_LIST
        )

    def keep(self, pool: Pool, served: Pool) -> tuple[str, ...]:
        """Count what was served; if that fails, there is a note, and the ranking is served all the same."""
        if self.account is None or not len(served.ranking):
            return ()
        try:
            self.account.add(self.entry(pool, served))
        except BackendUnavailable as error:
            return (f"this request is missing in the account: {error}",)
        return ()

    def entry(self, pool: Pool, served: Pool) -> Entry:
        """What a request with the candidates of `pool` adds when it is served the ranking of `served`.."""
        ids, relevance = pool.ranking.ids, min_max(pool.ranking.scores)
        shares = attention(self.discount(len(served.ranking)))
        due = self._due_of(pool) if len(ids) else np.zeros(len(self.columns))
        got = shares @ np.hstack(_spread(served)) if self.columns else np.zeros(0)
        return Entry(
            dict(zip(served.ranking.ids, shares.tolist(), strict=True)),
            dict(zip(ids, deserved(relevance).tolist(), strict=True)) if ids else {},
            {
                column: (float(received), float(owed))
                for column, received, owed in zip(self.columns, got, due, strict=True)
                if received or owed
            },
        )

    def _debts(self, ids: tuple[str, ...] | None = None) -> FloatArray:
        """What documents, or all groups, are owed."""
        if self.account is not None:
            try:
                return self.account.groups(self.columns) if ids is None else self.account.documents(ids)
            except BackendUnavailable as error:
                log.warning("%s; this request is ranked as if nothing was owed", error)
        return np.zeros(len(self.columns) if ids is None else len(ids))

    def _due_of(self, pool: Pool) -> FloatArray:
        """What this request owes all groups, 1 in each dimension; documents without a label are owed by relevance."""
        by_relevance = deserved(min_max(pool.ranking.scores))
        dues = []
        for rows, target in zip(_spread(pool), pool.targets, strict=True):
            of_groups = by_relevance @ rows
            if self.due == "target":
                of_groups = np.concatenate([of_groups[:1], of_groups[1:].sum() * target])
            dues.append(of_groups)
        return np.concatenate(dues) if dues else np.zeros(0)


def _spread(pool: Pool) -> list[FloatArray]:
    """How the attention of each document is spread over a dimension's groups; rows add up to 1."""
    spread = []
    for rows in pool.memberships:
        mass = rows.sum(axis=1)
        empty = np.eye(1, rows.shape[1])
        spread.append(np.where(mass[:, None] > 0, rows / np.where(mass > 0, mass, 1)[:, None], empty))
    return spread


class AmortizedConfig(Part):
    """Pays what documents or groups were owed after earlier requests, and keeps the account."""

    kind: Literal["amortized"] = "amortized"
    file: str = ""
    """The account, an SQLite file on this machine, made where there is none; a relative path starts at the folder of
    the settings file. Empty: beside the index, NAME-account.sqlite."""
    unit: Unit = "group"
    """Who is owed attention: group (of each dimension), or individual (each document)."""
    due: Due = "relevance"
    """What a group is owed: relevance, its documents' share of the candidates' relevance; or target, as `target`
    says."""
    tolerance: float = Field(0.02, ge=0, le=1)
    """The share of estimated nDCG that paying may cost, 0 to 1, in each request. 0: nothing is reordered, and the
    account is kept."""

    @property
    def sees_groups(self) -> bool:
        return self.unit == "group"

    def relative_to(self, folder: Path) -> Self:
        return self.model_copy(update={"file": str((folder / self.file).absolute())}) if self.file else self

    def build(self, site: Site) -> AmortizedReranker:
        """The re-ranker; in experiments, where no request may carry over, without an account."""
        settings, collection = site.settings, site.collection
        dimensions = dimensions_of(collection, settings) if collection.groups.dimensions else ()
        columns = tuple((one, label) for one in dimensions for label in (UNKNOWN, *collection.groups.labels(one)))
        account: Account | None = None
        if not site.stateless:
            path = Path(self.file or site.index.with_name(site.index.name + "-account.sqlite"))
            basis = {"due": self.due, "discount": settings.discount}
            key = ("account", path.absolute(), self.model_dump_json())
            account = site.memo.get(key, lambda: Account(path, collection.name, basis))
        return AmortizedReranker(
            account=account,
            columns=columns,
            unit=self.unit,
            due=self.due,
            tolerance=self.tolerance,
            discount=parse_discount(settings.discount),
        )
