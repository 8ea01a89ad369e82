"""The command line: one file a command, imported by its name when it is called.

`app` has the commands and turns every error into one sentence and an exit code; `options` has the options that
commands share. Nothing else in fairagent prints. Importing this room loads no engine, model or array library.
"""

from fairagent.cli.app import app, main

__all__ = ["app", "main"]
