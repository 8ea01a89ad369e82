"""Group labels: read from columns or fields, mapped, which are spellings of the same, how far made ones are right."""

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field, model_validator

from fairagent.collection.config import DimensionColumn, GroupsFile, TypeColumn
from fairagent.collection.records import Faults, Record, checked_id, field_reader, listed, records, shown
from fairagent.collection.table import Groups, GroupTable, JoinedGroups, Labels, TableBuffer
from fairagent.errors import DataError, UsageError
from fairagent.measures import awrf_under_error, known_part, odds_spread
from fairagent.measures.base import seeded
from fairagent.measures.unawareness import SAFE_SPREAD, shared_part
from fairagent.settings import Section, validate
from fairagent.settings.faults import no_such
from fairagent.storage.files import write_whole
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import UNKNOWN, FloatArray
from fairagent.types.clean import label_text, visible

if TYPE_CHECKING:
    from fairagent.collection.collection import Collection as WholeCollection
    from fairagent.collection.targets import Target

NO_LABEL = frozenset(
    phrase.replace(" ", "")
    for phrase in (
        *("na", "nan", "nil", "none", "null", "unk", "unknown", "not known", "dont know", "do not know"),
        *("missing", "unlabeled", "unlabelled", "unspecified", "undefined", "undetermined", "undisclosed"),
        *("not applicable", "not available", "not disclosed", "not given", "not provided", "not reported"),
        *("not specified", "not stated", "no answer", "no response", "decline to answer", "decline to state"),
        *("prefer not to answer", "prefer not to disclose", "prefer not to say", "prefer not to state"),
        *("rather not say",),
    )
)
"""What says that there is no label, in lower case and without blanks. "other" is a group."""
INITIALS = {"f": "female", "w": "female", "m": "male", "y": "yes", "n": "no", "t": "true"}
"""Letters that are short for these words, where no other value of the column begins with them."""
GENDERS = {
    word: gender
    for gender, words in {
        "female": "female females fem woman women weiblich frau femme femmes féminin feminin mujer mujeres femenino "
        "femenina donna femmina femminile mulher feminino feminina vrouw vrouwelijk kvinna kvinde kobieta",
        "male": "male males masc man men männlich maennlich mann homme hommes masculin hombre hombres masculino "
        "uomo maschio maschile homem mannelijk mand mężczyzna",
    }.items()
    for word in words.split()
}
"""Words for the same gender, which are spellings of one label in a column that is mostly of them."""

_NOTHING = re.compile(r"[-\u2010-\u2015\u2212]+|\?+|\.+|/|_+")
_AROUND_NOTHING = re.compile(r"[\s_/.'’<>()\[\]{}#@-]+")
_DROPPED = re.compile(r"[.'`\"’‘“”„«»]")
_BETWEEN = re.compile(r"[\s_,;:()\[\]{}\u2010-\u2015-]+")
_DASHED = re.compile(r"^[.\u2010-\u2015-]|[\u2010-\u2015-]$")


Labeling = str | Mapping[str, str | Mapping[str, str | Sequence[str]]]
"""How values become labels: "join" for the spellings of all dimensions, or dimension -> "join" or value -> label (or a
list of labels, an empty one for none), as `map` of a collection file."""
JOIN = "join"


class LabelReader:
    """Reads the dimensions of a record, and notes what is wrong with a column over all records."""

    def __init__(self, dimensions: Mapping[str, DimensionColumn]) -> None:
        self.dimensions = dimensions
        self.columns = {name: column.column or name for name, column in dimensions.items()}
        rules = {name: column.applies_to for name, column in dimensions.items()}
        self.types = {name: rule for name, rule in rules.items() if isinstance(rule, TypeColumn)}
        self.of_all = [name for name, rule in rules.items() if rule == "all"]
        self.missing = {*self.columns.values(), *(rule.column for rule in self.types.values())}
        self.unused_types = set(self.types)
        self.value_types = {name: dict[str, tuple[object, int]]() for name in dimensions}
        self.unmapped = {name: Counter[str]() for name, column in dimensions.items() if column.map}
        self.fields: tuple[str, ...] = ()

    def buffer(self) -> TableBuffer:
        columns = self.dimensions.items()
        return TableBuffer(
            {name: column.all_labels for name, column in columns},
            [name for name, column in columns if not column.normalize],
            [name for name, column in columns if column.predicted],
            [*self.types, *self.of_all],
        )

    def read(self, record: Record, number: int = 0) -> dict[str, Labels]:
        """The labels of one record, in this line; ValueError, naming the dimension, for what is no label."""
        if self.missing:
            self.missing -= record.keys()
            self.fields = self.fields or tuple(record)
        labels: dict[str, Labels] = {}
        for name, column in self.dimensions.items():
            value = record.get(self.columns[name])
            try:
                labels[name] = labels_of(value, column)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            if name in self.unmapped:
                # What a map makes nothing of, until it makes something of a value.
                if labels[name]:
                    del self.unmapped[name]
                elif value not in (None, "", []):
                    self.unmapped[name][str(value).strip()] += 1
            types = self.value_types[name]
            for part in () if column.labels else value if isinstance(value, list) else (value,):
                # The first value of each type; a text that is a number may stand among texts as among numbers.
                if isinstance(part, str) and "text" not in types:
                    text = part.strip()
                    if text and not text.lstrip("-").isdecimal() and text not in column.map:
                        types["text"] = part, number
                elif isinstance(part, int | float) and label_text(part) not in column.map:
                    types.setdefault("true or false" if isinstance(part, bool) else "whole numbers", (part, number))
        return labels

    def read_types(self, record: Record) -> list[str]:
        """The dimensions of whose type the record's document is; ValueError where a value is no text or list."""
        of_type = []
        for name, type in self.types.items():
            value = record.get(type.column)
            # What a JSON file denies is no value like any other.
            if value is None or (value is False and type.values is None):
                continue
            texts = [label_text(part).strip() for part in (value if isinstance(value, list) else [value])]
            if any(text in type.values if type.values else text for text in texts):
                of_type.append(name)
        self.unused_types.difference_update(of_type)
        return [*of_type, *self.of_all]

    def check(self, path: Path, faults: Faults) -> None:
        """Add an error for each column that no record had (one may lack it), and each type that no record is of."""
        for name in sorted(self.columns) if self.fields else ():
            if self.columns[name] in self.missing:
                faults.add(path, 1, f"dimension {name!r}: {no_such('column', self.columns[name], self.fields)}")
        for name, types in self.value_types.items():
            if len(types) > 1:
                first = listed([f"{type} ({shown(one)}, {path.name}:{line})" for type, (one, line) in types.items()])
                message = f"the labels of {name!r} are of mixed types: {first}"
                faults.add(path, None, f"{message}; say with `map` which label each value is")
        for name, unmapped in self.unmapped.items():
            if unmapped:
                values = listed([f"{shown(value)} ({count:,})" for value, count in unmapped.most_common()], 8)
                faults.add(path, None, f"the `map` of dimension {name!r} leaves no label: it makes nothing of {values}")
        for name in sorted(self.unused_types) if self.fields else ():
            column, values = self.types[name].column, listed(self.types[name].values or ("anything",))
            if column in self.missing:
                faults.add(path, 1, f"the type of dimension {name!r}: {no_such('column', column, self.fields)}")
            else:
                message = f"no document is of the type of dimension {name!r}: {column!r} never says {values}"
                faults.add(path, None, message)


def read_groups(path: Path, block: GroupsFile, faults: Faults) -> GroupTable | None:
    """The table of one groups file; None where it has faults, which are added to `faults`."""
    reader, read_id, before = LabelReader(block.dimensions), field_reader(block.id), faults.count
    buffer = reader.buffer()
    for number, record in records(path, block, faults):
        try:
            labels, types = reader.read(record, number), reader.read_types(record)
            buffer.add(checked_id(read_id(record), "document"), labels, number, types)
        except ValueError as error:
            faults.add(path, number, str(error))
    if buffer.lines or faults.count == before:
        buffer.check(path, faults)
    reader.check(path, faults)
    return GroupTable(*buffer.finish()) if faults.count == before else None


def labels_of(value: object, column: DimensionColumn) -> Labels:
    """The labels in one cell; ValueError where it holds no text, whole number, list or mapping."""
    if value is None or (isinstance(value, str) and not value):
        return None
    known, rest = column.labels or (), column.rest
    if isinstance(value, Mapping):
        labels = _mapped_weights(value, column) if column.map else value
        if rest is None:
            return labels
        others = {label: (rest,) for label in labels if label not in (*known, UNKNOWN)}
        return _mapped_weights(labels, column.model_copy(update={"map": others}))
    if isinstance(value, str) and column.separator is None and not column.map:
        label = value.strip()
        return label if rest is None or not label or label in known else rest
    if isinstance(value, str):
        parts = value.split(column.separator) if column.separator else [value]
    else:
        parts = [label_text(part) for part in (value if isinstance(value, list) else [value])]
    mapped = [label for part in parts for label in column.map.get(part.strip(), (part.strip(),))]
    if rest is None:
        return mapped
    return list(dict.fromkeys(label if label in known else rest for label in mapped if label))


def _mapped_weights(weights: Mapping[str, float], column: DimensionColumn) -> dict[str, float]:
    """The weights under their new labels, added up; a label replaced by several is split evenly.

    A label that is replaced by none is left out, but for a probability, which then is that of the unknown.
    """
    mapped: dict[str, float] = {}
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ValueError(f"the weight of {shown(label)} is {shown(weight)}, expected a number >= 0")
        new = column.map.get(label, (label,)) or ((UNKNOWN,) if column.predicted else ())
        for name in new:
            mapped[name] = mapped.get(name, 0.0) + weight / len(new)
    return mapped


def labeled(
    columns: Mapping[str, DimensionColumn],
    labels: Labeling | None,
    cells: Callable[[str], Iterable[object]],
    known: Mapping[str, Collection[str]],
) -> tuple[dict[str, DimensionColumn], list[str]]:
    """The columns with the maps that `labels` gives, or that join the spellings in the `cells` of a dimension.

    And what is in doubt of the spellings that were joined. `known` are labels, by dimension, whose spelling stays. A
    column that has a map retains it under "join". Raises UsageError for a dimension that there is not, for two maps,
    and for what is no map.
    """
    if (isinstance(labels, str) and labels != JOIN) or not isinstance(labels, str | Mapping | None):
        raise UsageError(f"labels={shown(labels)}: expected {JOIN!r}, or dimension -> {JOIN!r} or value -> label")
    wanted = dict.fromkeys(columns, JOIN) if isinstance(labels, str) else dict[str, Any](labels or {})
    made, doubts = dict(columns), list[str]()
    for name, how in wanted.items():
        if name not in columns:
            raise UsageError(f"labels: {no_such('dimension', name, columns)}")
        column = columns[name]
        if isinstance(how, Mapping):
            if column.map:
                raise UsageError(f"labels: the column of {name!r} has a `map` already; give one of the two")
            about = column.model_dump(exclude={"map"}) | {"map": dict(how)}
            made[name] = validate(DimensionColumn, about, f"labels.{name}")
        elif how != JOIN:
            raise UsageError(f"labels: {name!r} is {shown(how)}, expected {JOIN!r} or value -> label")
        elif not column.map:
            counts: Counter[str] = Counter()
            for cell in cells(name):
                # What is no label is an error when the rows are read.
                with suppress(ValueError):
                    cell_labels = labels_of(cell, column)
                    counts.update([cell_labels] if isinstance(cell_labels, str) else list(cell_labels or ()))
            del counts[""]
            spellings = join_spellings(counts, (*(column.labels or ()), *known.get(name, ())))
            made[name] = column.model_copy(update={"map": spellings.map})
            doubts += [f"{name!r}: {doubt}" for doubt in spellings.doubts]
    return made, doubts


def label_notes(groups: Groups, remedy: str) -> list[str]:
    """What to know of the labels of all dimensions before exposure is measured by them.

    Spellings that look alike, with the `remedy` that joins them; a single document that has a label; and what
    `group_notes` says. Intersections have notes of their own.
    """
    notes = []
    for part in groups.parts if isinstance(groups, JoinedGroups) else (groups,):
        for dimension in part.dimensions if isinstance(part, GroupTable) else ():
            assert isinstance(part, GroupTable)
            unknown, *known = part.shares(dimension).tolist()
            shares = {label: share for label, share in zip(part.labels(dimension), known, strict=True) if share}
            if joined := join_spellings(shares).map:
                notes.append(f"spellings of {dimension!r} that look like the same label: {joins(joined)}; {remedy}")
            if len(part) > 1 and round((1 - unknown) * len(part)) == 1:
                only = f"a single document of {len(part):,} has a label of {dimension!r} ({listed(list(shares))})"
                notes.append(f"{only}, so groups cannot be compared; is this the right column?")
            notes += group_notes(dimension, shares)
    return notes


def group_notes(dimension: str, sizes: Mapping[str, float]) -> list[str]:
    """What to know of groups of these sizes, in numbers or shares of documents.

    >>> for note in group_notes("gender", {"female": 99, "male": 100, "nonbinary": 1}):
    ...     print(note)
    less than 1 % of the labeled documents are in these groups of 'gender', so read little into them: nonbinary 0.5 %
    """
    total, notes = sum(sizes.values()), []
    ordered = sorted(sizes, key=lambda label: -sizes[label])
    named = {label: f"{label} {100 * sizes[label] / total:.2g} %" for label in ordered}
    if len(sizes) > 12:
        there = listed(list(named.values()))
        notes.append(f"{dimension!r} has {len(sizes):,} groups, too many for one page to show each: {there}")
    if small := [text for label, text in named.items() if sizes[label] < 0.01 * total]:
        few = f"less than 1 % of the labeled documents are in these groups of {dimension!r}"
        notes.append(f"{few}, so read little into them: {listed(small)}")
    return notes


def joins(map: Mapping[str, Sequence[str]]) -> str:
    """A map of spellings in one line."""
    sources: dict[str, list[str]] = {}
    for value, labels in map.items():
        sources.setdefault(" and ".join(labels) or "no label", []).append(value)
    return "; ".join(f"{listed(values, 8)} -> {label}" for label, values in sources.items())


class LabelErrors(Section):
    """What cross-validation says of the made labels of one dimension."""

    dimension: str
    """The dimension."""
    source: str
    """What made the labels."""
    labels: tuple[str, ...] = Field(min_length=2)
    """The groups that the labeler knows."""
    examples: tuple[int, ...]
    """How many labeled examples of each it was made from."""
    right: tuple[float, ...]
    """The share of the examples of each label whose likeliest label it is."""
    accuracy: float = Field(ge=0, le=1)
    """The share of all examples whose likeliest label is right."""
    calibration: float = Field(ge=0, le=1)
    """The expected calibration error (`measures.calibration_error`)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        count = len(self.labels)
        if {len(self.examples), len(self.right)} != {count}:
            raise ValueError(f"expected {count} examples and {count} shares of right ones")
        return self

    def counts(self, labels: Sequence[str]) -> FloatArray:
        """How many examples there were of each of these labels, (g,)."""
        known = dict(zip(self.labels, self.examples, strict=True))
        return np.array([known.get(label, 0) for label in labels], np.float64)

    def write(self, path: Path) -> None:
        write_whole(path, json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")


def read_label_errors(path: Path) -> LabelErrors:
    """Read such a file; DataError where it is not there or is none."""
    try:
        return validate(LabelErrors, parse_json(file_text(path, 1 << 24)), str(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no file of label errors ({error}); `fairagent label` writes one") from None


def under_error(
    collection: "WholeCollection",
    topic: str,
    target: "Target",
    ids: Sequence[str],
    attention: FloatArray,
    base: float = math.e,
) -> tuple[float, float, float, float] | None:
    """AWRF of the documents `ids` in a predicted dimension, and the ends of 95 % of what label errors make of it.

    Last comes the `shared_part` of the error: 0 where nothing says that one labeler made the labels.

    Labels that the `target` is counted from are as uncertain as those shown. A document that could have a label and has
    none is of the groups by their shares of the collection. The ends are drawn with topics that differ, too.
    None where nothing shown could have one.
    """
    dimension, groups = target.dimension, collection.groups
    kind = target.source.partition(" ")[0]
    grades = collection.qrels.get(topic, {}) if kind in ("trec", "qrels") else {}
    relevant = [id for id, grade in grades.items() if grade > 0]
    every = list(dict.fromkeys([*ids, *relevant]))
    if not every:
        return None
    rows = groups.memberships(dimension, every, topic)
    if (of_type := groups.of_type(dimension, every, topic)) is not None:
        rows = np.where(of_type[:, None], rows, 0.0)
    chances = rows[:, 1:] + rows[:, :1] * known_part(groups.shares(dimension))
    labeled = chances.sum(axis=1) > 0
    place = {id: number for number, id in enumerate(every)}
    weights, counts = np.zeros(len(every)), np.zeros(len(every))
    weights[: len(ids)] = attention[: len(ids)]
    counts[[place[id] for id in relevant]] = 1.0
    if not (weights * labeled).any():
        return None
    world = collection.population.get(dimension)
    fixed, share = target.shares, 0.0
    if relevant:
        share = 0.5 if kind == "trec" and world else 1.0
        fixed = np.array([(world or {}).get(label, 0.0) for label in target.labels]) if share < 1 else fixed
    errors = collection.label_errors.get(dimension)
    # Without a word on errors, as after a thousand examples of each group.
    examples = errors.counts(target.labels) if errors else np.full(len(target.labels), 1000.0)
    given = chances[labeled], weights[labeled], counts[labeled], fixed, share
    likely, safe = (
        awrf_under_error(*given, spread, seeded(0, "label errors", topic, dimension), base)
        for spread in (odds_spread(examples), odds_spread(examples, SAFE_SPREAD))
    )
    shared = shared_part(examples) if errors else 0.0
    return likely.value, min(likely.low, safe.low), max(likely.high, safe.high), shared


@dataclass(frozen=True, slots=True)
class Spellings:
    """What `join_spellings` proposes: `map` is value -> its label, () for none, as `map:` of a collection file has it.

    `doubts` are sentences about what somebody who knows the column may decide otherwise.
    """

    map: dict[str, tuple[str, ...]]
    doubts: tuple[str, ...] = ()


def join_spellings(values: Mapping[str, float], known: Collection[str] = ()) -> Spellings:
    """A map that joins the spellings of each label, for the values of a column with how often each occurs.

    Case, blanks, the form of Unicode (NFKC) and, where there is nothing else but letters, punctuation make no other
    label; other signs (C, C++, C#) and digits do. The label is the one that is `known`, e.g. from a population, else
    the commonest spelling; of equals the one in lower case, then one that is not all capitals. A letter joins the only
    value that begins with it where `INITIALS` says so, or where each of the longer values has its own letter (w, m, d:
    weiblich, männlich, divers). Words are joined by their meaning in a column of genders alone, at least half of whose
    labels are among `GENDERS` or short for them: Woman, female and weiblich are one label there. What is in `NO_LABEL`,
    or a dash or question mark alone, is no label, but NA among codes of two letters (Namibia), and - beside + (a test's
    results). Only values that change are in the map: joined labels are joined no further, and what is `known` stays.

    >>> from collections import Counter
    >>> join_spellings(Counter({"Female": 5, "female": 2, "F": 2, "FEMALE.": 1, "male": 6, "N/A": 3})).map
    {'female': ('Female',), 'FEMALE.': ('Female',), 'F': ('Female',), 'N/A': ()}
    >>> join_spellings({"Female": 5, "F": 2, "us": 3, "Us": 1}, known=["f", "US"]).map
    {'Female': ('f',), 'F': ('f',), 'us': ('US',), 'Us': ('US',)}
    """
    empty, doubts = _without_label(values, known)
    spelled: dict[str, dict[str, list[str]]] = {}
    order = {value: (-values[value], value != value.lower(), value == value.upper(), value) for value in values}
    labels = sorted(values.keys() - set(empty), key=order.__getitem__)
    # The words for genders, where most of the values are some, or letters that are short for some.
    of_gender = (value for value in labels if _spelling_key(value) in (*GENDERS, "f", "m", "w"))
    total = sum(values[value] for value in labels)
    meanings = GENDERS if 2 * sum(values[value] for value in of_gender) >= total else dict[str, str]()
    for value in labels:
        key = _spelling_key(value)
        spelled.setdefault(meanings.get(key, key), {}).setdefault(key, []).append(value)
    names: dict[str, set[str]] = {}
    for label in known:
        key = _spelling_key(label)
        names.setdefault(meanings.get(key, key), set()).add(label)
    # A letter is short for what becomes the label: m is none of Mujer where that is weiblich here.
    becomes: dict[str, list[str]] = {}
    for key, of in spelled.items():
        given = names.get(key, set())
        becomes[key] = [_spelling_key(*given)] if len(given) == 1 else [*of] if given else [next(iter(of))]
    short, unsure = _abbreviations(becomes)
    joined: dict[str, tuple[str, ...]] = {}
    for key in [key for key in spelled if key not in short]:
        letters = [letter for letter, word in short.items() if word == key]
        words = sorted((value for values in spelled[key].values() for value in values), key=order.__getitem__)
        spellings = [*words, *(value for letter in letters for value in spelled[letter][letter])]
        given = {label for one in (key, *letters) for label in names.get(one, ())}
        if len(given) > 1:
            alike = listed(sorted(map(repr, given)))
            doubts.append(f"{alike} are labels that are known, so nothing that looks like them is joined")
            continue
        label = next(iter(given), spellings[0])
        joined |= {value: (label,) for value in spellings if value != label}
    joined |= dict.fromkeys(sorted(empty, key=order.__getitem__), ())
    return Spellings(joined, (*doubts, *unsure))


def meant(names: Iterable[object], labels: Collection[str]) -> dict[str, str]:
    """The name of each group as text -> the one of `labels` that it means, itself where it is a spelling of none.

    A label that is among the names is meant by no other one. Raises UsageError for a name that is no label.

    >>> meant(["Female", "M", 1, "other"], ["female", "male", "1"])
    {'Female': 'female', 'M': 'male', '1': '1', 'other': 'other'}
    """
    try:
        meaning = {text: text for text in map(label_text, names)}
    except ValueError as error:
        raise UsageError(str(error)) from None
    if strange := [text for text in meaning if text not in labels]:
        # Of labels that look alike themselves a name means one.
        free = dict.fromkeys((label for label in labels if label not in meaning), 1.0)
        alike = join_spellings(free).map
        apart = [label for label in free if label not in alike]
        joined = join_spellings(dict.fromkeys([*strange, *apart], 1.0), apart).map
        meaning |= {text: label for text in strange for label in joined.get(text, ()) if label in apart}
    return meaning


def _spelling_key(value: str) -> str:
    """What all spellings of a label have in common, and no two labels.

    >>> [_spelling_key(value) for value in (" Non-Binary ", "non binary", "U.S.", "A B", "A-", ".NET")]
    ['nonbinary', 'nonbinary', 'us', 'a b', 'a-', '.net']
    """
    # Folding may take a text out of its normal form, and hidden signs keep letters from being composed.
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible(value)).casefold())
    text = " ".join(text.split())
    plain = _DROPPED.sub("", text)
    if _DASHED.search(text) or not all(_is_letter(sign) for sign in _BETWEEN.sub("", plain)):
        return text
    words = _BETWEEN.sub(" ", plain).split()
    # Words may be written as one; single letters are no words: A B are two, AB is one.
    return ("" if all(len(word) > 1 for word in words) else " ").join(words) or text


def _is_letter(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LM"


def _without_label(values: Mapping[str, float], known: Collection[str]) -> tuple[list[str], list[str]]:
    """The values that say that there is no label, and what is in doubt."""
    empty = []
    for value in values:
        text = unicodedata.normalize("NFKC", visible(value)).strip()
        # Nan and Na are names; what a program or a person writes for nothing is nan, NaN, NA or N/A.
        folded = "" if text in ("Nan", "Na") else _AROUND_NOTHING.sub("", text.casefold())
        if value not in known and (not text or _NOTHING.fullmatch(text) or folded in NO_LABEL):
            empty.append(value)
    labels = values.keys() - set(empty)
    doubts = []
    if "NA" in empty and labels and all(re.fullmatch("[A-Z]{2}", label) for label in labels):
        empty.remove("NA")
        doubts.append("'NA' stays a label, as the others are codes of two letters too; if it is none, map it to []")
    if "+" in labels and (dashes := [value for value in empty if re.fullmatch(r"[-\u2212\u2013]", value)]):
        empty = [value for value in empty if value not in dashes]
        doubts.append(f"{dashes[0]!r} stays a label, as there is '+' too; if it is none, map it to []")
    if answers := [value for value in empty if value.casefold() == "none"]:
        doubts.append(f"{answers[0]!r} is taken for no label; where it is an answer (no religion), it is a group")
    return empty, doubts


def _abbreviations(spelled: Mapping[str, Collection[str]]) -> tuple[dict[str, str], list[str]]:
    """Letter -> the label that it is short for, and what could be so and is not sure; of label -> its words."""
    letters = [key for key in spelled if len(key) == 1 and _is_letter(key)]
    longer = [key for key in spelled if len(key) > 1 and _is_letter(key[0])]
    words = {
        letter: [key for key in longer if any(word.startswith(letter) for word in spelled[key])] for letter in letters
    }
    one_each = len(letters) == len(longer) > 1 and all(len(several) == 1 for several in words.values())
    sure = {
        letter: several[0]
        for letter, several in words.items()
        if len(several) == 1 and all(map(_is_letter, several[0])) and (one_each or INITIALS.get(letter) == several[0])
    }
    # F beside Woman, which does not begin with it.
    sure |= {letter: word for letter in letters if not words[letter] and (word := INITIALS.get(letter, "")) in spelled}
    unsure = []
    for letter, several in words.items():
        if letter not in sure and 0 < len(several) <= 3:
            longer = [word for key in several for word in spelled[key] if word.startswith(letter)]
            unsure.append(f"{letter.upper()!r} could be short for {' or '.join(map(repr, longer))} and stays a label")
    return sure, unsure
