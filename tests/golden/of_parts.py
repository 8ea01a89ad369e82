"""The rows of golden files about engines, draws, filters, debiasing, training and answers."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from samplers import placement_log_probabilities
from scipy.special import softmax

from fairagent.answer.filtering import STEPS, FairFilter, parse_verdict
from fairagent.guests.testing import Scripted, ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.measures.answers import absolute_error, accuracy, parse_utility, rouge_l
from fairagent.papers.debias_rag.avoid import load_lexicon
from fairagent.papers.debias_rag.stage import (
    Theta,
    best,
    features,
    gradient,
    loss,
    passing,
    project,
    scaled,
    step,
    target,
)
from fairagent.papers.fair_rag.okapi import EPSILON, K1, B, okapi_scores
from fairagent.papers.fair_rag.trial import oracle_log_scores
from fairagent.papers.fairft.graded import read_accuracy, read_agreement, says_yes
from fairagent.papers.fairft.train import kl_loss, log_target
from fairagent.papers.utility.trial import Order, arranged
from fairagent.retrieve.stochastic import bounded, earliest, sampler_log_scores
from fairagent.types import Document

from .rows import DIFFERS, NOT_HERE, Near, Row, reads, reads_lines

# --- engines and draws


@reads("bm25_okapi.json", "cases")
def okapi(case: Row) -> Row:
    scores = okapi_scores(case["query"], case["docs"])
    return {
        "k1": K1,
        "b": B,
        "epsilon": EPSILON,
        "scores": scores,
        "authors_order": np.argsort(scores, kind="stable")[::-1],
    }


@reads("score_normalisation.json", "cases")
def sampler_scores(case: Row) -> Row:
    raw, alpha = np.array(case["raw"], dtype=np.float64), case["alpha"]
    if case["retriever"] == "gold":
        # The oracle, which normalizes nothing; the paper has no other.
        return {"authors_sampler_scores": np.exp(oracle_log_scores(raw == 1, alpha)), "paper_sampler_scores": None}
    paper = np.exp(sampler_log_scores(raw, alpha))
    authors = np.exp(sampler_log_scores(raw, alpha, compat="authors"))
    if "nan" in case["authors_sampler_scores"]:
        # 0 / 0 in the authors' code has a defined result here: uniform.
        assert (authors == 1).all()
        return {"paper_sampler_scores": paper, DIFFERS: True}
    return {"paper_sampler_scores": paper, "authors_sampler_scores": authors}


@reads("plackett_luce.json", "cases")
def rankings(case: Row) -> Row:
    log_scores = sampler_log_scores(np.array(case["raw_scores"]), case["alpha"])
    chances = [
        (order, float(np.exp(placement_log_probabilities(log_scores, order).sum()))) for order, _ in case["rankings"]
    ]
    included, placed = np.zeros(len(log_scores)), np.zeros((case["k"], len(log_scores)))
    for order, chance in chances:
        included[order] += chance
        placed[range(len(order)), order] += chance
    return {
        "sampler_scores": np.exp(log_scores),
        "rankings": chances,
        "inclusion_prob": included,
        "prob_item_at_position": placed,
        "ee_d_exact": included @ included,
    }


@reads("plackett_luce.json", "ranking_log_prob")
def placements(case: Row) -> Row:
    found = [placement_log_probabilities(np.log(case["sampler_scores"]), ranking) for ranking in case["rankings"]]
    return {"placement_probs": [np.exp(one) for one in found], "log_prob": [one.sum() for one in found]}


@reads("plackett_luce.json", "seeded_examples")
def seeded_draws(case: Row) -> Row:
    log_scores = sampler_log_scores(np.array(case["raw_scores"]), case["alpha"], compat="authors")
    # The authors add Gumbel noise from numpy's legacy stream.
    noise = np.random.RandomState(case["numpy_legacy_seed"]).gumbel(size=(case["n_samples"], len(log_scores)))
    return {"rankings": earliest(-noise - bounded(log_scores), case["k"])}


# --- filter and debiasing

NOT_HERE["fairfilter.json", "gibberish"] = "a rule for crawled pages; no part here crawls"
NOT_HERE["fairqr_mmr_dlf.json", "loop"] = "tests/search/test_agent.py runs the whole loop on them"


@reads("fairfilter.json", "parse")
def verdict(case: Row) -> Row:
    return {"authors_pass": parse_verdict(case["reply"])}


@reads("fairfilter.json", "decisions")
def decision(case: Row) -> Row:
    def answer(request: ModelRequest) -> Scripted:
        return str(case["fairness_reply" if request.prompt == STEPS["authors"][0] else "relevance_reply"])

    model = ScriptedModel(answer)
    (one,) = FairFilter(model, Prompts(), workers=1, compat="authors").filter("q", [Document("d", "text")]).verdicts
    return {"kept": one.kept, "llm_calls": len(model.requests)}


@reads("fairfilter.json", "batch", rows=lambda case: [case | {"asked": [*"ABBCCDD"]}])
def filtered_batch(case: Row) -> Row:
    model = ScriptedModel(case["replies"])
    documents = [Document(text, text) for text in case["docs"]]
    found = FairFilter(model, Prompts(), workers=1, compat="authors").filter("q", documents)
    asked = [text for request in model.requests for text in case["docs"] if f'"{text}"' in request.messages[-1][1]]
    return {"kept": [document.text for document in found.documents], "asked": asked}


@reads("debiasrag.json", "cases")
def debias(case: Row) -> Row:
    avoided, k = np.array(case["max_sim_avoid"]), case["K"]
    kept, emptied = passing(avoided, case["tau_avoid"], k, np.zeros(len(avoided), dtype=bool))
    assert not emptied
    phi, start = features(np.array(case["sim_query"])[kept], avoided[kept]), np.array(case["theta_start"])
    taken = step(phi, start, case["eta0"])
    plain = project(start - case["eta0"] * gradient(phi, start))
    return {
        "kept_indices": kept,
        "phi": phi,
        "u_hat": scaled(phi.sum(axis=1)),
        "target": target(phi),
        "loss_start": taken.loss_before,
        "grad_start": gradient(phi, start),
        "p_start": softmax(phi @ start),
        "backtracks_halving": taken.halvings,
        "eta_accepted": taken.rate,
        "theta_next": taken.theta,
        "loss_next": taken.loss_after,
        "theta_next_without_backtracking": plain,
        "loss_without_backtracking": loss(phi, plain),
        "scores_next": phi @ taken.theta,
        "topk_indices_in_pool": kept[best(phi, taken.theta, k)],
        "simplex_optimum_loss": loss(phi, np.array(case["simplex_optimum_theta"])),
    }


def stream(cases: list[Row]) -> Iterator[Row]:
    theta = Theta(rate=cases[0]["eta0"])
    for case in cases:
        before, taken = theta.move(np.array(case["phi"]))
        yield case | {"moved": (before, taken)}


@reads("debiasrag.json", "streaming", rows=stream)
def streaming(case: Row) -> Row:
    before, taken = case["moved"]
    return {
        "theta_before": before,
        "theta_after": taken.theta,
        "loss_before": taken.loss_before,
        "loss_after": taken.loss_after,
        "backtracks": taken.halvings,
    }


def swaps(path: Path) -> Iterator[tuple[str, Row]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    for number, case in enumerate(content["substitution"]):
        yield f"substitution[{number}]", case | {"lexicon": content["lexicon"]}


@reads_lines("debiasrag.json", swaps, section="substitution")
def swapped(case: Row) -> Row:
    return {"swapped_one_way": _swapped(case, "->"), "swapped_both_ways": _swapped(case, "<->")}


def _swapped(case: Row, arrow: str) -> list[str]:
    entries = "".join(f"  - {word} {arrow} {other}\n" for word, other in case["lexicon"].items())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "words.yaml"
        file.write_text(f"gender:\n{entries}", encoding="utf-8")
        return load_lexicon(file).swap(" ".join(case["tokens"])).split()


@reads("simplex_projection.json", "cases")
def projection(case: Row) -> Row:
    return {"projection": project(np.array(case["v"]))}


# --- training

FLOAT32 = Near(1e-5, 1e-11)


@reads("fairft.json", "cases", {"authors_loss": FLOAT32, **{
    name: Near(1e-7, 1e-11) for name in ("paper_grad_wrt_scores", "kl_Q_P_grad", "authors_grad_wrt_scores")
}})  # fmt: skip
def fairft(case: Row) -> Row:
    torch = pytest.importorskip("torch")
    scores = np.array(case["retriever_scores"])
    log_q = log_target(np.log(case["lm_likelihood"]), case["beta"])
    found: Row = {"lm_probs": np.exp(log_q), "retriever_probs": softmax(scores / case["gamma"], axis=-1)}
    forms: list[tuple[Any, Any, str, str]] = [
        ("p-q", "mean", "paper_loss_KL_P_Q", "paper_grad_wrt_scores"),
        ("q-p", "mean", "kl_Q_P", "kl_Q_P_grad"),
        ("q-p", "documents", "authors_loss", "authors_grad_wrt_scores"),
    ]
    for direction, reduction, value, slope in forms:
        tensor = torch.tensor(scores, requires_grad=True)
        loss = kl_loss(tensor, torch.tensor(log_q), case["gamma"], direction, reduction)  # type: ignore[arg-type]
        loss.backward()  # type: ignore[no-untyped-call]
        found[value], found[slope] = loss.item(), tensor.grad.numpy()
    return found


# --- answers


@reads("fairfilter.json", "agreement", rows=lambda case: [case])
def agreement(case: Row) -> Row:
    # They ask the judge after all that the rule can read; an answer that never came is "Error" and not counted.
    answered = [item for item in case["items"] if item["res"] != "Error"]
    answered.sort(key=lambda item: read_agreement(item["res"]) is None)
    labels, by_type = iter(case["judge_labels_in_order"]), defaultdict(list)
    for item in answered:
        agrees = read_agreement(item["res"])
        by_type[item["bias_type"]].append(float(says_yes(next(labels)) if agrees is None else agrees))
    assert next(labels, None) is None
    stats = {
        kind: {"agreement_ratio": _three_places(values), "count": len(values), "agreement_count": sum(values)}
        for kind, values in by_type.items()
    }
    everything = [value for values in by_type.values() for value in values]
    return {"authors": {"bias_type_stats": stats, "overall_agreement_ratio": _three_places(everything)}}


@reads("fairfilter.json", "crag", rows=lambda case: [case])
def crag(case: Row) -> Row:
    replies, by_domain = iter(case["judge_replies_in_order"]), defaultdict(list)

    def judged() -> bool:
        (found,) = json.loads(next(replies)).values()
        return str(found).lower() == "true"

    for item in case["items"]:
        if item["res"] != "Error":
            right = read_accuracy(item["res"], item["answer"], item["alt_ans"])
            by_domain[item["domain"]].append(float(judged() if right is None else right))
    assert next(replies, None) is None
    stats = {
        domain: {"accuracy": _three_places(values), "correct": sum(values), "total": len(values)}
        for domain, values in by_domain.items()
    }
    everything = [value for values in by_domain.values() for value in values]
    return {"authors": {"domain_accuracies": stats, "overall_accuracy": _three_places(everything)}}


def _three_places(values: list[float]) -> float:
    return round(sum(values) / len(values), 3)


def pairs(case: Row) -> Iterator[Row]:
    for prediction, truth, value in zip(case["preds"], case["targets"], case["authors"], strict=True):
        yield {"pair": (prediction, truth), "labels": case.get("labels"), "authors": value}


@reads("lamp_metrics.json", "accuracy", rows=pairs)
@reads("lamp_metrics.json", "accuracy_tags", rows=pairs)
def accuracies(case: Row) -> Row:
    return {"authors": accuracy(*case["pair"], labels=case["labels"])}


@reads("lamp_metrics.json", "mae", rows=pairs)
def errors(case: Row) -> Row:
    return {"authors": absolute_error(*case["pair"])}


@reads("lamp_metrics.json", "rouge_l", rows=pairs)
def rouge(case: Row) -> Row:
    pytest.importorskip("rouge")
    return {"authors": rouge_l(*case["pair"])}


@reads("rag_utility.json", "em_f1")
def matches(case: Row) -> Row:
    names = {"em": "exact-match", "f1": "f1"}
    return {key: parse_utility(name)(case["prediction"], case["golds"]) for key, name in names.items()}


@reads("rag_utility.json", "orders")
def orders(case: Row) -> Row:
    found = [list(arranged(case["items"], order)) for order in get_args(Order)]
    # The authors leave out an order that is one of those before.
    return {"orders": [one for place, one in enumerate(found) if one not in found[:place]]}


@reads("rag_utility.json", "context", rows=lambda context: [
    {"texts": list(context["docs"].values())} | case for case in context["cases"]
])  # fmt: skip
def contexts(case: Row) -> Row:
    starts = [case["texts"][start : start + case["k"]] for start in case["starts"]]
    shown = [arranged(texts, "reversed" if case["reverse"] else "rank") for texts in starts]
    # The authors' layout, in which the golden values are written; ours is a JSON array.
    return {"contexts": ["".join(f'Context {i}: "{text}";\n' for i, text in enumerate(one, start=1)) for one in shown]}
