"""`fairagent labels`: what each item is worth to a generator, before rankings of them are measured."""

from typing import Annotated

import typer

from fairagent.cli.evaluate import WORKERS, ExperimentFile, accounted, environment, print_account
from fairagent.cli.options import LogPrompts, announce_calls, console, echo
from fairagent.errors import UsageError


def labels(
    file: ExperimentFile,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Concurrent calls.")] = WORKERS,
    log_prompts: LogPrompts = False,
) -> None:
    """Make the utility labels of a Fair RAG experiment on LaMP: one call an item, and one a question.

    An item is useful to a generator if it answers better with it than without any. `fairagent estimate` says before
    what is still to be paid. Whatever ends the work, repeat the command: no label is paid for twice.
    """
    from fairagent.cli.telling import of_calls
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.workers import threads
    from fairagent.papers.fair_rag.kind import LampKind

    checked = check_experiment(file, environ=environment(log_prompts), labeled=False)
    kind = checked.plan.experiment
    if not isinstance(kind, LampKind):
        raise UsageError(f"{file}: is of kind {kind.kind!r}; only `kind: lamp` has items to label")
    announce_calls(of_calls([one for _, one in kind.calls_before(checked.plan, checked.subject)], checked.plan.prices))
    with accounted(checked.plan) as models:
        with threads(workers) as opened:
            for one in kind.generators(checked.plan.systems, checked.subject).values():
                made = one.labeling.make(one.path, models.open(one.system.settings.model), opened)
                echo(f"{one.path}: {len(made.counted):,} of {len(made.gains):,} questions count")
                for note in made.notes:
                    console().print(note, soft_wrap=True)
        print_account(models.usage, error=True)
