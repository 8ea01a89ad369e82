"""More targets: joined tables, the files of FairFT, hits of other engines, and what newer prompts are answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from fuzz.mutate import Whole, damaged
from fuzz.targets import EVALUATIONS, finished_run, target, write


@target(2)
def joined(random: Random, folder: Path) -> None:
    from fairagent.report.joined import join_runs

    for name in ("one", "two"):
        (folder / name).mkdir()
        if random.random() < 0.7:
            write(random, folder / name, finished_run())
        else:
            for file, content in finished_run().items():
                (folder / name / file).write_bytes(content)
    joined = join_runs([folder / "one", folder / "two"])
    joined.write(folder)
    joined.text()
    json.dumps(joined.record())


LINES: Mapping[str, object] = {
    "questions": {"id": "q1", "query": "Is she a judge?", "answer": "yes"},
    "recognition": {
        "prompt": "You are a helpful assistant. Is this a stereotype?",
        "label": "stereotype",
        "sentence": "He is a judge.",
        "context": "The court met.",
    },
    "accuracy": {"query": "Who?", "answer": 7, "alt_ans": ["seven", 7.0], "domain": "sports"},
    "agreement": {"prompt": "You are a helpful assistant. Do you agree?", "bias_type": "gender"},
}


@target(2)
def fairft_lines(random: Random, folder: Path) -> None:
    from fairagent.papers.fairft.graded import ACCURACY, AGREEMENT, read_questions
    from fairagent.papers.fairft.settings import read_examples, split

    form = random.choice(sorted(LINES))
    other = {**dict(LINES[form]), "id": "q2"}  # type: ignore[call-overload]
    write(random, folder, {"l.jsonl": f"{json.dumps(LINES[form])}\n{json.dumps(other)}\n".encode()})
    if form == "questions" or form == "recognition":
        examples = read_examples(folder / "l.jsonl", form)  # type: ignore[arg-type]
        if not isinstance(random, Whole):
            split(examples, 0.5, 1)
    else:
        task = ACCURACY if form == "accuracy" else AGREEMENT
        for question in read_questions(task, folder / "l.jsonl").values():
            task.rule(question, "yes, I agree")
            task.shown(question)


@target()
def fairft_chain(random: Random, folder: Path) -> None:
    from fairagent.papers.fairft.chain import read_chain
    from fairagent.papers.fairft.run import read_file

    training = min((EVALUATIONS / "papers" / "fairft" / "train").glob("*.yaml")).read_bytes()
    chain = b"kind: accuracy\nname: c\nfairft: [train.yaml]\nquestions: {path: q.jsonl}\nsystems: {a: {n: 1}}\n"
    write(random, folder, {"train.yaml": training, "chain.yaml": chain})
    read_file(folder / "train.yaml")
    if not isinstance(random, Whole):
        read_chain([folder / "chain.yaml"])


HITS: tuple[Any, ...] = (
    [
        {"id": "a", "score": 2.0, "payload": {"gender": "female"}},
        {"id": "b", "score": 1.0, "payload": {"gender": "male"}},
    ],
    {"hits": {"hits": [{"_id": n, "_score": 3.0 - n, "_source": {"gender": "fm"[n % 2]}} for n in range(3)]}},
    {"ids": [["a", "b"]], "distances": [[0.1, 0.2]], "metadatas": [[{"gender": "female"}, {"gender": "male"}]]},
    [[{"id": "a", "gender": ["female", "male"]}, 0.9], [{"id": "b", "gender": {"male": 2}}, 0.1]],
)


@target(3)
def hits(random: Random, folder: Path) -> None:
    """What a search engine's client returned, or a user made of it."""
    from fairagent import fair_rerank

    text = damaged(random, json.dumps(random.choice(HITS)).encode(), "json").decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return
    groups = random.choice(("gender", ["gender"], {"gender": "gender"}))
    target = random.choice(("uniform", {"female": 0.5, "male": 0.5}, None))
    if isinstance(random, Whole):
        target = "uniform"
    fair_rerank(found, groups, target, n=random.choice((1, 2, 10)), unknown=random.choice(("share", "ignore")))


@target(3)
def newer_replies(random: Random, folder: Path) -> None:
    from fairagent.llm.reply import parse_reply
    from fairagent.papers.debias_rag.avoid import Diagnoses
    from fairagent.papers.debias_rag.synthesis import Rewrites
    from fairagent.papers.fairft.graded import read_accuracy, read_agreement, says_yes
    from fairagent.search.loop.sources import GroupPassages, GroupSentences

    text = random.choice(
        (
            b'{"groups": [{"number": 1, "passage": "She was a judge."}]}',
            b'{"groups": [{"number": 1, "sentences": [3, 1]}]}',
            b'{"rewrites": [{"id": "a", "text": "A judge."}]}',
            b"Yes. I agree; no, I don't know.",
        )
    )
    said = damaged(random, text, "json").decode("utf-8", "replace")
    read_accuracy(said, "Paris", ["paris", 7])
    read_agreement(said)
    says_yes(said)
    if not isinstance(random, Whole):
        form: Any = random.choice((GroupPassages, GroupSentences, Rewrites, Diagnoses))
        parse_reply(said, form)
