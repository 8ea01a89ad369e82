"""Fair RAG experiments: rankings are drawn from the documents of a collection, or from the items of LaMP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairagent.collection import Collection
from fairagent.evaluate.design import Chosen, Design, Systems, without
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.evaluate.fair_rag.check import check_fair_rag, check_rows
from fairagent.evaluate.fair_rag.lamp import absolute, generators, kept_by_all, lamp_collection, read_labels, read_lamp
from fairagent.evaluate.fair_rag.rows import rows, with_prompts
from fairagent.evaluate.fair_rag.section import MEASURES, OF_GROUPS, FairRag, LampFiles
from fairagent.evaluate.problems import Problems
from fairagent.llm.models import Models


class FairRagDesign(Design):
    """Each system in its own order and drawn at each alpha; the topics are those of any ranking experiment."""

    @property
    def section(self) -> FairRag:
        """The section of the file."""
        assert self.described.fair_rag
        return self.described.fair_rag

    def prepared(self, systems: Systems) -> Systems:
        """The systems with the templates that their answers are asked with."""
        check_fair_rag(self.described, self.section, self.problems)
        check_rows(systems, self.section, self.problems)
        return with_prompts(systems, self.section)

    def rows(self, systems: Systems) -> Systems:
        """A row for each system's own order, each of its alphas, and the oracle."""
        return rows(systems, self.section)

    def measures(self, dimensions: Sequence[str]) -> tuple[str, ...]:
        """Those of items, and where there are dimensions, those of groups."""
        return (*MEASURES, *(OF_GROUPS if dimensions else ()))

    def parts(self) -> dict[str, Any]:
        """The section."""
        return {"fair_rag": self.section}

    def _length(self) -> int:
        return self.section.k


class LampDesign(FairRagDesign):
    """Each question has items of its own, and labels say which of them help which generator.

    Unless the experiment is to be `labeled`, these labels may still be missing.
    """

    def __init__(self, described: ExperimentFile, folder: Path, problems: Problems, labeled: bool) -> None:
        """As `Design`."""
        super().__init__(described, folder, problems)
        self.labeled = labeled
        self._lamp = problems.attempt("fair_rag.lamp", read_lamp, self.files)

    @property
    def files(self) -> LampFiles:
        """LaMP's files and the labels, with paths from anywhere."""
        assert self.described.fair_rag
        assert self.described.fair_rag.lamp
        return absolute(self.described.fair_rag.lamp, self.folder)

    @property
    def section(self) -> FairRag:
        """The section of the file, with paths from anywhere."""
        return super().section.model_copy(update={"lamp": self.files})

    def collection(self) -> Collection | None:
        """All items of all questions."""
        return lamp_collection(self._lamp) if self._lamp else None

    def dimensions(self, collection: Collection) -> tuple[str, ...]:
        """None: nobody knows whom the items are about."""
        return ()

    def choose(self, collection: Collection | None, dimensions: tuple[str, ...], systems: Systems) -> Chosen:
        """The questions that the file chooses."""
        return Chosen(tuple(self.ids(list(collection.topics)) if collection else ()))

    def opened(self, chosen: Chosen, systems: Systems, models: Models, environ: Mapping[str, str]) -> Chosen:
        """The questions with enough items that help every generator, if everything else is right."""
        if self._lamp is None or not self.labeled or self.problems.found:
            return chosen
        labels = read_labels(generators(systems, self._lamp, self.files, environ), self.problems)
        return without(chosen, *kept_by_all(chosen.topics, labels))
