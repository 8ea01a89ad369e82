"""Made labels against true ones, on the real collections: accuracy, AWRF and its interval, and what the agent loses.

    python evaluations/labels/run.py                          # all five, 50, 200 and 1,000 labels: measured.json
    python evaluations/labels/run.py --sizes 200 --topics 10 allsides
    python evaluations/labels/run.py --tables                 # tables and figure of what is measured

Of each collection so many documents, drawn at random, have their label; the classifier (light vectors) makes the
others'. Of the engine's own lists and the agent's, whose labels are the made ones, over all public topics that count:

* accuracy over all documents whose label was made, and the calibration error that cross-validation reports;
* AWRF@20 as experiments print it under label error beside AWRF by the true labels: the difference of the means over
  topics, the mean distance of a topic, and on how many topics the true one is within the topic's interval;
* nDCG@20 x AWRF@20 by the true labels: the agent with made labels beside that with true ones.

All is measured with each value of SPREADS. Of each collection `left out` is the smallest that covers 95 % of the topics
of all others (engine and agent, all sizes), and what it covers of this one. No model, no oracle in the loop.
"""

from __future__ import annotations

import json
import math
import os
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairagent import Collection, GroupTable, Ranking
from fairagent.collection.groups import tables_of
from fairagent.collection.table_buffer import TableBuffer
from fairagent.collection.targets import make_target
from fairagent.evaluate.judging import TARGET, evaluate_topic, judged_topics, standard_measures, under_error
from fairagent.labeling.evidence import Embedded
from fairagent.labeling.examples import examples_of
from fairagent.labeling.labeler import make_labels, unlabeled_ids
from fairagent.labeling.made import with_labels
from fairagent.measures import LOG2_MAX2
from fairagent.measures.label_error import SAFE_SPREAD
from fairagent.retrieve.known import indexed_documents
from fairagent.retrieve.site import Site
from fairagent.search.pipeline import build, open_site, prepare, with_settings
from fairagent.settings import load_settings
from fairagent.storage.files import write_whole
from fairagent.storage.threads import Memo

HERE = Path(__file__).resolve().parent
COLLECTIONS = HERE.parent / "collections"
AIMS = ("trec22_biographies.gender", "allsides.leaning", "wikilead.gender", "reuters21578.region", "wikilead.region")
SIZES = (50, 200, 1000)
SPREADS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
N = 20
WANTED = 0.95
Measured = dict[str, Any]


def main() -> None:
    """Measure, or show what is measured."""
    parser = ArgumentParser(description="Made labels against true ones, on the real collections.")
    parser.add_argument("aims", nargs="*", default=AIMS, help=f"collection.dimension; by default {' '.join(AIMS)}")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="labels that are left (50 200 1000)")
    parser.add_argument("--topics", type=int, default=None, help="the first so many topics alone")
    parser.add_argument("--seed", type=int, default=1, help="which labels are left (1)")
    parser.add_argument("--file", type=Path, default=HERE / "measured.json", help="what is measured")
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    given = parser.parse_args()
    if not given.tables:
        os.nice(10)
        # What is measured already is kept, so that a run can be done in parts.
        done = json.loads(given.file.read_text(encoding="utf-8")) if given.file.exists() else {}
        for aim in given.aims:
            for size, found in measured(aim, given.sizes, given.topics, given.seed):
                done[f"{aim} {size}"] = found
                write_whole(given.file, json.dumps(done, separators=(",", ":")) + "\n")
                print(aim, size, summary(found), flush=True)
    tables(json.loads(given.file.read_text(encoding="utf-8")))


def measured(aim: str, sizes: Sequence[int], most: int | None, seed: int) -> Iterator[tuple[int, Measured]]:
    """What is measured of one dimension of one collection, by the number of labels."""
    name, dimension = aim.split(".")
    site = open_site(COLLECTIONS / f"{name}.yaml")
    prepare(site, lambda what, done: None)
    truth = site.collection
    topics = judged_topics(truth, dimension).counted[:most]
    engine = ranked(site, dimension, topics, {"profile": "engine", "engine": "auto"})
    agent = ranked(site, dimension, topics)
    for size in sizes:
        poorer = gaps(truth, dimension, size, seed)
        known = indexed_documents(truth, site.index)
        assert known
        examples = examples_of(poorer, dimension, known)
        made = make_labels(examples, Embedded(site), unlabeled_ids(poorer, dimension, examples.given))
        labeled = with_labels(poorer, made)
        rows = truth.groups.memberships(dimension, made.ids)
        columns = [1 + truth.groups.labels(dimension).index(label) for label in examples.labels]
        best = np.array(columns)[made.chances.argmax(axis=1)]
        found: Measured = {
            "accuracy": float((rows[np.arange(len(best)), best] > 0).mean()),
            "commonest": float((rows[:, 1:] > 0).mean(axis=0).max()),
            "told": made.errors.accuracy,
            "calibration": made.errors.calibration,
            "notes": examples.notes,
            "engine": [of(truth, labeled, dimension, id, engine[id]) for id in topics],
            "true": [of(truth, None, dimension, id, agent[id]) for id in topics],
        }
        lists = ranked(replace(site, collection=labeled, memo=Memo()), dimension, topics)
        found["agent"] = [of(truth, labeled, dimension, id, lists[id]) for id in topics]
        yield size, found


def gaps(truth: Collection, dimension: str, size: int, seed: int) -> Collection:
    """The collection with `size` labels of the dimension; documents that have none in truth are known to have none."""
    table = next(one for one in tables_of(truth.groups) if dimension in one.dimensions)
    labels, rows = truth.groups.labels(dimension), dict[str, dict[str, float]]()
    for _, ids in table.batches():
        for id, row in zip(ids, table.memberships(dimension, ids)[:, 1:], strict=True):
            if row.any():
                rows[id] = {label: float(share) for label, share in zip(labels, row, strict=True) if share > 0}
    # An example has one label.
    single = sorted(id for id, shares in rows.items() if len(shares) == 1)
    left = set(np.random.default_rng(seed).choice(single, size, replace=False).tolist())
    buffer = TableBuffer({dimension: labels}, typed=[dimension])
    for number, (id, shares) in enumerate(rows.items(), start=1):
        buffer.add(id, {dimension: shares if id in left else None}, number, [dimension])
    return replace(truth, groups=GroupTable(*buffer.finish()))


def ranked(
    site: Site, dimension: str, topics: Sequence[str], settings: dict[str, Any] | None = None
) -> dict[str, Ranking]:
    """The lists of a system."""
    values = {"dimensions": [dimension], "n": N, **(settings or {})}
    system = build(with_settings(site, load_settings(overrides=values, environ={})))
    return {id: system.search(site.collection.topics[id]).ranking.top(N) for id in topics}


def of(truth: Collection, labeled: Collection | None, dimension: str, topic: str, ranking: Ranking) -> list[Any]:
    """nDCG, AWRF by the true labels, and by the made ones as certain; and under label error for each spread."""
    ndcg, awrf, _ = evaluate_topic(truth, topic, dimension, ranking, standard_measures(N))
    values = [round(float(ndcg), 6), round(float(awrf), 6)]
    if labeled is None:
        return values
    certain = evaluate_topic(labeled, topic, dimension, ranking, standard_measures(N))[1]
    target = make_target(TARGET, dimension, labeled, topic)
    attention = LOG2_MAX2(len(ranking))
    likely = [under_error(labeled, topic, target, ranking.ids, attention, math.e, spread) for spread in SPREADS]
    return [*values, round(float(certain), 6), [[round(x, 4) for x in one] for one in likely if one]]


# --- what came out --------------------------------------------------------------------------------------------------


def covered(rows: Sequence[Any], spread: int) -> int:
    """On how many topics the interval of this spread contains the true AWRF, but for rounding."""
    return sum(row[3][spread][1] - 5e-5 <= row[1] <= row[3][spread][2] + 5e-5 for row in rows)


def summary(found: Measured) -> str:
    """A row of the table."""
    spread = SPREADS.index(SAFE_SPREAD)
    cells = [f"{found['accuracy']:.3f} ({found['commonest']:.3f})", f"{found['calibration']:.3f}"]
    for system in ("engine", "agent"):
        rows = found[system]
        true, likely = np.array([row[1] for row in rows]), np.array([row[3][spread] for row in rows])
        cells += [
            f"{true.mean():.4f} {likely[:, 0].mean():.4f} [{likely[:, 1].mean():.3f}, {likely[:, 2].mean():.3f}]",
            f"{abs(likely[:, 0] - true).mean():.4f}",
            f"{covered(rows, spread)} of {len(rows)}",
        ]
    product, best = (np.mean([row[0] * row[1] for row in found[name]]) for name in ("agent", "true"))
    plain = np.mean([row[0] * row[1] for row in found["engine"]])
    cells.append(f"{plain:.4f} {product:.4f} {best:.4f} ({product / best:.1%})")
    return "  ".join(cells)


def left_out(done: dict[str, Measured], aim: str) -> tuple[float, int, int]:
    """The smallest spread that covers enough of the other collections' topics, and what it covers of this one."""

    def all_rows(own: bool) -> list[Any]:
        return [
            row
            for name, found in done.items()
            if (name.split(".")[0] == aim.split(".")[0]) == own and (not own or name.split()[0] == aim)
            for system in ("engine", "agent")
            for row in found[system]
        ]

    others, own = all_rows(False), all_rows(True)
    enough = (place for place in range(len(SPREADS)) if covered(others, place) >= WANTED * len(others))
    place = next(enough, len(SPREADS) - 1)
    return SPREADS[place], covered(own, place), len(own)


def tables(done: dict[str, Measured]) -> None:
    """Print the tables, and draw the figure."""
    print(
        "\naccuracy (that of the commonest label), calibration error; engine, then agent: AWRF true, made [interval],"
    )
    print("mean distance of a topic, topics covered; product by true labels: engine, agent with made labels, with true")
    for name, found in done.items():
        print(f"{name:32s} {summary(found)}")
    print("\ntopics covered by spread, engine and agent, all sizes; the spread chosen without the collection")
    for aim in dict.fromkeys(name.split()[0] for name in done):
        rows = [
            row
            for name, found in done.items()
            if name.split()[0] == aim
            for s in ("engine", "agent")
            for row in found[s]
        ]
        shares = "  ".join(f"{covered(rows, place) / len(rows):.3f}" for place in range(len(SPREADS)))
        spread, hit, count = left_out(done, aim)
        print(f"{aim:28s} {shares}   left out: {spread} covers {hit} of {count} ({hit / count:.1%})")
    figure(done)


def figure(done: dict[str, Measured]) -> None:
    """Of each collection the distance of AWRF, and the topics covered, by the number of labels."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fairagent"
    from matplotlib import pyplot

    place = SPREADS.index(SAFE_SPREAD)
    shown, axes = pyplot.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for aim in dict.fromkeys(name.split()[0] for name in done):
        sizes = [int(name.split()[1]) for name in done if name.split()[0] == aim]
        found = [done[f"{aim} {size}"] for size in sizes]
        apart = [abs(np.mean([row[3][place][0] - row[1] for row in one["agent"]])) for one in found]
        hit = [covered(one["agent"], place) / len(one["agent"]) for one in found]
        products = [[np.mean([row[0] * row[1] for row in one[name]]) for name in ("agent", "true")] for one in found]
        for axis, values in zip(axes, (apart, hit, [one / best for one, best in products]), strict=True):
            axis.plot(sizes, values, marker="o", label=aim.replace(".", ", "))
    titles = "AWRF, made less true (mean)", "topics whose interval holds", "product, made to true labels"
    for axis, title, wanted in zip(axes, titles, (0.01, 0.95, 0.95), strict=True):
        axis.set_xscale("log")
        axis.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        axis.minorticks_off()
        axis.axhline(wanted, color="gray", linewidth=0.8, linestyle=":")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("labels")
    axes[0].set_ylim(bottom=0)
    axes[2].legend(fontsize=7)
    shown.savefig(HERE / "labels.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
