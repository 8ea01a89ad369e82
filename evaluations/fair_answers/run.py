"""How near the citations of an answer come to the ranking's target, and what that costs.

    python evaluations/fair_answers/run.py [--model] [--topics N] [trec22_biographies] [allsides] [demo]

Every way is judged by one yardstick, the target of the default agent's search: the gap of the cited documents (each
counts once), their support (the share of the answer's words that the documents hold which it cites for them), the
share of them that is judged relevant, and calls of models. Means over all public topics, with 95 % intervals (bootstrap
over topics, seed 1); each way is compared with "fair ranking, plain answer" on the same topics. Below stand the ways
whose citations aim: how many answers are the aimed ones, by how much their J exceeds the plain answers' (the least of
all topics too), what always giving the aimed one would come to, and what of each group was read and not cited. Prints
a table for answers of up to 10 and of up to 5 sentences, and writes cited.svg. With `--model` the language model of the
environment (OPENAI_BASE_URL, FAIRAGENT_MODEL_NAME) writes the answers instead.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fairagent import write_demo
from fairagent.answer.aim import Aim
from fairagent.answer.answering import Answerer
from fairagent.answer.generators import ExtractiveGenerator
from fairagent.collection.exposure import total_gap
from fairagent.errors import ModelError
from fairagent.evaluate.judging import judged_topics
from fairagent.evaluate.tables import aligned
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build, build_answerer, open_site, prepare, with_settings
from fairagent.search.run import SearchRun
from fairagent.settings import load_settings
from fairagent.settings.tree import CitationSettings
from fairagent.types import AimedOrPlain, Answer, AnswerResult, SearchResult, Topic

HERE = Path(__file__).resolve().parent
COLLECTIONS = HERE.parent / "collections"
DATA = HERE.parents[2] / "shared" / "data"
BASELINE = "fair ranking, plain answer"
AIMED, BALANCED = {"citations": {"aim": True}}, {"context": {"order": "balanced"}}
WAYS: dict[str, tuple[bool, dict[str, Any]]] = {
    "plain ranking, plain answer": (False, {}),
    "plain ranking, told to be fair": (False, AIMED),
    BASELINE: (True, {}),
    "dull: twice the documents and citations": (True, {"context": {"documents": 20}}),
    "dull: citations by groups in turn": (True, {}),
    "balanced context, plain answer": (True, BALANCED),
    "fair ranking, aimed citations": (True, AIMED),
    "balanced context, aimed citations": (True, {**AIMED, **BALANCED}),
}
"""Whether the agent's ranking is answered from, or the engine's own, and the settings of the answer."""
OF_MODELS = [name for name in WAYS if not name.startswith(("dull", "fair ranking, aimed"))]


@dataclass(frozen=True)
class InTurn(ExtractiveGenerator):
    """Sentences of each group in turn: the best one of a document of each, then the second best, and so on."""

    def aimed(self, query: Any, documents: Any, aim: Aim, on_text: Any = None) -> Answer:
        """As many sentences as the plain answer has."""
        best = self._best(query, documents)
        rows = np.hstack([one[:, 1:] for one in aim.columns])
        queues: dict[bytes, list[int]] = {}
        for number in best:
            queues.setdefault(rows[number - 1].tobytes(), []).append(number)
        turns = [queue[place] for place in range(len(best)) for queue in queues.values() if place < len(queue)]
        return self._written({number: best[number][0] for number in turns[: self.most]}, documents, on_text)


@dataclass(frozen=True)
class Measured:
    """One way on all topics, a value each."""

    gap: np.ndarray
    support: np.ndarray
    useful: np.ndarray
    cited: np.ndarray
    calls: np.ndarray
    revised: int
    choices: list[AimedOrPlain]
    uncited: dict[str, tuple[float, float]]
    credit: np.ndarray


def interval(values: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean, by 10,000 resamples of the topics."""
    places = np.random.default_rng(1).integers(len(values), size=(10_000, len(values)))
    low, high = np.percentile(values[places].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def answers(
    name: str, file: Path, lengths: Sequence[int], model: bool, most: int | None
) -> dict[int, dict[str, Measured]]:
    """Every way on one collection, by the number of sentences."""
    # Also where a model writes: the rankings are those of the default agent, without one.
    site = open_site(file, profile="offline")
    prepare(site, lambda what, done: None)
    fair = build(site)
    plain = build(with_settings(site, load_settings(overrides={"profile": "engine", "target": site.settings.target})))
    topics = [fair.collection.topics[id] for id in judged_topics(fair.collection, None).counted][:most]
    searches: dict[str, tuple[SearchRun, SearchResult, SearchResult]] = {}
    for topic in topics:
        run, own = fair.find(topic, fair.settings.n), plain.find(topic, plain.settings.n)
        searches[topic.id] = run, fair.result_of(run), plain.result_of(own)
    print(f"\n{name}: {len(topics)} topics, {', '.join(fair.collection.groups.dimensions)}", flush=True)
    found: dict[int, dict[str, Measured]] = {}
    for length in lengths:
        found[length] = {}
        for way in OF_MODELS if model else WAYS:
            of_agent, given = WAYS[way]
            writer: dict[str, Any] = {"kind": "llm", "length": 80} if model else {"sentences": length}
            if way.startswith("dull: twice"):
                writer = {"sentences": 2 * length}
            answerer = build_answerer(
                replace(
                    with_settings(
                        site,
                        load_settings(
                            overrides={"profile": "offline", "attribute": "shapley", **given, "generate": writer}
                        ),
                    ),
                    engine=fair.retriever,
                )
            )
            if way.startswith("dull: citations"):
                generator = answerer.generator
                assert isinstance(generator, ExtractiveGenerator)
                turning = InTurn(generator.most, generator.analyze)
                answerer = replace(answerer, generator=turning, citations=CitationSettings(aim=True))
            results = [answered(answerer, fair, topic, searches, of_agent) for topic in topics]
            found[length][way] = measured([one for one in results if one], fair)
            failed = sum(one is None for one in results)
            print(f"  {way}{f': {failed} failed' if failed else ''}", flush=True)
    return found


def answered(
    answerer: Answerer,
    agent: FairAgent,
    topic: Topic,
    searches: dict[str, tuple[SearchRun, SearchResult, SearchResult]],
    of_agent: bool,
) -> AnswerResult | None:
    """One answer, judged by the target of the agent's search; None where the model gave none."""
    run, fair, plain = searches[topic.id]
    try:
        return answerer.answer(fair if of_agent else plain, run.meter, agent.retriever)
    except ModelError:
        return None


def measured(results: Sequence[AnswerResult], agent: FairAgent) -> Measured:
    """What the answers of one way came to."""
    qrels = agent.collection.qrels
    uncited: dict[str, tuple[float, float]] = {}
    for one in (removal for result in results for removal in result.uncited):
        seen, out = uncited.get(str(one.group), (0.0, 0.0))
        uncited[str(one.group)] = seen + one.seen, out + one.removed
    useful = [[qrels[one.query.id].get(hit.id, 0) > 0 for hit in one.cited] for one in results]
    return Measured(
        gap=np.array([total_gap(one.exposures.cited) for one in results]),
        support=np.array([one.support for one in results]),
        useful=np.array([np.mean(one) if one else 0.0 for one in useful]),
        cited=np.array([len(one.cited) for one in results]),
        calls=np.array([one.usage.calls for one in results]),
        revised=sum(one.revised for one in results),
        choices=[one.aimed for one in results if one.aimed],
        uncited=uncited,
        credit=np.array([uncredited(one) for one in results]),
    )


def uncredited(result: AnswerResult) -> float:
    """The share of the credit (`attribute: shapley`) that documents have which the answer does not cite."""
    weights = result.attribution.weights if result.attribution else np.zeros(0)
    cited = [number - 1 for number in result.answer.cited]
    return float(1 - weights[cited].sum() / weights.sum()) if weights.any() else 0.0


def choices(found: dict[str, Measured]) -> str:
    """Of the ways whose citations aim, the aimed answers beside the plain ones; of all, what was not cited."""
    lines = []
    for way, one in found.items():
        shares = ", ".join(
            f"{label} {out / seen:.1%} of {seen:.0f}" for label, (seen, out) in one.uncited.items() if seen
        )
        lines.append(f"{way}: not cited: {one.credit.mean():.1%} of the credit; {shares}")
        if one.choices:
            js, gaps = (np.array([getattr(of, name) for of in one.choices]) for name in ("objectives", "gaps"))
            given, always = js.max(axis=1) - js[:, 1], js[:, 0] - js[:, 1]
            (low, high), (from_, to), (near, far) = map(interval, (given, always, gaps[:, 0]))
            lines.append(
                f"  aimed in {sum(of.aimed for of in one.choices)} of {len(given)}, J {given.mean():+.4f} "
                f"[{low:+.4f}, {high:+.4f}], least {given.min():+.4f}; always aimed: gap {gaps[:, 0].mean():.4f} "
                f"[{near:.4f}, {far:.4f}], J {always.mean():+.4f} [{from_:+.4f}, {to:+.4f}], least "
                f"{always.min():+.4f}, worse in {(always < 0).sum()}"
            )
    return "\n".join(lines)


def table(found: dict[str, Measured]) -> str:
    """The ways of one collection and length."""
    base = found[BASELINE]
    rows = [["way", "cited gap", "of the baseline", "support", "cited relevant", "difference", "cited", "calls"]]
    for way, one in found.items():
        low, high = interval(one.gap)
        same = len(one.gap) == len(base.gap)
        less, more = interval(one.useful - base.useful) if same else (float("nan"),) * 2
        rows.append(
            [
                way,
                f"{one.gap.mean():.4f} [{low:.4f}, {high:.4f}]",
                f"{one.gap.mean() / base.gap.mean():.2f}",
                f"{one.support.mean():.3f}",
                f"{one.useful.mean():.3f}",
                f"{one.useful.mean() - base.useful.mean():+.3f} [{less:+.3f}, {more:+.3f}]",
                f"{one.cited.mean():.1f}",
                f"{one.calls.mean():.1f}{f' ({one.revised} revised)' if one.revised else ''}",
            ]
        )
    return "\n".join(aligned(rows))


def draw(found: dict[str, dict[int, dict[str, Measured]]], file: Path) -> None:
    """The cited gap of each way with its interval, a column a collection, a row a length."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fairagent"
    from matplotlib import pyplot

    lengths = list(next(iter(found.values())))
    size = (3.2 * len(found) + 2.2, 2.4 * len(lengths) + 0.4)
    figure, axes = pyplot.subplots(
        len(lengths), len(found), figsize=size, layout="constrained", squeeze=False, sharey=True
    )
    for column, (name, by_length) in enumerate(found.items()):
        for row, (length, ways) in enumerate(by_length.items()):
            axis = axes[row, column]
            means = np.array([one.gap.mean() for one in ways.values()])
            ends = np.array([interval(one.gap) for one in ways.values()])
            colors = ["tab:green" if way.endswith("aimed citations") else "tab:blue" for way in ways]
            places = np.arange(len(ways))
            axis.barh(places, means, color=colors, alpha=0.7)
            axis.errorbar(means, places, xerr=np.abs(ends.T - means), fmt="none", ecolor="black", lw=1, capsize=2)
            axis.axvline(ways[BASELINE].gap.mean() / 2, color="gray", lw=0.8, ls="--")
            axis.set_yticks(places, list(ways), fontsize=7)
            axis.set_title(f"{name}, up to {length} sentences", fontsize=8)
            axis.tick_params(axis="x", labelsize=7)
    axes[0, 0].invert_yaxis()
    figure.supxlabel("gap of the citations (nats); dashed: half of fair ranking, plain answer", fontsize=8)
    figure.savefig(file, metadata={"Date": None})
    print(f"written: {file.name}")


def main() -> None:
    """Answer, print, and draw."""
    parser = ArgumentParser(description="The gap of citations, and what it costs to narrow it.")
    parser.add_argument("collections", nargs="*", default=["trec22_biographies", "allsides", "demo"])
    parser.add_argument("--model", action="store_true", help="the language model of the environment writes the answers")
    parser.add_argument("--topics", type=int, help="the first so many topics only")
    parser.add_argument("--figure", type=Path, default=HERE / "cited.svg")
    given = parser.parse_args()
    found = {}
    with TemporaryDirectory() as folder:
        for name in given.collections:
            there = (DATA / name).is_dir()
            file = COLLECTIONS / f"{name}.yaml" if there else write_demo(Path(folder) / "demo")
            title = name if there else "demo"
            if title not in found:
                found[title] = answers(title, file, (10,) if given.model else (10, 5), given.model, given.topics)
                for length, ways in found[title].items():
                    what = "a model" if given.model else f"up to {length} sentences"
                    print(f"\n{title}, {what}\n{table(ways)}\n{choices(ways)}")
    if not given.model:
        draw(found, given.figure)


if __name__ == "__main__":
    main()
