"""Learned re-rankers on disk: JSON that can be read, checked and compared."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from fairagent.errors import DataError, SettingsError
from fairagent.files import write_whole
from fairagent.intake.json_text import parse_json
from fairagent.intake.text import file_text
from fairagent.settings import Section, validate
from fairagent.types import FloatArray

LARGEST = 1 << 26
"""Bytes of a file."""

S = TypeVar("S", bound=Section)


def _finite(values: Any) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("expected numbers") from None
    if not np.isfinite(array).all():
        raise ValueError("expected finite numbers")
    return array


Array = Annotated[FloatArray, PlainValidator(_finite), PlainSerializer(lambda array: array.tolist())]
"""An array of finite numbers as a field of a model."""


def save_model(model: Section, path: Path) -> None:
    """Write `model` as JSON; numbers keep every digit."""
    write_whole(path, model.model_dump_json(indent=1) + "\n")


def load_model(kind: type[S], path: Path) -> S:
    """Read what `save_model` wrote; DataError, naming the file and every fault, where that is no model of this kind."""
    try:
        values = parse_json(file_text(path, LARGEST))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(values, dict):
        raise DataError(f"{path}: expected a JSON object, found {type(values).__name__}")
    try:
        return validate(kind, values, str(path))
    except SettingsError as error:
        raise DataError(str(error)) from None
