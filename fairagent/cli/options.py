"""Options that commands share, the settings that they add up to, and where commands print.

Results go to standard output, progress and complaints to standard error: on a terminal a line that is gone when the
work is done, elsewhere a line every ten seconds.
"""

from __future__ import annotations

import inspect
import logging
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from fairagent.errors import UsageError
from fairagent.report.text import console as console
from fairagent.settings import SearchOptions, Settings, load_settings, merge, parse_yaml
from fairagent.settings.parts import described
from fairagent.settings.tree import long_form
from fairagent.storage.telemetry import log_as_json
from fairagent.storage.threads import listening
from fairagent.types.clean import in_line, in_one_line, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from fairagent.collection import Collection
    from fairagent.llm.prompts import Calls
    from fairagent.settings import Price

T = TypeVar("T")
DEFAULT_SETTINGS = Path("fairagent.yaml")
PARTIAL = 7
"""The exit code of what was done in part: topics failed, an answer was cut off, passages were left out."""
EVERY = 10.0
"""Seconds between two lines about the progress of work, where no terminal is."""


def option(name: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """An option of a command; `name` may hold several, parted by spaces."""
    return typer.Option(*name.split(), metavar=metavar, help=help, **more)


Target = Annotated[
    str | None,
    option(
        "--target",
        "What each group should get: uniform, corpus, estimated ..., or shares, '{gender: {a: 0.5, b: 0.5}}'. "
        "(default: the collection's)",
        "KIND",
    ),
]
Dimensions = Annotated[
    list[str] | None, option("--dimension", "A dimension to be fair in; may be repeated. (default: all)", "NAME")
]
LogPrompts = Annotated[
    bool, option("--log-prompts", "Log to standard error, including the prompts sent (never the key).")
]
ModelName = Annotated[
    str | None,
    option(
        "--model",
        "A language model by its name at the server (OPENAI_BASE_URL, or OpenAI): it names words of groups that lack "
        "exposure, and filters and writes answers. (default: model.name, else none is asked)",
        "NAME",
    ),
]
Details = Annotated[
    bool, option("--details", "Also print intervals, tests, and all other tables (results.txt has them too).")
]
LogFormat = Annotated[
    Literal["text", "json"],
    option("--log-format", "json: log lines on standard error are JSON, one for each request, too."),
]
LogTexts = Annotated[bool, option("--log-texts", "Messages of faults in JSON log lines, too, which may quote queries.")]
AsJson = Annotated[bool, option("--json", "Print one JSON object instead of text.")]


@dataclass(frozen=True)
class SettingsOptions:
    """Where settings come from."""

    settings: Annotated[
        Path | None, option("--settings", f"A settings file. (default: {DEFAULT_SETTINGS}, if it is there)", "FILE")
    ] = None
    assignments: Annotated[
        list[str] | None, option("--set", "A setting, e.g. rerank.kind=fused; may be repeated.", "KEY=VALUE")
    ] = None

    def chosen(self, **more: Any) -> Settings:
        """The settings of a call, with `more` of the command's own; SettingsError names every fault.

        Logs are turned on where `--log-prompts` asks for them.
        """
        own = {name: getattr(self, name) for name in ("collection", "index") if hasattr(self, name)}
        model = {"name": name} if (name := getattr(self, "model", None)) else {}
        if getattr(self, "log_prompts", False):
            model |= logged(True) or {}
        if model:
            own["model"] = model
        return settings_of(self.settings, self.assignments, **own, **more)


@dataclass(frozen=True)
class CollectionOptions(SettingsOptions):
    """Which collection and index, under which settings."""

    collection: Annotated[Path | None, option("--collection -c", "The collection's settings file.", "FILE")] = None
    index: Annotated[Path | None, option("--index", "The index's folder. (default: indexes/NAME)", "DIR")] = None


@dataclass(frozen=True)
class SiteOptions(CollectionOptions):
    """The same, which language model, and what is shown of its calls."""

    model: ModelName = None
    log_prompts: LogPrompts = False
    transcript: Annotated[
        Path | None,
        option(
            "--transcript",
            "Add every call of a language model to this file: prompt, reply, tokens, attempts (never the key).",
            "FILE",
        ),
    ] = None


MEANING = {name: str(field.description) for name, field in SearchOptions.model_fields.items()}


@dataclass(frozen=True)
class ListOptions:
    """What one search asks for: one option for each field of `SearchOptions`."""

    n: Annotated[int | None, option("--n", f"{MEANING['n']} (default: 20)", "N")] = None
    fairness: Annotated[float | None, option("--fairness", MEANING["fairness"], "PRICE")] = None
    keep: Annotated[float | None, option("--keep", MEANING["keep"], "SHARE")] = None
    gap: Annotated[float | None, option("--gap", MEANING["gap"], "GAP")] = None
    unknown: Annotated[str | None, option("--unknown", MEANING["unknown"], "SHARE")] = None
    shares: Annotated[
        str | None, option("--shares", f"{MEANING['shares']} E.g. '{{gender: {{a: 0.5, b: 0.5}}}}'.", "YAML")
    ] = None
    where: Annotated[list[str] | None, option("--where", f"May be repeated: {MEANING['where']}", "COLUMN=VALUE")] = None

    @property
    def requested(self) -> SearchOptions:
        """The options of a call; SettingsError for what cannot be, UsageError for a --where that is no COLUMN=VALUE.

        >>> ListOptions(n=5, unknown="0.1", where=["city=Oslo", "city=Rome"]).requested.given
        {'n': 5, 'unknown': 0.1, 'where': {'city': ('Oslo', 'Rome')}}
        """
        where: dict[str, list[str]] = {}
        for one in self.where or ():
            column, equals, value = one.partition("=")
            if not equals or not column.strip():
                raise UsageError(f"--where {one}: expected COLUMN=VALUE, e.g. --where city=Oslo")
            where.setdefault(column.strip(), []).append(value)
        values = {name: getattr(self, name) for name in ("n", "fairness", "keep", "gap")}
        for name in ("unknown", "shares"):
            text = getattr(self, name)
            values[name] = None if text is None else parse_yaml(text, f"--{name}")
        return SearchOptions.of({**values, "where": where or None})


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
        for of in fields(classes[one.name]):
            kind, hint = inspect.Parameter.KEYWORD_ONLY, inner[of.name]
            parameters.append(inspect.Parameter(of.name, kind, default=of.default, annotation=hint))

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
        layers.append(long_form(key.strip().split("."), text, f"--set {key}"))
    given = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    return merge(*layers, {name: value for name, value in given.items() if value is not None})


def settings_of(file: Path | None, assignments: Sequence[str] | None, **options: Any) -> Settings:
    """The settings of a call: options over --set over FAIRAGENT_... variables over the file over the defaults.

    Raises SettingsError naming every fault.
    """
    return load_settings(settings_file(file), overrides(assignments, **options))


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
    for name in ("fairagent", "openai"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    return {"log_prompts": True}


# --- where commands print -------------------------------------------------------------------------------------------


def error_console() -> Console:
    """As `console`, on standard error."""
    return console(stderr=True)


def echo(text: str, end: str = "\n", err: bool = False) -> None:
    """Print text that is no table of rich's; nothing in it steers the terminal."""
    typer.echo(printable(text) + end, nl=False, err=err)


def print_json(record: Any) -> None:
    """Print a record as one JSON object, or an array."""
    from fairagent.report.record import to_json

    echo(to_json(record))


def terminal_width() -> int:
    """Characters of a line: those of the terminal, of `COLUMNS`, or 80; 40 at least."""
    return max(shutil.get_terminal_size().columns, 40)


def print_page(text: str) -> None:
    """Print lines of text on standard output, those longer than the terminal broken; alarms ("! ...") are red."""
    out, about = console(), {"break_long_words": False, "break_on_hyphens": False}
    for line in text.splitlines():
        for part in textwrap.wrap(line, terminal_width(), subsequent_indent="    ", **about) or [""]:  # type: ignore[arg-type]
            out.print(part, style="bold red" if line.startswith("! ") else None, soft_wrap=True)


def report_lines(lines: Callable[[], Iterable[str]], wait: Callable[[float], bool]) -> None:
    """Print `lines` on standard error, with the time gone by, every ten seconds until `wait` returns True."""
    seconds = 0.0
    while not wait(EVERY):
        seconds += EVERY
        for line in lines():
            echo(f"{in_line(line)} ({timedelta(seconds=round(seconds))})", err=True)


@contextmanager
def _reporting(lines: Callable[[], Iterable[str]]) -> Iterator[None]:
    """The same beside the work inside the block, in a thread."""
    ended = threading.Event()
    thread = threading.Thread(target=report_lines, args=(lines, ended.wait), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def undone(bar: Progress) -> Iterator[str]:
    """How far each thing is that is not done: `evaluating first: 12 of 160`."""
    for task in bar.tasks:
        if task.total is None or task.completed < task.total:
            of = "" if task.total is None else f" of {task.total:,.0f}"
            yield f"{task.description}: {task.completed:,.0f}{of}"


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar with counts and times that disappears when it is done; where no terminal is, a line every ten seconds."""
    from rich import progress

    terminal = error_console()
    if not terminal.is_terminal:
        bar = progress.Progress(console=terminal, disable=True)
        with _reporting(lambda: undone(bar)):
            yield bar
        return
    columns = progress.TextColumn("{task.description}", markup=False), progress.BarColumn()
    times = progress.MofNCompleteColumn(), progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    with progress.Progress(*columns, *times, console=terminal, transient=True) as bar:
        yield bar


@contextmanager
def status(hidden: bool = False) -> Iterator[Callable[[], None]]:
    """Show what is being done inside the block.

    Yields what ends it earlier, to be called before anything is printed inside the block. Where standard error is no
    terminal it is a line every ten seconds. Nothing is shown where it is to be `hidden`: a log is written there.
    """
    if hidden:
        yield lambda: None
    elif not sys.stderr.isatty():
        current = ["starting"]
        with listening(current.append), _reporting(lambda: [f"{current[-1]} ..."]):
            yield lambda: None
    else:
        from rich.text import Text

        shown = error_console().status("starting ...")
        with shown, listening(lambda what: shown.update(Text(f"{what} ..."))):
            yield shown.stop


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
def going_on(how: str) -> Iterator[None]:
    """Note `how` to go on for whoever interrupts the block."""
    try:
        yield
    except KeyboardInterrupt as interrupted:
        interrupted.add_note(how)
        raise


Requests = tuple[str, int, int, float | None]
"""A model, how often it is called at most, the tokens and the dollars of that; None where its price is not known."""


def requests_of(calls: Iterable[Calls], prices: Mapping[str, Price]) -> Iterator[Requests]:
    """Those of one search or answer."""
    for one in calls:
        price = prices.get(one.model.name)
        dollars = price.dollars(one.input_tokens, one.output_tokens) if price else None
        yield one.model.name, one.calls, one.input_tokens + one.output_tokens, dollars


def announce_calls(requests: Iterable[Requests], corrected: bool = False) -> None:
    """Print on standard error what a command may ask a model before it does; nothing where it asks none.

    One reply may be `corrected`, by a call that is no longer than the longest.
    """
    by_model: dict[str, list[Requests]] = {}
    for one in requests:
        if one[1]:
            by_model.setdefault(one[0], []).append(one)
    parts = []
    for model, some in by_model.items():
        calls = sum(one[1] for one in some)
        some += [max((name, 1, used // n, cost and cost / n) for name, n, used, cost in some)] * corrected
        known = [one[3] for one in some if one[3] is not None]
        tokens, cost = f"{sum(one[2] for one in some):,} tokens", f"${sum(known):.4f}"
        most = f"{tokens} and {cost} at most" if len(known) == len(some) else f"{tokens} at most, price unknown"
        often = "once" if calls == 1 else f"{calls:,} times"
        often += f", {calls + 1} with a correction" * corrected
        parts.append(f"{in_line(model) or 'a model'} {often} ({most})")
    if parts:
        error_console().print(f"may ask {' and '.join(parts)}", soft_wrap=True)
