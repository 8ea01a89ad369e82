"""SEAT: the association test on the vectors that encoders make of sentences (or, WEAT, of words).

The tests are the topics of an experiment, and its systems are encoders (`engine: {kind: dense, encoder: NAME}`).
Sources: Caliskan et al. (2017, WEAT); May et al. (2019, SEAT).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fairagent.collection import Collection
from fairagent.collection.records import Record, shown
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
from fairagent.evaluate.plan import Plan, SystemPlan, site_of
from fairagent.evaluate.questions import check_debiasing
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Column, Note, PageSection, Table
from fairagent.papers import read_records, text_of
from fairagent.papers.debias_rag.stage import DebiasRAG
from fairagent.retrieve.encoders import Embeddings, open_encoder
from fairagent.settings.faults import no_such
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Topic, Usage

SAMPLES = 100_000
"""How many partitions are looked at: all, where there are no more of them."""
SAME = 1e-12
"""Two sums of associations that differ by no more, relative to the associations, are a tie."""


@dataclass(frozen=True, slots=True)
class Association:
    """An effect size (within [-2, 2]) with its one-sided p-value, and whether that is exact or from a sample."""

    effect: float
    p: float
    exact: bool


def association_test(
    x: FloatArray,
    y: FloatArray,
    a: FloatArray,
    b: FloatArray,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> Association:
    """The test of targets `x`, `y` (n, d) against attributes `a` (m, d), `b` (l, d), all of them vectors.

    With their associations s, d = (mean s(x) - mean s(y)) / the standard deviation (ddof 1) of all s. DataError where
    all targets are associated alike, so that d is not defined.
    """
    of_x, of_y = associations(x, a, b), associations(y, a, b)
    p, exact = one_sided_p(of_x, of_y, samples, rng)
    spread = float(np.std(np.concatenate([of_x, of_y]), ddof=1))
    if spread <= SAME:
        raise DataError("all targets are associated alike with both sets of attributes: there is no effect size")
    return Association(float(of_x.mean() - of_y.mean()) / spread, p, exact)


def associations(targets: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """s(w) = mean cos(w, a) - mean cos(w, b) of each target w, (n,), within [-2, 2].

    DataError where a set is empty, or a vector is zero or not finite: it has no direction.

    >>> associations(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]])).tolist()
    [1.0, 0.0]
    """
    directions = []
    for vectors in (targets, a, b):
        what = "targets" if vectors is targets else "attributes"
        if not len(vectors):
            raise DataError(f"a set of {what} is empty")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise DataError(f"a vector of the {what} is zero or not finite, so it has no direction")
        directions.append(vectors / lengths)
    # The mean of cosines to a set is the product with the mean of its directions.
    return np.asarray(directions[0] @ (directions[1].mean(axis=0) - directions[2].mean(axis=0)))


def one_sided_p(
    of_x: FloatArray, of_y: FloatArray, samples: int = SAMPLES, rng: np.random.Generator | None = None
) -> tuple[float, bool]:
    """The share of partitions of all targets into two halves whose first is associated as much as `of_x`, or more.

    `of_x` and `of_y` are (n,). All C(2n, n) partitions are looked at where there are at most `samples`, and True stands
    beside the p-value; else `samples` - 1 random ones, with the real one added. Ties count, up to rounding.
    DataError where the halves are of different sizes.

    >>> one_sided_p(np.array([3.0, 2.0]), np.array([1.0, 0.0]))
    (0.16666666666666666, True)
    """
    n = len(of_x)
    if n != len(of_y):
        raise DataError(f"the test compares two sets of targets of one size, not of {n} and {len(of_y)}")
    every = np.concatenate([of_x, of_y])
    least = float(of_x.sum()) - SAME * float(np.abs(every).sum())
    # The sums of all 2^24 subsets still fit into memory.
    if n <= 12 and math.comb(2 * n, n) <= samples:
        # The sums and sizes of all subsets: those without each value, and those with it.
        sums, sizes = np.zeros(1), np.zeros(1, dtype=np.int8)
        for value in every:
            sums, sizes = np.concatenate([sums, sums + value]), np.concatenate([sizes, sizes + np.int8(1)])
        return float((sums[sizes == n] >= least).mean()), True
    rng = np.random.default_rng(0) if rng is None else rng
    reached = 1
    for first in range(1, samples, rows := max(1, 2_000_000 // len(every))):
        chances = rng.random((min(rows, samples - first), len(every)))
        chosen = np.argpartition(chances, n - 1, axis=1)[:, :n]
        reached += int((every[chosen].sum(axis=1) >= least).sum())
    return reached / samples, False


@dataclass(frozen=True, slots=True)
class TargetsAndAttributes:
    """A test of SEAT: two `sets` of targets of one size, two of attributes, and what the four are called."""

    sets: tuple[tuple[str, ...], ...]
    categories: tuple[str, ...]


def read_seat(path: Path) -> dict[str, TargetsAndAttributes]:
    """Name -> test, in the order of the file; DataError with every fault.

    A line has the test's name as `test`, and `targ1`, `targ2`, `attr1` and `attr2`, each with `category` and
    `examples`.
    """

    def read(id: str, record: Record) -> tuple[str, TargetsAndAttributes]:
        name, sets, categories = text_of(record, "test"), [], []
        for key in ("targ1", "targ2", "attr1", "attr2"):
            group: Any = record.get(key)
            texts = group.get("examples") if isinstance(group, dict) else None
            if not isinstance(texts, list) or not texts or not all(isinstance(one, str) and one for one in texts):
                raise ValueError(f"{key!r}: expected {{category, examples: [texts]}}, got {shown(group)}")
            sets.append(tuple(texts))
            categories.append(str(group.get("category", key)))
        if len(sets[0]) != len(sets[1]):
            sizes = f"{len(sets[0])} and {len(sets[1])}"
            raise ValueError(f"targ1 and targ2 are compared one for one, and have {sizes} examples")
        return name, TargetsAndAttributes(tuple(sets), tuple(categories))

    return read_records(path, "SEAT", read)


EFFECT = "|d|"
GENDER = ("sent-weat6", "sent-weat6b", "sent-weat7", "sent-weat7b", "sent-weat8", "sent-weat8b")
"""The tests of gender that the debiasing literature reports: career and family, mathematics, science and the arts."""


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
    """Puts encoders to the tests, whose texts they read as documents; threads may share it.

    Each test samples by `seed` anew.
    """

    tests: Tests
    encoders: Mapping[str, Callable[[list[str]], Embeddings]]
    samples: int
    seed: int
    _vectors: Memo = field(default_factory=Memo)

    def outcome(self, system: str, id: str) -> Outcome:
        """DataError, naming the test, where an association is not defined."""

        def encoded(texts: Sequence[str]) -> FloatArray:
            return np.asarray(self.encoders[system](list(texts)), dtype=np.float64)

        # Tests share their sets.
        sets = self.tests.tests[id].sets
        x, y, a, b = (self._vectors.get((system, texts), partial(encoded, texts)) for texts in sets)
        try:
            test = association_test(x, y, a, b, self.samples, np.random.default_rng(self.seed))
        except DataError as error:
            raise DataError(f"{id}: {error}") from None
        values = {"": {EFFECT: abs(test.effect)}}
        return Outcome.of(self.tests.topics[id], system, values, Usage(), record=asdict(test))


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
        return Tests(read_seat(Path(self.seat.path)), Path(self.seat.path).name)

    def check(self, checking: Checking) -> None:
        problems = checking.problems
        for name, system in checking.systems.items():
            engine = system.settings.engine
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
            check_debiasing(checking, [text for test in tests for side in test.sets for text in side])

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
        def documents(system: SystemPlan) -> Callable[[list[str]], Embeddings]:
            """Encodes texts; with DebiasRAG each after the contexts that it makes for it, from no documents."""
            engine: Any = system.settings.engine
            encode, chosen = open_encoder(engine.text_encoder, self.seat.device).documents, system.settings.debias
            if chosen.idle(system.settings):
                return encode
            stage: DebiasRAG = chosen.build(site_of(system, opened.collection, opened.models))

            def shown_after_contexts(text: str) -> str:
                return "\n\n".join([*(document.text for document in stage.apply(text, ()).documents), text])

            return lambda texts: encode(list(map(shown_after_contexts, texts)))

        encoders = {name: documents(system) for name, system in opened.plan.systems.items()}
        assert isinstance(opened.subject, Tests)  # `open` made it
        return SeatTrial(opened.subject, encoders, self.seat.samples, self.seed)

    def results(self, run: Results) -> KindResults:
        columns: list[str | Column] = ["test", "d", Column("p", ".5f"), "partitions", "sets"]
        tables, every = [], []
        for system in run.systems:
            paper = (run.expected or {}).get(system, {}).get("", {})
            lines: list[tuple[object, ...]] = []
            for one in run.answered:
                if one.system == system and (test := one.record):
                    partitions = "all" if test["exact"] else "sample"
                    line = (one.topic, test["effect"], test["p"], partitions, one.query)
                    every.append((system, *line))
                    lines.append((*line, *([paper.get(f"{EFFECT} of {one.topic}")] if paper else [])))
            heads = [*columns, *([f"expected {EFFECT}"] if paper else [])]
            tables.append(Table.of(heads, lines, f"{system}: effect sizes"))
        share = "the share of partitions of the targets with as large an effect"
        remarks = (f"d: effect size (0 is fair); p: one-sided, {share}",)
        page = PageSection("SEAT", "Associations", (*map(Note, remarks), *tables)) if run.answered else None
        files = {"seat.csv": Table.of(("system", "test", "d", "p", "partitions", "sets"), every)}
        together = {(one.system, "", f"{EFFECT} of {one.topic}"): one.values[""][EFFECT] for one in run.answered}
        return KindResults(tables, files, remarks, page, together=together)
