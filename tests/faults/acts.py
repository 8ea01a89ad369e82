"""What `watched` runs: a command of fairagent, or something that has none, each by its first argument."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def act() -> None:
    """Do what the arguments of the process say."""
    name = sys.argv[1]
    if name in ACTS:
        from fairagent.errors import FairAgentError

        try:
            ACTS[name](*sys.argv[2:])
        except FairAgentError as error:
            print(f"fairagent: {error}", file=sys.stderr)
            sys.exit(3)
        return
    from fairagent.llm.server import ServerModel

    # Who waits for another attempt does not.
    ServerModel.__init__.__defaults__ = (os.environ, None, None, lambda seconds: None, time.monotonic)
    command()


def command() -> None:
    """`fairagent` with one job after another, so that the n-th point is always the same."""
    from fairagent.cli import main
    from fairagent.evaluate import fingerprint, plan, workers
    from fairagent.settings import plugins

    # What is installed does not change: looking for it takes half of the time.
    plugins.plugins = cache(plugins.plugins)
    fingerprint._version = cache(fingerprint._version)
    plan.kind_class = cache(plan.kind_class)
    known = cache(Distribution.metadata.fget)
    Distribution.metadata = property(lambda self: known(self))
    workers.threads = one_thread
    main()


@contextmanager
def one_thread(count: int) -> Iterator[Any]:
    """Workers of one thread that have one job at a time."""
    from fairagent.evaluate.workers import Workers

    with ThreadPoolExecutor(1) as pool:
        yield Workers(pool, 1, here=True)


def save(id: str, text: str) -> None:
    """What the studio does when a template is saved."""
    from fairagent.settings import Settings
    from fairagent.studio.calls import SaveRequest
    from fairagent.studio.prompts import PromptDesk

    desk: Any = SimpleNamespace(settings=Settings())
    prompts = PromptDesk(desk, Path("my-prompts"))
    was = prompts.template(id)["own"]["sha256"]
    prompts.save(SaveRequest(id=id, template=text, was=was))


ACTS = {"save": save}
