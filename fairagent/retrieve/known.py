"""Which documents there are, told by the index where there is one of the collection as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.known import NAMED, KnownIds, known_documents
from fairagent.errors import FairAgentError
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.manifest import Manifest
from fairagent.types.clean import logger

log = logger(__name__)


def indexed_documents(collection: Collection, index: Path) -> KnownIds | None:
    """The documents in the index, or else what the collection tells of them (`known_documents`).

    An index of passages is no help, since everything else is about documents.
    """
    if not collection.chunks and Manifest.exists(index):
        try:
            Manifest.read_checked(index, collection)
            with Manifest.reading(index):
                ids = IdTable.load(index)
            some = tuple(id.decode() for id in ids.names(np.arange(min(NAMED, len(ids)))).tolist())
            return KnownIds(f"the index at {index}", lambda wanted: (ids.numbers(wanted) >= 0).tolist(), some)
        except FairAgentError as error:
            log.debug("the index at %s does not tell the collection's documents (%s)", index, error)
    return known_documents(collection)
