"""Twenty labels that are asked for against twenty random ones, round after round.

    python evaluations/labels/ask.py [--seeds 1 2 3] trec22_biographies.gender
    python evaluations/labels/ask.py --start 40 wikilead.gender

Of each collection so many documents, drawn at random, have their label. Each round adds 20: those that `fairagent label
--ask` would ask for (the true label is the answer; a document of none or several is skipped), or random ones. After
each, the labels of all others are made from light vectors: how many documents in the engine's first 100 of each topic
have the right one, and how far AWRF@20 of the engine's own list is from the true one, as the mean over topics.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser

import numpy as np
from run import N, drawn, gaps, labels_by_id, labels_of, of, opened, summary

from fairagent import Collection, Ranking
from fairagent.labeling.labeler import DEPTH, MadeLabels, engine_lists, most_helpful, with_labels

ADDED, ROUNDS = 20, 3


def main() -> None:
    """Simulate, and print a row a collection and way: means over the seeds."""
    parser = ArgumentParser(description="Labels that are asked for against random ones.")
    parser.add_argument("aims", nargs="+", help="collection.dimension")
    parser.add_argument("--seeds", type=int, nargs="+", default=(1, 2, 3))
    parser.add_argument(
        "--start", type=int, default=20, help="labels at the beginning (20), three of each group at least"
    )
    given = parser.parse_args()
    os.nice(5)
    print(
        "| collection, way | "
        + " | ".join(f"{given.start + ADDED * n} labels: right, AWRF off" for n in range(1 + ROUNDS)),
        "|",
    )
    print("|---|" + "---|" * (1 + ROUNDS))
    for aim in given.aims:
        for way in ("random", "asked"):
            found = np.mean([course(aim, way, seed, given.start) for seed in given.seeds], axis=0)
            cells = " | ".join(f"{right:.3f}, {off:.4f}" for right, off in found)
            print(f"| {aim.replace('.', ', ')}, {way} | {cells} |", flush=True)


def course(aim: str, way: str, seed: int, start: int) -> list[tuple[float, float]]:
    """After the start, and after each round: the share of right labels in the lists, and how far AWRF is off."""
    site, topics, _, _ = opened(aim, None)
    truth, dimension = site.collection, aim.partition(".")[2]
    lists: dict[str, Ranking] = site.memo.get(("engine lists", DEPTH), lambda: engine_lists(site, DEPTH))
    known = {id: next(iter(own)) for id, own in labels_by_id(truth, dimension).items() if len(own) == 1}
    left, rng, found = drawn(truth, dimension, start, seed), np.random.default_rng(seed), []
    for turn in range(1 + ROUNDS):
        poorer = gaps(truth, dimension, left)
        made = labels_of(site, poorer, dimension)
        listed = sorted({id for ranking in lists.values() for id in ranking.ids} & known.keys())
        found.append((right(made, known, listed), off(truth, poorer, made, dimension, topics, lists)))
        if turn < ROUNDS and way == "asked":
            wanted = most_helpful(made.ids, made.chances, lists, None, len(made.ids))
            left |= set([one.id for one in wanted if one.id in known][:ADDED])
        elif turn < ROUNDS:
            left |= set(rng.choice(sorted(known.keys() - left), ADDED, replace=False).tolist())
    return found


def right(made: MadeLabels, known: dict[str, str], listed: list[str]) -> float:
    """The share of these documents with the right label, those whose label was made alone."""
    best = dict(zip(made.ids, made.chances.argmax(axis=1).tolist(), strict=True))
    told = [id for id in listed if id in best]
    return float(np.mean([made.examples.labels[best[id]] == known[id] for id in told]))


def off(
    truth: Collection,
    poorer: Collection,
    made: MadeLabels,
    dimension: str,
    topics: tuple[str, ...],
    lists: dict[str, Ranking],
) -> float:
    """The mean distance of a topic's AWRF@20 under label error from the true one."""
    labeled = with_labels(poorer, made)
    return float(summary(np.array([of(truth, labeled, dimension, id, lists[id].top(N)) for id in topics]))["apart"])


if __name__ == "__main__":
    main()
