"""Every error that fairagent raises on purpose, in one tree.

FairAgentError
 ├── UsageError ............. a call or option makes no sense as given              exit 2
 │    └── SettingsError ..... a settings file, variable or value is wrong           exit 2
 ├── BackendUnavailable ..... Java, an index, a package or a key is missing         exit 3
 ├── DataError .............. documents, topics, qrels, groups or runs are wrong    exit 4
 │    ├── IndexMismatch ..... the index was built from something else               exit 4
 │    ├── PartError ......... a part failed, or gave what is no result of its kind  exit 4
 │    ├── PromptError ....... a prompt template is wrong                            exit 4
 │    └── NotRegular ........ a link, FIFO, device or folder where a file should be exit 4
 ├── ModelError ............. a language model did not give a usable reply          exit 5
 │    ├── TransientModelError  worth another attempt: overload, time-out, network
 │    ├── FatalModelError ... no attempt can help: key, quota, unknown model
 │    └── ReplyError ........ the model answered, but not in the form required
 │         ├── ReplyInvalid . not the JSON that the schema requires
 │         ├── ReplyRefused . the model or its content filter declined
 │         └── ReplyTruncated cut off at the token limit
 └── BudgetExceeded ......... calls, tokens, money or time used up                  exit 6

The first three and DataError are the user's to mend; ModelError is the wire's or the provider's.
A message says what happened, where, and what to do.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fairagent.types.clean import in_line, printable
from fairagent.types.common import Usage


class FairAgentError(Exception):
    """Base of every error that fairagent raises on purpose; as text it is printable, whatever it quotes."""

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(FairAgentError):
    """A call or an option makes no sense as given."""

    exit_code = 2


class SettingsError(UsageError):
    """A settings file, an environment variable or a setting's value is wrong."""


class BackendUnavailable(FairAgentError):
    """Something that has to be installed, built or set is not there."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a file; `line` counts from 1, None means the file as a whole."""

    path: Path
    line: int | None
    message: str

    def __str__(self) -> str:
        where = str(self.path) if self.line is None else f"{self.path}:{self.line}"
        return f"{in_line(where)}: {self.message}"


class DataError(FairAgentError):
    """Documents, topics, qrels, groups, targets or runs are wrong.

    `faults` lists every fault with file and line; the message prints the first `shown` of them, those that say the same
    of several lines of a file once.
    """

    exit_code = 4
    shown = 50

    def __init__(self, message: str, faults: Iterable[Fault] = ()) -> None:
        self.faults = tuple(faults)
        alike: dict[tuple[Path, str], list[Fault]] = {}
        for fault in self.faults:
            alike.setdefault((fault.path, fault.message), []).append(fault)
        lines = [message]
        for first, *others in list(alike.values())[: self.shown]:
            lines.append(f"  {first}" + (f" (and so in {len(others):,} more)" if others else ""))
        if len(alike) > self.shown:
            lines.append(f"  ... and {len(alike) - self.shown:,} more")
        super().__init__("\n".join(lines))


class IndexMismatch(DataError):
    """The index on disk was built from another collection, analyzer or version."""


class PartError(DataError):
    """A part of another package failed, or any part gave what is no result of its kind."""


class PromptError(DataError):
    """A prompt template is wrong."""


class NotRegular(DataError, OSError):
    """A link, a FIFO, a socket, a device or a folder is where a regular file should be.

    It is an OSError as well: whoever passes over files that cannot be read passes over this.
    """


class ModelError(FairAgentError):
    """A language model did not give a usable reply; `usage` is what the calls that led here consumed."""

    exit_code = 5
    usage = Usage()


class TransientModelError(ModelError):
    """Another attempt may succeed: overload, time-out, network; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class FatalModelError(ModelError):
    """No attempt can succeed: no key, no quota, unknown model, not an API at that address."""


class ReplyError(ModelError):
    """The model answered, but not in the form required; `raw` is its (shortened) text."""

    def __init__(self, message: str, *, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw[:2000]


class ReplyInvalid(ReplyError):
    """The reply is not the JSON that the schema requires; `final`: the model has had its chances to mend it.

    `echo`: it only repeats the prompt, and so is requested once more without the prompt's examples.
    """

    final = False
    echo = False


class ReplyRefused(ReplyError):
    """The model, or the provider's content filter, declined."""


class ReplyTruncated(ReplyError):
    """The reply was cut off at the token limit; `text` is all that came of it."""

    def __init__(self, message: str, *, raw: str = "") -> None:
        super().__init__(message, raw=raw)
        self.text = raw


class BudgetExceeded(FairAgentError):
    """Calls, tokens, money or time are used up; `usage` is what the attempts at this answer consumed before."""

    exit_code = 6
    usage = Usage()
