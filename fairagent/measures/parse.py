"""Parsing measures: the inverse of `str(measure)`."""

import re
from dataclasses import fields
from typing import Any

from fairagent.errors import UsageError
from fairagent.measures.awrf import AWRF
from fairagent.measures.discounts import parse_discount
from fairagent.measures.measure import Measure, Product
from fairagent.measures.ndcg import NDCG

FORMS = (
    "nDCG(discount=log2-max2)@20, AWRF(discount=log2-max2, log=e|2, unknown=group|ignore)@20, "
    "a product of two such as nDCG@20*AWRF@20; options may be left out"
)

_KINDS: dict[str, type[NDCG] | type[AWRF]] = {"nDCG": NDCG, "AWRF": AWRF}


def parse_measure(text: str) -> Measure:
    """The measure that `text` defines; options that are left out take their defaults.

    Raises UsageError, naming the accepted forms, where `text` defines none.

    >>> print(parse_measure("nDCG@20*AWRF(log=2)@10"))
    nDCG(discount=log2-max2)@20*AWRF(discount=log2-max2, log=2, unknown=group)@10
    """
    left, star, right = text.partition("*")
    return Product(_factor(left, text), _factor(right, text)) if star else _factor(text, text)


def _factor(part: str, text: str) -> Measure:
    match = re.fullmatch(r"(nDCG|AWRF)(?:\((.*)\))?@([1-9][0-9]*)", part.strip())
    if not match:
        raise UsageError(f"{text!r} is no measure; the accepted forms are: {FORMS}")
    kind = _KINDS[match[1]]
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
    return kind(int(match[3]), **options)
