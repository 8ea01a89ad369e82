"""Parsing measures, the inverse of `str(measure)`: ours, those of other packages, and families of them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.measures.base import Measure, Product, parse_discount
from fairagent.settings import plugins
from fairagent.settings.faults import no_such

GROUP = "fairagent.measures"
"""The entry points of other packages' measures."""
FAMILIES = "fairagent.measure_families"
"""The entry points of whole libraries of measures."""
OWN = {
    "nDCG": "fairagent.measures.ranking:NDCG",
    "AWRF": "fairagent.measures.ranking:AWRF",
    "NDKL": "fairagent.measures.ranking:NDKL",
    "unlabeled": "fairagent.measures.ranking:Unlabeled",
}
"""Name of a measure -> `module:Class`."""
FORMS = (
    "nDCG(discount=log2-max2, gain=binary|linear|exponential)@20, "
    "AWRF(discount=log2-max2, log=e|2, unknown=group|ignore)@20, "
    "NDKL@20, "
    "unlabeled(of=all|type)@20, "
    "a product of two such as nDCG@20*AWRF@20, or what ir-measures (pip install 'fairagent[measures]') has, such as "
    "AP, RR or P@5; options may be left out"
)
ELSEWHERE = {
    **dict.fromkeys(("EE-L", "EE-R"), "`fairagent evaluate-run --task 2`"),
    "EE-D": "`fairagent evaluate-run --task 2` and experiments of kind fair-rag",
}
"""What is measured elsewhere, and where."""


class MeasureFamily(ABC):
    """The measures of another library, by an entry point of `fairagent.measure_families`."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names that its measures begin with; of these `read` may be called."""

    @abstractmethod
    def read(self, text: str) -> Measure:
        """The measure of a text in its form; UsageError where it is none, BackendUnavailable without the library."""


def parse_measure(text: str) -> Measure:
    """The measure that `text` defines; options that are left out take their defaults.

    A name that is ours is ours (`nDCG@20` is that of TREC Fair Ranking), then that of another package's entry point,
    then that of a family such as ir-measures. Raises UsageError, naming the accepted forms, where `text` defines none,
    and BackendUnavailable where the measure needs a package that is missing.

    >>> print(parse_measure("nDCG@20*AWRF(log=2)@10"))
    nDCG(discount=log2-max2)@20*AWRF(discount=log2-max2, log=2, unknown=group)@10
    """
    left, star, right = text.partition("*")
    return Product(_factor(left, text), _factor(right, text)) if star else _factor(text, text)


OPTIONS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
"""The options of a measure, in which one pair of parentheses may stand."""


OPTION_NAME = re.compile(r"\b\w+=")
CUT_OFF = re.compile(r"@(\w+)")


def label_of(text: str) -> str:
    """A definition without the options that have their default; an experiment's own measure loses all of them.

    >>> label_of("nDCG(discount=log2-max2)@20"), label_of("AWRF(log=e, unknown=ignore)@20"), label_of("U(relevant=1)@5")
    ('nDCG@20', 'AWRF(unknown=ignore)@20', 'U@5')
    """
    try:
        return parse_measure(text).label
    except (UsageError, BackendUnavailable):
        return OPTIONS.sub("", text)


def is_measure(measure: str, name: str) -> bool:
    """Whether `measure` is of that name, and no product of two."""
    label = label_of(measure)
    return "*" not in label and label.startswith((f"{name}@", f"{name}("))


def leading_measure(measures: Sequence[str]) -> str | None:
    """What a dimension is won by: the first product; without one the first AWRF; without one the first measure."""
    products = [measure for measure in measures if "*" in label_of(measure)]
    return next(iter([*products, *(measure for measure in measures if is_measure(measure, "AWRF")), *measures]), None)


def labels_of(texts: Sequence[str]) -> dict[str, str]:
    """Definition -> label; where two measures would share a label, both keep their definition."""
    labels = [label_of(text) for text in texts]
    return {text: label if labels.count(label) == 1 else text for text, label in zip(texts, labels, strict=True)}


def short_labels(texts: Sequence[str]) -> dict[str, str]:
    """Definition -> a name for the head of a column, which no other of them has.

    It is the label without options, or where that is not enough, with their values alone; the cut-off is left out where
    all have the same.

    >>> list(short_labels(["nDCG@20*AWRF(unknown=ignore)@20", "AWRF(unknown=ignore)@20", "AWRF@20"]).values())
    ['nDCG*AWRF', 'AWRF(ignore)', 'AWRF']
    >>> list(short_labels(["nDCG@20*AWRF@20", "AWRF@10"]).values())
    ['nDCG*AWRF@20', 'AWRF@10']
    """
    labels = labels_of(texts)
    shared = set(CUT_OFF.findall(" ".join(labels.values()))) if all(map(CUT_OFF.search, labels.values())) else set()
    same = CUT_OFF if len(shared) == 1 else re.compile(r"@(\w+)(?=\*.*@\1$)")
    bare = {text: same.sub("", label) for text, label in labels.items()}
    for left_out in (OPTIONS, OPTION_NAME):
        short = {text: left_out.sub("", label) for text, label in bare.items()}
        bare |= {text: one for text, one in short.items() if list(short.values()).count(one) == 1}
    return bare if len(set(bare.values())) == len(bare) else labels


def _factor(part: str, text: str) -> Measure:
    # Name, options and cut-off.
    match = re.fullmatch(r"([^\W\d][\w-]*)(?:\((.*)\))?(?:@(.*))?", part.strip())
    name, options, cutoff = match.groups(default="") if match else ("", "", "")
    try:
        measure: Any = plugins.load("measure", name, OWN, GROUP, Measure, "fairagent.extend.Measure")
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error
    if measure is None:
        for family in _families():
            if name in family.names():
                return family.read(part.strip())
        if name in ELSEWHERE:
            raise UsageError(f"{text!r}: no measure {name!r} here; {name} is measured by {ELSEWHERE[name]}")
        known = [*OWN, *plugins.plugins(GROUP), *(one for family in _families() for one in family.names())]
        raise UsageError(f"{text!r}: {no_such('measure', name, known)}; the forms are: {FORMS}")
    if not re.fullmatch("[1-9][0-9]{0,17}", cutoff):
        raise UsageError(f"{text!r} is no measure; {name} needs a cut-off: the accepted forms are: {FORMS}")
    known = [field.name for field in fields(measure) if field.name != "n"]
    values: dict[str, Any] = {}
    for option in _split(options):
        key, _, value = (piece.strip() for piece in option.partition("="))
        if key not in known or key in values:
            raise UsageError(f"{text!r}: {name} has {no_such('further option', option.strip(), known)}")
        values[key] = parse_discount(value) if key == "discount" else value
    parsed: Measure = measure(int(cutoff), **values)
    return parsed


def _split(options: str) -> list[str]:
    """Options at their commas, but for those within parentheses, as in `discount=ends(5, 0.5)`."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(options):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append(options[start:place])
            start = place + 1
    return [*parts, options[start:]] if options else []


def _families() -> Iterator[MeasureFamily]:
    families = plugins.load_plugins("measures", FAMILIES, MeasureFamily, "fairagent.extend.MeasureFamily")
    return (family() for family in families.values())
