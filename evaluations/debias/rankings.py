"""What DebiasRAG does on StereoSet's sentences with MiniLM, without a language model: theta's moves, who wins places.

    python evaluations/debias/split.py STEREOSET_FOLDER FOLDER
    python evaluations/debias/rankings.py FOLDER [-c COLLECTION.yaml -i INDEX] [--queries 300] [--seed 1]

Each query is the context of an example of the test half. With a collection and its index, the first 10 documents that
BM25 finds for it are candidates as well; without, there are only the counterfactuals of the passages to avoid.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairagent.papers.debias_rag.avoid import AvoidIndex, load_lexicon, read_avoid, unit
from fairagent.papers.debias_rag.benchmarks.items import read_stereoset
from fairagent.papers.debias_rag.stage import DebiasRAG, Theta
from fairagent.retrieve.base import texts_for
from fairagent.retrieve.encoders import BUNDLED, Embeddings, Encoder, open_encoder
from fairagent.search.pipeline import open_site
from fairagent.settings import Settings
from fairagent.types import Debiased, Document, Query

DEPTH = 10


class Remembered:
    """An encoder that encodes each text once."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self._encoder, self._known = encoder.name, encoder, dict[str, Embeddings]()

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """See `Encoder`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= dict(zip(new, self._encoder.documents(new), strict=True)) if new else {}
        return np.stack([self._known[text] for text in texts])

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """See `Encoder`."""
        return self._encoder.queries(texts)


def found_documents(options: argparse.Namespace, queries: Sequence[str]) -> list[list[Document]]:
    """The first documents of BM25 for each query; none without a collection."""
    if not options.collection:
        return [[] for _ in queries]
    site = open_site(options.collection, options.index, Settings())
    engine = site.settings.engine.build(site)
    asked = [Query(query) for query in queries]
    return [texts_for(query, engine.search(query, DEPTH).ids, engine) for query in asked]


def line(name: str, results: Sequence[Debiased]) -> str:
    """One setting's numbers over all queries."""
    made, survived, placed = (
        sum(len(getattr(one, part)) for one in results) for part in ("made", "survived", "placed")
    )
    moved = [abs(one.theta_after[0] - one.theta_before[0]) for one in results]
    none = np.mean([not one.survived for one in results if one.made])
    emptied = sum(len(one.dropped) > 0 and not one.survived and bool(one.placed) for one in results)
    last = results[-1].theta_after[0]
    share = survived / made, placed / made
    return (
        f"{name:34} {made:5} {share[0]:9.1%} {share[1]:8.1%} {none:9.1%} {emptied:8} "
        f"{np.mean(moved):9.5f} {max(moved):9.5f} {last:7.4f}"
    )


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-c", "--collection", type=Path)
    parser.add_argument("-i", "--index", default="")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    examples = list(read_stereoset(options.folder / "test.jsonl").values())
    chosen = random.Random(options.seed).sample(examples, min(options.queries, len(examples)))
    queries = [example.query for example in chosen]
    documents = found_documents(options, queries)
    encoder, lexicon = Remembered(open_encoder(BUNDLED)), load_lexicon()
    passages = read_avoid(options.folder / "avoid.jsonl")
    index = AvoidIndex(passages, lexicon, encoder)
    plain = DebiasRAG(index, lexicon, encoder)
    swapped = [(one.text, other) for one in passages if (other := lexicon.swap(one.text)) != one.text]
    texts = [list(side) for side in zip(*swapped, strict=True)]
    alike = (unit(encoder.documents(texts[0])) * unit(encoder.documents(texts[1]))).sum(axis=1)
    known = sum(lexicon.tag(query) != "" for query in queries)
    print(f"{len(passages)} passages to avoid; the lexicon swaps a word in {len(swapped)} of them")
    print(
        "cosine of a passage with its counterfactual: mean {:.3f}; {:.0%} above .8, {:.0%} above .9, "
        "{:.0%} above .95".format(alike.mean(), *(np.mean(alike > bound) for bound in (0.8, 0.9, 0.95)))
    )
    candidates = sum(map(len, documents)) / len(queries)
    print(f"{len(queries)} queries, {known} with a bias class; {candidates:.1f} documents each\n")
    print(f"{'':34}  made  survived   placed  none left  emptied  mean move  largest  theta_1")
    variants = {
        "K=3, tau=.9 (default)": plain,
        "tau=.95": replace(plain, tau=0.95),
        "tau=.8": replace(plain, tau=0.8),
        "tau=.7": replace(plain, tau=0.7),
        "tau=1 (no filter)": replace(plain, tau=1.0),
        "exempt_synthesized": replace(plain, exempt_synthesized=True),
        "K=5": replace(plain, k=5),
        "theta begins at (1, 0)": replace(plain, theta=Theta((1.0, 0.0))),
        "theta begins at (1, 0), no stream": replace(plain, theta=Theta((1.0, 0.0), streaming=False)),
        "rate 10": replace(plain, theta=Theta(rate=10.0)),
        "theta stays (1/2, 1/2)": replace(plain, theta=Theta(rate=0.0)),
    }
    contexts = {}
    for name, stage in variants.items():
        # A stream of its own for each setting.
        fresh = replace(stage, theta=Theta()) if stage.theta is plain.theta else stage
        results = [fresh.apply(query, found) for query, found in zip(queries, documents, strict=True)]
        contexts[name] = [tuple(one.id for one in result.documents) for result in results]
        print(line(name, results))
    first, fixed = (contexts[name] for name in ("K=3, tau=.9 (default)", "theta stays (1/2, 1/2)"))
    order = sum(one == other for one, other in zip(first, fixed, strict=True))
    chosen_alike = sum(set(one) == set(other) for one, other in zip(first, fixed, strict=True))
    print(
        f"\nthe moved theta chooses the same contexts as (1/2, 1/2) for {chosen_alike} of {len(queries)} queries, "
        f"for {order} in the same order"
    )


if __name__ == "__main__":
    main()
