"""Made labels against true ones, on the real collections: accuracy, AWRF and its interval, and what the agent loses.

    python evaluations/labels/run.py                          # all that is missing in measured.jsonl; about an hour
    python evaluations/labels/run.py --sizes 200 --topics 10 allsides.leaning
    python evaluations/labels/run.py --tables                 # tables and figure of what is measured

Of each collection so many documents, drawn at random, have their label; `fairagent label`'s classifier makes the
others', from light vectors (`embeddings`) or from how often the words of words_*.yaml occur (`words`). Of the engine's
own lists and of the agent's, which sees made labels alone, over all public topics that count:

* accuracy over all documents whose label was made, and the calibration error that cross-validation reports;
* AWRF@20 as experiments print it under label error beside AWRF by the true labels: the difference of the means over
  topics, the mean distance of a topic, and on how many topics the true one is within the topic's interval;
* nDCG@20 x AWRF@20 by the true labels: the agent with made labels beside that with true ones.

No model, no oracle in the loop. What is measured is kept, a line each, so that a run can be done in parts.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fairagent import Collection, GroupTable, Ranking
from fairagent.collection.labels import under_error
from fairagent.collection.table import TableBuffer, tables_of
from fairagent.collection.targets import make_target
from fairagent.evaluate.judging import TARGET, evaluate_topic, judged_topics, standard_measures
from fairagent.labeling.examples import examples_of
from fairagent.labeling.labeler import (
    Embedded,
    MadeLabels,
    WordLists,
    make_labels,
    read_word_lists,
    unlabeled_ids,
    with_labels,
)
from fairagent.measures import LOG2_MAX2
from fairagent.measures.unawareness import mean_under_error, shared_part
from fairagent.retrieve.manifest import indexed_documents
from fairagent.retrieve.site import Site
from fairagent.search.pipeline import build, open_site, prepare, with_settings
from fairagent.settings import load_settings
from fairagent.storage.files import write_whole
from fairagent.storage.threads import Memo

HERE = Path(__file__).resolve().parent
COLLECTIONS = HERE.parent / "collections"
AIMS = ("wikilead.gender", "allsides.leaning", "trec22_biographies.gender", "reuters21578.region", "wikilead.region")
SIZES, SEEDS = (50, 200, 1000), (1, 2, 3)
CHOSEN = {("trec22_biographies.gender", 1), ("allsides.leaning", 1), ("reuters21578.region", 1)}
"""What the rule of the interval was chosen on: these with 200 labels, trec22 with all."""
N = 20
PLAIN = {"profile": "engine", "engine": "auto"}
Measured = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What is measured at once."""

    aim: str
    by: str
    size: int
    seed: int
    topics: int | None


def main() -> None:
    """Measure what is missing, and show what is measured."""
    parser = ArgumentParser(description="Made labels against true ones, on the real collections.")
    parser.add_argument("aims", nargs="*", default=AIMS, help=f"collection.dimension; by default {' '.join(AIMS)}")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="labels that are left (50 200 1000)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="which labels are left (1 2 3)")
    parser.add_argument("--by", nargs="+", default=["embeddings", "words"], help="words: with 200 labels alone")
    parser.add_argument("--topics", type=int, default=None, help="the first so many topics alone")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--file", type=Path, default=HERE / "measured.jsonl", help="what is measured")
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    given = parser.parse_args()
    cases = [
        Case(aim, by, size, seed, given.topics)
        for seed in given.seeds
        for by in given.by
        for aim in given.aims
        for size in given.sizes
        if by == "embeddings" or (size == 200 and words_of(aim).exists())
    ]
    if not given.tables:
        done = read(given.file) if given.file.exists() else {}
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(given.workers, spawn, os.nice, (10,)) as pool:
            left = [case for case in cases if key(case.__dict__) not in done]
            for one in as_completed([pool.submit(measured, case) for case in left]):
                found = one.result()
                done[key(found)] = found
                lines = (json.dumps(done[name], separators=(",", ":")) + "\n" for name in sorted(done))
                write_whole(given.file, "".join(lines))
                print(*key(found), flush=True)
    tables(read(given.file), given.file.with_name("labels.svg"))


def key(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells two lines apart."""
    return found["aim"], found["by"], found["size"], found["seed"]


def read(file: Path) -> dict[tuple[Any, ...], Measured]:
    """What is measured already."""
    return {key(found): found for found in map(json.loads, file.read_text(encoding="utf-8").splitlines())}


def words_of(aim: str) -> Path:
    """The lists of words of a dimension, which not every one has."""
    return HERE / f"words_{aim.partition('.')[2]}.yaml"


@cache
def opened(aim: str, most: int | None) -> tuple[Site, tuple[str, ...], dict[str, Ranking], dict[str, Ranking]]:
    """The collection, its topics, the engine's own lists and those of the agent with true labels."""
    name, dimension = aim.split(".")
    site = open_site(COLLECTIONS / f"{name}.yaml")
    prepare(site, lambda what, done: None)
    topics = judged_topics(site.collection, dimension).counted[:most]
    return site, topics, ranked(site, dimension, topics, PLAIN), ranked(site, dimension, topics)


def measured(case: Case) -> Measured:
    """One line."""
    site, topics, engine, agent = opened(case.aim, case.topics)
    truth, dimension = site.collection, case.aim.partition(".")[2]
    poorer = gaps(truth, dimension, drawn(truth, dimension, case.size, case.seed))
    made = labels_of(site, poorer, dimension, case.aim if case.by == "words" else None)
    labeled = with_labels(poorer, made)
    lists = ranked(replace(site, collection=labeled, memo=Memo()), dimension, topics)
    best = np.array([judged(truth, dimension, id, agent[id]) for id in topics])
    by_engine = np.array([of(truth, labeled, dimension, id, engine[id]) for id in topics])
    by_agent = np.array([of(truth, labeled, dimension, id, lists[id]) for id in topics])
    products = {"engine": by_engine, "made": by_agent, "true": best}
    rounded = json.loads(
        json.dumps(
            {
                **accuracy(truth, made),
                "calibration": made.errors.calibration,
                "topics": len(topics),
                "engine": summary(by_engine),
                "agent": summary(by_agent),
                "product": {name: float((rows[:, 0] * rows[:, 1]).mean()) for name, rows in products.items()},
            }
        ),
        parse_float=lambda text: round(float(text), 4),
    )
    return {"aim": case.aim, "by": case.by, "size": case.size, "seed": case.seed, **rounded}


def labels_of(site: Site, poorer: Collection, dimension: str, words: str | None = None) -> MadeLabels:
    """What `fairagent label` makes of the labels that are left."""
    known = indexed_documents(poorer, site.index)
    assert known
    examples = examples_of(poorer, dimension, known)
    evidence: Any = Embedded(site)
    if words:
        lists = {name: terms for name, terms in read_word_lists(words_of(words)).items() if name in examples.labels}
        evidence = WordLists(lists, {document.id: document for document in poorer.source})
    return make_labels(examples, evidence, unlabeled_ids(poorer, dimension, examples.given))


def accuracy(truth: Collection, made: MadeLabels) -> dict[str, float]:
    """Of the documents with a label in truth: how many got one, and of these the right one, and the commonest."""
    dimension, labels = made.examples.dimension, made.examples.labels
    rows = truth.groups.memberships(dimension, made.ids)[:, 1:]
    columns = np.array([truth.groups.labels(dimension).index(label) for label in labels])
    own = rows[np.arange(len(made.ids)), columns[made.chances.argmax(axis=1)]] > 0
    has = rows.any(axis=1)
    told = has & made.labeled
    return {
        "told": float(told.sum() / has.sum()),
        "right": float(own[told].mean()),
        "commonest": float((rows[told] > 0).mean(axis=0).max()),
    }


def labels_by_id(truth: Collection, dimension: str) -> dict[str, dict[str, float]]:
    """Document -> label -> share, of those that have one."""
    table = next(one for one in tables_of(truth.groups) if dimension in one.dimensions)
    labels, rows = truth.groups.labels(dimension), dict[str, dict[str, float]]()
    for _, ids in table.batches():
        for id, row in zip(ids, table.memberships(dimension, ids)[:, 1:], strict=True):
            if row.any():
                rows[id] = {label: float(share) for label, share in zip(labels, row, strict=True) if share > 0}
    return rows


def drawn(truth: Collection, dimension: str, size: int, seed: int) -> set[str]:
    """Documents whose label is left; an example has one label."""
    single = sorted(id for id, shares in labels_by_id(truth, dimension).items() if len(shares) == 1)
    return set(np.random.default_rng(seed).choice(single, size, replace=False).tolist())


def gaps(truth: Collection, dimension: str, left: set[str]) -> Collection:
    """The collection with these labels of the dimension; documents that have none in truth are known to have none."""
    buffer = TableBuffer({dimension: truth.groups.labels(dimension)}, typed=[dimension])
    for number, (id, shares) in enumerate(labels_by_id(truth, dimension).items(), start=1):
        buffer.add(id, {dimension: shares if id in left else None}, number, [dimension])
    return replace(truth, groups=GroupTable(*buffer.finish()))


def ranked(
    site: Site, dimension: str, topics: Sequence[str], settings: dict[str, Any] | None = None
) -> dict[str, Ranking]:
    """The lists of a system."""
    values = {"dimensions": [dimension], "n": N, **(settings or {})}
    system = build(with_settings(site, load_settings(overrides=values, environ={})))
    return {id: system.search(site.collection.topics[id]).ranking.top(N) for id in topics}


def judged(truth: Collection, dimension: str, topic: str, ranking: Ranking) -> tuple[float, float]:
    """Relevance (nDCG) and AWRF by the true labels."""
    ndcg, awrf, _ = evaluate_topic(truth, topic, dimension, ranking, standard_measures(N))
    return float(ndcg), float(awrf)


def of(truth: Collection, labeled: Collection, dimension: str, topic: str, ranking: Ranking) -> tuple[float, ...]:
    """nDCG, AWRF by the true labels, by the made ones as certain, and under label error with its ends."""
    certain = evaluate_topic(labeled, topic, dimension, ranking, standard_measures(N))[1]
    target = make_target(TARGET, dimension, labeled, topic)
    likely = under_error(labeled, topic, target, ranking.ids, LOG2_MAX2(len(ranking)))
    return *judged(truth, dimension, topic, ranking), float(certain), *(likely[:3] if likely else (np.nan,) * 3)


def summary(rows: Any) -> dict[str, float | int]:
    """The means over topics, the mean distance of a topic, and how many intervals hold the true value.

    A topic of which nothing is shown that could have a label has no interval, and is left out.
    """
    rows = rows[~np.isnan(rows[:, 4])]
    true, certain, made, low, high = rows[:, 1:].T
    return {
        "true": float(true.mean()),
        "certain": float(certain.mean()),
        "made": float(made.mean()),
        "low": float(low.mean()),
        "high": float(high.mean()),
        "apart": float(abs(made - true).mean()),
        "topics": len(rows),
        "held": int(((low - 1e-9 <= true) & (true <= high + 1e-9)).sum()),
    }


# --- what came out --------------------------------------------------------------------------------------------------


def tables(done: dict[tuple[Any, ...], Measured], figure_file: Path) -> None:
    """Print the table in Markdown, and draw the figure."""
    print("\n| collection, labels | seeds | right (commonest) | engine: AWRF true, made [95 %]", end=" ")
    print("| agent: the same | off in a topic | topics within, engine, agent | product, made / true (engine / true) |")
    print("|---|---|---|---|---|---|---|---|")
    rows = dict.fromkeys((found["aim"], found["by"], found["size"]) for found in done.values())
    for aim, by, size in sorted(rows, key=lambda one: (one[1], AIMS.index(one[0]), one[2])):
        own = [one for name, one in done.items() if name[:3] == (aim, by, size)]
        print(row_of(aim, by, size, own))
    print("\nof topics on which the interval's rule was not chosen, those whose interval holds: engine, agent")
    for by, size in dict.fromkeys((found["by"], found["size"]) for found in done.values()):
        own = [one for one in done.values() if (one["by"], one["size"]) == (by, size) and not was_seen(one)]
        held = {
            name: [sum(one[name][key] for one in own) for key in ("held", "topics")] for name in ("engine", "agent")
        }
        print(by, size, *(f"{hit} of {topics} ({hit / max(topics, 1):.1%})" for hit, topics in held.values()))
    print(
        "\nmeans over topics within their interval, of the topics' mean ends as if all had the same: means, mean width"
    )
    for by, size in dict.fromkeys((found["by"], found["size"]) for found in done.values()):
        own = [
            one[name] for one in done.values() if (one["by"], one["size"]) == (by, size) for name in ("engine", "agent")
        ]
        part = shared_part(np.array([size / 3]))
        ends = [
            mean_under_error(np.tile([one["made"], one["low"], one["high"], part], (one["topics"], 1))) for one in own
        ]
        held = sum(end.low <= one["true"] <= end.high for end, one in zip(ends, own, strict=True))
        print(by, size, f"{held} of {len(own)}, {np.mean([end.high - end.low for end in ends]):.3f}")
    draw(done, figure_file)


def was_seen(found: Measured) -> bool:
    """Whether the rule of the interval was chosen on this: with 200 labels, of trec22 with all."""
    chosen = (found["aim"], found["seed"]) in CHOSEN and found["by"] == "embeddings"
    return chosen and (found["size"] == 200 or found["aim"].startswith("trec22"))


def mean(own: Sequence[Measured], *path: str) -> float:
    """The mean over seeds."""
    values = []
    for one in own:
        value: Any = one
        for name in path:
            value = value[name]
        values.append(float(value))
    return float(np.mean(values))


def row_of(aim: str, by: str, size: int, own: Sequence[Measured]) -> str:
    """A row of the table: means over the seeds."""
    told = f", {mean(own, 'told'):.0%} told" if by == "words" else ""
    cells = [
        f"{aim.replace('_biographies', '').replace('.', ', ')}, {size:,}{' words' * (by == 'words')}",
        str(len(own)),
        f"{mean(own, 'right'):.3f} ({mean(own, 'commonest'):.3f}){told}",
        *(
            f"{mean(own, system, 'true'):.3f}, {mean(own, system, 'made'):.3f} "
            f"[{mean(own, system, 'low'):.2f}, {mean(own, system, 'high'):.2f}]"
            for system in ("engine", "agent")
        ),
        ", ".join(f"{mean(own, system, 'apart'):.3f}" for system in ("engine", "agent")),
        ", ".join(
            f"{sum(one[system]['held'] for one in own)} of {sum(one[system]['topics'] for one in own)}"
            for system in ("engine", "agent")
        ),
        f"{share(own, 'made'):.1%} ({share(own, 'engine'):.1%})",
    ]
    return f"| {' | '.join(cells)} |"


def share(own: Sequence[Measured], system: str) -> float:
    """A product over that of the agent with true labels."""
    return mean(own, "product", system) / mean(own, "product", "true")


def draw(done: dict[tuple[Any, ...], Measured], file: Path) -> None:
    """Of each collection the distance of AWRF, the topics covered and the product, by the number of labels."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fairagent"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    shown, axes = pyplot.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for aim, marker in zip(AIMS, "os^vD", strict=True):
        sizes = sorted({name[2] for name in done if name[:2] == (aim, "embeddings")})
        found = [[one for name, one in done.items() if name[:3] == (aim, "embeddings", size)] for size in sizes]
        curves = (
            [np.mean([abs(one["agent"]["made"] - one["agent"]["true"]) for one in own]) for own in found],
            [sum(one["agent"]["held"] for one in own) / sum(one["agent"]["topics"] for one in own) for own in found],
            [share(own, "made") for own in found],
        )
        for axis, values in zip(axes, curves, strict=True):
            axis.plot(sizes, values, marker=marker, ms=4, label=aim.replace("_biographies", "").replace(".", ", "))
    titles = "AWRF of the agent, made less true", "topics whose interval holds", "product, made to true labels"
    for axis, title, wanted in zip(axes, titles, (0.01, 0.95, 0.95), strict=True):
        axis.set_xscale("log")
        axis.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        axis.minorticks_off()
        axis.axhline(wanted, color="gray", linewidth=0.8, linestyle=":")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("labels")
    axes[0].set_ylim(bottom=0)
    axes[2].legend(fontsize=7)
    shown.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main()
