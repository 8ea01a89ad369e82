"""The format of a template file: a YAML head between two `---` lines, then [system], [user], [assistant] sections.

`Prompt`: one template, checked when read, and rendered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from fairagent.errors import Fault, PromptError
from fairagent.llm.request import Message
from fairagent.settings import Section
from fairagent.storage.readers import Malformed, file_bytes
from fairagent.storage.yaml_text import parse_yaml

if TYPE_CHECKING:
    from jinja2 import Template


ROLES = ("system", "user", "assistant")

LARGEST_TEMPLATE = 32 * 1024
"""Bytes; a file of this size is compiled within a second, whatever is in it."""

_HEADER = re.compile(r"\[(\w+)\]\s*")


class Variables(Section):
    """The values a template is given."""

    required: tuple[str, ...] = ()
    """Those it has to use."""
    optional: tuple[str, ...] = ()
    """Those it may use; they may be None."""


class Head(Section):
    """What a template says about itself."""

    id: str
    """Its name, which is its file's."""
    version: int = Field(ge=1)
    """Counted up with each change that matters."""
    purpose: str = Field(min_length=1)
    """What it is for, in one sentence."""
    variables: Variables
    """What it is filled with."""
    reply: str = "text"
    """The form of the answer: the name of a reply model, or text."""
    max_tokens: int | None = Field(None, ge=1)
    """The longest answer; the settings' model.max_tokens may cut it shorter."""


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A file's head and its sections: role, text, and the line in which the text begins.

    `variables_line` is the line in which the head declares its variables.
    """

    path: Path
    sha256: str
    head: Head
    sections: tuple[tuple[str, str, int], ...]
    variables_line: int


def read_content(path: Path, faults: list[Fault]) -> bytes | None:
    """The file's bytes; None, and why added to `faults`, where they cannot be had."""
    try:
        return file_bytes(path, LARGEST_TEMPLATE)
    except OSError as error:
        faults.append(Fault(path, None, f"cannot be read ({error.strerror})"))
    except Malformed as error:
        faults.append(Fault(path, None, str(error)))
    return None


def source_of(path: Path, content: bytes, faults: list[Fault]) -> TemplateSource | None:
    """The parts of a file `path` of that content; None, and what is wrong added to `faults`, where one is missing."""
    before = len(faults)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        faults.append(Fault(path, line, f"not UTF-8 (byte 0x{content[error.start]:02x})"))
        return None
    lines = text.replace("\r\n", "\n").split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == "---"][:2]
    if len(fences) < 2 or fences[0] != 0:
        faults.append(Fault(path, 1, "no head: the file begins with a line ---, then YAML, then a line ---"))
        return None
    head = _read_head(path, lines[1 : fences[1]], faults)
    sections = _read_sections(path, lines, fences[1] + 1, faults)
    if head is None or len(faults) > before:
        return None
    declared = _line_of("variables", lines[1 : fences[1]])
    return TemplateSource(path, hashlib.sha256(content).hexdigest(), head, sections, declared)


def _read_head(path: Path, lines: Sequence[str], faults: list[Fault]) -> Head | None:
    try:
        # Behind an empty line in the place of the fence, so that lines are counted as in the file.
        values = parse_yaml("\n".join(["", *lines]))
    except Malformed as error:
        faults.append(Fault(path, error.line or 1, f"the head is {error}"))
        return None
    try:
        head = Head.model_validate(values)
    except ValidationError as error:
        faults.extend(_fault_of_key(path, lines, fault["loc"], fault["type"], fault["msg"]) for fault in error.errors())
        return None
    if head.id != path.stem:
        faults.append(Fault(path, _line_of("id", lines), f"id is {head.id!r}, but the file is {path.name}"))
    return head


def _fault_of_key(path: Path, lines: Sequence[str], place: tuple[str | int, ...], kind: str, message: str) -> Fault:
    if kind == "extra_forbidden":
        known = Variables if len(place) > 1 else Head
        message = f"unknown key; there are {', '.join(known.model_fields)}"
    name = ".".join(str(part) for part in place) or "the head"
    return Fault(path, _line_of(str(place[0]) if place else "", lines), f"{name}: {message}")


def _line_of(key: str, lines: Sequence[str]) -> int:
    """The file's line with this key of the head; 1 where it is not there."""
    return next((number for number, line in enumerate(lines, start=2) if key and line.startswith(f"{key}:")), 1)


def _read_sections(
    path: Path, lines: Sequence[str], start: int, faults: list[Fault]
) -> tuple[tuple[str, str, int], ...]:
    headers = [(number, match[1]) for number in range(start, len(lines)) if (match := _HEADER.fullmatch(lines[number]))]
    stray = next((n for n in range(start, headers[0][0] if headers else len(lines)) if lines[n].strip()), None)
    if stray is not None:
        faults.append(Fault(path, stray + 1, "text before the first section: [system] or [user] comes first"))
    sections: list[tuple[str, str, int]] = []
    for (number, role), (end, _) in pairwise([*headers, (len(lines), "")]):
        text = "\n".join(lines[number + 1 : end])
        if role not in ROLES:
            faults.append(Fault(path, number + 1, f"unknown section [{role}]; there are [system], [user], [assistant]"))
        elif fault := _out_of_turn(role, [known for known, _, _ in sections]):
            faults.append(Fault(path, number + 1, fault))
        elif not text.strip():
            faults.append(Fault(path, number + 1, f"section [{role}] is empty"))
        sections.append((role, text, number + 2))
    roles = [role for role, _, _ in sections]
    if "user" not in roles:
        faults.append(Fault(path, None, "no section [user]"))
    elif roles[-1] == "assistant":
        faults.append(Fault(path, None, "[assistant] is the last section; a [user] that asks comes after it"))
    return tuple(sections)


def _out_of_turn(role: str, before: Sequence[str]) -> str:
    """Why a section of this role may not come here; "" where it may.

    [system] comes first; examples are pairs of a [user] and the [assistant] that answers it; a [user] ends all.
    """
    last = before[-1] if before else ""
    if role == "system" and before:
        return "a second section [system]" if "system" in before else "[system] comes before [user]"
    if role == "assistant" and last != "user":
        return "an [assistant] answers the [user] before it, and there is none"
    return "a second section [user] without an [assistant] between them" if role == last == "user" else ""


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
        from fairagent.llm.prompts.sandbox import Left, TemplateFault, render_template

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
    from fairagent.llm.prompts.sandbox import TemplateFault, compile_template

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
