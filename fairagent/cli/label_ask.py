"""`fairagent label --ask`: the documents whose labels would help most, asked one by one in the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairagent.cli.options import echo, going_on, status
from fairagent.errors import UsageError
from fairagent.types.common import counted

if TYPE_CHECKING:
    from fairagent.retrieve.site import Site

SHOWN = 600
"""Characters of a document."""
SKIP, END = "", "q"


def ask(
    site: Site,
    dimension: str,
    file: Path,
    count: int,
    answer: Callable[[str], str] = input,
    log_prompts: bool = False,
) -> None:
    """Ask for the labels of `count` documents, and add each answer to `file` as it is given.

    Ctrl-C, the end of the input and "q" end it; what was answered stays. A number is one of the labels that there are,
    other text a new one.
    """
    from fairagent.labeling.labeler import LabelAsking

    asking, done = LabelAsking(site, dimension, file), 0
    with status(hidden=log_prompts):
        labels, wanted = asking.questions(count)
    if not wanted:
        echo(f"no document lacks a label of {dimension!r}")
        return
    with going_on(f"every answer is in {file}"):
        for number, (document, helpful) in enumerate(wanted, start=1):
            about = f"{document.id}  ({helpful.why})\n{document.title}\n{document.text[:SHOWN]}"
            echo(f"\n{number} of {len(wanted)}  {about}")
            choices = ", ".join(f"{place} {label}" for place, label in enumerate(labels, start=1))
            echo(f"{dimension}: {choices + ', ' if choices else ''}another label, Enter to skip, {END} to end")
            try:
                reply = answer("> ").strip()
            except EOFError:
                break
            if reply == END:
                break
            if reply == SKIP:
                continue
            label = labels[int(reply) - 1] if reply.isdecimal() and 0 < int(reply) <= len(labels) else reply
            try:
                asking.answer(document, label)
            except UsageError as error:
                echo(f"not written: {error}")
                continue
            if label not in labels:
                labels.append(label)
            done += 1
    echo(f"{counted(done, 'answer')} in {file}; next: fairagent label --examples {file}")
