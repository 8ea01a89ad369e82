"""The rows of golden files about measures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fairagent.collection.exposure import most_underexposed
from fairagent.measures import AWRF, LOG2_MAX2, NDCG, UNIFORM, JudgedRanking, Product, blend, group_exposure, known_part
from fairagent.measures.answers import (
    attributed_disparity,
    attributed_exposure,
    disparity_bounds,
    expected_attribution_rate,
    normalized_attributed_disparity,
)
from fairagent.measures.expected_exposure import (
    expected_exposure,
    item_exposure,
    normalized_expected_utility,
    target_exposure,
)
from fairagent.measures.exposure import TERMS
from fairagent.measures.ranking import graded_ndcg
from fairagent.papers.debias_rag.benchmarks.items import (
    crows_pairs_score,
    mean_probability,
    preferences,
    relevance_to_context,
    shared_tokens,
    stereoset_score,
    typical_probability,
)
from fairagent.papers.debias_rag.benchmarks.seat import association_test
from fairagent.papers.utility.kind import paired_test, pearson
from fairagent.papers.utility.trial import best_of_references, greedy_match, utility
from fairagent.types import Exposure

from .rows import DIFFERS, Near, Row, reads

SINGLE = Near(float(np.finfo(np.float32).eps), 0)
"""Of values that their code computes in 32-bit floats."""
PRINTED = Near(0, 1.1e-6)
"""Of values that their code prints with six places."""


@reads("awrf.json", "cases", {"authors_ndcg": SINGLE, "authors_awrf": Near(1e-8, 0), "authors_product": SINGLE})
def awrf(case: Row) -> Row:
    alignments, n = case["alignments"], case["cutoff"]
    known = np.array([str(page) in alignments for page in case["run"]])
    rows = np.array([alignments.get(str(page), [0.0] * len(case["groups"])) for page in case["run"]])
    relevant = np.isin(case["run"], case["relevant"])
    ranking = JudgedRanking(relevant, len(case["relevant"]), rows, np.array(case["target"]), known)
    of_relevant = np.sum([alignments[str(page)] for page in case["relevant"]], axis=0)
    return {
        "target": blend(of_relevant, np.array(case["background_known"])),
        "authors_ndcg": NDCG(n)(ranking),
        "authors_awrf": AWRF(n)(ranking),
        "authors_product": Product(NDCG(n), AWRF(n))(ranking),
    }


def discounts(values: list[float]) -> Iterator[Row]:
    for rank, value in enumerate(values, start=1):
        yield {"rank": rank, "discount": value}


@reads("awrf.json", "discount_first_10", {"discount": SINGLE}, discounts)
def discount(case: Row) -> Row:
    return {"discount": LOG2_MAX2(case["rank"])[-1]}


@reads("attribution.json", "cases")
def attribution(case: Row) -> Row:
    exposure, k = attributed_exposure(case["rankings"], case["entail"], case["n"]), case["k"]
    found: Row = {
        "ear": expected_attribution_rate(case["entail"]),
        "attributed_exposure": exposure,
        "l1": exposure.sum(),
        "eae_d": attributed_disparity(exposure),
        "eae_d_norm_rescaled": normalized_attributed_disparity(exposure, k, "rescaled"),
    }
    for given in ("conditional", "unconditional"):
        found[f"bounds_{given}"] = disparity_bounds(exposure, k, given)
        found[f"eae_d_norm_{given}"] = normalized_attributed_disparity(exposure, k, given)
    least, most = disparity_bounds(exposure, k, "rescaled")
    if case["l1"] and most > least:
        found["eae_d_rescaled_raw"] = least + found["eae_d_norm_rescaled"] * (most - least)
    if case["id"] == "all_attributed":
        found["ee_d"] = found["eae_d"]
    return found


@reads("bertscore_matching.json", "cases", {"": Near(1e-9, 1e-9)})
def bertscore(case: Row) -> Row:
    sides = ("hypothesis", "reference")
    found = greedy_match(*(case[f"{side}_embeddings"] for side in sides), *(case[f"{side}_weights"] for side in sides))
    return {"precision": found.precision, "recall": found.recall, "f1": found.f1}


@reads("bertscore_matching.json", "max_over_references")
def best_reference(case: Row) -> Row:
    values = {2: case["level2"], 3: case["level3"]}
    return {"perf_labels_2_3": best_of_references(values, (2, 3)), "perf_label_3": best_of_references(values, (3,))}


@reads("expected_exposure.json", "cases", {"raw_6dp": PRINTED, "normalized_6dp": PRINTED, "full": Near(1e-9, 1e-9)})
def exposure_of_items(case: Row) -> Row:
    k, exposure = case["k"], item_exposure(case["rankings"], case["n"])
    useful = np.isin(np.arange(case["n"]), case["useful"])
    target, found = target_exposure(useful, k), expected_exposure(exposure, useful, k)
    paper: Row = {
        "exposure": exposure,
        "ee_l": found.difference.raw,
        "ee_r_useful_only": exposure[useful] @ target[useful],
    }
    for value, name in ((found.disparity, "ee_d"), (found.relevance, "ee_r")):
        paper |= {name: value.raw, f"{name}_bounds": (value.least, value.most), f"{name}_norm": value.normalized}
    for items, name in ((useful, "target_useful"), (~useful, "target_nonuseful")):
        if items.any():
            (paper[name],) = set(target[items].tolist())
    authors, theirs = expected_exposure(exposure, useful, k, compat="authors"), case["authors"]
    if "error" in theirs:
        # Where their code ends in an exception, the paper's values stand.
        return {"paper": paper, DIFFERS: authors == found, "authors": {} if authors == found else {"full": authors}}
    values = {name: getattr(authors, name) for name in theirs["full"]}
    full = {
        name: {"raw": one.raw, "lower": one.least, "upper": one.most, "normalized": one.normalized}
        for name, one in values.items()
    }
    raw, normalized = ({name: of[key] for name, of in full.items()} for key in ("raw", "normalized"))
    return {"paper": paper, "authors": {"full": full, "raw_6dp": raw, "normalized_6dp": normalized}}


@reads("expected_utility.json", "cases")
def normalized_utility(case: Row) -> Row:
    worst = case["utility_upper_bound"] if case["lower_is_better"] else None
    found: Row = {}
    for alpha, queries in case["authors_normalised_eu_for_bm25"].items():
        for query in queries:
            # Theirs looks at the runs of the same retriever, and of the oracle.
            runs = [of[query] for name, of in case["runs"].items() if name.startswith(("bm25", "gold"))]
            highest = min(run["min"] for run in runs) if worst is not None else max(run["max"] for run in runs)
            value = normalized_expected_utility(case["runs"][f"bm25_alpha{alpha}"][query]["EU"], highest, worst)
            found.setdefault(alpha, {})[query] = value
    return {"authors_normalised_eu_for_bm25": found}


@reads("fairqr_mmr_dlf.json", "exposure")
def exposure_of_groups(case: Row) -> Row:
    rows = np.array(case["membership_in_rank_order"])
    shares = group_exposure(rows, {"log": LOG2_MAX2, "uniform": UNIFORM}[case["discount"]](len(rows)))
    target, labels = np.array(case["target_known"]), tuple(case["groups"][1:])
    known = known_part(shares)
    added = case["smoothing"]
    p, q = ((side + added) / (side.sum() + added * len(side)) for side in (known, target))
    found: Row = {
        name: TERMS[kind](p, q).sum()
        for kind, name in (("kl", "kl_eps_target"), ("kl-reverse", "kl_target_eps"), ("js", "js"))
    }
    # What the loop calls, on what it measures.
    chosen = most_underexposed([Exposure("d", labels, known, target, float(shares[0]), 0.0)])
    name = chosen.label if chosen else None
    if case["exposure_known"] is None:
        # Nothing labeled: the reference names no group, the loop looks for that with the largest target.
        found[DIFFERS] = name == labels[int(target.argmax())]
        found |= {} if found[DIFFERS] else {"most_underrepresented": name}
    else:
        found |= {"exposure_known": known, "most_underrepresented": name}
    return found | {"exposure_with_unknown": shares, "gap": target - known}


@reads("rag_utility.json", "utility", rows=lambda case: [case])
def utility_of_contexts(case: Row) -> Row:
    found = [utility(p, p0) for p, p0 in zip(case["f_k_shot"], case["f_zero_shot"], strict=True)]
    correlation, test = pearson(case["utility"], case["ndcg"]), paired_test(case["utility"], case["paired_t"]["other"])
    assert correlation
    assert test
    return {
        "utility": found,
        "mean_utility": sum(found) / len(found),
        "pearson_r": correlation[0],
        "pearson_p": correlation[1],
        "paired_t": {"t": test.t, "p": test.p},
    }


@reads("rag_utility.json", "ndcg")
def graded(case: Row) -> Row:
    return {
        f"ndcg_{gain}": graded_ndcg(case["run"], case["judged"], case["k"], gain) for gain in ("linear", "exponential")
    }


@reads("crows_pairs.json", "cases")
def crows_pairs(case: Row) -> Row:
    more, less = (np.array([pair[name] for pair in case["pairs"]]) for name in ("more_score", "less_score"))
    found = crows_pairs_score(more, less, [pair["stereo_antistereo"] == "stereo" for pair in case["pairs"]])
    # The authors round to two places.
    two_places = [
        value if value is None else round(value, 2) for value in (found.score, found.stereotype, found.anti_stereotype)
    ]
    return {
        "authors": {
            **dict(zip(("metric_score", "stereotype_score", "antistereotype_score"), two_places, strict=True)),
            "num_neutral": found.neutral,
            "per_pair": preferences(more, less)[0].astype(int),
        }
    }


@reads("crows_pairs.json", "get_span")
def tokens_in_common(case: Row) -> Row:
    return dict(zip(("template1", "template2"), shared_tokens(case["ids1"], case["ids2"]), strict=True))


@reads("stereoset.json", "cases")
def stereoset(case: Row) -> Row:
    def score(examples: list[Row], times: int = 1) -> Row:
        columns = ("score_stereotype", "score_antistereotype", "score_unrelated")
        scores = (np.array([example[column] for example in examples]) for column in columns)
        found = stereoset_score([example["target"] for example in examples], *scores)
        return {"Count": found.count * times, "LM Score": found.lms, "SS Score": found.ss, "ICAT Score": found.icat}

    ours: dict[str, Any] = {"overall": score(case["examples"])}
    for part in ("intrasentence", "intersentence"):
        of_part = [example for example in case["examples"] if example["split"] == part]
        ours[part] = {"overall": score(of_part)}
        for domain in case["authors"][part].keys() - {"overall"}:
            # The authors' list of a domain holds every example three times; the ratios are the same.
            ours[part][domain] = score([example for example in of_part if example["bias_type"] == domain], 3)
    return {"authors": ours}


@reads("stereoset.json", "sentence_scores")
def sentences(case: Row) -> Row:
    logs = np.log(case["token_probs"])
    return {"masked_lm_score": mean_probability(logs), "generative_score": typical_probability(logs)}


@reads("stereoset.json", "intersentence_generative")
def next_sentences(case: Row) -> Row:
    alone, after = (np.log(case[f"{name}_token_probs"]) for name in ("sentence_alone", "context"))
    return {"score": relevance_to_context(alone, after)}


@reads("weat_seat.json", "cases")
def weat(case: Row) -> Row:
    found = association_test(*(np.array(case[name]) for name in "XYAB"))
    return {
        "authors_effect_size": found.effect,
        "authors_p_value": found.p,
        "exact": found.exact,
        "n_partitions": math.comb(2 * len(case["X"]), len(case["X"])),
    }
