"""The program `fairagent`: its commands, exit codes, and the handling of errors and Ctrl-C."""

import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer
from pydantic import ValidationError
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from fairagent.cli.options import echo, error_console
from fairagent.errors import BackendUnavailable, FairAgentError, UsageError
from fairagent.settings.faults import no_such, worded
from fairagent.storage.signals import BY_SIGNAL, SIGNALS, silenced
from fairagent.storage.telemetry import logs_as_json
from fairagent.types.clean import in_line, logger, printable

COMMANDS = {
    "demo": "demo",
    "init": "init",
    "index": "index",
    "label": "label",
    "search": "search",
    "answer": "search",
    "serve": "serve",
    "mcp": "serve",
    "evaluate": "evaluate",
    "evaluate-run": "evaluate_run",
    "labels": "papers",
    "estimate": "evaluate",
    "report": "evaluate",
    "audit": "evaluate_run",
    "doctor": "doctor",
    "config": "config",
    "avoid": "papers",
    "prompts": "prompts",
    "cache": "models",
    "fairft": "papers",
    "model": "models",
}
"""Name -> the module of the function, or of the group of commands, of this name."""
T = TypeVar("T")


class Commands(TyperGroup):
    """The group of commands, each of which is imported when it is used or listed.

    An error of fairagent becomes its message and exit code; any other is a fault of ours and keeps its traceback.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        """Read the arguments, or show the help; what is wrong with them is quoted printably."""
        return _explained(lambda: super(Commands, self).make_context(*arguments, **more))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that `ctx` (typer's context) names."""
        return _explained(lambda: super(Commands, self).invoke(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        _expect_there(ctx, cmd_name, COMMANDS)
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def get_params(self, ctx: Any) -> Any:
        """The options; those that set up completion, which is done once, are not in the help."""
        params: list[Any] = super().get_params(ctx)
        for one in params:
            one.hidden = one.hidden or one.name in ("install_completion", "show_completion")
        return params


class Subcommands(TyperGroup):
    """The commands of a group such as `prompts`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        _expect_there(ctx, cmd_name, self.commands)
        return super().get_command(ctx, cmd_name)


def _expect_there(ctx: Any, name: str, known: Collection[str]) -> None:
    """Raise UsageError for a command that there is not; a shell that completes one asks for parts."""
    if name not in known and not ctx.resilient_parsing and not name.startswith("-"):
        raise UsageError(no_such("command", name, known))


_WrongUsage: Any = typer.BadParameter.__bases__[0]
"""What is wrong with arguments, in the words of the click that typer brings."""


def _explained(act: Callable[[], T]) -> T:
    """What `act` returns; what it raises is said in a sentence, and ends the program with its exit code."""
    try:
        try:
            SIGNALS.heed()
            return act()
        finally:
            # A signal that comes while an error is printed changes nothing.
            SIGNALS.note()
    except _WrongUsage as error:
        message = str(error.message)
        if getattr(error, "possibilities", None) is not None and error.option_name:
            known = [name for one in error.ctx.command.params if not one.hidden for name in one.opts]
            error.possibilities = None
            message = no_such("option", error.option_name, [name for name in known if name[:2] == "--"])
        elif isinstance(error.__cause__, ValidationError):
            message = worded(*error.__cause__.errors(include_url=False))
        error.message = printable(message)
        raise
    except FairAgentError as error:
        _complain(str(error))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt as ended:
        number = getattr(ended, "signal", signal.SIGINT)
        how = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
        _complain("; ".join((how, *getattr(ended, "__notes__", ()))))
        raise typer.Exit(BY_SIGNAL + number) from None
    except OSError as error:
        # Names that no file can have, or that lead where we may not look.
        if error.errno in (errno.ENAMETOOLONG, errno.EACCES) and error.filename:
            _complain(f"{in_line(str(error.filename)[:200])} cannot be used ({error.strerror})")
            raise typer.Exit(UsageError.exit_code) from None
        if (code := _unwritten(error)) is None:
            raise
        raise typer.Exit(code) from None


UNWRITABLE = (errno.EPIPE, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of an output that cannot be written; errors of files that we write have their own sentences."""


def _unwritten(error: OSError) -> int | None:
    """The exit code where `error` is of the program's own output, which goes nowhere from now on; else None."""
    if error.filename is not None or error.errno not in UNWRITABLE:
        return None
    # A write may meet a terminal that is gone a moment before its signal, SIGHUP, comes.
    if error.errno == errno.EIO and silenced():
        return BY_SIGNAL + signal.SIGHUP
    # What is left in a buffer would be an error once more when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno == errno.EPIPE:
        return BY_SIGNAL + signal.SIGPIPE
    _complain(f"the output cannot be written ({error.strerror})")
    return BackendUnavailable.exit_code


class _Lossy(io.FileIO):
    """Standard error, where a message that cannot be written is lost, and ends nothing."""

    def write(self, text: Any) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)


def _open_streams() -> None:
    """Standard output and error that can be written to, also where they are closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets this number, so that no file of ours does
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A title that the terminal's encoding lacks must not end a search.
        sys.stdout.reconfigure(errors="replace")
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    lossy = io.BufferedWriter(_Lossy(2, "wb", closefd=False))
    encoding = getattr(sys.stderr, "encoding", "utf-8")
    sys.stderr = io.TextIOWrapper(lossy, encoding, "replace", line_buffering=True)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(name: str) -> Callable[..., Any] | typer.Typer:
    """The function of the command `name`, or the group of commands."""
    module = import_module(f"fairagent.cli.{COMMANDS[name]}")
    function: Callable[..., Any] | typer.Typer = getattr(module, name.replace("-", "_"))
    return function


@cache
def _command(name: str) -> Any:
    """What typer makes of it."""
    function = command(name)
    plain: dict[str, Any] = {"pretty_exceptions_short": False, "rich_markup_mode": None}
    if isinstance(function, typer.Typer):
        return get_group_from_info(TyperInfo(function, name=name, cls=Subcommands), suggest_commands=True, **plain)
    return get_command_from_info(CommandInfo(name=name, callback=function), **plain)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            echo(f"fairagent {version('fairagent')}")
        except PackageNotFoundError:
            echo("fairagent (not installed)")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Rankings that are relevant and show groups their fair share: of people, places, sources, or others."""


def main() -> None:
    """Run the program and end the process.

    Exit codes: 0 done, 2 usage, 3 missing prerequisite, 4 bad data, 5 model or provider, 6 budget, 7 done but for some
    topics, 8 done and a threshold missed; 128 and the number of the signal that ended it: 130 Ctrl-C, 143 SIGTERM,
    129 SIGHUP, 141 nobody reads its output any more (`| head`). Output to a full disk is 3.
    """
    SIGNALS.watch()
    _open_streams()
    try:
        try:
            app(prog_name="fairagent")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if (code := _unwritten(error)) is None:
            raise
        sys.exit(code)
    finally:
        SIGNALS.leave()
        # Python would look through everything once more for garbage, which takes most of a second after a server.
        gc.freeze()


def _complain(message: str) -> None:
    if logs_as_json():
        logger(__name__).error("%s", message)
        return
    error_console().print("fairagent:", style="bold red", end=" ")
    error_console().print(message, soft_wrap=True)
