"""Parts of the topics: halves, of which one is for choosing settings and one for reporting, and samples by class."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal

from fairagent.types import Topic

Half = Literal["tune", "test"]


def half(collection: str, topic: str) -> Half:
    """Which half a topic is in: by a hash of the collection's name and the topic's id, so for ever.

    >>> half("wikilead", "1"), half("wikilead", "3")
    ('tune', 'test')
    """
    digest = hashlib.sha256(f"{collection}/{topic}".encode("utf-8", "surrogatepass")).hexdigest()
    return "tune" if int(digest, 16) % 2 == 0 else "test"


def sample_of(topics: Mapping[str, Topic], ids: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """`count` of the `ids` in their order, of each group of the `topics` its share; see `sampled`."""
    chosen = sampled({id: topics[id].group for id in ids}, count, seed)
    return tuple(id for id in ids if id in chosen)


def sampled(classes: Mapping[str, str], count: int, seed: int) -> frozenset[str]:
    """`count` of the topics (topic -> class), of each class as many as its share: all, where there are no more.

    What is left over by rounding goes to the classes with the largest remainders, ties to the first in the alphabet.
    Within a class the topics are those whose hash with the seed is the smallest, so that no other topic matters.

    >>> sorted(sampled(dict(zip("abcdef", "xxxxyy")), 3, seed=1))
    ['a', 'd', 'e']
    """

    def drawn(topic: str) -> bytes:
        return hashlib.sha256(f"{seed}/{topic}".encode("utf-8", "surrogatepass")).digest()

    ordered: dict[str, list[str]] = {}
    for topic in sorted(classes, key=drawn):
        ordered.setdefault(classes[topic], []).append(topic)
    count = min(count, len(classes))
    quotas = {name: count * len(topics) // len(classes) for name, topics in ordered.items()}
    left = sorted(ordered, key=lambda name: (-(count * len(ordered[name]) % len(classes)), name))
    for name in left[: count - sum(quotas.values())]:
        quotas[name] += 1
    return frozenset(topic for name, topics in ordered.items() for topic in topics[: quotas[name]])
