"""`fairagent answer`: an answer from a fair ranking, its sources, and whom it gives exposure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli.options import (
    AsJson,
    Assignments,
    CollectionFile,
    IndexFolder,
    LogPrompts,
    SettingsFile,
    logged,
    settings_of,
)
from fairagent.cli.search import Dimensions, Length, Topic, asked, check_asked
from fairagent.cli.terminal import console

if TYPE_CHECKING:
    from rich.console import Console

    from fairagent.agent import FairAgent
    from fairagent.types import AnswerResult


def answer(
    query: Annotated[str | None, typer.Argument(help="What to answer.", show_default=False)] = None,
    topic: Topic = None,
    n: Length = None,
    dimension: Dimensions = None,
    beside: Annotated[
        bool, typer.Option("--beside", help="Show the engine's own documents and their answer beside the agent's.")
    ] = False,
    collection: CollectionFile = None,
    index: IndexFolder = None,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    log_prompts: LogPrompts = False,
    as_json: AsJson = False,
) -> None:
    """Search fairly, and answer from what was found.

    Prints the answer with its numbered sources, the exposure of the groups in what was retrieved and in what the answer
    rests on, and how it came about. Without more settings the answer is made of sentences of the documents;
    `--set answering.kind=llm` has the language model write it, `--set filtering.kind=fair` has it judge the documents
    beforehand; `--set debiasing.kind=debias-rag` chooses contexts unlike the biased passages of a library.
    """
    from fairagent.assemble import collection_path, open_agent
    from fairagent.collection import load_collection
    from fairagent.report.beside import beside_table
    from fairagent.report.record import answer_record, to_json

    chosen = settings_of(
        settings,
        assignments,
        collection=collection,
        index=index,
        n=n,
        dimensions=dimension or None,
        model=logged(log_prompts),
    )
    check_asked(query, topic)
    loaded = load_collection(collection_path("", chosen))
    agent, question = open_agent(loaded, settings=chosen), asked(query, topic, loaded)
    out = console()
    if beside:
        plain, fair = plain_agent(agent).answer(question), agent.answer(question)
        if as_json:
            typer.echo(to_json({"collection": loaded.name, "plain": answer_record(plain), "fair": answer_record(fair)}))
        else:
            out.print(beside_table(("the engine alone", plain), ("fairagent", fair)))
        return
    if as_json:
        typer.echo(to_json({"collection": loaded.name, **answer_record(agent.answer(question))}))
        return
    streams = out.is_terminal
    result = agent.answer(question, _write if streams else None)
    print_answer(result, out, written=streams and bool(result.answer.text))


def plain_agent(agent: FairAgent) -> FairAgent:
    """The engine of `agent` without the agent: its ranking of the plain query, answered from as it is."""
    from fairagent.refine.none import NoRefiner
    from fairagent.rerank.relevance import OriginalReranker
    from fairagent.settings import Sampling

    opened = agent.answerer
    assert opened is not None
    settings = agent.settings
    expansion = settings.expansion.model_copy(update={"documents": 0})
    reranking = settings.reranking.model_copy(update={"kind": "original"})
    chosen = {"iterations": 0, "expansion": expansion, "reranking": reranking, "sampling": Sampling()}
    return replace(
        agent,
        refiner=NoRefiner(),
        reranker=OriginalReranker(agent.retriever),
        settings=settings.model_copy(update=chosen),
        answerer=lambda: replace(opened(), filter=None, debiasing=None),
        stochastic=None,
    )


def print_answer(result: AnswerResult, out: Console, written: bool = False) -> None:
    """Print an answer and all that belongs to it; the text itself only where it was not `written` before."""
    from fairagent.report.answer import answer_body, answer_story, resting_table, sources_table

    out.print() if written else out.print(answer_body(result), soft_wrap=False)
    out.print()
    if result.context:
        out.print(sources_table(result))
        if result.attribution:
            out.print(resting_table(result.attribution, result))
            out.print()
    out.print(answer_story(result))


def _write(piece: str) -> None:
    typer.echo(piece, nl=False)
