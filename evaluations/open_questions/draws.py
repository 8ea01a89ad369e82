"""Two tables of drawn rankings and their answers: whether sets are worth what their items are, and attention by place.

    fairagent index -c evaluations/collections/wikilead.yaml
    python evaluations/open_questions/draws.py evaluations/open_questions/uniform*.yaml

For each system of the files, from its draws at alpha 0: every set and every order is as likely as any other, so that
a place says nothing about what stands there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.stats import ttest_1samp
from sets import additivity, attention

from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import TopicRunner
from fairagent.measures.base import given_by
from fairagent.papers.fair_rag.trial import FairRagTrial, TopicDraws


def drawn(file: str) -> dict[str, list[TopicDraws]]:
    """System -> its uniform draws for each topic."""
    plan = check_experiment(Path(file)).plan
    trial = TopicRunner(plan).trial
    assert isinstance(trial, FairRagTrial)
    rows = [name for name, row in trial.rows.items() if row.draws.alpha == 0 and not row.draws.oracle]
    return {name: [trial.draw(name, topic).drawn for topic in plan.topics] for name in rows}


def sets(of_topics: list[TopicDraws]) -> str:
    """Means over the topics, and the test that items' worth in sets foretells more than their usefulness."""
    found = [one for one in map(additivity, of_topics) if one]
    alone, in_sets = (np.array([getattr(one, side) for one in found]) for side in ("alone", "in_sets"))
    test = ttest_1samp(in_sets - alone, 0.0)
    redundant, helpful = (np.mean([getattr(one, side) for one in found]) for side in ("redundant", "helpful"))
    return (
        f"{len(found):6d} {alone.mean():9.3f} {in_sets.mean():9.3f} {test.statistic:7.2f} {test.pvalue:8.4f} "
        f"{redundant:10.2f} {helpful:8.2f}"
    )


def places(of_topics: list[TopicDraws]) -> str:
    """The share of answers that rest on each place, its standard error over topics, and the discount that it is."""
    of_answers = [one.rested_on for one in of_topics if one.rested_on is not None]
    # A topic with fewer items than places is left out.
    most = max(rested_on.shape[1] for rested_on in of_answers)
    each = np.array([attention(one) for one in of_answers if one.shape[1] == most])
    mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / len(each) ** 0.5
    shown = "  ".join(f"{one:.3f} ({spread:.3f})" for one, spread in zip(mean, error, strict=True))
    return f"{shown}   {given_by(mean.tolist())}"


def main() -> None:
    """Print both."""
    of_systems = {name: of_topics for file in sys.argv[1:] for name, of_topics in drawn(file).items()}
    print("the utility of a set, foretold by its useful items and by what its items are worth in other sets (r)")
    print(f"{'':20} topics    useful   in sets       t        p  redundant  helpful")
    for name, of_topics in of_systems.items():
        print(f"{name:20} {sets(of_topics)}")
    print("\nhow often an answer rests on the item at place 1, 2, ... (standard error over topics), and the discount")
    for name, of_topics in of_systems.items():
        print(f"{name:20} {places(of_topics)}")


if __name__ == "__main__":
    main()
