"""JSON of strangers: numbers that computers have, and no deeper than what follows can go through.

Python reads NaN, Infinity and numbers of any length, none of which is JSON or of use; what nests deep is read, and then
breaks whoever goes through it.
"""

import json
import math
from typing import Any

from fairagent.intake.malformed import Malformed

DEEPEST = 100
"""Lists and objects within each other."""
LONGEST_INT = 20
"""Characters of a whole number: 64 bits and a sign."""
_SPACE = " \t\n\r"


def _int(text: str) -> int:
    if len(text) > LONGEST_INT:
        raise Malformed(f"a whole number of {len(text):,} characters")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise Malformed(f"the number {text[:30]} is too large")
    return value


def _constant(text: str) -> float:
    raise Malformed(f"{text} is no number of JSON")


# The scanner itself: half of what `json.loads` takes for a line is looking for white space around it.
_decoder: Any = json.JSONDecoder(parse_int=_int, parse_float=_float, parse_constant=_constant)
_scan = _decoder.scan_once


def parse_json(text: str) -> Any:
    """The value of a JSON text; Malformed, with the line, where it is none or exceeds the bounds."""
    try:
        begin = 0 if text[:1] in ("{", "[") else len(text) - len(text.lstrip(_SPACE))
        value, end = _scan(text, begin)
        if end != len(text) and (rest := text[end:].lstrip(_SPACE)):
            raise json.JSONDecodeError("Extra data", text, len(text) - len(rest))
    except json.JSONDecodeError as error:
        raise _at(error) from None
    except StopIteration as stop:
        raise _at(json.JSONDecodeError("Expecting value", text, stop.value)) from None
    except RecursionError:
        raise _too_deep() from None
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        if isinstance(one, dict | list):
            _check_depth(value)
            break
    return value


def _at(error: json.JSONDecodeError) -> Malformed:
    return Malformed(f"{error.msg}, line {error.lineno}, column {error.colno}", error.lineno)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> Malformed:
    return Malformed(f"more than {DEEPEST} lists and objects within each other")
