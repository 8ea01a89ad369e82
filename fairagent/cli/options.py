"""Options that several commands share, and the settings that they add up to.

Where the commands print: results to standard output, progress and complaints to standard error.

What a command is doing, as one line on a terminal's standard error that is gone when it is done.
"""

from __future__ import annotations

import inspect
import logging
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from fairagent.errors import UsageError
from fairagent.report import text as consoles
from fairagent.settings import Settings, load_settings, merge, nested, parse_yaml
from fairagent.settings.parts import SLOTS, described
from fairagent.storage.log_lines import log_as_json
from fairagent.storage.threads import listening
from fairagent.types.clean import in_one_line, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from fairagent.cli.telling import Asking
    from fairagent.collection import Collection
    from fairagent.retrieve.site import Site
    from fairagent.types import Query


DEFAULT_SETTINGS = Path("fairagent.yaml")
NARROWEST = 40
"""Characters of a line that tables are set for where a terminal has fewer."""
LOGGERS = ("fairagent", "openai")
"""Those that tell of requests to models."""

CollectionFile = Annotated[
    Path | None, typer.Option("--collection", "-c", metavar="FILE", help="The collection's settings file.")
]
IndexFolder = Annotated[
    Path | None, typer.Option("--index", metavar="DIR", help="The index's folder. (default: indexes/NAME)")
]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help=f"A settings file. (default: {DEFAULT_SETTINGS}, if it is there)"),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, e.g. rerank.kind=fused; may be repeated."),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="KIND",
        help="What each group should get: uniform, corpus, estimated ..., or shares, '{gender: {a: 0.5, b: 0.5}}'. "
        "(default: the collection's)",
    ),
]
LogPrompts = Annotated[
    bool, typer.Option("--log-prompts", help="Log to standard error, including the prompts sent (never the key).")
]
TranscriptFile = Annotated[
    Path | None,
    typer.Option(
        "--transcript",
        metavar="FILE",
        help="Add every call of a language model to this file: prompt, reply, tokens, attempts (never the key).",
    ),
]
Details = Annotated[
    bool,
    typer.Option("--details", help="Also print intervals, tests, and all other tables (results.txt has them too)."),
]
LogFormat = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="json: log lines on standard error are JSON, one for each request, too."),
]
LogTexts = Annotated[
    bool,
    typer.Option("--log-texts", help="Messages of faults in JSON log lines, too, which may quote queries."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

T = TypeVar("T")


@dataclass(frozen=True)
class SiteOptions:
    """What is opened, under which settings, and what is shown of the calls of models."""

    collection: CollectionFile = None
    index: IndexFolder = None
    settings: SettingsFile = None
    assignments: Assignments = None
    log_prompts: LogPrompts = False
    transcript: TranscriptFile = None

    def chosen(self, **more: Any) -> Settings:
        """The settings, with `more` of the command's own; see `settings_of`. Turns logs on where they are asked for."""
        about = {"collection": self.collection, "index": self.index, "model": logged(self.log_prompts)}
        return settings_of(self.settings, self.assignments, **about, **more)


def spread(command: Callable[..., T]) -> Callable[..., T]:
    """A command each of whose parameters of a class of options takes these options in its place."""
    hints = get_type_hints(command, include_extras=True)
    classes = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command).parameters.values():
        if one.name not in classes:
            parameters.append(one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        inner = get_type_hints(classes[one.name], include_extras=True)
        parameters += [
            inspect.Parameter(of.name, inspect.Parameter.KEYWORD_ONLY, default=of.default, annotation=inner[of.name])
            for of in fields(classes[one.name])
        ]

    @wraps(command)
    def gathered(**given: Any) -> T:
        made = {name: kind(**{of.name: given.pop(of.name) for of in fields(kind)}) for name, kind in classes.items()}
        return command(**given, **made)

    gathered.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    gathered.__annotations__ = {one.name: one.annotation for one in parameters}
    return gathered


def settings_file(given: Path | None) -> Path | None:
    """The settings file to read: the one given, else ./fairagent.yaml where it exists."""
    return given or (DEFAULT_SETTINGS if DEFAULT_SETTINGS.is_file() else None)


def overrides(assignments: Sequence[str] | None, **options: Any) -> dict[str, Any]:
    """What the call sets: each `--set key.sub=value`, over these the options that were given (are not None).

    Values are YAML. Raises UsageError for an assignment that is none.

    >>> overrides(["rerank.kind=fused", "dimensions=[gender]"], n=10, index=None)
    {'rerank': {'kind': 'fused'}, 'dimensions': ['gender'], 'n': 10}
    """
    layers: list[dict[str, Any]] = []
    for assignment in assignments or ():
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {assignment}: expected KEY=VALUE, e.g. --set rerank.kind=fused")
        value = nested(key.strip().split("."), parse_yaml(text, f"--set {key}"), f"--set {key}")
        # A part in its short form, so that more can be set: engine=rm3, engine.terms=20.
        layers += [{name: described(name, part) if name in SLOTS else part} for name, part in value.items()]
    given = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    return merge(*layers, {name: value for name, value in given.items() if value is not None})


def target_of(text: str | None) -> Any:
    """What `--target` sets, a target in its long form; None where it is not given. Raises SettingsError for no YAML.

    >>> target_of("uniform"), target_of("{gender: {female: 0.5, male: 0.5}}")
    ({'kind': 'uniform'}, {'gender': {'female': 0.5, 'male': 0.5}})
    """
    return None if text is None else described("target", parse_yaml(text, "--target"))


def logged_as(log_format: str, texts: bool) -> None:
    """What `--log-format` and `--log-texts` say, from here on."""
    if log_format == "json":
        log_as_json(texts)
    elif texts:
        raise UsageError("--log-texts is for --log-format json; log lines as text have all messages")


def logged(wanted: bool) -> dict[str, bool] | None:
    """What `--log-prompts` sets of `model`, with the logs turned on; None where it is not given."""
    if not wanted:
        return None
    handler = logging.StreamHandler()
    handler.addFilter(in_one_line)
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", handlers=[handler])
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.DEBUG)
    return {"log_prompts": True}


def settings_of(file: Path | None, assignments: Sequence[str] | None, **options: Any) -> Settings:
    """The settings of a call: options over --set over FAIRAGENT_... variables over the file over the defaults.

    Raises SettingsError naming every fault.
    """
    return load_settings(settings_file(file), overrides(assignments, **options))


def console() -> Console:
    """Standard output: colors in a terminal only, block characters where the encoding has them."""
    return consoles.console()


def error_console() -> Console:
    """Standard error."""
    return consoles.console(stderr=True)


def error_line(text: str) -> None:
    """Print one line on standard error."""
    echo(text, err=True)


def echo(text: str, end: str = "\n", err: bool = False) -> None:
    """Print text that is no table of rich's; nothing in it steers the terminal."""
    typer.echo(printable(text) + end, nl=False, err=err)


def terminal_width() -> int:
    """Characters of a line: those of the terminal, of `COLUMNS`, or 80."""
    return max(shutil.get_terminal_size().columns, NARROWEST)


def print_page(text: str) -> None:
    """Print lines of text on standard output, those longer than the terminal broken; alarms ("! ...") are red."""
    out, width = console(), terminal_width()
    for line in text.splitlines():
        for part in textwrap.wrap(
            line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        ) or [""]:
            out.print(part, style="bold red" if line.startswith("! ") else None, soft_wrap=True)


def progress_bar() -> Progress:
    """A bar with counts and times that disappears when it is done; where no terminal is, a line every ten seconds."""
    from rich import progress

    from fairagent.cli.telling import ToldProgress

    terminal = error_console()
    if not terminal.is_terminal:
        return ToldProgress(error_line)
    columns = progress.TextColumn("{task.description}", markup=False), progress.BarColumn()
    times = progress.MofNCompleteColumn(), progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    return progress.Progress(*columns, *times, console=terminal, transient=True)


def announce_calls(askings: Iterable[Asking]) -> None:
    """Print on standard error what a command may ask a model before it does; nothing where it asks none."""
    from fairagent.cli.telling import ahead

    if line := ahead(askings):
        error_console().print(line, soft_wrap=True)


def announce_search(site: Site, query: Query, answers: bool = False) -> None:
    """The same of one search, or answer."""
    from fairagent.cli.telling import of_calls
    from fairagent.search.pipeline import most_calls

    announce_calls(of_calls(most_calls(site.collection, site.settings, [query.text], answers), site.settings.prices))


@contextmanager
def going_on(how: str) -> Iterator[None]:
    """Note `how` to go on for whoever interrupts the block."""
    try:
        yield
    except KeyboardInterrupt as interrupted:
        interrupted.add_note(how)
        raise


def build_progress(bar: Progress, collection: Collection) -> Callable[[str, int], None]:
    """What moves a line of `bar` for each thing that is built from the documents of `collection`."""
    tasks: dict[str, TaskID] = {}

    def progress(what: str, done: int) -> None:
        if what not in tasks:
            # How many passages there will be is not known before.
            total = None if bar.disable or collection.chunks else collection.source.count()
            tasks[what] = bar.add_task(what, total=total)
        bar.update(tasks[what], completed=done)

    return progress


@contextmanager
def status(hidden: bool = False, patience: float = 1.0) -> Iterator[Callable[[], None]]:
    """Show what is being done inside the block, once that takes longer than `patience` (seconds).

    Yields what ends it earlier, to be called before anything is printed inside the block. Where standard error is no
    terminal it is a line every ten seconds. Nothing is shown where it is to be `hidden`: a log is written there.
    """
    if hidden:
        yield lambda: None
        return
    if not sys.stderr.isatty():
        from fairagent.cli.telling import telling

        said = ["starting"]
        with listening(said.append), telling(lambda: [f"{said[-1]} ..."], error_line):
            yield lambda: None
        return
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    def drawn(what: str) -> Spinner:
        return Spinner("dots", Text(f"{what} ...", no_wrap=True, overflow="ellipsis"))

    def say(what: str) -> None:
        # At once: what comes next may keep every other thread waiting, as the start of Java does.
        live.update(drawn(what), refresh=live.is_started)

    def end() -> None:
        timer.cancel()
        timer.join()
        live.stop()

    # Results stay on standard output, wherever that leads.
    live = Live(drawn("starting"), console=error_console(), transient=True, redirect_stdout=False)
    timer = threading.Timer(patience, live.start, [True])
    timer.daemon = True
    timer.start()
    try:
        with listening(say):
            yield end
    finally:
        end()
