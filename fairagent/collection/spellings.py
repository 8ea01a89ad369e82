"""Which values of a column are spellings of the same label, and which say that there is none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from fairagent.collection.records import listed
from fairagent.errors import UsageError
from fairagent.types.clean import label_text, visible

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
    meanings = _meanings({value: values[value] for value in labels})
    for value in labels:
        key = _key(value)
        spelled.setdefault(meanings.get(key, key), {}).setdefault(key, []).append(value)
    short, unsure = _abbreviations(spelled)
    names: dict[str, set[str]] = {}
    for label in known:
        key = _key(label)
        names.setdefault(meanings.get(key, key), set()).add(label)
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


def _key(value: str) -> str:
    """What all spellings of a label have in common, and no two labels.

    >>> _key(" Non-Binary "), _key("nonbinary"), _key("non binary"), _key("U.S."), _key("A B"), _key("A-"), _key(".NET")
    ('nonbinary', 'nonbinary', 'nonbinary', 'us', 'a b', 'a-', '.net')
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


def _meanings(values: Mapping[str, float]) -> Mapping[str, str]:
    """The words for genders, where most of the values are some, or letters that are short for some; else none."""
    keys = {value: _key(value) for value in values}
    of_gender = sum(values[value] for value, key in keys.items() if key in GENDERS or key in ("f", "m", "w"))
    return GENDERS if 2 * of_gender >= sum(values.values()) else {}


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
