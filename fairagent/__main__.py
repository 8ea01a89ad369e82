"""`python -m fairagent`: the program `fairagent`, where its script is not on the path."""

import gc

from fairagent.storage.signals import SIGNALS

YOUNG = 200_000
"""Objects that are made before Python looks for garbage among them: imports make hundreds of thousands, all to stay."""


def main() -> None:
    """See `fairagent.cli.app.main`; a worker process, which imports this module, has no use for the commands."""
    # First of all: the imports take longer than many a command.
    SIGNALS.watch()
    gc.set_threshold(YOUNG)
    from fairagent.cli.app import main

    main()


if __name__ == "__main__":
    main()
