"""Building blocks of settings files: checked sections, YAML reading, merging, and errors with their place.

Whatever is wrong is reported at once, each fault with its place and, for an unknown key, the nearest valid one.
"""

import ast
import difflib
import inspect
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fairagent.errors import SettingsError
from fairagent.settings.gone import gone
from fairagent.storage import yaml_text
from fairagent.storage.readers import Malformed, file_text
from fairagent.types.clean import in_line, label_text
from fairagent.types.common import counted

MOST_FAULTS = 50
"""So many are explained, each with the nearest key; of thousands nobody reads the others."""
LONGEST_VALUE = 200
"""Characters of a value in a message."""
UNKNOWN_KEY = "unknown_key"
"""Type of a fault whose message says all there is to say about a key."""


class Section(BaseModel):
    """A part of a settings tree: unknown keys, nan and infinity are refused, values cannot change afterwards."""

    # Built when it is first read: most sections are not, or only as a part of another one.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_texts(cls, values: Any) -> Any:
        """A text that is set to nothing, as `--set cache=` and a line `cache:` do, is an empty one."""
        if not isinstance(values, Mapping) or None not in values.values():
            return values
        texts = [key for key, field in keys_of(cls).items() if isinstance(field.default, str)]
        return {**values, **{key: "" for key in texts if key in values and values[key] is None}}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema, with what each key means."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, meaning in meanings(cls).items():
            properties[cls.model_fields[name].alias or name]["description"] = meaning
        return schema


@cache
def meanings(section: type[Section]) -> Mapping[str, str]:
    """What the keys of a section mean: field -> the text below it in the source of the class that defines it.

    pydantic would read the sources of all sections while they are imported, a tenth of the time of a command.
    """
    texts: dict[str, str] = {}
    for one in reversed(section.__mro__):
        if not issubclass(one, Section):
            continue
        try:
            (source,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        except (OSError, TypeError):
            continue  # it has no source: it was typed in somewhere
        assert isinstance(source, ast.ClassDef)
        for pair in pairwise([*source.body, ast.Pass()]):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = inspect.cleandoc(text)
                case ast.AnnAssign(target=ast.Name(id=name)), _:
                    texts[name] = ""
    return {name: texts[name] for name in section.model_fields if texts.get(name)}


Label = Annotated[str, BeforeValidator(label_text)]
"""A label of a group: 1 is "1", true is "true"."""
S = TypeVar("S", bound=Section)


def validate(model: type[S], values: Mapping[str, Any], origin: str) -> S:
    """Build `model` from `values`; raise one SettingsError that names every fault and `origin`."""
    try:
        return model.model_validate(values if isinstance(values, dict) else dict(values))
    except ValidationError as error:
        faults = [_explain(model, fault) for fault in error.errors(include_url=False)[:MOST_FAULTS]]
        more = [f"  ... and {error.error_count() - MOST_FAULTS} more"] if error.error_count() > MOST_FAULTS else []
        raise SettingsError("\n".join([f"{origin}: {counted(error.error_count(), 'error')}", *faults, *more])) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; raise SettingsError where the file is missing, not YAML or not a mapping."""
    name = in_line(str(path))
    try:
        text = file_text(path, yaml_text.LARGEST_YAML)
    except FileNotFoundError:
        raise SettingsError(f"{name}: no such file") from None
    except (OSError, Malformed) as error:
        raise SettingsError(f"{name}: cannot be read ({error})") from None
    values = parse_yaml(text, name)
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SettingsError(f"{name}: expected 'key: value' lines, not {type(values).__name__}")
    return values


def parse_yaml(text: str, origin: str) -> Any:
    """The value of a YAML text; SettingsError, naming `origin`, where it is none."""
    try:
        return yaml_text.parse_yaml(text)
    except Malformed as error:
        raise SettingsError(f"{origin}: {error}") from None


def nested(keys: Sequence[str], value: Any, origin: str) -> dict[str, Any]:
    """`value` at the end of a path of keys; SettingsError, naming `origin`, where the path is longer than files nest.

    >>> nested(["rerank", "kind"], "fused", "--set")
    {'rerank': {'kind': 'fused'}}
    """
    if len(keys) > yaml_text.DEEPEST:
        raise SettingsError(f"{origin[:LONGEST_VALUE]}: more than {yaml_text.DEEPEST} keys within each other")
    for key in reversed(keys):
        value = {key: value}
    mapping: dict[str, Any] = value
    return mapping


def merge(*layers: Mapping[str, Any], levels: float = math.inf) -> dict[str, Any]:
    """Lay nested mappings over each other; later layers win, key by key down to `levels`, below that as a whole."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = merged.get(key)
            nested = levels > 1 and isinstance(value, Mapping) and isinstance(below, Mapping)
            merged[key] = merge(below, value, levels=levels - 1) if nested else value  # type: ignore[arg-type]
    return merged


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys of a section as files write them, which may be words that Python keeps for itself (`assert`)."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at what was meant: the nearest of the `known` names, or all of them.

    >>> nearest("mrr", ["exposure", "mmr"]), nearest("x", ["exposure", "mmr"])
    ("did you mean 'mmr'?", 'there are: exposure, mmr')
    """
    names = list(known)
    near = difflib.get_close_matches(name[:LONGEST_VALUE], names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"


def _explain(model: type[BaseModel], fault: Any) -> str:
    first, *rest = fault["loc"] or ("(top)",)
    place = "".join([str(first), *(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)])
    place = place if len(place) <= LONGEST_VALUE else f"{place[:LONGEST_VALUE]} ..."
    if fault["type"] == "extra_forbidden":
        key = str(fault["loc"][-1])
        hint = nearest(key, _field_names(model, fault["loc"][:-1])).replace("there are", "known here")
        return f"  {place}: {gone(key) or f'unknown key; {hint}'}"
    given = "" if fault["type"] == UNKNOWN_KEY or isinstance(fault["input"], Mapping) else _given(fault["input"])
    got = f" (got {given[:LONGEST_VALUE]}{' ...' * (len(given) > LONGEST_VALUE)})" if given else ""
    return f"  {place}: {fault['msg'].removeprefix('Value error, ')}{got}"


def _given(value: object) -> str:
    return "nothing" if value is None else repr(value)


def _field_names(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys that are valid at `loc`, by the annotations of the fields on the way."""
    candidates: list[Any] = [model]
    for part in loc:
        fields = [(candidate, keys_of(candidate).get(str(part))) for candidate in candidates]
        # A part that is no field is a mapping key, a list index or a union's tag: stay on the level.
        inner = (_models_in(field.annotation) if field else [candidate] for candidate, field in fields)
        candidates = list(chain.from_iterable(inner))
    return sorted({name for candidate in candidates for name in keys_of(candidate)})


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
