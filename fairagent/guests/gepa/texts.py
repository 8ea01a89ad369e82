"""A template as a text to be reworded: its head stays, its sections are what a candidate is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairagent.extend import LARGEST_TEMPLATE, Fault, Prompt, check_prompts, file_text, folder_of, write_whole

_FENCE = re.compile(r"^```[a-z0-9]*[ \t]*$", re.MULTILINE)
_VERSION = re.compile(r"^version: *(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class TemplateText:
    """The file of a template: `before` is its head with both fences, `body` its sections."""

    id: str
    before: str
    body: str
    head: Any

    @classmethod
    def of(cls, prompt: Prompt) -> TemplateText:
        """A template that has passed every check."""
        lines = file_text(prompt.path, LARGEST_TEMPLATE).replace("\r\n", "\n").split("\n")
        end = [number for number, line in enumerate(lines) if line.rstrip() == "---"][1] + 1
        return cls(prompt.head.id, "\n".join(lines[:end]) + "\n", "\n".join(lines[end:]).strip("\n"), prompt.head)

    def whole(self, body: str) -> str:
        """The file with these sections; where they are others, under the next version."""
        before = self.before
        if body != self.body:
            before = _VERSION.sub(lambda match: f"version: {int(match[1]) + 1}", before, count=1)
        return f"{before}{body}\n"

    def faults(self, body: str, source: str) -> tuple[str, ...]:
        """All that is wrong with these sections, with line and text, as `fairagent prompts check` finds it."""
        text = self.whole(body)
        faults = check_prompts(source, {self.id: text}).faults
        return tuple(_in_words(fault, text.split("\n"), self.before) for fault in faults)

    def write(self, body: str, folder: Path, source: str) -> Path:
        """Make `folder` one of templates that differs from `source` in this one; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        own = folder_of(source)
        for path in sorted(own.glob("*.j2")) if own else ():
            if path.stem != self.id:
                write_whole(folder / path.name, file_text(path, LARGEST_TEMPLATE))
        write_whole(folder / f"{self.id}.j2", self.whole(body))
        return folder


def _in_words(fault: Fault, lines: Sequence[str], before: str) -> str:
    """A fault with the line of the sections that it is in."""
    if fault.line is None:
        return fault.message
    number = fault.line - before.count("\n")
    return f"line {number}, {lines[fault.line - 1]!r}: {fault.message}" if number > 0 else fault.message


def key_of_text(body: str) -> str:
    """What a candidate is called in a run's files."""
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:12]


def sections_of(reply: str) -> str:
    r"""The sections in a model's reply: what stands between its fences, without a head.

    >>> sections_of("Here it is:\n```jinja\n[user]\nWords, please.\n```\nGood luck.")
    '[user]\nWords, please.'
    >>> sections_of("---\nid: x\n---\n[user]\nWords, please.\n")
    '[user]\nWords, please.'
    """
    text = reply.replace("\r\n", "\n")
    fences = list(_FENCE.finditer(text))
    if fences:
        # A reply that was begun with a fence may lack its end.
        text = text[fences[0].end() : fences[-1].start() if len(fences) > 1 else len(text)]
    lines = text.strip("\n").split("\n")
    heads = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if len(heads) > 1 and heads[0] == 0:
        lines = lines[heads[1] + 1 :]
    return "\n".join(line.rstrip() for line in lines).strip("\n")
