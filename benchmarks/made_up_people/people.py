"""The people of the demo: groups, occupations, and how directly each text names the occupation.

Seeded random choices that are the same on every platform and Python version.

Of `random.Random` only `random()` promises the same numbers for a seed in every version; `choice`, `sample`
and `shuffle` do not, so the few choices needed here are made from it.

The demo's word lists and sentence templates, read from `word_lists/*.yaml`.
"""

import math
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

T = TypeVar("T")


class SeededChoices:
    """Choices in a fixed order from one seed.

    >>> draw = SeededChoices(20221)
    >>> draw.number(1900, 1999), draw.one(["a", "b", "c"])
    (1960, 'c')
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, share: float) -> bool:
        """True in `share` of all cases."""
        return self._random() < share

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * self._random()

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def one(self, choices: Sequence[T]) -> T:
        """One of `choices`, each as likely."""
        return choices[int(self._random() * len(choices))]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One key of `weights`, as likely as its weight (>= 0, not all 0)."""
        # Not sum(): Python 3.12 made it round floats otherwise than 3.11 does.
        point = self._random() * math.fsum(weights.values())
        for choice, weight in weights.items():
            point -= weight
            if point < 0:
                return choice
        return choice

    def some(self, choices: Sequence[T], n: int) -> list[T]:
        """`n` different ones of `choices`, in random order."""
        left = list(choices)
        return [left.pop(int(self._random() * len(left))) for _ in range(n)]


@dataclass(frozen=True, slots=True)
class Names:
    """One culture's names; where `family_first`, people are called "Qiao Ruolan" and then "Qiao"."""

    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]
    family_first: bool = False


@dataclass(frozen=True, slots=True)
class Country:
    """A country, what its people are called, where they live, and the name lists that are usual there."""

    region: str
    name: str
    demonym: str
    cities: tuple[str, ...]
    cultures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Occupation:
    """One occupation, the topic that asks for it, and the two ways of writing about it.

    `one` and `many` name it outright, as the topic's title does. Everything else describes the same work
    without the title's last word; that difference is what the skew is made of (`fairagent.collection.demo`).
    """

    many: str
    """In the plural; the topic's title is this with a capital letter."""
    one: str
    """In the singular."""
    field: str
    """What is studied or practiced; fits "studied ..." and "a society for ..."."""
    about: str
    """Whom the topic looks for; completes "People who ..."."""
    roles: tuple[str, ...]
    """Other names of the same work."""
    did: tuple[str, ...]
    """What such a person did, in the past tense; fits "she ... and ..."."""
    works: tuple[str, ...]
    """What such a person is remembered for; fits "best known for ..."."""
    places: tuple[str, ...]
    """Where such a person worked; fits "at ..."."""
    since: int = 1872
    """Nobody of this occupation is born earlier."""

    @property
    def title(self) -> str:
        """The topic's title, as a user would type it."""
        return self.many[0].upper() + self.many[1:]


def titled(phrase: str) -> str:
    """Write the words of a phrase with capital letters, as in a name.

    >>> titled("the stars and planets")
    'the Stars and Planets'
    """
    return " ".join(word if word in {"and", "the"} else string.capwords(word) for word in phrase.split())


def _read(name: str) -> Any:
    text = (Path(__file__).parent / "word_lists" / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def _names(women: str, men: str, families: str, family_first: bool = False) -> Names:
    return Names(tuple(women.split()), tuple(men.split()), tuple(families.split()), family_first)


NAMES: dict[str, Names] = {culture: _names(**lists) for culture, lists in _read("names").items()}
"""Culture -> its names."""
OCCUPATIONS: tuple[Occupation, ...] = tuple(Occupation(**_tuples(row)) for row in _read("occupations"))
"""In the order of the topics."""
COUNTRIES = tuple(Country(region, **_tuples(row)) for region, rows in _read("countries").items() for row in rows)
REGIONS = tuple(dict.fromkeys(country.region for country in COUNTRIES))
SENTENCES: dict[str, Any] = _read("sentences")
"""Name -> templates; by key: `of_gender`, `own_schools`, `bodies` (region), `pronouns` (gender), `pages` (title)."""


GENDERS = {"female": 0.43, "male": 0.48, "nonbinary": 0.03, "": 0.06}
"""Shares of the people; "" is unknown: the text has initials instead of a given name, and no pronoun."""
PEOPLE_REGIONS = dict(zip(REGIONS, (0.13, 0.25, 0.26, 0.12, 0.19, 0.05), strict=True))
NO_REGION = 0.05
"""Share of the people whose text names no place."""
TWO_REGIONS = 0.08
"""Share of the people who moved from one region to another, and belong to both."""
TWO_OCCUPATIONS = 0.40
BYSTANDERS = 0.10
"""Share of the people who have none of the occupations, but a life among people who have one of them."""

LIKELIER_NAMED = frozenset({"male", "Europe", "Northern America"})
"""The groups whose biographies name the occupation outright more often: the source of the skew."""


@dataclass(frozen=True, slots=True)
class Person:
    """One invented person.

    `wordings` stands beside `occupations` and says how the text names each: "named" opens with the name and
    repeats it, "once" has it once, "described" never (a second occupation is named only once at most, except
    in the opening, which names both or the first). Somebody without an occupation lives among people of the
    occupation `near`.
    """

    name: str
    surname: str
    gender: str
    countries: tuple[Country, ...]
    occupations: tuple[int, ...]
    wordings: tuple[str, ...]
    born: int
    died: int | None
    near: int | None = None

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions of the person's countries, sorted."""
        return tuple(sorted({country.region for country in self.countries}))


@dataclass(frozen=True, slots=True)
class Leaning:
    """How one occupation differs from the rest: who follows it, and how skewed the texts about it are.

    `groups` are factors; a skew of 0 means that all groups are written about alike.
    """

    size: float
    groups: Mapping[str, float]
    gender_skew: float
    region_skew: float


def draw_leanings(draw: SeededChoices) -> tuple[Leaning, ...]:
    """One leaning for each occupation. Which group an occupation leans to is chance, not a cliché."""
    return tuple(
        Leaning(
            size=draw.between(0.75, 1.20),
            groups={group: draw.between(0.70, 1.30) for group in (*GENDERS, *REGIONS)},
            gender_skew=draw.between(0.4, 2.6),
            region_skew=draw.between(0.0, 2.0),
        )
        for _ in OCCUPATIONS
    )


def draw_person(draw: SeededChoices, leanings: tuple[Leaning, ...], taken: set[str]) -> Person:
    """The next person; the name is new to `taken`, and is added to it."""
    gender = draw.weighted(GENDERS)
    countries = _draw_countries(draw)
    groups = [gender, *(country.region for country in countries)]
    weights = {number: _affinity(leaning, groups) for number, leaning in enumerate(leanings)}
    first = draw.weighted(weights)
    near = first if draw.chance(BYSTANDERS) else None
    occupations = [first] if near is None else []
    if occupations and draw.chance(TWO_OCCUPATIONS):
        del weights[first]
        occupations.append(draw.weighted(weights))
    born = draw.number(max(OCCUPATIONS[number].since for number in (first, *occupations)), 1985)
    died = born + draw.number(55, 93)
    name, surname = _draw_name(draw, gender, countries, taken)
    return Person(
        name=name,
        surname=surname,
        gender=gender,
        countries=countries,
        occupations=tuple(occupations),
        wordings=tuple(_draw_wording(draw, leanings[number], gender, countries) for number in occupations),
        born=born,
        died=died if died < 2020 else None,
        near=near,
    )


def _draw_countries(draw: SeededChoices) -> tuple[Country, ...]:
    if draw.chance(NO_REGION):
        return ()
    weights = dict(PEOPLE_REGIONS)
    regions = [draw.weighted(weights)]
    if draw.chance(TWO_REGIONS):
        del weights[regions[0]]
        regions.append(draw.weighted(weights))
    return tuple(draw.one([c for c in COUNTRIES if c.region == region]) for region in regions)


def _draw_name(draw: SeededChoices, gender: str, countries: tuple[Country, ...], taken: set[str]) -> tuple[str, str]:
    name = ""
    while not name or name in taken:
        country = countries[0] if countries else draw.one(COUNTRIES)
        names = NAMES[draw.one(country.cultures)]
        women = gender == "female" or (gender != "male" and draw.chance(0.5))
        given, family = draw.one(names.women if women else names.men), draw.one(names.families)
        # Once a name is taken, a second initial keeps the few combinations of a culture from running out.
        initial = f" {draw.one(string.ascii_uppercase)}." if name or not gender or draw.chance(0.2) else ""
        if not gender:
            name = f"{given[0]}.{initial} {family}"
        else:
            name = f"{family} {given}" if names.family_first else f"{given}{initial} {family}"
            name += initial if names.family_first and name in taken else ""
    taken.add(name)
    return name, family


def _affinity(leaning: Leaning, groups: list[str]) -> float:
    weight = leaning.size
    for group in groups:
        weight *= leaning.groups[group]
    return weight


def _draw_wording(draw: SeededChoices, leaning: Leaning, gender: str, countries: tuple[Country, ...]) -> str:
    """How the text names the occupation: the one place where the skew is made."""
    push = leaning.gender_skew * _side([gender] if gender else [])
    push += leaning.region_skew * _side([country.region for country in countries])
    named = min(max(0.36 + 0.30 * push, 0.04), 0.80)
    described = min(max(0.34 - 0.26 * push, 0.04), 0.80)
    return draw.weighted({"named": named, "once": max(1.0 - named - described, 0.04), "described": described})


def _side(groups: list[str]) -> float:
    """+1/2 for a group that is likelier named, -1/2 for another, their mean for several, 0 for none."""
    if not groups:
        return 0.0
    return len([group for group in groups if group in LIKELIER_NAMED]) / len(groups) - 0.5
