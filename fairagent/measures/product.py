"""The product of two measures, topic by topic."""

from __future__ import annotations

from dataclasses import dataclass

from fairagent.errors import UsageError
from fairagent.measures.measure import JudgedRanking, Measure


@dataclass(frozen=True)
class Product(Measure):
    """left * right of one judged ranking, such as nDCG * AWRF, the score of TREC Fair Ranking's Task 1.

    A run's score is the mean of the topics' products, not the product of the means. The factors are no
    products.

    >>> from fairagent.measures import AWRF, NDCG
    >>> print(Product(NDCG(20), AWRF(20)))
    nDCG(discount=log2-max2)@20*AWRF(discount=log2-max2, log=e, unknown=group)@20
    """

    left: Measure
    right: Measure

    def __post_init__(self) -> None:
        if isinstance(self.left, Product) or isinstance(self.right, Product):
            raise UsageError("a product has two factors, and neither can be a product itself")

    @property
    def n(self) -> int:  # type: ignore[override]
        """The larger of both cut-offs."""
        return max(self.left.n, self.right.n)

    @property
    def of_groups(self) -> bool:  # type: ignore[override]
        """Whether one of both looks at groups."""
        return self.left.of_groups or self.right.of_groups

    def __call__(self, judged: JudgedRanking) -> float:
        """The product of both values; raises DataError where one of them is not defined."""
        return self.left(judged) * self.right(judged)

    def __str__(self) -> str:
        return f"{self.left}*{self.right}"
