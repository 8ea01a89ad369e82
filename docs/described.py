"""The keys of a settings file in words, from its model's JSON schema: for the reference pages and for templates.

`fairagent evaluate --template KIND` prints what `kind_template` makes: generate.py writes it beside the command line.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from fairagent.cli.config import flow
from fairagent.evaluate.kind import shipped_kinds
from fairagent.settings.parts import SLOTS
from fairagent.storage.readers import parse_yaml

Schema = Mapping[str, Any]
"""A JSON schema, or a part of one."""

TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "mapping",
}
PLURALS = {"text": "texts", "mapping": "mappings"} | {one: f"{one}s" for one in ("whole number", "number", "section")}
LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "minItems": "at least {} of them",
    "minProperties": "at least {} of them",
    "maxLength": "at most {} characters",
}
WIDTH = 110


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `type` has its range; `sections` are the forms of the section (or of each of several) that it holds."""

    name: str
    type: str
    required: bool
    default: Any
    example: Any
    meaning: str
    sections: tuple[DescribedSection, ...]
    nested: bool
    """Whether its value is such a section itself, and not a list or mapping of them."""


@dataclass(frozen=True, slots=True)
class DescribedSection:
    """A section: its meaning and its keys."""

    meaning: str
    keys: tuple[Key, ...]


class _AsWritten(GenerateJsonSchema):
    """With the keys of examples in their own order, which says what a file begins with."""

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        """As it is."""
        return value


def describe(model: Any, *required: str) -> dict[str, DescribedSection]:
    """What a file may hold: one section for each value of a union's discriminator, else one under the name "".

    `model` is a pydantic model, or a discriminated union of models, each of which then requires its discriminator.
    `required` are keys that a file needs though the model has a default for them.
    """
    schema = TypeAdapter(model).json_schema(schema_generator=_AsWritten)
    models = schema.get("$defs", {})
    if (union := schema.get("discriminator")) is None:
        return {"": _section(schema, models, *required)}
    # The mapping is sorted; the forms stand in their order.
    kinds = {ref: kind for kind, ref in union["mapping"].items()}
    required = (union["propertyName"], *required)
    return {kinds[form["$ref"]]: _section(form, models, *required) for form in schema["oneOf"]}


def _section(schema: Schema, models: Schema, *required: str) -> DescribedSection:
    schema = _resolved(schema, models)
    needed = {*required, *schema.get("required", ())}
    keys = (_key(name, field, name in needed, models) for name, field in schema.get("properties", {}).items())
    return DescribedSection(_plain(schema.get("description", "")), tuple(keys))


def _key(name: str, field: Schema, required: bool, models: Schema) -> Key:
    held = tuple(_section(one, models) for one in _models_in(field, models))
    nested = all("$ref" in form for form in _forms(field) if form.get("type") != "null")
    meaning = field.get("description") or (held[0].meaning if held else "")
    example = next(iter(field.get("examples", ())), None)
    default = field.get("default")
    return Key(name, _words(field, models), required, default, example, _plain(meaning), held, nested and bool(held))


def _forms(field: Schema) -> Sequence[Schema]:
    """What a value may be."""
    forms: Sequence[Schema] = field.get("anyOf") or field.get("oneOf") or (field,)
    return forms


def _models_in(field: Schema, models: Schema) -> Iterator[Schema]:
    """The sections that values of a field hold; what a part holds depends on its kind."""
    if "slot" in field:
        return
    if "$ref" in field and "properties" in _resolved(field, models):
        yield {"$ref": field["$ref"]}
    inner = field.get("items"), field.get("additionalProperties"), *field.get("anyOf", ()), *field.get("oneOf", ())
    for one in inner:
        if isinstance(one, Mapping):
            yield from _models_in(one, models)


def _resolved(schema: Schema, models: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    resolved: Schema = models[schema["$ref"].rpartition("/")[2]]
    return resolved


def _words(field: Schema, models: Schema) -> str:
    """The type and the range of a field.

    >>> _words({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, {})
    'whole number, at least 1, or null'
    >>> _words({"type": "array", "items": {"type": "integer"}, "minItems": 1}, {})
    'list of whole numbers, not empty'
    >>> _words({"enum": ["", "a"]}, {})
    "one of `''`, `a`"
    """
    if "slot" in field:
        return f"{SLOTS[field['slot']].what}: a kind, or a section with `kind`"
    if "$ref" in field:
        resolved = _resolved(field, models)
        return "section" if "properties" in resolved else _words(resolved, models)
    if len(forms := _forms(field)) > 1:
        words = list(dict.fromkeys(_words(form, models) for form in forms))
        return ", or ".join(words) if any("," in word for word in words) else " or ".join(words)
    if choices := field.get("enum", [field["const"]] if "const" in field else []):
        return ("one of " if len(choices) > 1 else "") + ", ".join(f"`{flow(choice)}`" for choice in choices)
    if field.get("type") == "array":
        if places := field.get("prefixItems"):
            return f"list of {len(places)}: {', '.join(_words(place, models) for place in places)}"
        inner = _words(field["items"], models)
        named = f"list of {PLURALS.get(inner, inner.removeprefix('one of '))}"
    elif isinstance(values := field.get("additionalProperties"), Mapping) and values:
        inner = _words(values, models)
        named = f"mapping of names to {PLURALS.get(inner, inner)}"
    else:
        named = TYPES.get(field.get("type", ""), "any value")
    limits = [words.format(field[limit]) for limit, words in LIMITS.items() if limit in field]
    return re.sub("at least 1 (characters|of them)", "not empty", ", ".join([named, *limits]))


def _plain(text: str) -> str:
    """A text in one line, its first paragraph alone."""
    return " ".join(text.partition("\n\n")[0].split())


def template(section: DescribedSection, margin: str = "", active: bool = True) -> Iterator[str]:
    """The lines of a file to start from: what is required with an example, all else behind a `#` with its default.

    Text stands behind `# `, keys behind `#`; of a section that has to be there and requires no key, the first is set.
    """
    required = {key.name for key in section.keys if key.required} or {key.name for key in section.keys[:1] if margin}
    for key in section.keys:
        comment = f"{key.meaning} ({key.type})".strip() if not key.nested else key.meaning
        if not key.required and key.example is not None:
            comment += f" Default: {flow(key.default)}"
        lines = textwrap.wrap(comment, WIDTH - len(margin) - 2, break_on_hyphens=False, break_long_words=False)
        yield from (f"{margin}# {line}" for line in lines)
        now = active and key.name in required
        name = f"{margin}{'' if now else '#'}{key.name}:"
        if key.nested:
            yield name
            yield from template(key.sections[0], margin + "  ", now)
            continue
        value = _example(key)
        if isinstance(value, Mapping) and len(f"{name} {flow(value)}") > WIDTH:  # a line for each name
            yield name
            yield from (f"{margin}{'' if now else '#'}  {flow({one: of})[1:-1]}" for one, of in value.items())
        else:
            yield f"{name} {flow(value)}"


def _example(key: Key) -> Any:
    """A value to start from."""
    if key.example is not None or not key.required:
        return key.default if key.example is None else key.example
    if "`" in key.type:
        return parse_yaml(key.type.split("`")[1])
    return {"text": "NAME", "list": [], "mapping": {}}.get(key.type.partition(" ")[0].rstrip(","), 1)


def kinds() -> dict[str, DescribedSection]:
    """Kind of experiment -> the keys of its file."""
    required = {True: ("kind", "collection"), False: ("kind",)}
    return {kind: describe(model, *required["engine" in model.uses])[""] for kind, model in shipped_kinds().items()}


def kind_template(kind: str, described: DescribedSection) -> str:
    """The file to start from, for a kind of experiment."""
    about = [
        f"# An experiment of the kind {kind}, for `fairagent evaluate FILE`. Paths are relative to this file.",
        "# A line that begins with # and no space is a key with its default: remove the # to set it.",
        "# What `settings` and `systems` take: `fairagent config --defaults`.",
        "",
    ]
    return "\n".join([*about, *template(described), ""])
