"""How often does a model answer each prompt in its schema? One reply counted a call, before any correction.

`ok` has the form that was asked for, `echo` has it and repeats the dots of a pattern, `invalid` has another form,
`truncated` was cut off, `failed` is all else. Form is all that is looked at: a small model's replies say nothing about
quality. Every exchange is kept in the file of `--out`, so that a second run asks nothing twice and goes on.

    export OPENAI_BASE_URL=http://127.0.0.1:8080/v1
    python evaluations/prompts/replies.py --model NAME --out FILE [--calls 100] [--collections FILE ...]
    python evaluations/prompts/replies.py --model NAME --out FILE --experiment FILE --run FOLDER
    python evaluations/prompts/replies.py --model NAME --out FILE --calls 0       # the table alone
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from exchanges import Enough, Exchanges, Recorder, WatchedModels

from fairagent.answer.citations import sentences
from fairagent.answer.filtering import ask_verdicts, page_of
from fairagent.collection.demo import write_demo
from fairagent.errors import ModelError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.workers import threads
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.avoid import diagnose, load_lexicon
from fairagent.papers.debias_rag.benchmarks.items import Pair, StereoSetExample
from fairagent.papers.debias_rag.benchmarks.preference import ChoiceScorer
from fairagent.papers.debias_rag.stage import Rewriter
from fairagent.retrieve.site import Site
from fairagent.search.pipeline import build, engine_alone, open_site, prepare
from fairagent.settings import load_settings
from fairagent.types import Document

READ = 5
"""Documents of each topic that are read one by one."""


def main() -> None:
    """Ask, or run an experiment, and print the table of all that is kept."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--model", required=True)
    asked.add_argument("--out", type=Path, required=True, help="every exchange, as JSON lines")
    asked.add_argument("--calls", type=int, default=100, help="of each template, with those that are kept")
    asked.add_argument("--minutes", type=float, default=5.0, help="the most for one template")
    asked.add_argument("--only", nargs="*", default=[])
    asked.add_argument("--collections", nargs="*", type=Path, default=[], help="collection files; none: the demo")
    asked.add_argument(
        "--experiment", type=Path, help="run this in the place of all else, and write its exchanges down"
    )
    asked.add_argument("--run", type=Path, help="the run's folder")
    given = asked.parse_args()
    exchanges = Exchanges(given.out, given.model)
    if given.experiment:
        experiment(given.experiment, given.run, exchanges)
    elif given.calls:
        ask_all(given, exchanges)
    print(*exchanges.table(), sep="\n")


def experiment(file: Path, folder: Path, exchanges: Exchanges) -> None:
    """What `fairagent evaluate FILE --run FOLDER` does, without a cache, every exchange written down."""
    checked = check_experiment(file)
    build_indexes(checked, lambda what, done: None)
    models = WatchedModels("", checked.plan.budget, checked.plan.prices)
    models.exchanges = exchanges
    with threads(4) as workers:
        run_experiment(checked, folder, workers, models=models)
    models.close()


def ask_all(given: argparse.Namespace, exchanges: Exchanges) -> None:
    """Ask every template as often as it is to be asked, or as there is something to ask."""
    chosen = {"name": given.model, "timeout": 600, "deadline": 900, "attempts": 1}
    settings = load_settings(overrides={"model": chosen})
    with tempfile.TemporaryDirectory() as folder:
        inputs = [Inputs(partial(open_site, file)) for file in given.collections]
        if not inputs:
            made = Path(folder)
            inputs = [Inputs(partial(open_site, write_demo(made, people=600), made / "index"))]
        for template in inputs[0].askers():
            if given.only and template not in given.only:
                continue
            model = OpenAIModel(settings.model, os.environ)
            recorder = Recorder(model, exchanges, template, given.calls, 60 * given.minutes)
            for one in inputs:
                if not ask_one(one.askers()[template](recorder)):
                    break
            model.close()


def ask_one(asked: Iterator[Callable[[], object]]) -> bool:
    """Ask until there is nothing more to ask, or (False) the template has had its calls."""
    for once in asked:
        try:
            once()
        except Enough:
            return False
        except ModelError:
            pass
    return True


class Inputs:
    """A collection's topics, and the first documents of each."""

    def __init__(self, open: Callable[..., Site]) -> None:
        self.open = open
        site = open(engine="bm25")
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
            "choose_sentence": self._choices,
            "utility_filter": partial(self._verdicts, "utility_filter", 1),
            "fairness_filter": partial(self._verdicts, "fairness_filter", 1),
            "attribute": partial(self._verdicts, "attribute", 1),
            "group_passages": partial(self._searches, controller(evidence="passage")),
            "group_keywords": partial(self._searches, controller(evidence="llm")),
            "rewrite_counterfactual": self._rewrites,
            "refine_query_grounded": partial(self._searches, {**fair_qr, "refine": "grounded"}),
            "refine_query": partial(self._searches, {**fair_qr, "refine": "llm"}),
            "judge_relevance": partial(self._verdicts, "judge_relevance", 5),
            "diagnose_bias": self._diagnoses,
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
        for start in (0, 10):
            for topic in self.topics:
                firsts = [Document(one.id, sentences(one.text)[0]) for one in self.found[topic.id]]
                yield partial(diagnose, model, self.prompts, firsts[start : start + 10], kinds)

    def _choices(self, model: Recorder) -> Iterator[Callable[[], object]]:
        scorer = ChoiceScorer(model, self.prompts)
        for topic in self.topics:
            texts = [sentences(one.text)[0] for one in self.found[topic.id]]
            for place in range(0, len(texts) - 4, 5):
                first, second, third, fourth, fifth = texts[place : place + 5]
                id = f"{topic.id}-{place}"
                yield partial(scorer.score, Pair(id, "made", first, second, True))
                yield partial(
                    scorer.score, StereoSetExample(id, "intersentence", "made", "", topic.query, third, fourth, fifth)
                )


if __name__ == "__main__":
    main()
