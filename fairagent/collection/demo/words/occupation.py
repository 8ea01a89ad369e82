"""What the demo collection has to say about one occupation."""

from __future__ import annotations

import string
from dataclasses import dataclass


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
