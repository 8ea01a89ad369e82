"""The demo's word lists and sentence templates, read from `word_lists/*.yaml`."""

import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairagent.intake.yaml_text import parse_yaml


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
    return parse_yaml(text)


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
