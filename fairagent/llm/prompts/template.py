"""A template file: a YAML head between two `---` lines, then [system], [user], [assistant] sections."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from fairagent.errors import Fault, PromptError
from fairagent.llm.request import Message
from fairagent.settings import Section
from fairagent.settings.faults import fault_lines, no_such
from fairagent.storage.readers import Malformed, file_bytes, parse_yaml

if TYPE_CHECKING:
    from jinja2 import Template


ROLES = ("system", "user", "assistant")

LARGEST_TEMPLATE = 32 * 1024
"""Bytes; a file of this size is compiled within a second, whatever is in it."""

REASONED = {"Keywords": "ReasonedKeywords"}
"""Replies that a replacement may ask for in place of the shipped template's."""

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


def specimens() -> Mapping[str, Mapping[str, Any]]:
    """Template's id -> an example value for each of its variables, so that one which cannot be filled is noticed."""
    return _values_in("specimens.yaml")


def meaning(template: str, variable: str) -> str:
    """What `variable` is in a shipped template.

    >>> meaning("answer", "length")
    'The largest number of words.'
    """
    meanings = _values_in("variables.yaml")
    return str(meanings.get(template, {}).get(variable) or meanings["all"][variable])


@cache
def _values_in(name: str) -> Mapping[str, Mapping[str, Any]]:
    values: Mapping[str, Mapping[str, Any]] = parse_yaml(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return values


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
        # Here and not above: runs without a model need no templates.
        from fairagent.llm.prompts.sandbox import Left, TemplateFault, render_template

        messages, left = [], Left()
        for role, template in self.sections:
            try:
                messages.append((role, render_template(template, variables, left)))
            except TemplateFault as fault:
                message = f"[{role}] cannot be rendered: {fault.message}"
                raise PromptError("prompt template", [Fault(self.path, fault.line, message)]) from None
        return tuple(messages)


def read_prompt(
    path: Path, faults: list[Fault], within: Path | None = None, replaces: Prompt | None = None
) -> Prompt | None:
    """The template in the file `path`; None, and all that is wrong with it added to `faults`, where it has faults.

    A link that leads out of the folder `within` is a fault; `replaces` is the template in whose place it is used.
    """
    try:
        # Compiled once for each state of its file: each system of an experiment has its prompts.
        status = path.stat()
        prompt, wrong = _compiled(path, within, replaces, status.st_size, status.st_mtime_ns)
    except (OSError, Malformed) as error:
        words = str(error) if isinstance(error, Malformed) else f"cannot be read ({error.strerror or error})"
        prompt, wrong = None, [Fault(path, None, words)]
    faults += wrong
    return prompt


@lru_cache(maxsize=256)
def _compiled(
    path: Path, within: Path | None, replaces: Prompt | None, size: int, modified: int
) -> tuple[Prompt | None, list[Fault]]:
    faults: list[Fault] = []
    return prompt_of(path, file_bytes(path, LARGEST_TEMPLATE, within=within), faults, replaces), faults


def prompt_of(path: Path, content: bytes, faults: list[Fault], replaces: Prompt | None = None) -> Prompt | None:
    """The template in a file `path` that holds `content`, as `read_prompt`.

    What is wrong in one place does not keep the others from being read: head, sections and replacement are each
    checked as far as they can be understood.
    """
    from fairagent.llm.prompts.sandbox import compile_template

    before = len(faults)

    def fault(line: int | None, message: str) -> None:
        faults.append(Fault(path, line, message))

    lines = []
    for number, line in enumerate(content.replace(b"\r\n", b"\n").split(b"\n"), start=1):
        encoding = "utf-8-sig" if number == 1 else "utf-8"
        try:
            lines.append(line.decode(encoding))
        except UnicodeDecodeError as error:
            fault(number, f"not UTF-8 (byte 0x{line[error.start]:02x})")
            lines.append(line.decode(encoding, "replace"))
    fences = [number for number, line in enumerate(lines) if line.rstrip() == "---"][:2]
    head, declared, places = None, None, dict[str, int]()
    if len(fences) < 2 or fences[0] != 0:
        fault(1, "no head: the file begins with a line ---, then YAML, then a line ---")
        start = next((number for number, line in enumerate(lines) if _HEADER.fullmatch(line)), len(lines))
    else:
        head_lines, start = lines[1 : fences[1]], fences[1] + 1
        for number in range(len(head_lines) + 1, 1, -1):
            places[head_lines[number - 2].partition(":")[0]] = number
        head, declared = _read_head(path, head_lines, places, fault)
    variables_line = places.get("variables", 1)
    if head and replaces and head.id == path.stem:
        # It is filled with the same as the template whose place it takes, and its reply is read the same.
        shipped = replaces.head
        accepted, required = {*shipped.variables.required, *shipped.variables.optional}, {*head.variables.required}
        if more := {*required, *head.variables.optional} - accepted:
            fault(variables_line, f"variables that it will not be given: {', '.join(sorted(more))}")
        if less := {*shipped.variables.required} - required:
            fault(variables_line, f"variables that it has to require: {', '.join(sorted(less))}")
        replies = [shipped.reply, *filter(None, [REASONED.get(shipped.reply)])]
        if head.reply not in replies:
            fault(places.get("reply", 1), f"reply is {head.reply!r}, but has to be {' or '.join(replies)}")
    sections, used, loops, whole = list[tuple[str, Any]](), set[str](), 0, True
    known = {*declared.required, *declared.optional} if declared else set[str]()
    for role, text, begin in _read_sections(lines, start, fault):
        compiled = compile_template(text, begin, str(path), loops)
        for one in compiled.faults:
            fault(one.line, one.message)
        names = compiled.used or {}
        sections.append((role, compiled.template))
        used, loops, whole = used | names.keys(), loops + compiled.loops, whole and compiled.used is not None
        for name in sorted(names.keys() - known, key=names.__getitem__) if declared else ():
            listed = ", ".join(sorted(known)) or "none"
            fault(names[name], f"unknown variable {name!r}; the head declares {listed}")
    for name in declared.required if declared and whole else ():
        if name not in used:
            fault(variables_line, f"required variable {name!r} is never used")
    if head is None or len(faults) > before:
        return None
    prompt = Prompt(path, hashlib.sha256(content).hexdigest(), head, tuple(sections))
    if replaces:
        faults += _unfilled(prompt)
    return None if len(faults) > before else prompt


def _unfilled(prompt: Prompt) -> list[Fault]:
    """What happens when it is filled with an example, and once more without the optional values."""
    if not (example := specimens().get(prompt.head.id)):
        return []
    faults: dict[Fault, None] = {}
    for values in (example, {**example, **dict.fromkeys(prompt.head.variables.optional)}):
        # Each section alone for the faults of each; all, for what they may have together.
        for sections in (*((one,) for one in prompt.sections), () if faults else prompt.sections):
            try:
                replace(prompt, sections=sections).render(values)
            except PromptError as error:
                faults |= dict.fromkeys(error.faults)
    return list(faults)


def _read_head(
    path: Path, lines: Sequence[str], places: Mapping[str, int], fault: Callable[[int | None, str], None]
) -> tuple[Head | None, Variables | None]:
    """The head, and its variables, which may be right where the head is not."""
    try:
        # Behind an empty line in the place of the fence, so that lines are counted as in the file.
        values = parse_yaml("\n".join(["", *lines]))
    except Malformed as error:
        fault(error.line or 1, f"the head is {error}")
        return None, None
    given = values if isinstance(values, dict) else {}
    if isinstance(given.get("id"), str) and given["id"] != path.stem:
        fault(places.get("id", 1), f"id is {given['id']!r}, but the file is {path.name}")
    try:
        head = Head.model_validate(values)
        return head, head.variables
    except ValidationError as error:
        for message in fault_lines(Head, error.errors()):
            fault(places.get(re.split("[.:[]", message)[0], 1), message.replace("(top)", "the head", 1))
    try:
        return None, Variables.model_validate(given.get("variables"))
    except ValidationError:
        return None, None


def _read_sections(
    lines: Sequence[str], start: int, fault: Callable[[int | None, str], None]
) -> list[tuple[str, str, int]]:
    """The sections: role, text, and the line in which the text begins.

    [system] comes first; examples are pairs of a [user] and the [assistant] that answers it; a [user] ends all.
    """
    headers = [(number, match[1]) for number in range(start, len(lines)) if (match := _HEADER.fullmatch(lines[number]))]
    stray = next((n for n in range(start, headers[0][0] if headers else len(lines)) if lines[n].strip()), None)
    if stray is not None:
        fault(stray + 1, "text before the first section: [system] or [user] comes first")
    sections: list[tuple[str, str, int]] = []
    last = ""
    for (number, role), (end, _) in pairwise([*headers, (len(lines), "")]):
        text, roles = "\n".join(lines[number + 1 : end]), [one for one, _, _ in sections]
        wrong = ""
        if role not in ROLES:
            wrong = no_such("section", role, ROLES)
        elif role == "system" and roles:
            wrong = "a second section [system]" if "system" in roles else "[system] comes before [user]"
        elif role == "assistant" and last != "user":
            wrong = "an [assistant] answers the [user] before it, and there is none"
        elif role == last == "user":
            wrong = "a second section [user] without an [assistant] between them"
        elif not text.strip():
            wrong = f"section [{role}] is empty"
        if wrong:
            fault(number + 1, wrong)
        sections.append((role, text, number + 2))
        last = role
    end = headers[-1][0] + 1 if headers else max(start, 1)
    if "user" not in (role for role, _, _ in sections):
        fault(end, "no section [user]")
    elif last == "assistant":
        fault(end, "[assistant] is the last section; a [user] that asks comes after it")
    return sections
