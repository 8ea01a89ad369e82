"""Chooses the weight of the vectors beside BM25, fixed or query by query, leaving one collection out.

    python evaluations/retrieval/weights.py [--encoder light] [--indexes FOLDER] [COLLECTION ...]

BM25 weighs 1. Measured is nDCG@20 of both lists alone and of their weighted sum, as the engine `fused` adds them up,
the weight of the vectors rounded to one of WEIGHTS. A rule makes the weight of a feature of the query from 0 to 1 that
is known without judgments: scale * feature^power, or of 1 - feature where the power is below 0; `fixed` is the scale
alone. What a collection is worth is the mean over its topics, less that of the better of its two lists; each weighs the
same.

Each fold chooses scale and power on the other collections, by the mean or by the worst of them, and is measured on the
one left out; `any` chooses the feature there too. `NAME+keywords` are the same topics as longer queries, in the same
fold, where both count half. `oracle` is the best weight of each query, `now` what the engine has.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from fairagent import build_index, load_collection
from fairagent.evaluate.judging import judged_topics
from fairagent.measures.ranking import ndcg
from fairagent.retrieve.fused import MOST, MOST_LIGHT, FusedRetriever, weight_of
from fairagent.search.pipeline import build, open_site, prepare
from fairagent.settings import load_settings
from fairagent.types import FloatArray, Query

FOLDER = Path(__file__).resolve().parents[1] / "collections"
COLLECTIONS = (
    *("args_sigir19", "cranfield", "perspectrum", "trec22_biographies", "trec22_biographies+keywords"),
    *("reuters21578", "wikilead", "wikilead+keywords", "allsides", "grepbiasir"),
)
WEIGHTS = np.concatenate([np.arange(0, 20) / 40, np.arange(10, 20) / 20, np.arange(4, 12) / 4, [3, 4, 5, 7, 10]])
SCALES = (*(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 1), *(1.25, 1.5, 2, 2.5, 3, 4, 5, 6))
POWERS = (1, 2, -1, -2)
HEAD = 20
"""Ranks that are measured, and that features look at."""
DRAWS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A collection's topics: nDCG of each list alone (t, 2), of their sums (t, weights), and the features (t,)."""

    alone: FloatArray
    fused: FloatArray
    features: Mapping[str, FloatArray]

    def at(self, weights: FloatArray | float) -> FloatArray:
        """What each topic is worth with its weight, less the better list's mean over all, (t,)."""
        nearest = np.abs(np.reshape(weights, (-1, 1)) - WEIGHTS).argmin(axis=1)
        return np.asarray(self.fused[np.arange(len(self.fused)), nearest] - self.alone.mean(axis=0).max())


@dataclass(frozen=True, slots=True)
class Rule:
    """How the weight is made of a feature."""

    feature: str
    scale: float
    power: int = 0

    def __str__(self) -> str:
        return f"{self.scale:g}" + (f"^{self.power}" if self.power else "")

    def of(self, one: Measured) -> FloatArray:
        """What each topic is worth, (t,)."""
        if not self.power:
            return one.at(self.scale)
        feature = np.clip(one.features[self.feature], 0, 1)
        return one.at(self.scale * (feature if self.power > 0 else 1 - feature) ** abs(self.power))


def features(engine: FusedRetriever, query: Query, parts: FloatArray) -> dict[str, float]:
    """What is known of a query without judgments, from 0 to 1; `parts` (n, 2) are both lists' scores."""
    bm25: Any = engine.engines[0]
    terms = set(bm25.analyze(str(query)))
    idf = [float(bm25.idf(bm25.document_frequency(term))) for term in terms] or [0.0]
    words, vectors = (np.argsort(-column, kind="stable")[:HEAD] for column in parts.T)
    return {
        # How long the question is, up to 15 terms, and how rare its rarest term and its terms are.
        "length": float(np.log2(1 + len(terms))) / 4,
        "rarest": max(idf) / float(bm25.idf(1)),
        "rare": float(np.mean(idf)) / float(bm25.idf(1)),
        # BM25's first scores over the most that there can be, as `weight_of` has it.
        "explained": 1 - weight_of(bm25.search(query, HEAD).scores, bm25.bound(query), 1.0),
        "agreement": len(np.intersect1d(words, vectors)) / HEAD,
        # What BM25 makes of the vectors' head, and the vectors of BM25's.
        "known": float(parts[vectors, 0].mean()),
        "confirmed": float(parts[words, 1].mean()),
        # How little the scores fall in the heads.
        "flat words": float(parts[words, 0].mean()),
        "flat vectors": float(parts[vectors, 1].mean()),
    }


def measured(name: str, indexes: Path, encoder: str) -> Measured:
    """A collection's topics, its index built where it is missing."""
    base, _, keywords = name.partition("+")
    file, index = FOLDER / f"{base}.yaml", indexes / base
    chosen = {"kind": "fused", "engines": ["bm25", {"kind": "dense", "encoder": encoder}], "weights": [1, 1]}
    settings = load_settings(overrides={"profile": "engine", "encoder": encoder, "engine": chosen}, environ={})
    if not index.exists():
        build_index(load_collection(file), index, settings)
    site = open_site(file, index, settings)
    prepare(site, lambda what, done: None)
    engine: Any = build(site).retriever
    alone, fused, found = [], [], []
    for id in judged_topics(site.collection, None).counted:
        topic = site.collection.topics[id]
        query = Query(str(topic.extra[keywords]) if keywords else topic.query, id=id)
        relevant = {document for document, grade in site.collection.qrels[id].items() if grade > 0}

        def worth(ids: Sequence[str], relevant: set[str] = relevant) -> float:
            return ndcg(np.array([one in relevant for one in ids[:HEAD]], dtype=np.bool_), len(relevant), HEAD)

        alone.append([worth(one.search(query, HEAD).ids) for one in engine.engines])
        parts = engine.parts(query)
        # Ties are ordered by id.
        by_id = np.argsort(np.array(parts.ids, dtype=str))
        ids, scores = np.array(parts.ids)[by_id], parts.scores[by_id]
        orders = (np.argsort(-scores @ [1, weight], kind="stable")[:HEAD] for weight in WEIGHTS)
        fused.append([worth(ids[order].tolist()) for order in orders])
        found.append(features(engine, query, scores))
    return Measured(np.array(alone), np.array(fused), {key: np.array([one[key] for one in found]) for key in found[0]})


Aim = Callable[[FloatArray, FloatArray], FloatArray]
"""Of a table (rules, collections), and how much each collection weighs, the value of each rule."""
AIMS: dict[str, Aim] = {
    "mean": lambda table, weigh: table @ weigh,
    # The mean breaks ties, which are many where a collection is as bad as with BM25 alone.
    "worst": lambda table, weigh: table.min(axis=1) + (table @ weigh) / 10,
}


def weighing(names: Iterable[str]) -> FloatArray:
    """How much each collection weighs in a mean, (collections,)."""
    folds = [name.partition("+")[0] for name in names]
    return np.array([1 / folds.count(fold) for fold in folds]) / len(set(folds))


def choose(rules: Sequence[Rule], of: Mapping[str, Measured], aim: Aim) -> Rule:
    """The best of the rules on these collections."""
    table = np.array([[rule.of(one).mean() for one in of.values()] for rule in rules])
    return rules[int(aim(table, weighing(of)).argmax())]


def report(of: Mapping[str, Measured], before: float, now: Rule) -> Iterable[str]:
    """The lines of the answer; `before` is the weight that was, `now` the engine's rule."""
    yield f"{'fixed':22s} {'mean':>7s} {'worst':>7s}   {'  '.join(name[:8] for name in of)}"
    fixed = [Rule("fixed", scale) for scale in (0, *SCALES)]
    for rule in fixed:
        yield line(str(rule), {name: rule.of(one) for name, one in of.items()})
    families = {"fixed": fixed}
    for feature in next(iter(of.values())).features:
        families[feature] = [Rule(feature, scale, power) for scale, power in product(SCALES, POWERS)]
    families["any"] = [rule for rules in families.values() for rule in rules]
    fold = {name: name.partition("+")[0] for name in of}
    for aim, function in AIMS.items():
        yield f"\nleaving one collection out, chosen by the {aim} of the others; below it chosen on all"
        for family, rules in families.items():
            others = {name: {key: one for key, one in of.items() if fold[key] != fold[name]} for name in of}
            chosen = {name: choose(rules, some, function) for name, some in others.items()}
            told = sorted({f"{rule.feature} {rule}" if family == "any" else str(rule) for rule in chosen.values()})
            yield line(family, {name: chosen[name].of(one) for name, one in of.items()}) + f"   {', '.join(told)}"
            rule = choose(rules, of, function)
            yield line(f"  {rule.feature} {rule}", {name: rule.of(one) for name, one in of.items()})
    yield f"\nless the better list: fixed {before:g}, and now, {now} (95 % intervals)"
    yield f"{'nDCG@20':28s}topics   BM25  vectors  oracle  fixed    now"
    both_rules = Rule("fixed", before), now
    for name, one in of.items():
        alone, oracle = one.alone.mean(axis=0), one.fused.max(axis=1).mean()
        cells = (*alone, oracle, *(alone.max() + rule.of(one).mean() for rule in both_rules))
        both = "   ".join(interval(paired(one, rule)) for rule in both_rules)
        yield f"{name:28s} {len(one.fused):4d}  {'  '.join(f'{cell:.4f}' for cell in cells)}   {both}"


def paired(one: Measured, rule: Rule) -> FloatArray:
    """The difference to the list that is better in the mean, topic by topic, (t,)."""
    better = one.alone[:, int(one.alone.mean(axis=0).argmax())]
    return np.asarray(rule.of(one) + better.mean() - better)


def interval(values: FloatArray) -> str:
    """The mean with its 95 % interval, by bootstrap over topics."""
    rng = np.random.default_rng(0)
    means = values[rng.integers(len(values), size=(DRAWS, len(values)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{values.mean():+.4f} ({low:+.4f} to {high:+.4f})"


def line(title: str, of: Mapping[str, FloatArray]) -> str:
    """Mean and worst of the collections, and all of them."""
    means = [float(values.mean()) for values in of.values()]
    return f"{title:22s} {weighing(of) @ means:+.4f} {min(means):+.4f}   " + " ".join(
        f"{value:+.4f}" for value in means
    )


def main() -> None:
    """Measure, choose and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("collections", nargs="*", default=COLLECTIONS)
    parser.add_argument("--indexes", type=Path, default=Path("indexes/weights"))
    parser.add_argument("--encoder", default="light")
    given = parser.parse_args()
    of = {name: measured(name, given.indexes, given.encoder) for name in given.collections}
    light = given.encoder == "light"
    print(*report(of, 0.5 if light else 1.0, Rule("explained", MOST_LIGHT if light else MOST, -1)), sep="\n")


if __name__ == "__main__":
    main()
