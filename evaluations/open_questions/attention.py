"""The attention of a local model to each place of its context, as its weights have it, while it answers.

    fairagent model convert MODEL.gguf FOLDER
    python evaluations/open_questions/attention.py FOLDER [--topics 20] [--orders 2]

The first documents of BM25 for topics of wikilead, each cut to the same number of words, in random orders; the answer
is the model's own. Prints the share of each place, its standard error over topics, and the discount that it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from fairagent import open_agent
from fairagent.guests.local.attention import AttentionReader
from fairagent.measures.discounts import given_by
from fairagent.retrieve.base import texts_for
from fairagent.types.search import as_query

COLLECTION = Path(__file__).parents[1] / "collections" / "wikilead.yaml"
K, WORDS, TOKENS = 5, 50, 24
BEFORE = "Answer the question from these passages.\n\n"
AFTER = "\nQuestion: who are known for {query}?\nAnswer:"


def main() -> None:
    """Ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--orders", type=int, default=2)
    options = parser.parse_args()
    reader, rng = AttentionReader(options.model), np.random.default_rng(1)
    agent = open_agent(COLLECTION, profile="engine", n=K)
    of_topics = []
    for topic in list(agent.collection.topics.values())[: options.topics]:
        query = as_query(topic)
        documents = texts_for(query, agent.search(topic).ranking.ids, agent.retriever)
        passages = [f"{one.title}: {' '.join(one.text.split()[:WORDS])}\n" for one in documents]
        if len(passages) < K:
            continue
        after, found = AFTER.format(query=query.text), []
        for _ in range(options.orders):
            shown = [passages[place] for place in rng.permutation(K)]
            found.append(reader.shares(BEFORE, shown, after, reader.reply(BEFORE, shown, after, TOKENS) or "."))
        of_topics.append(np.mean(found, axis=0))
        print(topic.id, np.round(of_topics[-1], 3).tolist(), flush=True)
    mean, error = np.mean(of_topics, axis=0), np.std(of_topics, axis=0, ddof=1) / len(of_topics) ** 0.5
    print(f"{len(of_topics)} topics, {options.orders} orders each")
    print("  ".join(f"{one:.3f} ({spread:.3f})" for one, spread in zip(mean, error, strict=True)))
    print(given_by(mean.tolist()))


if __name__ == "__main__":
    main()
