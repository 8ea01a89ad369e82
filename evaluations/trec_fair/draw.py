"""Task 2 of the track: for every topic a sequence of rankings, drawn anew each time, in the official form.

    python draw.py task2.yaml

The file names the systems and how many rankings a topic gets; walk.py writes it. A system that draws nothing shows one
ranking every time. A run file that is there and was made of the same is left alone.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from fairagent import Collection, FairAgent, FairAgentError, Topic, load_collection, open_agent
from fairagent.evaluate.fingerprint import file_hash
from fairagent.retrieve.base import as_query
from fairagent.storage.files import file_name, whole_file, write_whole


def main(file: Path) -> None:
    """Write a run for each system into the folder `submissions/editors`."""
    plan = yaml.safe_load(file.read_text(encoding="utf-8"))
    collection = load_collection("collection.yaml")
    decided = [collection.fingerprint(), *(file_hash(Path(path)) for path in plan["decided_by"])]
    for name, values in plan["systems"].items():
        settings = {**plan["settings"], **values}
        made_of = made_from(settings, plan["rankings"], decided)
        run, note = Path("submissions/editors") / f"{file_name(name)}.gz", Path("task2") / f"{file_name(name)}.txt"
        if run.is_file() and note.is_file() and note.read_text(encoding="utf-8") == made_of:
            continue
        print(f"drawing {plan['rankings']} rankings a topic: {name}", flush=True)
        agent = open_agent(collection, **settings)
        with whole_file(run) as out:
            out.write(gzip.compress("".join(lines(agent, collection, plan["rankings"])).encode(), mtime=0))
        write_whole(note, made_of)


def made_from(settings: Mapping[str, Any], rankings: int, decided: list[str]) -> str:
    """A hash of all that a run depends on."""
    values = [{**settings, "index": ""}, rankings, decided, version("fairagent")]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def lines(agent: FairAgent, collection: Collection, rankings: int) -> Iterator[str]:
    """Topic, number of the ranking from 1, page."""
    for topic in collection.topics.values():
        for number, pages in enumerate(rankings_of(agent, topic, rankings), start=1):
            yield from (f"{topic.id}\t{number}\t{page}\n" for page in pages)


def rankings_of(agent: FairAgent, topic: Topic, rankings: int) -> Iterator[list[str]]:
    """The pages of each ranking; where they are fewer than n, the engine's own for the topic stand below."""
    own = agent.retriever.search(as_query(topic), 2 * agent.settings.n).ids
    if agent.draws:
        drawn = agent.sample(topic, rankings)
        found = [drawn.ranking(number).ids for number in range(rankings)]
    else:
        found = [agent.search(topic).ranking.ids] * rankings
    for pages in found:
        yield list(dict.fromkeys((*pages, *own)))[: agent.settings.n]


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except FairAgentError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
