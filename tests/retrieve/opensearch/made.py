"""A few made documents with groups: some that no query tells apart, some with words that stems disfigure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairagent.collection import GroupTable
from fairagent.types import Document


@dataclass(frozen=True)
class Made:
    """A collection in memory; another `state` stands for other files."""

    made: Sequence[Document]
    state: str = "as made"
    name: str = "made"

    def documents(self) -> Iterator[Document]:
        return iter(self.made)

    def fingerprint(self) -> str:
        return self.state


# In an order that is not that of their ids.
TIED = tuple(Document(f"tie{n * 7 % 12:02d}", "A quiet harbor town.") for n in range(12))
VARIED = (
    Document("law1", "The lawyer argued the case in court; the court agreed with the lawyer.", "A lawyer"),
    Document("law2", "A woman and a lawyer, she went to court. Universities of the cities.", "Advocate"),
    Document("law3", "Courts and lawyers of the harbor town. Lawyers, lawyers, lawyers!"),
    Document("title-only", "", "Lawyers"),
    Document("stop-words-only", "the and of"),
    Document("long", "ocean " * 40 + "lawyer " + "wave tide " * 50),
    Document("russian", "Она была адвокатом в Москве.", "Адвокат"),
    Document("a:b/c+d&e", "odd lawyer"),
    Document("x'y\"z\\", "odd lawyer"),
    Document("日本-1", "odd lawyer 😀 court"),
)
MADE = Made((*TIED[:6], *VARIED, *TIED[6:]))
GROUPS = {
    one.id: {"gender": ("male",) if number % 3 == 0 else ("female",) if number % 3 == 1 else ()}
    for number, one in enumerate(MADE.made)
}
GENDERS = GroupTable.from_rows(GROUPS.items(), ["gender"])
