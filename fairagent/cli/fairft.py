"""`fairagent fairft`: train a retriever on a language model's likelihood of the fair answer, and evaluate it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli.evaluate import PARTIAL, LimitTopics, carried_out, environment, has_failures, show
from fairagent.cli.evaluate import run_folder as evaluated_folder
from fairagent.cli.options import AsJson, console, echo, error_console, progress_bar
from fairagent.cli.report import JoinedTo, print_joined

if TYPE_CHECKING:
    from fairagent.papers.fairft.run import CheckedTraining, Trained
    from fairagent.papers.fairft.train import TrainingEffect

fairft = typer.Typer(help="Fine-tune a retriever against a model's likelihood of the fair answer.")

FairFTSettings = Annotated[Path, typer.Argument(metavar="FILE", help="The settings file (YAML).", show_default=False)]
Run = Annotated[Path | None, typer.Option("--run", metavar="DIR", help="The run's folder. (default: runs/NAME)")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Overrides the file's seed.")]


@fairft.command("train")
def train(
    file: FairFTSettings,
    run: Run = None,
    seed: Seed = None,
    new: Annotated[bool, typer.Option("--new", help="Start over: delete the training in the folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train the retriever that a settings file names.

    Whatever ends it, Ctrl-C or even kill -9: repeat the command, and it goes on from its last checkpoint to the same
    model; replies of the language model are cached. The trained retriever is the folder `model` of the run: name it
    as `encoder:` wherever a part takes an embedding model, as `engine: {kind: dense, encoder: DIR}` does.
    """
    from fairagent.papers.fairft.run import check, run_folder
    from fairagent.report.record import to_json

    checked = check(file, seed)
    trained = _trained(checked, run or run_folder(checked.file), new)
    history = trained.history
    if as_json:
        record = {
            "model": str(trained.model),
            "measured": list(history.measured),
            "best": history.best,
            "change": asdict(trained.change),
        }
        echo(to_json(record))
        return
    rounds = " ".join(f"{kl:.4f}" for kl in history.measured)
    console().print(f"held-out KL before each refresh: {rounds}", soft_wrap=True)
    if not history.best:
        console().print("note: no refresh was better than the beginning; the model is the untrained one")
    console().print(change_text(trained.change), soft_wrap=True)
    console().print(f"model: {trained.model}", soft_wrap=True)


@fairft.command("evaluate")
def evaluate(
    file: FairFTSettings,
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="DIR", help="The trained retriever. (default: `model` in the run's folder)"),
    ] = None,
    run: Run = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Compare a trained retriever with the one that the settings file names, on the held-out questions.

    The signals are those of the file's language model: with another model than the one it was trained with, this
    measures the transfer.
    """
    from fairagent.papers.fairft.run import MODEL, check, run_evaluation, run_folder
    from fairagent.report.record import to_json

    checked = check(file, seed)
    folder = run or run_folder(checked.file)
    change = run_evaluation(checked, model or folder / MODEL, folder)
    if as_json:
        echo(to_json(asdict(change)))
        return
    console().print(change_text(change), soft_wrap=True)


@fairft.command("run")
def run_chain(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Experiment files of answers, with `trainings:`.", show_default=False),
    ],
    limit_topics: LimitTopics = None,
    to: JoinedTo = None,
    as_json: AsJson = False,
) -> None:
    """From training to the table: train, index, let the systems answer, and join the results.

    Each file is an experiment of answers (agreement, accuracy); its `trainings:` are trained unless they are finished.
    Before that everything is checked, with the retrievers as they are before training. Then the trained retrievers'
    indexes are built, the systems answer, and the runs become one table (`fairagent report --join`). Whatever ends it,
    Ctrl-C or even kill -9: repeat the command, and it goes on where it was.
    """
    from fairagent.evaluate.check import check_experiment, check_experiment_values
    from fairagent.papers.fairft.run import is_finished, read_chain, run_folder

    environ = environment(False)
    finished = []
    chain = read_chain(files)
    for file, values in chain.untrained.items():
        check_experiment_values(values, file, file.parent, limit_topics, environ)
    for checked in chain.trainings:
        if not is_finished(checked, folder := run_folder(checked.file)):
            trained = _trained(checked, folder)
            error_console().print(f"{checked.file.name}: {change_text(trained.change)}", soft_wrap=True)
    for file in files:
        experiment = check_experiment(file, limit_topics, environ)
        folder = evaluated_folder(experiment.plan)
        run, usage = carried_out(experiment, folder)
        if not as_json:
            show(run, folder, False, usage)
        finished.append((run, folder))
    folders = [folder for _, folder in finished]
    if len(folders) > 1:
        print_joined(folders, to or folders[0], as_json)
    if any(has_failures(run) for run, _ in finished):
        raise typer.Exit(PARTIAL)


def _trained(checked: CheckedTraining, folder: Path, new: bool = False) -> Trained:
    """The finished training, with a bar that shows how far it is."""
    from fairagent.papers.fairft.run import run_training

    with progress_bar() as bar:
        task = bar.add_task(f"training {checked.file.name}", total=None)

        def progress(done: int, all: int, best: float) -> None:
            bar.update(task, completed=done, total=all, description=f"held-out KL {best:.4f}")

        return run_training(checked, folder, progress, new)


def change_text(change: TrainingEffect) -> str:
    """What changed, in a few lines."""
    rows = [
        ("KL, same documents", change.before.kl, change.after.kl),
        ("KL, its own first documents", change.before.kl_own, change.after.kl_own),
        ("P(fair answer), one drawn", change.before.expected, change.after.expected),
        ("ln P(fair answer), first 3", change.before.likelihood, change.after.likelihood),
    ]
    lines = [f"{'':29}{'before':>10}{'after':>10}", *(f"{name:29}{one:10.4f}{two:10.4f}" for name, one, two in rows)]
    return "\n".join(
        [
            f"{change.questions} held-out questions, {change.documents} documents each",
            *lines,
            f"overlap of the first {change.documents}: {change.overlap:.0%}, first 3: {change.overlap_first:.0%}",
        ]
    )
