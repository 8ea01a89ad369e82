"""Small files in LaMP's format, made by the tests: `write` a task's questions and outputs, `load` them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairagent.papers.fair_rag.lamp import Lamp, load_lamp

Record = dict[str, Any]

INPUTS = {
    "LaMP-1": (
        'An author wrote the paper "Fair lists". Which of these did it cite? Say [1] or [2]. '
        '[1]: "Exposure of groups" [2]: "Trees in the city"'
    ),
    "LaMP-2": "Which of the tags fits this movie? tags: [comedy, action] description: A judge sings in the rain.",
    "LaMP-3": "From 1 to 5, what is the score of this review? review: The pen leaks and is too short.",
    "LaMP-4": "Find a headline for the article. article: A court was opened in the north.",
    "LaMP-5": "Find a title for the abstract of this paper: We rank lists fairly.",
    "LaMP-6": "Find a subject for this e-mail: The meeting of the court is at ten.",
    "LaMP-7": "Say this tweet in other words: what a day in court",
}
QUERIES = {
    "LaMP-1": "Exposure of groups Trees in the city",
    "LaMP-2": "A judge sings in the rain.",
    "LaMP-3": "The pen leaks and is too short.",
    "LaMP-4": "A court was opened in the north.",
    "LaMP-5": "We rank lists fairly.",
    "LaMP-6": "The meeting of the court is at ten.",
    "LaMP-7": "what a day in court",
}
ENTRIES: dict[str, tuple[Record, ...]] = {
    "LaMP-1": ({"title": "Groups in lists", "abstract": "On exposure."}, {"title": "Cities", "abstract": "On trees."}),
    "LaMP-2": ({"description": "A clown sings.", "tag": "comedy"}, {"description": "A chase.", "tag": "action"}),
    "LaMP-3": ({"text": "A good pen.", "score": "5"}, {"text": "It leaks.", "score": 1}),
    "LaMP-4": ({"title": "North opens", "text": "A school in the north."}, {"title": "Rain", "text": "It rains."}),
    "LaMP-5": ({"title": "Fair lists", "abstract": "We rank."}, {"title": "Trees", "abstract": "We count trees."}),
    "LaMP-6": ({"title": "Meeting", "text": "At ten."}, {"title": "Lunch", "text": "At one."}),
    "LaMP-7": ({"text": "court again, what fun"}, {"text": "rain rain rain"}),
}
GOLDS = {
    "LaMP-1": "[1]",
    "LaMP-2": "comedy",
    "LaMP-3": "2",
    "LaMP-4": "New court in the north",
    "LaMP-5": "Fair ranking of lists",
    "LaMP-6": "Court meeting at ten",
    "LaMP-7": "such a day at the court",
}


def questions(task: str, count: int = 2, items: int = 2) -> list[Record]:
    """So many questions alike, with ids 10, 11, ..., each with a profile of entries p0, p1, ..."""
    kinds = ENTRIES[task]
    return [
        {
            "id": str(10 + number),
            "input": INPUTS[task],
            "profile": [{"id": f"p{place}", **kinds[place % len(kinds)]} for place in range(items)],
        }
        for number in range(count)
    ]


def outputs(task: str, count: int = 2) -> Record:
    """Their outputs."""
    golds = [{"id": str(10 + number), "output": GOLDS[task]} for number in range(count)]
    return {"task": task.replace("-", "_"), "golds": golds}


def write(folder: Path, asked: object, wanted: object) -> tuple[Path, Path]:
    """The two files with these contents."""
    paths = folder / "dev_questions.json", folder / "dev_outputs.json"
    for path, content in zip(paths, (asked, wanted), strict=True):
        path.write_text(json.dumps(content), encoding="utf-8")
    return paths


def load(folder: Path, task: str, count: int = 2, items: int = 2) -> Lamp:
    """So many questions of a task, with so many items each, written and read again."""
    return load_lamp(task, *write(folder, questions(task, count, items), outputs(task, count)))
