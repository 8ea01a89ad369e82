"""Utility experiments: answers from the first k documents are compared with the relevant passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairagent.collection import Collection
from fairagent.evaluate.design import Chosen, Design, Systems
from fairagent.evaluate.utility.check import check_section, counted_topics
from fairagent.evaluate.utility.rows import rows
from fairagent.evaluate.utility.section import Utility


class UtilityDesign(Design):
    """Each system's documents in each order; groups play no part."""

    @property
    def section(self) -> Utility:
        """The section of the file."""
        assert self.described.utility
        return self.described.utility

    def dimensions(self, collection: Collection) -> tuple[str, ...]:
        """Those of the file, of which nothing is asked."""
        return self.described.dimensions

    def prepared(self, systems: Systems) -> Systems:
        """The systems in rank order."""
        ranked = rows(systems, self.section.model_copy(update={"orders": ("rank",)}))
        check_section(self.described, self.section, ranked, self.problems)
        return ranked

    def choose(self, collection: Collection | None, dimensions: tuple[str, ...], systems: Systems) -> Chosen:
        """The topics with a relevant passage that has a text."""
        if collection is None:
            return Chosen(dimensions=dimensions)
        chosen = self.ids(list(collection.topics))
        topics, excluded = counted_topics(collection, chosen, self.section, systems, self.problems)
        return Chosen(tuple(topics), excluded, dimensions)

    def rows(self, systems: Systems) -> Systems:
        """A row for each system and order."""
        return rows(systems, self.section)

    def measures(self, dimensions: Sequence[str]) -> tuple[str, ...]:
        """Those of the section, for each k."""
        return self.section.measures

    def parts(self) -> dict[str, Any]:
        """The section."""
        return {"utility": self.section}

    def _length(self) -> int:
        return max(self.section.ks)
