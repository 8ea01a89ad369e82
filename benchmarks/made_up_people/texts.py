"""Biographies: the text about one generated person.

Pages about societies, prizes, streets and schools: they name an occupation, but are no biography.
"""

import re
import string
from collections.abc import Mapping, Sequence
from functools import cache

from .people import (
    COUNTRIES,
    OCCUPATIONS,
    PEOPLE_REGIONS,
    REGIONS,
    SENTENCES,
    Country,
    Occupation,
    Person,
    SeededChoices,
    titled,
)
from .people import SENTENCES as SAY

SHORTEST, LONGEST = 40, 90
"""Words of a biography."""
OWN_SCHOOL = 0.35
"""Share of the women and men whose school was for women or men only."""
SHARED_PHRASE = 0.5
"""Share of the people who are described by the phrases that are usual in their region."""
Part = tuple[float, Sequence[str]]
"""Where a sentence stands in the text (smaller is earlier), and the templates it is chosen from."""
_A = re.compile(r"\ba\(n\) (\w+)")
_CONSONANT_SOUND = ("eu", "uga", "uni", "uru", "us", "one")


def write_biography(person: Person, draw: SeededChoices) -> str:
    """A biography of 40 to 90 words in which the wordings of `person` are kept."""
    teller = _Teller(person, draw)
    told = [teller.tell(place, templates) for place, templates in _always(person)]
    enough = draw.number(SHORTEST, 75)
    for place, templates in _perhaps(person, draw):
        if _words(told) >= enough:
            break
        sentence = teller.tell(place, templates)
        if _words([*told, sentence]) <= LONGEST:
            told.append(sentence)
    return " ".join(text for _, text in sorted(told, key=lambda part: part[0]))


def _always(person: Person) -> list[Part]:
    """What has to be said: here the wordings decide whether the occupation's name is used, and how often."""
    parts: list[Part] = [(1.5, SAY["moves"])] if len(person.countries) > 1 else []
    if not person.occupations:
        return [*parts, (0, SAY["bystander_openings"]), (2, SAY["bystanding"])]
    wording, *second = person.wordings
    parts.append((2, SAY["career"]))
    if wording == "named":
        parts += [
            (0, SAY["paired_openings"] if second == ["named"] else SAY["named_openings"]),
            (4, SAY["named_again"]),
        ]
    else:
        parts.append((0, SAY["other_openings"]))
    if wording == "once":
        parts.append((6, SAY["named_once"]))
    if second:
        said = second == ["described"] or person.wordings == ("named", "named")
        parts.append((5, SAY["second_other"] if said else SAY["second_named"]))
    return parts


def _perhaps(person: Person, draw: SeededChoices) -> list[Part]:
    """What is said until the text is long enough, the first ones first; the same for every group."""
    parts: list[Part] = []
    if person.wordings[:1] == ("named",) and draw.chance(0.5):
        parts.append((4.5, SAY["named_again"]))
    if person.gender and draw.chance(0.55):
        parts.append((5.5, SAY["of_gender"][person.gender]))
    if person.occupations and draw.chance(0.65):
        parts.append((7, SAY["mentions"]))
    if draw.chance(0.5):
        parts.append((7.5, SAY["relatives"]))
    if not person.occupations:
        parts.append((2.5, SAY["bystanding"]))
    elif draw.chance(0.5):
        parts.append((3, SAY["works"]))
    if draw.chance(0.6):
        parts.append((1, SAY["schooling"]))
    if person.countries and draw.chance(0.35):
        parts.append((6.5, SAY["honors"]))
    return [*parts, (8, SAY["life"]), (9, SAY["closings"]), *((8.5, SAY["life"]),) * 4]


def fill(template: str, slots: Mapping[str, str]) -> str:
    """Fill the slots, choose between "a" and "an", and begin with a capital letter.

    >>> fill("{they} became a(n) {one}.", {"they": "she", "one": "architect"})
    'She became an architect.'
    """
    text = _A.sub(lambda match: f"{_article(match[1])} {match[1]}", template.format_map(slots))
    return text[0].upper() + text[1:]


class _Teller:
    """Fills templates for one person, and says nothing twice."""

    def __init__(self, person: Person, draw: SeededChoices) -> None:
        self._draw = draw
        self._told: set[str] = set()
        self._slots = _person_slots(person, draw) | _country_slots(person.countries, draw)
        self._slots["trade"] = draw.one(SAY["trades"])
        phrases: dict[str, Sequence[str]] = {}
        for number, mark in zip(person.occupations, ("", "second_"), strict=False):
            own = OCCUPATIONS[number]
            names = {"one": own.one, "many": own.many, "field": own.field, "Field": titled(own.field)}
            self._slots |= {f"{mark}{slot}": name for slot, name in names.items()}
            lists = {"did": own.did, "role": own.roles, "work": own.works, "place": own.places}
            phrases |= {f"{mark}{slot}": choices for slot, choices in lists.items()}
        # Phrases wait in lists, and each is used once; the last one is next.
        self._waiting = {slot: _in_order(choices, person.countries, draw) for slot, choices in phrases.items()}
        # A person does the last noted thing between five years after the start and the age of seventy.
        until = min(person.born + 70, person.died or 2019)
        self._years = list(range(int(self._slots["start"]) + 5, until + 1)) or [until]
        self._others = [
            other
            for number, other in enumerate(OCCUPATIONS)
            if (number not in person.occupations if person.near is None else number == person.near)
        ]
        self._schools = SAY["own_schools"].get(person.gender, SAY["schools"])

    def tell(self, place: float, templates: Sequence[str]) -> tuple[float, str]:
        """A sentence after one of `templates`, with its place in the text."""
        usable = [t for t in templates if t not in self._told and all(map(self._knows, slots_of(t)))]
        template = self._draw.one(usable)
        self._told.add(template)
        return place, fill(template, self._slots | self._fresh(slots_of(template)))

    def _knows(self, slot: str) -> bool:
        return slot in self._slots or slot.removesuffix("_too") in self._waiting or slot in _FRESH

    def _fresh(self, slots: frozenset[str]) -> dict[str, str]:
        """Values that are drawn anew for each sentence."""
        fresh = {}
        for slot in sorted(slots):
            if (waiting := self._waiting.get(slot.removesuffix("_too"))) is not None:
                fresh[slot] = waiting.pop()
        if "finish" in slots:
            fresh["finish"] = str(self._draw.one(self._years))
        if "school" in slots:
            schools = self._schools if self._draw.chance(OWN_SCHOOL) else SAY["schools"]
            school = self._draw.one([s for s in schools if slots_of(s) <= self._slots.keys()])
            fresh["school"] = school.format_map(self._slots)
        if slots & _OTHER:
            other = self._draw.one(self._others)
            did, did_too = self._draw.some(other.did, 2)
            fresh |= {"other": other.one, "others": other.many, "other_did": did, "other_did_too": did_too}
        return fresh


_OTHER = frozenset({"other", "others", "other_did", "other_did_too"})
_FRESH = _OTHER | {"finish", "school"}


@cache
def slots_of(template: str) -> frozenset[str]:
    """The names of a template's slots."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(template) if name)


def _person_slots(person: Person, draw: SeededChoices) -> dict[str, str]:
    start = person.born + draw.number(20, 28)
    return {
        "name": person.name,
        "surname": person.surname,
        "born": str(person.born),
        "years": f"{person.born}–{person.died}" if person.died else f"born {person.born}",
        "is": "was" if person.died else "is",
        "age": str(draw.number(9, 17)),
        "start": str(start),
        "patron": draw.one(SAY["patrons"]),
        **({"died": str(person.died)} if person.died else {}),
        **SAY["pronouns"].get(
            person.gender,
            {"they": person.surname, "them": person.surname, "their": f"{person.surname}'s", "was": "was"},
        ),
    }


def _country_slots(countries: tuple[Country, ...], draw: SeededChoices) -> dict[str, str]:
    slots = {}
    for country, mark in zip(countries, ("", "2"), strict=False):
        slots[f"country{mark}"] = country.name
        slots[f"city{mark}"] = draw.one(country.cities)
        slots[f"demonym{mark}"] = country.demonym
    if countries:
        slots["body"] = draw.one(SAY["bodies"][draw.one(countries).region])
    return slots


def _in_order(phrases: Sequence[str], countries: tuple[Country, ...], draw: SeededChoices) -> list[str]:
    """`phrases` in random order; often those that are usual in the region come last, to be used first."""
    order = draw.some(phrases, len(phrases))
    if countries and draw.chance(SHARED_PHRASE):
        usual = phrases[REGIONS.index(countries[0].region) % len(phrases) :: len(REGIONS)]
        order.sort(key=lambda phrase: phrase in usual)
    return order


def _article(word: str) -> str:
    vowel = word[0].lower() in "aeiou" and not word.lower().startswith(_CONSONANT_SOUND)
    return "an" if vowel else "a"


def _words(told: Sequence[tuple[float, str]]) -> int:
    return sum(text.count(" ") + 1 for _, text in told)


def write_page(occupation: Occupation, draw: SeededChoices, taken: set[str]) -> tuple[str, str, str]:
    """A page's title (new to `taken`, and added to it), text and region."""
    while True:
        region = draw.weighted(PEOPLE_REGIONS)
        country = draw.one([country for country in COUNTRIES if country.region == region])
        start = draw.number(1870, 1990)
        slots = {
            "many": occupation.many,
            "Many": titled(occupation.many),
            "field": occupation.field,
            "Field": titled(occupation.field),
            "city": draw.one(country.cities),
            "country": country.name,
            "demonym": country.demonym,
            "patron": draw.one(SENTENCES["patrons"]),
            "start": str(start),
            "finish": str(start + draw.number(5, 28)),
        }
        template, text = draw.one(list(SENTENCES["pages"].items()))
        title = fill(template, slots)
        if title not in taken:
            taken.add(title)
            return title, fill(text, slots), region
