"""FairFilter's two wordings beside each other: our questions, and those that ask what the paper asks and no more.

    export OPENAI_BASE_URL=http://127.0.0.1:8080/v1
    python evaluations/prompts/filters.py --model NAME [--documents 3] COLLECTION ...

Both judge the first documents that BM25 finds for each topic. `readable` are replies that hold a verdict: ours in the
schema before any correction, the paper's as its code reads them. What is not readable ours asks for again, or keeps;
the paper's has not passed. What a model thinks of a document is not judged here.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fairagent.answer.filtering import FairFilter, parse_verdict
from fairagent.errors import ReplyError
from fairagent.llm import Model, ModelReply, ModelRequest
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.prompts import Prompts
from fairagent.llm.replies import parse_reply
from fairagent.search.pipeline import engine_alone, open_site, prepare
from fairagent.settings import load_settings
from fairagent.types import Usage


class Reader:
    """A model whose replies are counted, and those that can be read."""

    def __init__(self, model: Model) -> None:
        self.model, self.replies, self.readable = model, 0, 0

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's reply."""
        reply = self.model.complete(request)
        self.replies += 1
        self.readable += _readable(request, reply.text)
        return reply


def _readable(request: ModelRequest, text: str) -> bool:
    """Whether the reply says pass or fail; of the paper's: whether it passes, or would with its verdict turned."""
    if request.reply is None:
        lowered = text.lower()
        return parse_verdict(lowered) or parse_verdict(lowered.replace("false", "true"))
    try:
        parse_reply(text, request.reply)
    except ReplyError:
        return False
    return True


def main() -> None:
    """Print a line for each collection and wording."""
    asked = argparse.ArgumentParser()
    asked.add_argument("collections", nargs="+", type=Path)
    asked.add_argument("--model", required=True)
    asked.add_argument("--documents", type=int, default=3, help="of each topic; the paper's are 3")
    given = asked.parse_args()
    chosen = load_settings(overrides={"model": {"name": given.model, "timeout": 600, "deadline": 900}})
    print("| collection | prompts | documents | replies | readable | fair | kept | tokens in | tokens out | seconds |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for file in given.collections:
        site = open_site(file, engine="bm25")
        prepare(site, lambda what, done: None)
        agent = engine_alone(site)
        for name, compat in (("ours", None), ("the paper's", "authors")):
            model = OpenAIModel(chosen.model, os.environ)
            reader = Reader(model)
            filtering = FairFilter(reader, Prompts(), workers=1, compat=compat)  # type: ignore[arg-type]
            verdicts, usage = [], Usage()
            for topic in site.collection.topics.values():
                ids = agent.search(topic).ranking.ids[: given.documents]
                found = filtering.filter(topic.query, [agent.retriever.document(id) for id in ids])  # type: ignore
                verdicts += found.verdicts
                usage += found.usage
            model.close()
            counts = (len(verdicts), reader.replies, reader.readable)
            kept = sum(one.fair is True for one in verdicts), sum(one.kept for one in verdicts)
            spent = usage.input_tokens, usage.output_tokens, round(usage.seconds)
            print(
                "|",
                " | ".join([file.stem, name, *(f"{count:,}" for count in (*counts, *kept, *spent))]),
                "|",
                flush=True,
            )


if __name__ == "__main__":
    main()
