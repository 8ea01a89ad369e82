"""Halves of a collection's public topics: settings are chosen on one and reported on the other."""

from __future__ import annotations

import hashlib
from typing import Literal

Half = Literal["tune", "test"]


def half(collection: str, topic: str) -> Half:
    """Which half a topic is in: by a hash of the collection's name and the topic's id, so for ever.

    >>> half("wikilead", "1"), half("wikilead", "3")
    ('tune', 'test')
    """
    digest = hashlib.sha256(f"{collection}/{topic}".encode("utf-8", "surrogatepass")).hexdigest()
    return "tune" if int(digest, 16) % 2 == 0 else "test"
