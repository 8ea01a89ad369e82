"""The rows of golden files about re-rankers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rerank.greedy_pools import is_fair
from scipy.special import softmax

from fairagent.measures import group_exposure
from fairagent.papers.rivals.deltr import JudgedQuery, TrainingBatch, deltr_gradient, deltr_loss, exposure_gap, top_one
from fairagent.papers.rivals.dlf import exposure_loss, fuse
from fairagent.papers.rivals.fa_star_ir import adjusted, fa_star_ir, fail_probability, minimum_protected
from fairagent.search.rerank.similarity import mmr
from fairagent.types import FloatArray

from .rows import DIFFERS, Near, Row, reads, reads_lines

OF_SUMS = Near(1e-9, 1e-14)
"""The absolute part is for zero, which a reference reaches as 1 - (a sum) with a rounding error."""


@reads("fa_star_ir.json", "tables", {"": OF_SUMS})
def tables(case: Row) -> Row:
    k, p, alpha = case["k"], case["p"], case["alpha"]
    table, found = minimum_protected(k, p, alpha), adjusted(k, p, alpha, compat="library")
    exact = adjusted(k, p, alpha)
    # The exact adjustment is at least as close.
    assert abs(exact.fail - alpha) <= abs(case["fail_prob_adjusted_exact"] - alpha) + 1e-12
    library = fail_probability(table, p, compat="library")
    return {
        "mtable_unadjusted": table,
        "fail_prob_unadjusted_exact": fail_probability(table, p),
        "fail_prob_unadjusted_library": library,
        "fail_prob_unadjusted_exact_without_last_position": library,
        "alpha_adjusted_library": found.alpha,
        "mtable_adjusted": found.table,
        "fail_prob_adjusted_library": found.fail,
        "fail_prob_adjusted_exact": fail_probability(found.table, p),
    }


def grid(path: Path) -> Iterator[tuple[str, Row]]:
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    for line in lines:
        k, p, alpha, level, fail, rises = line.split("\t")
        ranks = [int(rank) for rank in rises.split(",") if rank]
        row = {"k": int(k), "p": float(p), "alpha": float(alpha), "rises": ranks}
        yield f"k={k} p={p} alpha={alpha}", row | {"alpha_adjusted": float(level), "fail_probability": float(fail)}


@reads_lines("fa_star_ir_grid.tsv", grid, {"": OF_SUMS})
def library_tables(case: Row) -> Row:
    found = adjusted(case["k"], case["p"], case["alpha"], compat="library")
    rises = np.flatnonzero(np.diff(found.table, prepend=0)) + 1
    return {"rises": rises, "alpha_adjusted": found.alpha, "fail_probability": found.fail}


@reads("fa_star_ir.json", "rerank")
def fair_rankings(case: Row) -> Row:
    ids, scores, protected = zip(*case["ranking"], strict=True)
    member, table = np.array(protected), np.array(case["mtable"])
    order = fa_star_ir(np.array(scores), member, table)
    return {
        "reranked_ids": [ids[i] for i in order],
        "reranked_is_fair": bool(is_fair(member[order], table)),
        "input_topk_is_fair": bool(is_fair(member[: case["k"]], table)),
    }


def queries(case: Row, standardized: bool = False) -> list[JudgedQuery]:
    rows = np.array(case["rows"])
    matrix = rows[:, 2:-1].copy()
    if standardized:
        # The library's way: one mean and deviation over the whole matrix, then the protected column as it was.
        matrix = (matrix - matrix.mean()) / matrix.std()
    of = rows[:, 0]
    return [JudgedQuery(matrix[of == q, 1:], rows[of == q, -1], rows[of == q, 2] == 1) for q in np.unique(of).tolist()]


def sizes(batch: TrainingBatch) -> FloatArray:
    """The library counts a query once a document."""
    return np.bincount(batch.query).astype(np.float64)


@reads("deltr.json", "cases", {"true_gradient_of_loss_sum_over_rows": Near(1e-5, 0)})
def deltr(case: Row) -> Row:
    batch, weights, gamma = TrainingBatch.of(queries(case)), np.array(case["omega"]), case["gamma"]
    losses, p = deltr_loss(weights, batch, gamma), top_one(batch.features @ weights, batch.query, batch.starts)
    gap = exposure_gap(p, batch)
    per_query = []
    for number, value in enumerate(losses.tolist()):
        of_query = batch.query == number
        inside, exposure = batch.features[of_query, 0] == 1, p[of_query] / math.log(2)
        per_query.append(
            {
                "loss": value,
                "top_prob": p[of_query],
                "exposure_protected": exposure[inside].mean(),
                "exposure_nonprotected": exposure[~inside].mean(),
                "exposure_diff": max(0.0, gap[number]),
            }
        )
    slope = deltr_gradient(weights, batch, gamma, per_query=sizes(batch))
    found = {
        "per_query": per_query,
        "loss_sum_over_queries": losses.sum(),
        "loss_sum_over_rows": losses @ sizes(batch),
        "true_gradient_of_loss_sum_over_rows": slope,
        "library_runs": {kind: _trained(case, kind) for kind in ("raw", "standardized")},
    }
    if gamma == 0 or not (gap > 0).any():
        return found | {"library_gradient": slope}
    # With exposure at stake the library's gradient is not that of its loss.
    return found | {DIFFERS: True}


def _trained(case: Row, kind: str) -> Row:
    run, batch = case["library_runs"][kind], TrainingBatch.of(queries(case, standardized=kind == "standardized"))
    weights, losses = np.array(run["omega0"]), []
    for _ in run["losses"]:
        losses.append(deltr_loss(weights, batch, case["gamma"]) @ sizes(batch))
        weights = weights - run["learning_rate"] * deltr_gradient(weights, batch, case["gamma"], sizes(batch))
    return {"losses": losses, "loss_standard": losses, "omega": weights}


@reads("deltr_exposure.json", "cases")
def deltr_with_exposure(case: Row) -> Row:
    batch, weights = TrainingBatch.of(queries(case)), np.array(case["omega0"])
    whole = deltr_loss(weights, batch, case["gamma"]) @ sizes(batch)
    # It would differ: the name does not say that exposure is in it.
    assert abs(deltr_loss(weights, batch, 0) @ sizes(batch) - whole) > 1
    gap = np.maximum(exposure_gap(top_one(batch.features @ weights, batch.query, batch.starts), batch), 0)
    return {"loss": whole, "loss_standard": whole, "loss_exposure": gap @ sizes(batch)}


@reads("fairqr_mmr_dlf.json", "mmr")
def mmr_picks(case: Row) -> Row:
    similarity = np.array(case["similarity"])
    return {"selected": mmr(np.array(case["relevance"]), similarity.__getitem__, case["lam"], case["k"])}


# Their gradients are central differences: 1e-8 to 3e-7 off the derivative of their own loss (rerank/test_dlf.py).
@reads("fairqr_mmr_dlf.json", "dlf", {f"grad_of_kl_{pair}": Near(1e-5, 0) for pair in
                                      ("target_exposure", "exposure_target")})  # fmt: skip
def dlf(case: Row) -> Row:
    scores, membership, share = (np.array(case[key]) for key in ("scores", "membership", "target"))
    fused = fuse(scores, np.array(case["relevance"]), case["alpha_on_fairness"])
    found: Row = {"fused": fused, "order": np.argsort(-fused, kind="stable")}
    found["exposure"] = group_exposure(membership, softmax(scores))
    for direction, name in (("kl", "kl_exposure_target"), ("kl-reverse", "kl_target_exposure")):
        found[name], found[f"grad_of_{name}"] = exposure_loss(scores, membership, share, direction)
    return found
