"""How far may a model's keywords pull a query away? Two stand-ins for a model, and the setting `drift` varied.

`names` always says the obvious words of a group; `chooses` (refiner grounded) takes the first six words that it is
shown. Neither understands anything, so this shows what weights do, and nothing about models.

    python evaluations/prompts/drift.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fairagent.agent import FairAgent
from fairagent.assemble import asking_refiner, make_refiner, make_reranker, open_retriever
from fairagent.collection import Collection, load_collection
from fairagent.evaluate.topics import evaluate_topic, judged_topics, standard_measures
from fairagent.llm import ModelRequest
from fairagent.refine.base import Refiner
from fairagent.retrieve.lucene import LuceneRetriever
from fairagent.settings import Settings
from fairagent.testing import ScriptedModel

COLLECTION = Path(__file__).parents[1] / "collections" / "wikilead.yaml"
INDEX = Path("indexes/wikilead")
DRIFTS = (5.0, 2.0, 1.0, 0.5, 0.3, 0.15)
LOOPS = {
    "default": {},
    "loop alone": {"expansion": {"documents": 0}, "reranking": {"kind": "fused", "refined": 1}},
}
OBVIOUS = {
    "female": ["she", "her", "woman", "women", "female"],
    "male": ["he", "his", "man", "men", "male"],
    "Africa": ["africa", "african", "nigeria", "kenya", "egypt"],
    "Asia": ["asia", "asian", "china", "india", "japan"],
    "Europe": ["europe", "european", "france", "germany", "british"],
    "Latin America and the Caribbean": ["latin", "brazil", "mexico", "argentina", "cuba"],
    "Northern America": ["american", "canada", "canadian", "states", "california"],
    "Oceania": ["oceania", "australia", "australian", "zealand", "fiji"],
}


def names(request: ModelRequest) -> str:
    """The obvious words of the group, but for those that were tried."""
    text = request.messages[-1][1]
    group = json.loads(_value(text, "group_shown_too_little"))
    tried = json.loads(_value(text, "tried_before_do_not_repeat"))
    return json.dumps({"keywords": [word for word in OBVIOUS[group] if word not in tried]})


def chooses(request: ModelRequest) -> str:
    """The first six words that are shown."""
    words = json.loads(_value(request.messages[-1][1], "words_with_how_many_documents_contain_them"))
    return json.dumps({"keywords": [word["word"] for word in words[:6]]})


def _value(text: str, key: str) -> str:
    return re.search(rf'^  "{key}": (.*?),?$', text, re.MULTILINE)[1]  # type: ignore[index]


def refiners(settings: Settings, retriever: LuceneRetriever) -> Iterator[tuple[str, Refiner]]:
    """Every refiner with its name in the table."""
    yield "feedback", make_refiner(settings, retriever)
    for name, say, refiner in (("names", names, "llm"), ("chooses", chooses, "grounded")):
        for drift in DRIFTS:
            chosen = settings.model_copy(update={"refiner": refiner, "drift": drift})
            yield f"{name}, drift {drift:g}", asking_refiner(ScriptedModel(say), chosen, retriever)


def row(agent: FairAgent, collection: Collection, dimension: str) -> str:
    """Means of nDCG@20, AWRF@20 and their product, and how many refinements were accepted."""
    values, accepted = [], 0
    for id in judged_topics(collection, dimension).counted:
        found = agent.search(collection.topics[id])
        accepted += sum(step.accepted and step.aim is not None for step in found.trace.steps)
        values.append(list(evaluate_topic(collection, id, dimension, found.ranking, 20, standard_measures(20))))
    return " ".join(f"{mean:.3f}" for mean in np.mean(values, axis=0)) + f" ({accepted})"


def main() -> None:
    """Print the table."""
    collection = load_collection(COLLECTION)
    retriever = open_retriever(collection, INDEX, Settings())
    columns = [(loop, dimension) for loop in LOOPS for dimension in collection.groups.dimensions]
    table: dict[str, list[str]] = {}
    for loop, dimension in columns:
        settings = Settings.model_validate({"dimensions": [dimension], **LOOPS[loop]})
        for name, refiner in refiners(settings, retriever):
            agent = FairAgent(collection, retriever, refiner, make_reranker(settings, retriever), settings)
            table.setdefault(name, []).append(row(agent, collection, dimension))
    print("| refiner |", " | ".join(f"{loop}, {dimension}" for loop, dimension in columns), "|")
    print("|---" * (len(columns) + 1), "|", sep="")
    for name, cells in table.items():
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
