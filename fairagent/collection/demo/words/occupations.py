"""The forty occupations of the demo collection, each the subject of one topic."""

from __future__ import annotations

from fairagent.collection.demo.words.arts import ARTS
from fairagent.collection.demo.words.crafts import CRAFTS
from fairagent.collection.demo.words.occupation import Occupation
from fairagent.collection.demo.words.science import SCIENCE
from fairagent.collection.demo.words.society import SOCIETY

OCCUPATIONS: tuple[Occupation, ...] = (*SOCIETY, *SCIENCE, *CRAFTS, *ARTS)
"""In the order of the topics."""
