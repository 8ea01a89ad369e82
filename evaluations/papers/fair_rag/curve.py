"""What a fair exposure of the items costs in utility, over the temperature of the draws: curve.svg, and two tables.

    python evaluations/papers/run.py fair_rag            # the runs that are read here
    python evaluations/papers/fair_rag/curve.py          # prints the tables, and draws

Means over the questions that count, with 95 % intervals: 10,000 resamples of the authors, who have up to three
questions each. A change is that of normalized EU from the engine's own order, question by question.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from run import folder_of  # noqa: E402

from fairagent.evaluate.run import load_run  # noqa: E402
from fairagent.measures.expected_exposure import area_under_curve, fitted_line  # noqa: E402
from fairagent.types import FloatArray  # noqa: E402

TASKS = {"LaMP-1": "fair_rag_table_1_lamp_1", "LaMP-4": "fair_rag_table_1_lamp_4"}
ENGINES = {"BM25": "tab:gray", "splade-tiny": "tab:orange", "MiniLM": "tab:blue"}
DENSE = ("splade-tiny", "MiniLM")
ALPHAS = (1, 2, 4, 8)
DISPARITY, QUALITY, UTILITY = "EE-D", "EE-R", "normalized EU"
RESAMPLES = 10_000

Values = dict[tuple[str, str], FloatArray]
"""Row and measure -> its values, question by question (n,)."""
Measured = tuple[Values, FloatArray]
"""The values of a run, and how often each resample (r, n) has each question."""


def read(name: str) -> Measured:
    """What a small file's run came to, on the questions that all of its rows have answered."""
    run = load_run(folder_of(name))
    of = {(one.system, one.topic): one.values[""] for one in run.outcomes}
    topics = [
        one for one in dict.fromkeys(one.topic for one in run.outcomes) if all((row, one) in of for row in run.systems)
    ]
    values = {
        (row, measure): np.array([of[row, topic][measure] for topic in topics])
        for row in run.systems
        for measure in (DISPARITY, QUALITY, UTILITY)
    }
    authors = np.unique([topic.rpartition("-")[0] for topic in topics], return_inverse=True)[1]
    drawn = np.random.default_rng(1).integers(authors.max() + 1, size=(RESAMPLES, authors.max() + 1))
    counts = np.stack([np.bincount(one, minlength=authors.max() + 1) for one in drawn])
    return values, counts[:, authors].astype(float)


def mean_of(weights: FloatArray, values: FloatArray) -> FloatArray:
    """The mean of `values` (n,) in each resample, (r,)."""
    means: FloatArray = weights @ values / weights.sum(axis=1)
    return means


def shown(weights: FloatArray, of: Callable[[FloatArray], FloatArray], signed: bool = False) -> str:
    """A statistic of weights (r, n) -> (r,), with its interval."""
    low, high = np.percentile(of(weights), [2.5, 97.5])
    value, form = float(of(np.ones((1, weights.shape[1])))[0]), "+.3f" if signed else ".3f"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


def table(found: Mapping[str, Measured]) -> str:
    """The rows in Markdown, the tasks side by side."""
    heads = [f"{task}: EE-D | EE-R | normalized EU, and its change" for task in found]
    lines = [f"| | {' | '.join(heads)} |", "|---" + "|--:|--:|---" * len(found) + "|"]

    def add(title: str, row: str, own: str = "") -> None:
        cells = []
        for values, weights in found.values():
            cells += [f"{values[row, measure].mean():.3f}" for measure in (DISPARITY, QUALITY)]
            change = values[row, UTILITY] - values[own, UTILITY] if own else values[row, UTILITY]
            cells.append(shown(weights, partial(mean_of, values=change), signed=bool(own)))
        lines.append(f"| {title} | {' | '.join(cells)} |")

    for engine in ENGINES:
        add(f"{engine}, own order", f"{engine} drawn")
        for alpha in ALPHAS:
            add(f"α = {alpha}", f"{engine} drawn α={alpha}", f"{engine} drawn")
    add("oracle, α = 8", "oracle α=8")
    return "\n".join(lines)


def curves(values: Values, weights: FloatArray) -> str:
    """Slope of EE-R on EE-D, and the area under that curve, of each engine."""

    def of_curve(engine: str, what: Callable[[FloatArray, FloatArray], float]) -> Callable[[FloatArray], FloatArray]:
        def of(of_weights: FloatArray) -> FloatArray:
            rows = [f"{engine} drawn α={alpha}" for alpha in ALPHAS]
            x, y = (np.stack([mean_of(of_weights, values[row, m]) for row in rows], 1) for m in (DISPARITY, QUALITY))
            return np.array([what(*pair) for pair in zip(x, y, strict=True)])

        return of

    few = weights[:2000]
    slope, area = (lambda x, y: fitted_line(x, y).slope), area_under_curve
    return "\n".join(
        f"{one}: slope {shown(few, of_curve(one, slope))}, AUC {shown(few, of_curve(one, area))}" for one in ENGINES
    )


def cost(found: Mapping[str, Measured], alpha: int) -> str:
    """The change of utility at `alpha`: the mean over the tasks of that over splade-tiny and MiniLM."""

    def of_task(values: Values) -> FloatArray:
        changes = [values[f"{one} drawn α={alpha}", UTILITY] - values[f"{one} drawn", UTILITY] for one in DENSE]
        return np.asarray(np.mean(changes, axis=0))

    change = np.mean([of_task(values).mean() for values, _ in found.values()])
    ends = np.percentile(
        np.mean([mean_of(weights, of_task(values)) for values, weights in found.values()], 0), [2.5, 97.5]
    )
    disparity = np.mean(
        [values[f"{one} drawn α={alpha}", DISPARITY].mean() for values, _ in found.values() for one in DENSE]
    )
    return f"α = {alpha}, EE-D {disparity:.3f}: {change:+.3f} [{ends[0]:+.3f}, {ends[1]:+.3f}]"


def draw(found: Mapping[str, Measured], file: Path) -> None:
    """Utility over disparity, a panel a task; a mark is one alpha, the hollow one the engine's own order."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "fairagent", "svg.fonttype": "none", "font.size": 8}
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(7.6, 3.2), layout="constrained")
    for axis, (task, (values, weights)) in zip(axes, found.items(), strict=True):
        for engine, color in ENGINES.items():
            rows = [f"{engine} drawn α={alpha}" for alpha in ALPHAS] + [f"{engine} drawn"]
            x = [values[row, DISPARITY].mean() for row in rows]
            y = np.array([values[row, UTILITY].mean() for row in rows])
            ends = np.array([np.percentile(mean_of(weights, values[row, UTILITY]), [2.5, 97.5]) for row in rows]).T
            axis.errorbar(x, y, yerr=np.abs(ends - y), color=color, lw=1, capsize=2, marker="o", ms=4, label=engine)
            axis.plot(x[-1:], y[-1:], color=color, marker="o", ms=5, mfc="white", ls="", zorder=5)
            for alpha, *at in zip(ALPHAS, x, y, strict=False):
                axis.annotate(f"α={alpha}", at, (3, 4), textcoords="offset points", fontsize=6, color=color)
        axis.set(title=f"{task}, {weights.shape[1]} questions", xlabel="disparity (EE-D): to the left is fairer")
    axes[0].set_ylabel("utility (normalized EU)")
    axes[0].legend()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Read, print, and draw."""
    found = {task: read(name) for task, name in TASKS.items()}
    print(table(found))
    for task, (values, weights) in found.items():
        print(f"\n{task}\n{curves(values, weights)}")
    print("\nchange of normalized EU, both tasks:", *(cost(found, alpha) for alpha in ALPHAS), sep="\n")
    draw(found, HERE / "curve.svg")


if __name__ == "__main__":
    main()
