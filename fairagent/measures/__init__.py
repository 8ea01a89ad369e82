"""Measures of exposure, fairness and relevance: pure functions on arrays, and `Measure` objects built on them.

Memberships are (n, g), a row a document in rank order, column 0 `UNKNOWN`; ranks start at 1; logarithms are
natural unless a base is given. What is not defined is a DataError, never a nan.
"""

from fairagent.measures.awrf import AWRF, awrf, joint_memberships
from fairagent.measures.base import JudgedRanking, Measure, Product
from fairagent.measures.discounts import (
    LOG2_MAX2,
    Discount,
    Ends,
    Geometric,
    Given,
    Log2Max2,
    Log2Plus1,
    StepDiscount,
    Uniform,
    parse_discount,
)
from fairagent.measures.divergence import (
    DIVERGENCES,
    Divergence,
    jensen_shannon,
    kl,
    kl_reverse,
    total_variation,
)
from fairagent.measures.expected_exposure import (
    ExpectedExposure,
    expected_exposure,
    item_exposure,
    missing_judgments,
    normalized_expected_utility,
    target_exposure,
)
from fairagent.measures.exposure import Unlabeled, blend, group_exposure, known_part, min_max, most_underexposed
from fairagent.measures.label_error import awrf_under_error, calibration_error, drawn_labels, odds_spread, reliability
from fairagent.measures.ndcg import NDCG, ndcg
from fairagent.measures.parse import parse_measure
from fairagent.measures.skew import NDKL, ndkl
from fairagent.measures.unawareness import (
    Interval,
    Prevalence,
    awrf_bounds,
    confusion_matrix,
    exposure_bounds,
    prevalence,
)

__all__ = [
    "AWRF",
    "DIVERGENCES",
    "LOG2_MAX2",
    "NDCG",
    "NDKL",
    "Discount",
    "Divergence",
    "Ends",
    "ExpectedExposure",
    "Geometric",
    "Given",
    "Interval",
    "JudgedRanking",
    "Log2Max2",
    "Log2Plus1",
    "Measure",
    "Prevalence",
    "Product",
    "StepDiscount",
    "Uniform",
    "Unlabeled",
    "awrf",
    "awrf_bounds",
    "awrf_under_error",
    "blend",
    "calibration_error",
    "confusion_matrix",
    "drawn_labels",
    "expected_exposure",
    "exposure_bounds",
    "group_exposure",
    "item_exposure",
    "jensen_shannon",
    "joint_memberships",
    "kl",
    "kl_reverse",
    "known_part",
    "min_max",
    "missing_judgments",
    "most_underexposed",
    "ndcg",
    "ndkl",
    "normalized_expected_utility",
    "odds_spread",
    "parse_discount",
    "parse_measure",
    "prevalence",
    "reliability",
    "target_exposure",
    "total_variation",
]
