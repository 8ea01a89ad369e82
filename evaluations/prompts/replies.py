"""How often does a model answer each prompt in its schema? Asked on the demo collection, one reply counted a call.

A reply counts once, before any correction: `ok` has the form that was asked for, `echo` has it and repeats the dots of
a pattern, `invalid` has another form, `truncated` was cut off (also when asked again for twice the tokens), `failed`
is all else. Form is all that is looked at: a small model's replies say nothing about quality.

    OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python evaluations/prompts/replies.py --model NAME [--calls 100]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fairagent.collection.demo import write_demo
from fairagent.debias.diagnosis import diagnose
from fairagent.debias.lexicon import load_lexicon
from fairagent.debias.synthesis import Rewriter
from fairagent.errors import ModelError, ReplyError, ReplyInvalid, ReplyTruncated
from fairagent.evaluate.kinds.stereotypes.choice import ChoiceScorer
from fairagent.evaluate.kinds.stereotypes.items import Example, Pair
from fairagent.filter.pages import page_of
from fairagent.filter.verdicts import ask_verdicts
from fairagent.generate.sentences import sentences
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.request import read_reply
from fairagent.pipeline import build, engine_alone, open_site, prepare
from fairagent.prompts import Prompts
from fairagent.settings import load_settings
from fairagent.types import Document

PATTERN = '"..."'
READ = 3
"""Documents of each topic that are read one by one."""


class Enough(Exception):
    """The template has had its calls, or its time."""


class Recorder:
    """Counts what becomes of the first reply to each request; a second is never asked for."""

    def __init__(self, model: OpenAIModel, calls: int, seconds: float) -> None:
        self.model = model
        self.calls = calls
        self.end = time.monotonic() + seconds
        self.found: Counter[str] = Counter()
        self.tokens = 0
        self.lines: list[dict[str, str]] = []

    def open(self, settings: object) -> Recorder:
        """It stands in for `Models`, whatever the settings."""
        return self

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's reply; one that is not in its schema is final."""
        if self.found.total() >= self.calls or time.monotonic() > self.end:
            raise Enough
        try:
            reply = self.model.complete(replace(request, whole=False))
            self.tokens += reply.output_tokens
            if reply.finish == "length":
                raise ReplyTruncated(f"cut off after {reply.output_tokens} tokens", raw=reply.text)
            self.note("echo" if PATTERN in reply.text else "ok", reply.text)
            if request.reply is not None:
                read_reply(request, reply.text)
            return reply
        except ReplyInvalid as error:
            self.unusable(error)
            error.final = True
            raise
        except ModelError as error:
            raw = error.raw if isinstance(error, ReplyError) else ""
            self.note("truncated" if isinstance(error, ReplyTruncated) else "failed", f"{error} | {raw}")
            raise

    def note(self, what: str, text: str) -> None:
        """Count one outcome."""
        self.found[what] += 1
        self.lines.append({"what": what, "text": text})

    def unusable(self, error: ReplyError) -> None:
        """The last reply was not in its schema after all."""
        if self.lines and self.lines[-1]["what"] in ("ok", "echo"):
            self.found[self.lines.pop()["what"]] -= 1
        self.note("invalid", f"{error} | {error.raw}")


def main() -> None:
    """Print the table, a template as soon as it is done."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--model", required=True)
    asked.add_argument("--calls", type=int, default=100)
    asked.add_argument("--minutes", type=float, default=5.0, help="the most for one template")
    asked.add_argument("--only", nargs="*", default=[])
    asked.add_argument("--out", type=Path, help="every reply, as JSON lines")
    given = asked.parse_args()
    settings = load_settings(overrides={"model": {"name": given.model, "timeout": 600, "deadline": 900, "attempts": 1}})
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(Path(folder))
        print("| template | calls | in the schema | of these echoes | invalid | truncated | failed | tokens a reply |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for template, ask in inputs.askers().items():
            if given.only and template not in given.only:
                continue
            model = Recorder(OpenAIModel.from_settings(settings.model), given.calls, 60 * given.minutes)
            try:
                for once in ask(model):
                    try:
                        once()
                    except ReplyError as error:
                        if isinstance(error, ReplyInvalid) and not error.final:
                            model.unusable(error)
                    except ModelError:
                        pass
            except Enough:
                pass
            found, calls = model.found, model.found.total()
            good = found["ok"] + found["echo"]
            row = [
                template,
                calls,
                f"{good / max(calls, 1):.0%}",
                *(found[k] for k in ("echo", "invalid", "truncated")),
            ]
            print(
                "|",
                " | ".join(map(str, [*row, found["failed"], f"{model.tokens / max(calls, 1):.0f}"])),
                "|",
                flush=True,
            )
            if given.out:
                with given.out.open("a") as file:
                    file.writelines(json.dumps({"template": template, **line}) + "\n" for line in model.lines)


class Inputs:
    """The demo collection, its topics, and the first documents of each."""

    def __init__(self, folder: Path) -> None:
        file = write_demo(folder, people=600)
        self.open = partial(open_site, file, folder / "index")
        site = self.open(engine="bm25")
        prepare(site, lambda what, done: None)
        self.topics = list(site.collection.topics.values())
        agent = engine_alone(site)
        self.found: dict[str, Sequence[Document]] = {
            topic.id: [agent.retriever.document(id) for id in agent.search(topic).ranking.ids[:20]]  # type: ignore
            for topic in self.topics
        }
        self.dimensions = list(site.collection.groups.dimensions)
        self.prompts = Prompts()

    def askers(self) -> dict[str, Callable[[Recorder], Iterator[Callable[[], object]]]]:
        """Template -> what asks it, as often as there is something to ask."""
        fair_qr = {"loop": "fair-qr", "iterations": 2}

        def controller(**more: Any) -> dict[str, Any]:
            return {"loop": {"kind": "controller", **more}}

        return {
            "refine_query": partial(self._searches, {**fair_qr, "refine": "llm"}),
            "refine_query_grounded": partial(self._searches, {**fair_qr, "refine": "grounded"}),
            "group_keywords": partial(self._searches, controller(evidence="llm")),
            "group_passages": partial(self._searches, controller(evidence="passage")),
            "choose_action": partial(self._searches, controller(policy="model")),
            "judge_relevance": partial(self._verdicts, "judge_relevance", 5),
            "fairness_filter": partial(self._verdicts, "fairness_filter", 1),
            "utility_filter": partial(self._verdicts, "utility_filter", 1),
            "attribute": partial(self._verdicts, "attribute", 1),
            "rewrite_counterfactual": self._rewrites,
            "diagnose_bias": self._diagnoses,
            "choose_sentence": self._choices,
        }

    def _searches(self, settings: dict[str, Any], model: Recorder) -> Iterator[Callable[[], object]]:
        for dimension in self.dimensions:
            site = self.open(engine="bm25", dimensions=[dimension], **settings)
            agent = build(replace(site, models=model))  # type: ignore[arg-type]
            for topic in self.topics:
                yield partial(agent.search, topic)

    def _verdicts(self, template: str, batch: int, model: Recorder) -> Iterator[Callable[[], object]]:
        for place in range(READ):
            for topic in self.topics:
                pages = [page_of(one) for one in self.found[topic.id][place * batch : (place + 1) * batch]]
                texts = {"query": topic.query}
                if template == "attribute":
                    texts["answer"] = sentences(self.found[topic.id][0].text)[0]
                if pages:
                    yield partial(ask_verdicts, model, self.prompts, template, pages, **texts)

    def _rewrites(self, model: Recorder) -> Iterator[Callable[[], object]]:
        for place in range(READ):
            for topic in self.topics:
                text = sentences(self.found[topic.id][place].text)[0]
                yield partial(Rewriter(model, self.prompts).rewrite, topic.query, text)

    def _diagnoses(self, model: Recorder) -> Iterator[Callable[[], object]]:
        kinds = list(load_lexicon("").order)
        for topic in self.topics:
            firsts = [Document(one.id, sentences(one.text)[0]) for one in self.found[topic.id]]
            for start in (0, 10):
                yield partial(diagnose, model, self.prompts, firsts[start : start + 10], kinds)

    def _choices(self, model: Recorder) -> Iterator[Callable[[], object]]:
        scorer = ChoiceScorer(model, self.prompts)
        for topic in self.topics:
            texts = [sentences(one.text)[0] for one in self.found[topic.id]]
            for place in range(0, len(texts) - 4, 5):
                first, second, third, fourth, fifth = texts[place : place + 5]
                id = f"{topic.id}-{place}"
                yield partial(scorer.score, Pair(id, "made", first, second, True))
                yield partial(scorer.score, Example(id, "intersentence", "made", "", topic.query, third, fourth, fifth))


if __name__ == "__main__":
    main()
