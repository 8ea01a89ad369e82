"""How far may a model's keywords pull a query away? Two stand-ins for a model, and the setting `drift` varied.

`names` always says the obvious words of a group; `chooses` (refine: grounded) takes the first six words that it is
shown. Neither understands anything, so this shows what weights do, and nothing about models.

    python evaluations/prompts/drift.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.pipeline import build, open_site, with_settings
from fairagent.search.refine.feedback import Refiner
from fairagent.search.refine.llm import GroundedConfig, LlmConfig
from fairagent.settings import Settings

COLLECTION = Path(__file__).parents[1] / "collections" / "wikilead.yaml"
DRIFTS = (5.0, 2.0, 1.0, 0.5, 0.3, 0.15)
BM25 = {"engine": "bm25", "loop": "fair-qr"}
LOOPS = {
    "topic words and exposure": BM25
    | {"expansion": {"documents": 50}, "rerank": {"kind": "exposure", "fairness": 0.5, "unlabeled": 1}},
    "loop alone": BM25 | {"expansion": {"documents": 0}, "rerank": {"kind": "fused", "refined": 1}},
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


def refiners(site: Site) -> Iterator[tuple[str, Refiner]]:
    """Every refiner with its name in the table."""
    yield "feedback", site.settings.refine.build(site)
    for name, say, kind in (("names", names, LlmConfig), ("chooses", chooses, GroundedConfig)):
        for drift in DRIFTS:
            yield f"{name}, drift {drift:g}", kind(drift=drift).asking(ScriptedModel(say), site)


def row(agent: FairAgent, dimension: str) -> str:
    """Means of nDCG@20, AWRF@20 and their product, and how many refinements were accepted."""
    collection, values, accepted = agent.collection, [], 0
    for id in judged_topics(collection, dimension).counted:
        found = agent.search(collection.topics[id])
        accepted += sum(step.accepted and step.aim is not None for step in found.trace.steps)
        values.append(list(evaluate_topic(collection, id, dimension, found.ranking, standard_measures(20))))
    return " ".join(f"{mean:.3f}" for mean in np.mean(values, axis=0)) + f" ({accepted})"


def main() -> None:
    """Print the table."""
    opened = open_site(COLLECTION, settings=Settings())
    columns = [(loop, dimension) for loop in LOOPS for dimension in opened.collection.groups.dimensions]
    table: dict[str, list[str]] = {}
    for loop, dimension in columns:
        settings = Settings.model_validate({"dimensions": [dimension], **LOOPS[loop]})
        site = with_settings(opened, settings)
        agent = build(site)
        for name, refiner in refiners(replace(site, engine=agent.retriever)):
            table.setdefault(name, []).append(row(replace(agent, loop=FairQR(refiner)), dimension))
    print("| refiner |", " | ".join(f"{loop}, {dimension}" for loop, dimension in columns), "|")
    print("|---" * (len(columns) + 1), "|", sep="")
    for name, cells in table.items():
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
