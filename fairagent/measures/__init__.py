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
    normalized_match_distance,
    order_aware_divergence,
    total_variation,
)
from fairagent.measures.expected_exposure import (
    ExpectedExposure,
    expected_exposure,
    expected_utility,
    group_expected_exposure,
    item_exposure,
    missing_judgments,
    normalized_expected_utility,
    target_exposure,
)
from fairagent.measures.exposure import Unlabeled, blend, gaps, group_exposure, known_part, min_max, most_underexposed
from fairagent.measures.finite_pool import PoolTest, pool_test
from fairagent.measures.gfr import GFR, group_fairness, stopping
from fairagent.measures.label_error import awrf_under_error, calibration_error, drawn_labels, odds_spread, reliability
from fairagent.measures.ndcg import NDCG, ndcg
from fairagent.measures.parity import ExposureRatio, exposure_ratio
from fairagent.measures.parse import parse_measure
from fairagent.measures.skew import NDKL, MaxSkew, MinSkew, ndkl, skew
from fairagent.measures.unawareness import (
    FairnessEstimate,
    Interval,
    Prevalence,
    awrf_bounds,
    awrf_estimate,
    confusion_matrix,
    exposure_bounds,
    prevalence,
)

__all__ = [
    "AWRF",
    "DIVERGENCES",
    "GFR",
    "LOG2_MAX2",
    "NDCG",
    "NDKL",
    "Discount",
    "Divergence",
    "Ends",
    "ExpectedExposure",
    "ExposureRatio",
    "FairnessEstimate",
    "Geometric",
    "Given",
    "Interval",
    "JudgedRanking",
    "Log2Max2",
    "Log2Plus1",
    "MaxSkew",
    "Measure",
    "MinSkew",
    "PoolTest",
    "Prevalence",
    "Product",
    "StepDiscount",
    "Uniform",
    "Unlabeled",
    "awrf",
    "awrf_bounds",
    "awrf_estimate",
    "awrf_under_error",
    "blend",
    "calibration_error",
    "confusion_matrix",
    "drawn_labels",
    "expected_exposure",
    "expected_utility",
    "exposure_bounds",
    "exposure_ratio",
    "gaps",
    "group_expected_exposure",
    "group_exposure",
    "group_fairness",
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
    "normalized_match_distance",
    "odds_spread",
    "order_aware_divergence",
    "parse_discount",
    "parse_measure",
    "pool_test",
    "prevalence",
    "reliability",
    "skew",
    "stopping",
    "target_exposure",
    "total_variation",
]
