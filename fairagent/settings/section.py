"""Building blocks of settings files: checked sections, YAML reading, and merging."""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fairagent.errors import SettingsError
from fairagent.settings.faults import LONGEST_VALUE, MOST_FAULTS, distinct_faults, fault_lines, keys_of
from fairagent.storage import readers
from fairagent.storage.readers import Malformed, file_text
from fairagent.types.clean import in_line, label_text
from fairagent.types.common import counted

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _Told(ModelMetaclass):
    """What makes sections: a call such as `Settings(n=0)` is refused in our words, as files are."""

    def __call__(cls, *values: Any, **given: Any) -> Any:
        try:
            return super().__call__(*values, **given)
        except ValidationError as error:
            raise _refused(cls, error, cls.__name__) from None  # type: ignore[arg-type]


class Section(BaseModel, metaclass=_Told):
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
    for one in (one for one in reversed(section.__mro__) if issubclass(one, Section)):
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
        raise _refused(model, error, origin) from None


def _refused(model: type[BaseModel], error: ValidationError, origin: str) -> SettingsError:
    errors = error.errors(include_url=False)
    count, faults = len(distinct_faults(errors)), [f"  {one}" for one in fault_lines(model, errors, MOST_FAULTS)]
    more = [f"  ... and {count - MOST_FAULTS} more"] if count > MOST_FAULTS else []
    return SettingsError("\n".join([f"{origin}: {counted(count, 'error')}", *faults, *more]))


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; raise SettingsError where the file is missing, not YAML or not a mapping."""
    name = in_line(str(path))
    try:
        text = file_text(path, readers.LARGEST_YAML)
    except FileNotFoundError:
        raise SettingsError(f"{name}: no such file") from None
    except (OSError, Malformed) as error:
        raise SettingsError(f"{name}: cannot be read ({error})") from None
    values = parse_yaml(text, name)
    if not isinstance(values, dict | None):
        raise SettingsError(f"{name}: expected 'key: value' lines, not {type(values).__name__}")
    return values or {}


def parse_yaml(text: str, origin: str) -> Any:
    """The value of a YAML text; SettingsError, naming `origin`, where it is none."""
    try:
        return readers.parse_yaml(text)
    except Malformed as error:
        raise SettingsError(f"{origin}: {error}") from None


def nested(keys: Sequence[str], value: Any, origin: str) -> dict[str, Any]:
    """`value` at the end of a path of keys; SettingsError, naming `origin`, where the path is longer than files nest.

    >>> nested(["rerank", "kind"], "fused", "--set")
    {'rerank': {'kind': 'fused'}}
    """
    if len(keys) > readers.DEEPEST_YAML:
        raise SettingsError(f"{origin[:LONGEST_VALUE]}: more than {readers.DEEPEST_YAML} keys within each other")
    for key in reversed(keys):
        value = {key: value}
    mapping: dict[str, Any] = value
    return mapping


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Lay nested mappings over each other, key by key; later layers win."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = merged.get(key)
            both = isinstance(value, Mapping) and isinstance(below, Mapping)
            merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged
