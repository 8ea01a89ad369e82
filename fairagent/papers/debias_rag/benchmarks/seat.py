"""SEAT: the association test on the vectors that encoders make of sentences (or, WEAT, of words).

The tests are the topics of an experiment, and its systems are encoders (`engine: {kind: dense, encoder: NAME}`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fairagent.collection import Collection
from fairagent.errors import DataError, SettingsError
from fairagent.evaluate.fingerprint import file_hash
from fairagent.evaluate.kind import (
    Checking,
    Chosen,
    ExperimentKind,
    FileSection,
    JsonObject,
    KindResults,
    MeasureInfo,
    Opened,
    Subject,
    choose_topics,
)
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import Plan, site_of
from fairagent.evaluate.questions import check_debiasing
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Column, Note, PageSection, Table
from fairagent.papers.debias_rag.benchmarks.items import TargetsAndAttributes, read_seat
from fairagent.papers.debias_rag.benchmarks.measures import SAMPLES, Association, association_test
from fairagent.papers.debias_rag.stage import DebiasRAG
from fairagent.retrieve.encoders import Embeddings, Encoder, open_encoder
from fairagent.settings.faults import no_such
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Topic, Usage

EFFECT = "|d|"
GENDER = ("sent-weat6", "sent-weat6b", "sent-weat7", "sent-weat7b", "sent-weat8", "sent-weat8b")
"""The tests of gender that the debiasing literature reports: career and family, mathematics, science and the arts."""


@dataclass(frozen=True, slots=True)
class InContext:
    """An encoder that reads every text after the contexts that DebiasRAG makes for it, from no documents."""

    encoder: Encoder
    stage: DebiasRAG

    @property
    def name(self) -> str:
        return f"{self.encoder.name} (DebiasRAG)"

    def documents(self, texts: Sequence[str]) -> Embeddings:
        return self.encoder.documents(list(map(self._shown, texts)))

    def queries(self, texts: Sequence[str]) -> Embeddings:
        return self.encoder.queries(list(map(self._shown, texts)))

    def _shown(self, text: str) -> str:
        contexts = [document.text for document in self.stage.apply(text, ()).documents]
        return "\n\n".join([*contexts, text])


@dataclass(frozen=True, slots=True)
class Associations:
    """Tests an encoder's vectors of texts as documents; threads may share it. Each test samples by `seed` anew."""

    encoder: Encoder
    samples: int = SAMPLES
    seed: int = 0
    _vectors: Memo = field(default_factory=Memo)

    def test(self, test: TargetsAndAttributes) -> Association:
        """DataError, naming the test, where an association is not defined."""
        sets = (*test.targets, *test.attributes)
        # Tests share their sets.
        x, y, a, b = (self._vectors.get(texts, partial(self._encoded, texts)) for texts in sets)
        try:
            return association_test(x, y, a, b, self.samples, np.random.default_rng(self.seed))
        except DataError as error:
            raise DataError(f"{test.name}: {error}") from None

    def _encoded(self, texts: Sequence[str]) -> FloatArray:
        return np.asarray(self.encoder.documents(list(texts)), dtype=np.float64)


class SeatTests(FileSection):
    """The section `seat:`."""

    path: str = Field(min_length=1, examples=["seat.jsonl"])
    """The tests, relative to this file: a file of them, or a folder of files with one each."""
    tests: tuple[str, ...] | Literal["all"] = GENDER
    """The names of the tests, or `all` of the file; by default the six of gender."""
    samples: int = Field(SAMPLES, ge=2)
    """Partitions of the targets that a p-value looks at, at most."""
    device: str = "cpu"
    """torch's, for the encoders."""


@dataclass(frozen=True, slots=True)
class Tests:
    """The tests by their names, and as topics."""

    tests: Mapping[str, TargetsAndAttributes]
    name: str

    @property
    def topics(self) -> Mapping[str, Topic]:
        return {name: Topic(name, "{}/{}, {}/{}".format(*test.categories)) for name, test in self.tests.items()}


@dataclass(frozen=True, slots=True, eq=False)
class SeatTrial:
    """Puts encoders to the tests."""

    tests: Tests
    systems: Mapping[str, Associations]

    def outcome(self, system: str, id: str) -> Outcome:
        association = self.systems[system].test(self.tests.tests[id])
        values = {"": {EFFECT: abs(association.effect)}}
        return Outcome.of(self.tests.topics[id], system, values, Usage(), record=asdict(association))


class Seat(ExperimentKind):
    """How unlike two sets of texts are in what encoders put them close to (SEAT, WEAT)."""

    kind: Literal["seat"] = "seat"
    seat: SeatTests
    """The tests that encoders are put to."""

    uses: ClassVar[frozenset[str]] = frozenset({"debias"})
    overall: ClassVar[str] = "all"
    scope: ClassVar[str] = "SEAT"

    @property
    def n(self) -> int:
        return 1

    def open(self, collection: Collection) -> Tests:
        """The tests of the file."""
        return Tests(read_seat(Path(self.seat.path)), Path(self.seat.path).name)

    def check(self, checking: Checking) -> None:
        for name, system in checking.systems.items():
            engine, problems = system.settings.engine, checking.problems
            if named := getattr(engine, "text_encoder", ""):
                problems.attempt(f"systems.{name}.engine", open_encoder, named, self.seat.device)
            else:
                wanted = "SEAT tests encoders: write `engine: {kind: dense, encoder: NAME}`"
                problems.add(SettingsError, f"systems.{name}.engine: is {engine.kind!r}; {wanted}")
            if system.settings.debias.templates:
                wanted = "SEAT asks no language model: leave rewrites at 0"
                problems.add(SettingsError, f"systems.{name}.debias: {wanted}")
        if isinstance(checking.subject, Tests):
            tests = checking.subject.tests.values()
            texts = [text for test in tests for side in (*test.targets, *test.attributes) for text in side]
            check_debiasing(checking, texts)

    def choose(self, checking: Checking) -> Chosen:
        if checking.subject is None:
            return Chosen()
        there = list(checking.subject.topics)
        wanted = there if self.seat.tests == "all" else self.seat.tests
        for name in wanted:
            if name not in there:
                message = f"seat.tests: {self.seat.path} has {no_such('test', name, there)}"
                checking.problems.add(SettingsError, message)
        return Chosen(tuple(choose_topics(self, [name for name in there if name in wanted], checking)))

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return (MeasureInfo(EFFECT, "the size of SEAT's effect, from 0 (fair) to 2", lower_is_better=True),)

    @property
    def measured_together(self) -> tuple[str, ...]:
        return () if self.seat.tests == "all" else tuple(f"{EFFECT} of {test}" for test in self.seat.tests)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        return {"seat": {"tests": file_hash(Path(self.seat.path)), "samples": self.seat.samples}}

    def trial(self, opened: Opened) -> SeatTrial:
        systems = {}
        for name, system in opened.plan.systems.items():
            engine: Any = system.settings.engine
            encoder: Encoder = open_encoder(engine.text_encoder, self.seat.device)
            chosen = system.settings.debias
            if not chosen.idle(system.settings):
                encoder = InContext(encoder, chosen.build(site_of(system, opened.collection, opened.models)))
            systems[name] = Associations(encoder, self.seat.samples, self.seed)
        assert isinstance(opened.subject, Tests)  # `open` made it
        return SeatTrial(opened.subject, systems)

    def results(self, run: Results) -> KindResults:
        """Every system's tests."""
        columns: list[str | Column] = ["test", "d", Column("p", ".5f"), "partitions", "sets"]
        tables, every = [], []
        for system in run.systems:
            paper = (run.expected or {}).get(system, {}).get("", {})
            of_system = [
                (
                    one.topic,
                    one.record["effect"],
                    one.record["p"],
                    "all" if one.record["exact"] else "sample",
                    one.query,
                )
                for one in run.answered
                if one.system == system and one.record
            ]
            every += [(system, *line) for line in of_system]
            lines = [(*line, *([paper.get(f"{EFFECT} of {line[0]}")] if paper else [])) for line in of_system]
            heads = [*columns, *([f"expected {EFFECT}"] if paper else [])]
            tables.append(Table.of(heads, lines, f"{system}: effect sizes"))
        share = "the share of partitions of the targets with as large an effect"
        remarks = (f"d: effect size (0 is fair); p: one-sided, {share}",)
        page = PageSection("SEAT", "Associations", (*map(Note, remarks), *tables)) if run.answered else None
        files = {"seat.csv": Table.of(("system", "test", "d", "p", "partitions", "sets"), every)}
        together = {(one.system, "", f"{EFFECT} of {one.topic}"): one.values[""][EFFECT] for one in run.answered}
        return KindResults(tables, files, remarks, page, together=together)
