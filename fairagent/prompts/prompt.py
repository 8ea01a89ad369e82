"""`Prompt`: one template, checked when read, and rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairagent.errors import Fault, PromptError
from fairagent.llm.request import Message
from fairagent.prompts.source import Head, read_content, source_of

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A template that has passed every check; `sha256` is that of its file's bytes, in hexadecimal."""

    path: Path
    sha256: str
    head: Head
    sections: tuple[tuple[str, Template], ...]

    @property
    def variables(self) -> frozenset[str]:
        """The names of all values it may be given."""
        return frozenset(self.head.variables.required + self.head.variables.optional)

    def longest_reply(self, most: int) -> int:
        """The tokens that a reply may have: as many as the template allows, `most` (the model's limit) at the most."""
        return min(self.head.max_tokens or most, most)

    def render(self, variables: Mapping[str, object]) -> tuple[Message, ...]:
        """The messages with `variables` in their places; values are only ever inserted, never read as templates.

        Raises PromptError, with the line where one is to blame.
        """
        # Here and not above: who asks no model needs no templates.
        from fairagent.prompts.sandbox import Left, TemplateFault, render_template

        messages, left = [], Left()
        for role, template in self.sections:
            try:
                messages.append((role, render_template(template, variables, left)))
            except TemplateFault as fault:
                message = f"[{role}] cannot be rendered: {fault.message}"
                raise PromptError("prompt template", [Fault(self.path, fault.line, message)]) from None
        return tuple(messages)


def read_prompt(path: Path, faults: list[Fault]) -> Prompt | None:
    """The template in the file `path`; None, and all that is wrong with it added to `faults`, where it has faults."""
    content = read_content(path, faults)
    return None if content is None else prompt_of(path, content, faults)


def prompt_of(path: Path, content: bytes, faults: list[Fault]) -> Prompt | None:
    """The template in a file `path` that holds `content`, as `read_prompt`."""
    from fairagent.prompts.sandbox import TemplateFault, compile_template

    source = source_of(path, content, faults)
    if source is None:
        return None
    before = len(faults)
    declared = {*source.head.variables.required, *source.head.variables.optional}
    sections: list[tuple[str, Template]] = []
    used: set[str] = set()
    loops = 0
    for role, text, line in source.sections:
        try:
            compiled = compile_template(text, line, str(path), loops)
        except TemplateFault as fault:
            faults.append(Fault(path, fault.line, fault.message))
            continue
        sections.append((role, compiled.template))
        names, loops = compiled.used, loops + compiled.loops
        used |= names.keys()
        known = ", ".join(sorted(declared)) or "none"
        for name in sorted(names.keys() - declared, key=names.__getitem__):
            faults.append(Fault(path, names[name], f"unknown variable {name!r}; the head declares {known}"))
    if len(sections) == len(source.sections):
        for name in source.head.variables.required:
            if name not in used:
                faults.append(Fault(path, source.variables_line, f"required variable {name!r} is never used"))
    return None if len(faults) > before else Prompt(path, source.sha256, source.head, tuple(sections))
