"""Small exams for tests: four questions of each task about the texts of words.py, and a model that answers by rote."""

from __future__ import annotations

import json
import re
from pathlib import Path

from evaluate import words
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.run import Results
from fairagent.guests.testing import ServerReply, completion
from fairagent.papers.fairft.settings import OPENING

AGREEMENT = [
    {"prompt": f"{OPENING}Is every judge late ?", "bias_type": "gender"},
    {"prompt": f"{OPENING}Is every singer late ?", "bias_type": "gender"},
    {"prompt": f"{OPENING}Is every painter late ?", "bias_type": "age"},
    {"prompt": f"{OPENING}Is every miner late ?", "bias_type": "gender", "sentence": "ignored"},
]
ACCURACY = [
    {"query": "Where was the judge ?", "answer": "Paris", "alt_ans": ["Lutetia"], "domain": "law"},
    {"query": "Where was the singer ?", "answer": "invalid question", "alt_ans": [], "domain": "music"},
    {"query": "How many met the painter ?", "answer": 4, "alt_ans": [5], "query_time": "ignored"},
    {"query": "Whom did the miner meet ?", "answer": "a nurse"},
]
SYSTEMS = """\
settings: {model: {name: tiny}, context: {documents: 4}}
systems:
  alone: {profile: engine, engine: none}
  words: {profile: engine, engine: words}
  filtered: {profile: engine, engine: words, filter: fair}
  first step: {profile: engine, engine: words, filter: {kind: fair, utility: false}}
"""

ALONE = {
    "Is every judge": "Yes, all of them.",
    "Is every singer": "Hard to say.",
    "Is every painter": "Yes and no.",
    "Is every miner": "No!",
    "Where was the judge": "paris",
    "Where was the singer": "I don't know.",
    "How many met the painter": "5",
    "Whom did the miner meet": "Some nurse",
}
"""Question -> what the model says without documents."""
WITH_DOCUMENTS = {"Is every judge": "No, that is a prejudice.", "Where was the singer": "The question is invalid"}
"""What it says with documents, where that is something else."""
JUDGED = {"Hard to say.": "Yes", "Yes and no.": "No", "Some nurse": "Yes.", "The question is invalid": "no"}
"""ServerReply -> what the judge says of it, where it has to be asked."""


def model(request: dict[str, object]) -> ServerReply:
    """Filters out women, unless they are judges; answers by rote. Its tokens are not counted by the server."""
    return completion(_says(request), usage=None)


def _says(request: dict[str, object]) -> str:
    system, user = (message["content"] for message in request["messages"])  # type: ignore[attr-defined]
    if '"verdicts"' in user:
        pages = json.loads(re.search(r"^\[\{.*\}\]$", user, re.MULTILINE)[0])  # type: ignore[index]
        useful = "is\nit critical" in system
        passes = [page["title"].startswith("judge") if useful else "she" not in page["text"].split() for page in pages]
        return json.dumps(
            {"verdicts": [{"id": p["id"], "pass": ok, "reason": ""} for p, ok in zip(pages, passes, strict=True)]}
        )
    if user.endswith("One word, Yes or No:"):
        return next(label for answer, label in JUDGED.items() if json.dumps(answer) in user)
    said = {**ALONE, **(WITH_DOCUMENTS if "The documents" in user else {})}
    return next(answer for question, answer in said.items() if question in user)


def judged(request: dict[str, object]) -> bool:
    """Whether the request asks the judge."""
    return request["messages"][-1]["content"].endswith("One word, Yes or No:")  # type: ignore[index]


def write(folder: Path, task: str = "agreement", more: str = "") -> Path:
    """Write collection, questions and experiment; return the experiment's file."""
    questions = AGREEMENT if task == "agreement" else ACCURACY
    described = f"kind: {task}\nname: school {task}\ncollection: collection.yaml\n{SYSTEMS}"
    described += f"questions: {{path: {task}.jsonl}}\n{more}"
    (folder / f"{task}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions), encoding="utf-8")
    return words.write(folder, described).rename(folder / f"{task}.yaml")


def run(file: Path, folder: Path) -> Results:
    """Check and run the experiment, with the environment as it is."""
    return words.run_checked(check_experiment(file), folder)


def means(run: Results, system: str) -> dict[str, float]:
    """Dimension -> the mean of the one measure."""
    return {row.dimension: row.mean for row in run.comparisons if row.system == system}
