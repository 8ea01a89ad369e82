"""`fairagent labels`: what each item is worth to a generator, before rankings of them are measured."""

import os
from typing import Annotated

import typer

from fairagent.cli.evaluate import WORKERS, ExperimentFile, account
from fairagent.cli.options import LogPrompts, console, echo, error_console, logged
from fairagent.errors import UsageError


def labels(
    file: ExperimentFile,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Concurrent calls.")] = WORKERS,
    log_prompts: LogPrompts = False,
) -> None:
    """Make the utility labels of a Fair RAG experiment on LaMP: one call an item, and one a question.

    An item is useful to a generator if it answers better with it than without any. `fairagent estimate` says before
    what is still to be asked. Whatever ends the work, repeat the command: no label is paid for twice.
    """
    from fairagent.cli.evaluate import LOG_PROMPTS
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.workers import threads
    from fairagent.llm.models import Models
    from fairagent.papers.fair_rag.kind import LampKind

    chosen = {LOG_PROMPTS: "true"} if logged(log_prompts) else {}
    checked = check_experiment(file, environ={**os.environ, **chosen}, labeled=False)
    plan, kind = checked.plan, checked.plan.experiment
    if not isinstance(kind, LampKind):
        raise UsageError(f"{file}: is of kind {kind.kind!r}; only `kind: lamp` has items to label")
    models = Models(plan.cache, plan.budget, plan.prices)
    try:
        with threads(workers) as opened:
            for one in kind.generators(plan.systems, checked.subject).values():
                model = models.open(one.system.settings.model)
                made = one.labeling.make(one.path, model, opened)
                echo(f"{one.path}: {len(made.kept):,} of {len(made.gains):,} questions count")
                for note in made.notes:
                    console().print(note, soft_wrap=True)
    finally:
        if paid := account(models.usage):
            error_console().print(paid, soft_wrap=True)
        models.close()
