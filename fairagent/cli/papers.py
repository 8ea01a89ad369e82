"""Commands of the papers: `fairagent fairft`, `labels` (of Fair RAG) and `avoid` (of DebiasRAG)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fairagent.cli import evaluate as experiments
from fairagent.cli import options
from fairagent.cli.options import AsJson, console, echo, error_console, option, print_json
from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.papers.fairft.run import Trained
    from fairagent.papers.fairft.train import CheckedTraining, TrainingEffect

fairft = typer.Typer(help="Fine-tune a retriever against a model's likelihood of the fair answer.")
avoid = typer.Typer(no_args_is_help=True, help="Make an avoid library: the biased passages of DebiasRAG.")

FairFTSettings = Annotated[Path, typer.Argument(metavar="FILE", help="The settings file (YAML).", show_default=False)]
Seed = Annotated[int | None, option("--seed", "Overrides the file's seed.", "N", min=0)]


@fairft.command("train")
def train(
    file: FairFTSettings,
    run: experiments.RunFolder = None,
    seed: Seed = None,
    new: Annotated[bool, option("--new", "Start over: delete the training in the folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train the retriever that a settings file names.

    Whatever ends it, Ctrl-C or even kill -9: repeat the command, and it goes on from its last checkpoint to the same
    model; replies of the language model are cached. The trained retriever is the folder `model` of the run: name it
    as `encoder:` wherever a part takes an embedding model, as `engine: {kind: dense, encoder: DIR}` does.
    """
    from fairagent.papers.fairft.run import check, run_folder

    checked = check(file, seed)
    trained = _trained(checked, run or run_folder(checked.file), new)
    history = trained.history
    if as_json:
        record = {"model": str(trained.model), "measured": list(history.measured), "best": history.best}
        print_json({**record, "change": asdict(trained.change)})
        return
    lines = [f"held-out KL before each refresh: {' '.join(f'{kl:.4f}' for kl in history.measured)}"]
    if not history.best:
        lines.append("note: no refresh was better than the beginning; the model is the untrained one")
    lines += [_change_text(trained.change), f"model: {trained.model}"]
    console().print("\n".join(lines), soft_wrap=True)


@fairft.command("evaluate")
def evaluate(
    file: FairFTSettings,
    model: Annotated[
        Path | None, option("--model", "The trained retriever. (default: `model` in the run's folder)", "DIR")
    ] = None,
    run: experiments.RunFolder = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Compare a trained retriever with the one that the settings file names, on the held-out questions.

    The signals are those of the file's language model: with another model than the one it was trained with, this
    measures the transfer.
    """
    from fairagent.papers.fairft.run import MODEL, check, run_evaluation, run_folder

    checked = check(file, seed)
    folder = run or run_folder(checked.file)
    change = run_evaluation(checked, model or folder / MODEL, folder)
    if as_json:
        print_json(asdict(change))
    else:
        console().print(_change_text(change), soft_wrap=True)


@fairft.command("run")
def run_chain(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Experiment files of answers, with `trainings:`.", show_default=False),
    ],
    limit_topics: experiments.LimitTopics = None,
    to: experiments.JoinedTo = None,
    as_json: AsJson = False,
) -> None:
    """From training to the table: train, index, let the systems answer, and join the results.

    Each file is an experiment of answers (agreement, accuracy); its `trainings:` are trained unless they are finished.
    Before that everything is checked, with the retrievers as they are before training. Then the trained retrievers'
    indexes are built, the systems answer, and the runs become one table (`fairagent report --join`). Whatever ends it,
    Ctrl-C or even kill -9: repeat the command, and it goes on where it was.
    """
    from fairagent.evaluate.check import check_experiment
    from fairagent.papers.fairft.run import is_finished, read_chain, run_folder

    environ = experiments.environment(False)
    finished = {}
    trainings, untrained = read_chain(files)
    for file, values in untrained.items():
        check_experiment(file, limit_topics, environ, values=values)
    for training in trainings:
        if not is_finished(training, folder := run_folder(training.file)):
            trained = _trained(training, folder)
            error_console().print(f"{training.file.name}: {_change_text(trained.change)}", soft_wrap=True)
    for file in files:
        experiment = check_experiment(file, limit_topics, environ)
        folder = experiments.run_folder(experiment.plan)
        finished[folder], usage = experiments.carried_out(experiment, folder)
        if not as_json:
            experiments.show(finished[folder], folder, False, usage)
    folders = list(finished)
    if len(folders) > 1:
        experiments.print_joined(folders, to or folders[0], as_json)
    experiments.expect_whole(*finished.values())


def _trained(checked: CheckedTraining, folder: Path, new: bool = False) -> Trained:
    """The finished training, with a bar that shows how far it is."""
    from fairagent.papers.fairft.run import run_training

    with options.progress_bar() as bar:
        task = bar.add_task(f"training {checked.file.name}", total=None)

        def progress(done: int, total: int, best: float) -> None:
            bar.update(task, completed=done, total=total, description=f"held-out KL {best:.4f}")

        return run_training(checked, folder, progress, new)


def _change_text(change: TrainingEffect) -> str:
    """What changed, in a few lines."""
    names = (
        "KL, same documents",
        "KL, its own first documents",
        "P(fair answer), one drawn",
        "ln P(fair answer), first 3",
    )
    values = [(of.kl, of.kl_own, of.expected, of.likelihood) for of in (change.before, change.after)]
    lines = [f"{change.questions} held-out questions, {change.documents} documents each"]
    lines += [f"{'':29}{'before':>10}{'after':>10}"]
    lines += [f"{name:29}{before:10.4f}{after:10.4f}" for name, before, after in zip(names, *values, strict=True)]
    overlap = f"{change.overlap:.0%}, first 3: {change.overlap_first:.0%}"
    return "\n".join([*lines, f"overlap of the first {change.documents}: {overlap}"])


def labels(
    file: experiments.ExperimentFile,
    workers: Annotated[int, option("--workers", "Concurrent calls.", "N", min=1)] = experiments.WORKERS,
    log_prompts: options.LogPrompts = False,
) -> None:
    """Make the utility labels of a Fair RAG experiment on LaMP: one call an item, and one a question.

    An item is useful to a generator if it answers better with it than without any. `fairagent estimate` says before
    what is still to be paid. Whatever ends the work, repeat the command: no label is paid for twice.
    """
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.workers import threads
    from fairagent.papers.fair_rag.kind import LampKind

    checked = check_experiment(file, environ=experiments.environment(log_prompts), labeled=False)
    plan, kind = checked.plan, checked.plan.experiment
    if not isinstance(kind, LampKind):
        raise UsageError(f"{file}: is of kind {kind.kind!r}; only `kind: lamp` has items to label")
    calls = [one for _, one in kind.calls_before(plan, checked.subject)]
    options.announce_calls(options.requests_of(calls, plan.prices))
    with experiments.accounted(plan) as models:
        with threads(workers) as opened:
            for one in kind.generators(plan.systems, checked.subject).values():
                made = one.make(models.open(one.model), opened)
                echo(f"{one.path}: {len(made.counted):,} of {len(made.gains):,} questions count")
                for note in made.notes:
                    console().print(note, soft_wrap=True)
        experiments.print_account(models.usage, error=True)


@avoid.callback()
def _group() -> None:
    """Without it typer would take the one command for the group."""


@avoid.command("diagnose")
@options.spread
def diagnose(
    data: Annotated[Path, option("--data", "Passages (JSON lines with id and text).", "FILE", show_default=False)],
    out: Annotated[Path, option("--out", "The library (JSON lines).", "FILE", show_default=False)],
    classes: Annotated[
        list[str] | None, option("--class", "A bias class; may be repeated. (default: the lexicon's)", "NAME")
    ] = None,
    batch: Annotated[int, option("--batch", "Passages per call.", "N", min=1)] = 10,
    on_error: Annotated[
        Literal["drop", "fail"],
        option("--on-error", "Passages without a usable reply: left out, exit code 7; or end the work."),
    ] = "drop",
    *,
    under: options.SettingsOptions,
    log_prompts: options.LogPrompts = False,
) -> None:
    """Let the settings' model say which of your passages are biased, and against whom; those are the library.

    Replies are cached: whatever ends the work, repeat the command, and nothing is paid for twice.
    """
    from fairagent.llm.models import Models
    from fairagent.llm.prompts import Prompts
    from fairagent.papers.debias_rag.avoid import diagnose as diagnosed
    from fairagent.papers.debias_rag.avoid import load_lexicon, read_avoid, write_avoid
    from fairagent.types import Document

    chosen = under.chosen(model=options.logged(log_prompts))
    passages = [Document(one.id, one.text) for one in read_avoid(data)]
    kinds = classes or list(load_lexicon(getattr(chosen.debias, "lexicon", "")).order)
    models = Models.of(chosen)
    try:
        diagnosis = diagnosed(models.open(chosen.model), Prompts(chosen.prompts), passages, kinds, batch, on_error)
    finally:
        models.close()
    for id, why in diagnosis.failed:
        echo(f"{id}: not diagnosed: {why}", err=True)
    if not diagnosis.passages:
        raise UsageError(f"the model calls none of {diagnosis.seen} passages biased, so there is no library to write")
    write_avoid(out, diagnosis.passages)
    echo(f"{out}: {len(diagnosis.passages):,} of {diagnosis.seen:,} passages, in {diagnosis.usage.calls:,} calls")
    if diagnosis.failed:
        echo(f"{len(diagnosis.failed):,} passages are left out, since the model gave no usable reply", err=True)
        raise typer.Exit(options.PARTIAL)
