"""Parsing measures: the inverse of `str(measure)`."""

import re
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fairagent import plugins
from fairagent.errors import UsageError
from fairagent.measures.discounts import parse_discount
from fairagent.measures.measure import Measure, Product

GROUP = "fairagent.measures"
"""The entry points of other packages."""
FORMS = (
    "nDCG(discount=log2-max2)@20, AWRF(discount=log2-max2, log=e|2, unknown=group|ignore)@20, "
    "a product of two such as nDCG@20*AWRF@20; options may be left out"
)


def parse_measure(text: str) -> Measure:
    """The measure that `text` defines; options that are left out take their defaults.

    Raises UsageError, naming the accepted forms, where `text` defines none.

    >>> print(parse_measure("nDCG@20*AWRF(log=2)@10"))
    nDCG(discount=log2-max2)@20*AWRF(discount=log2-max2, log=2, unknown=group)@10
    """
    left, star, right = text.partition("*")
    return Product(_factor(left, text), _factor(right, text)) if star else _factor(text, text)


def _factor(part: str, text: str) -> Measure:
    match = re.fullmatch(r"([A-Za-z][\w-]*)(?:\((.*)\))?@([1-9][0-9]*)", part.strip())
    kind = _class(match[1], text) if match else None
    if match is None or kind is None:
        others = "".join(f", {name}@20" for name in plugins.plugins(GROUP))
        raise UsageError(f"{text!r} is no measure; the accepted forms are: {FORMS}{others}")
    known = [field.name for field in fields(kind) if field.name != "n"]
    options: dict[str, Any] = {}
    for option in (match[2] or "").split(",") if match[2] else ():
        name, _, value = (piece.strip() for piece in option.partition("="))
        if name not in known or name in options:
            raise UsageError(
                f"{text!r}: {option.strip()!r} is no option of {match[1]} or stands twice; "
                f"there are: {', '.join(known)}"
            )
        options[name] = parse_discount(value) if name == "discount" else value
    measure: Measure = kind(int(match[3]), **options)
    return measure


def _class(name: str, text: str) -> Any:
    """The class of a measure: that of the file of its name, or of another package; None where there is none."""
    own = f"fairagent.measures.{name.lower()}"
    shipped: dict[str, str] = {}
    if find_spec(own):
        classes = (one for one in vars(import_module(own)).values() if isinstance(one, type) and one.__module__ == own)
        shipped = {
            one.name: f"{own}:{one.__name__}" for one in classes if issubclass(one, Measure) and "name" in vars(one)
        }
    try:
        return plugins.load("measure", name, shipped, GROUP, Measure, "fairagent.extend.Measure")
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error
