"""The command line: one file a command. Importing it loads no search engine, model or array library."""

from fairagent.cli.app import app, main

__all__ = ["app", "main"]
