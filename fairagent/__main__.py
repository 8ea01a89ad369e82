"""`python -m fairagent`: the program `fairagent`, where its script is not on the path."""

import gc
import os
import sys

from fairagent.storage.signals import SIGNALS

SERVING = ("serve", "mcp", "evaluate")
"""The commands whose searches share the cores among themselves: each product of theirs has one thread."""
YOUNG = 200_000
"""Objects that are made before Python looks for garbage among them, while the commands are imported, all to stay."""


def main() -> None:
    """See `fairagent.cli.app.main`; a worker process, which imports this module, has no use for the commands."""
    # First of all: the imports take longer than many a command.
    SIGNALS.watch()
    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG)
    # It would read what every installed package declares, for plugins of pydantic's own that no command uses.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    if sys.argv[1:] and sys.argv[1] in SERVING:
        from fairagent.storage.threads import OF_LIBRARIES

        # Before numpy is loaded; who has set one has a reason.
        for name in OF_LIBRARIES:
            os.environ.setdefault(name, "1")
    from fairagent.cli.app import main

    gc.freeze()
    gc.set_threshold(*thresholds)
    main()


if __name__ == "__main__":
    main()
