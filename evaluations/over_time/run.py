"""Ten thousand requests, and what each ranking owes groups and documents in the end.

    python evaluations/over_time/run.py [--requests 10000] [--seed 1] [allsides] [wikilead]
    python evaluations/over_time/run.py --draw                # the figure of what was simulated

Topics are drawn with chances in proportion to 1 / their place in a random order, so that a few are asked for all the
time. Each way ranks the same candidates, the engine's first 500, and its rankings go into an account of its own, by the
same due: the candidates' relevance. Prints the debts of groups and documents and the cost in nDCG, and writes
debts.json and debts.svg. Without the data the demo's collection stands in.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from ranking_policy import Policy, fair_policy

from fairagent import Ranking, write_demo
from fairagent.collection.exposure import ExposureMeter
from fairagent.evaluate.judging import judged_topics
from fairagent.measures import LOG2_MAX2, min_max, ndcg
from fairagent.measures.amortized import deserved, quality
from fairagent.retrieve.base import placed, searched
from fairagent.search.account import Account
from fairagent.search.pipeline import build, open_site, prepare, with_settings
from fairagent.search.rerank.amortized import AmortizedReranker
from fairagent.search.rerank.base import Pool, pool_of
from fairagent.settings import load_settings
from fairagent.storage.files import write_whole
from fairagent.types import Query

HERE = Path(__file__).resolve().parent
COLLECTIONS = HERE.parent / "collections"
DATA = HERE.parents[2] / "shared" / "data"
N, DEPTH = 20, 500
SHOWN = (10, 30, 100, 300, 1_000, 3_000, 10_000)
"""Requests after which the debts are shown."""
Way = Callable[[str, AmortizedReranker], Ranking]


@dataclass(frozen=True)
class Course:
    """What one way of ranking came to: debts after each of `SHOWN` requests, nDCG of all requests, and seconds each.

    `groups` are the largest |due - received| of any group as a share of all attention, `documents` half the sum over
    the documents, so that 0 is even and 1 the worst; `least` the least estimated nDCG of a request.
    """

    groups: list[float]
    documents: list[float]
    ndcg: float
    estimated: float
    least: float
    seconds: float


def main() -> None:
    """Simulate, print, and draw."""
    parser = ArgumentParser(description="Debts of groups and documents over requests, and their cost in nDCG.")
    parser.add_argument("collections", nargs="*", default=["trec22_biographies", "allsides", "wikilead"])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", type=Path, default=HERE / "debts.json", help="what was simulated")
    parser.add_argument("--draw", action="store_true", help="simulate nothing")
    given = parser.parse_args()
    found: dict[str, dict[str, Course]] = {}
    if given.file.exists():
        read = json.loads(given.file.read_text(encoding="utf-8"))
        found = {name: {way: Course(**one) for way, one in ways.items()} for name, ways in read.items()}
    for name in () if given.draw else given.collections:
        with TemporaryDirectory() as folder:
            place = COLLECTIONS / f"{name}.yaml" if (DATA / name).is_dir() else write_demo(Path(folder) / "demo")
            title = name if (DATA / name).is_dir() else "demo"
            found[title] = simulate(title, place, given.requests, given.seed)
        kept = {title: {way: asdict(one) for way, one in ways.items()} for title, ways in found.items()}
        write_whole(given.file, json.dumps(kept, indent=1) + "\n")
    draw(found, given.file.with_suffix(".svg"))


def simulate(name: str, file: Path, requests: int, seed: int) -> dict[str, Course]:
    """Each way on one collection."""
    site = open_site(file, profile="engine", engine="auto", n=N, depth=DEPTH)
    prepare(site, lambda what, done: None)
    engine = build(site)
    collection = site.collection
    columns = tuple(
        (one, label) for one in collection.groups.dimensions for label in ("unknown", *collection.groups.labels(one))
    )
    topics = [collection.topics[id] for id in judged_topics(collection, None).counted]
    pools: dict[str, Pool] = {}
    meters: dict[str, ExposureMeter] = {}
    for topic in topics:
        query = Query(topic.query, topic.id)
        ranking = searched(engine.retriever, query, DEPTH, site.settings.engine)
        made = ExposureMeter.make(collection, topic.id, site.settings, ranking).with_cached(ranking.ids)
        meters[topic.id], pools[topic.id] = made, pool_of(query, ranking, made, N)
    default = with_settings(site, load_settings(overrides={"n": N, "depth": DEPTH, "target": site.settings.target}))
    agent = build(default)
    fair = {topic.id: agent.search(topic).ranking for topic in topics}

    rng = np.random.default_rng(seed)
    popularity = 1 / (1 + rng.permutation(len(topics)))
    asked = [topics[i].id for i in rng.choice(len(topics), requests, p=popularity / popularity.sum())]
    print(f"{name}: {len(topics)} topics, {requests:,} requests, groups of {', '.join(collection.groups.dimensions)}")

    policies = {id: policy(pool) for id, pool in pools.items()}
    draws = np.random.default_rng(seed)

    def drawn_from(id: str, payer: AmortizedReranker) -> Ranking:
        chances = [chance for chance, _ in policies[id]]
        return placed(pools[id].ranking.ids, policies[id][draws.choice(len(chances), p=chances)][1])

    payers = {
        "static list": (lambda id, payer: pools[id].ranking.top(N), 0.0, "group"),
        "default agent": (lambda id, payer: fair[id], 0.0, "group"),
        "policy drawn": (drawn_from, 0.0, "group"),
        "groups paid": (lambda id, payer: payer.rerank(pools[id]), 0.02, "group"),
        "documents paid": (lambda id, payer: payer.rerank(pools[id]), 0.02, "individual"),
    }
    courses = {}
    for way, (rank, tolerance, unit) in payers.items():
        with TemporaryDirectory() as folder:
            account = Account(Path(folder) / "account.sqlite", name)
            payer = AmortizedReranker(account, columns, unit, "relevance", tolerance, LOG2_MAX2)
            courses[way] = course(rank, payer, asked, pools, meters)
        show(way, courses[way], courses["static list"], requests)
    return courses


def policy(pool: Pool) -> Policy:
    """Singh and Joachims (2018): what is drawn from, so that each topic's groups get their due in expectation."""
    relevance, rows = min_max(pool.ranking.scores), np.hstack(pool.memberships)
    return fair_policy(relevance, rows, deserved(relevance) @ rows, LOG2_MAX2(min(N, len(relevance))))


def course(
    rank: Way, payer: AmortizedReranker, asked: list[str], pools: dict[str, Pool], meters: dict[str, ExposureMeter]
) -> Course:
    """One way through all requests."""
    account = payer.account
    assert account is not None
    ids = list(dict.fromkeys(id for pool in pools.values() for id in pool.ranking.ids))
    groups, documents, gains, seconds = [], [], [], 0.0
    qualities = []
    for number, topic in enumerate(asked, start=1):
        pool = pools[topic]
        began = time.perf_counter()
        ranking = rank(topic, payer)
        account.add(payer.entry(pool, pool_of(pool.query, ranking, meters[topic], N)))
        seconds += time.perf_counter() - began
        place = {id: number for number, id in enumerate(pool.ranking.ids)}
        # What the default agent's loop has found may be none of the candidates; in their list it counts as the last.
        order = [place.get(id, len(place) - 1) for id in ranking.ids]
        qualities.append(quality(order, min_max(pool.ranking.scores), LOG2_MAX2(len(order))))
        grades = meters[topic].collection.qrels[topic]
        relevant = np.array([grades.get(id, 0) > 0 for id in ranking.ids])
        gains.append(ndcg(relevant, sum(grade > 0 for grade in grades.values()), N))
        if number in SHOWN:
            received, deserved = account.shares(payer.columns)
            groups.append(float(np.abs(received - deserved).max()))
            documents.append(float(np.abs(account.documents(ids)).sum()) / 2 / number)
    mean = float(np.mean(qualities))
    return Course(groups, documents, float(np.mean(gains)), mean, min(qualities), seconds / len(asked))


def show(way: str, found: Course, static: Course, requests: int) -> None:
    """The figures of one way."""
    shown = [one for one in SHOWN if one <= requests]
    for what, values in (("group debt", found.groups), ("documents", found.documents)):
        print(f"  {way:15s} {what:11s}", *(f"{n:,}: {v:.4f}" for n, v in zip(shown, values, strict=True)))
    print(
        f"  {way:15s} nDCG@{N} {found.ndcg:.4f} ({found.ndcg / static.ndcg:.4f} of the static list's), estimated "
        f"{found.estimated:.4f}, least {found.least:.4f}; {1000 * found.seconds:.1f} ms a request",
        flush=True,
    )


def draw(found: dict[str, dict[str, Course]], file: Path) -> None:
    """Debts of groups above, of documents below, a column a collection."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fairagent"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, len(found), figsize=(3.6 * len(found), 5), layout="constrained", squeeze=False)
    for column, (name, courses) in enumerate(found.items()):
        for (way, one), marker, line in zip(courses.items(), "ovD^s", ("-", "--", (0, (5, 1)), "-.", ":"), strict=True):
            for axis, values in zip(axes[:, column], (one.groups, one.documents), strict=True):
                axis.semilogx(SHOWN[: len(values)], values, marker=marker, ls=line, ms=4, lw=1.3, label=way)
        axes[0, column].set_yscale("log")
        axes[1, column].set_ylim(0, 1)
        axes[0, column].axhline(0.01, color="gray", lw=0.8)
        axes[0, column].set_title(name, fontsize=9)
        axes[1, column].set_xlabel("requests", fontsize=8)
    axes[0, 0].set_ylabel("largest debt of a group,\nshare of all attention", fontsize=8)
    axes[1, 0].set_ylabel("attention that documents\ngot in others' place", fontsize=8)
    for axis in axes.flat:
        axis.tick_params(labelsize=7)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    figure.savefig(file, metadata={"Date": None})
    print(f"written: {file.name}")


if __name__ == "__main__":
    main()
