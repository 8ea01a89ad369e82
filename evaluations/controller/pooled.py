"""Is it the groups' evidence, or is it relevance feedback? The agent beside Rocchio's feedback with its re-rankers.

    python evaluations/controller/pooled.py [--indexes FOLDER] [--encoder light]

On the six aims of evaluations/light, over all public topics, the product nDCG@20 * AWRF@20 of

- no loop: the agent's re-rankers and kinds of documents, the query as it is
- pooled: the same on candidates that are scored by the query mixed with what the first documents have in common, whoever
  they are about (half of each, 20 documents; what other shares and numbers give stands in the README beside this file)
- agent: the same with the groups' own evidence instead, accepted only where the gap falls
- pooled, agent: the agent's loop after pooled feedback

and each one's mean difference from the agent, with its standard error.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from constants import AIMS, opened

from fairagent import FairAgent, Ranking
from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
from fairagent.loop.base import LoopResult, Search
from fairagent.loop.controller import Controller
from fairagent.loop.evidence import learn_from
from fairagent.loop.state import sorted_by
from fairagent.pipeline import build, with_settings
from fairagent.settings import load_settings
from fairagent.types import FloatArray


@dataclass(frozen=True)
class Pooled:
    """Rocchio's feedback from the first `documents`, with the share `beta`, then `loop`."""

    loop: Controller
    beta: float = 0.5
    documents: int = 20

    def run(self, search: Search) -> LoopResult:
        """See `Loop.run`; the second search, if there is one, is the loop's."""
        last = search.steps[-1]
        step = replace(last, ranking=self.feedback(search, last.ranking))
        return self.loop.run(replace(search, steps=(*search.steps[:-1], step)))

    def feedback(self, search: Search, first: Ranking) -> Ranking:
        """The candidates by the scores of the refined query."""
        everybody = np.tile([0.0, 1.0], (len(first), 1))
        learned = learn_from(first.scores, [everybody], self.documents)
        mix = replace(self.loop.mixer, beta=self.beta).mix(search, first, learned)
        return sorted_by(first, mix.scores(np.zeros(len(first)), np.ones(1)))


def systems(site: Any, dimension: str, encoder: str) -> dict[str, FairAgent]:
    """The four of them."""

    def agent(**loop: Any) -> FairAgent:
        chosen = {"dimensions": [dimension], "encoder": encoder, "loop": loop}
        return build(with_settings(site, load_settings(overrides=chosen, environ={})))

    still, moving = agent(steps=0), agent()
    return {
        "no loop": still,
        "pooled": replace(still, loop=Pooled(still.loop)),
        "agent": moving,
        "pooled, agent": replace(moving, loop=Pooled(moving.loop)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--indexes", type=Path, default=Path("indexes/constants"))
    parser.add_argument("--encoder", default="light")
    given = parser.parse_args()
    found: dict[str, list[FloatArray]] = {}
    for name, dimension in AIMS:
        site = opened(name, given.indexes, given.encoder)
        topics = [site.collection.topics[id] for id in judged_topics(site.collection, dimension).counted]
        print(f"{name}, {dimension}, {len(topics)} topics: nDCG, AWRF, product", flush=True)
        for label, system in systems(site, dimension, given.encoder).items():
            rankings = [(topic.id, system.search(topic).ranking) for topic in topics]
            values = [evaluate_topic(site.collection, id, dimension, of, standard_measures(20)) for id, of in rankings]
            found.setdefault(label, []).append(np.array(values))
            print(f"  {label:14s}", *(f"{mean:.3f}" for mean in found[label][-1].mean(axis=0)), flush=True)
    print(f"\nless the agent's product, mean over {sum(map(len, found['agent']))} topics (s.e.)")
    for label, of_aims in found.items():
        difference = np.concatenate(of_aims)[:, 2] - np.concatenate(found["agent"])[:, 2]
        print(f"  {label:14s} {difference.mean():+.4f} ({difference.std(ddof=1) / np.sqrt(len(difference)):.4f})")


if __name__ == "__main__":
    main()
