"""AWRF and nDCG of TREC Fair Ranking, and their product, as measures of ir-measures.

    import ir_measures
    from fairagent.guests.ir_measures import AWRF, nDCG, nDCG_AWRF

    of_gender = AWRF(groups=table, dimension="gender", population={"female": 0.5, "male": 0.5})
    ir_measures.calc_aggregate([of_gender @ 20, nDCG @ 20, ir_measures.RR], qrels, run)

Parameters are those of `fairagent.measures` (`cutoff`, `discount`, `log`, `unknown`), and for AWRF

    groups      a Collection, or its groups, e.g. a GroupTable; documents that it does not know have no known group
    dimension   one of its dimensions; may be left out where there is one
    population  label -> share of the world (of a collection: its own), which the target is averaged with, as TREC does
    target      label -> share: a target of your own, instead of the relevant documents' and the world's

`nDCG` is that of the track (binary, with the discount 1 / log2(max(rank, 2))), not `ir_measures.nDCG`.

Ties of scores are ordered by document id. A topic for which a measure is not defined (no relevant document, no target)
has the value nan and is left out of the mean; one that the run does not answer counts, as nDCG 0 and as the lowest AWRF
there is, 1 - ln 2 (0 with log 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairagent.extend import AWRF as FairnessMeasure
from fairagent.extend import NDCG as RelevanceMeasure
from fairagent.extend import (
    TARGET,
    Collection,
    JoinedGroups,
    JudgedBy,
    Measure,
    Product,
    UsageError,
    expect_installed,
    groups_alone,
    judged_value,
    no_such,
    parse_discount,
)

expect_installed("ir-measures", "fairagent.guests.ir_measures")
import ir_measures  # noqa: E402
from ir_measures import Metric, ParamInfo  # noqa: E402
from ir_measures.util import QrelsConverter, RunConverter  # noqa: E402

Grades = Mapping[str, int]


class _Measure(ir_measures.Measure):
    """What the three have in common; `NAME` is not the name of a measure that other providers know."""

    SUPPORTED_PARAMS: dict[str, Any] = {  # noqa: RUF012  # as its base says it
        "cutoff": ParamInfo(dtype=int, required=True, desc="ranking cutoff threshold"),
        "discount": ParamInfo(dtype=str, default="log2-max2", desc="weight of a rank"),
    }
    DEFAULT = math.nan
    __name__: str

    def validate_params(self) -> None:
        """Raise UsageError for parameters that make no sense."""
        if unknown := sorted(self.params.keys() - self.SUPPORTED_PARAMS.keys()):
            raise UsageError(f"{self.__name__} has {no_such('parameter', unknown[0], self.SUPPORTED_PARAMS)}")
        if "cutoff" not in self.params:
            raise UsageError(f"{self.__name__} needs a cut-off, e.g. {self.__name__} @ 20")
        self.relevance()

    def relevance(self) -> Measure:
        """This package's nDCG with these parameters."""
        return RelevanceMeasure(self["cutoff"], parse_discount(self["discount"]))

    def value(self, topic: str, grades: Grades, ranking: list[str]) -> float:
        """The measure of one topic's ranking; nan where it is not defined."""
        raise NotImplementedError

    def aggregator(self) -> _MeanOfDefined:
        """The mean over the topics that the measure is defined for."""
        return _MeanOfDefined()

    def __repr__(self) -> str:
        at = f"@{self.params['cutoff']}" if "cutoff" in self.params else ""
        return f"{self.__name__}({self.options()}){at}"

    def options(self) -> str:
        """The parameters as they are printed: all that are no objects, so that the text defines the measure."""
        printed = {key: self[key] for key in self.SUPPORTED_PARAMS if key not in ("cutoff", "groups")}
        return ", ".join(f"{key}={value}" for key, value in printed.items() if value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Measure) or repr(self) != repr(other):
            return False
        return self.params.get("groups") is other.params.get("groups")

    def __hash__(self) -> int:
        return hash(repr(self))


class _NDCG(_Measure):
    NAME = "nDCG (TREC Fair)"
    __name__ = "nDCG"

    def value(self, topic: str, grades: Grades, ranking: list[str]) -> float:
        return _value(self.relevance(), groups_alone(JoinedGroups([]), {}), topic, grades, ranking)


class _AWRF(_Measure):
    NAME = "AWRF (TREC Fair)"
    __name__ = "AWRF"
    SUPPORTED_PARAMS = _Measure.SUPPORTED_PARAMS | {
        "log": ParamInfo(dtype=str, default="e", desc="logarithm of the divergence, e or 2"),
        "unknown": ParamInfo(dtype=str, default="group", desc="group or ignore"),
        "groups": ParamInfo(required=True, desc="a Collection or its groups"),
        "dimension": ParamInfo(dtype=str, default="", desc="gender, region ..."),
        "population": ParamInfo(default=None, desc="label -> share of the world"),
        "target": ParamInfo(default=None, desc="label -> share"),
    }

    def validate_params(self) -> None:
        super().validate_params()
        if "groups" not in self.params:
            raise UsageError(f"{self.__name__} needs groups: {self.__name__}(groups=table, dimension='gender') @ 20")
        self.fairness()
        self.dimension()

    def fairness(self) -> Measure:
        """This package's AWRF with these parameters."""
        return FairnessMeasure(self["cutoff"], parse_discount(self["discount"]), self["log"], self["unknown"])

    def collection(self) -> Collection:
        """The groups, and the population to go with them."""
        given = self["population"]
        population = {} if given is None else {self["dimension"] or self["groups"].dimensions[0]: given}
        return groups_alone(self["groups"], population)

    def dimension(self) -> str:
        """The dimension measured; UsageError where none is named and there is not one alone."""
        there = self.collection().groups.dimensions
        if self["dimension"]:
            self.collection().groups.labels(self["dimension"])
        elif len(there) != 1:
            raise UsageError(f"{self.__name__} needs a dimension; there are: {', '.join(there)}")
        return str(self["dimension"] or there[0])

    def value(self, topic: str, grades: Grades, ranking: list[str]) -> float:
        target = TARGET if self["target"] is None else self["target"]
        return _value(self.fairness(), self.collection(), topic, grades, ranking, self.dimension(), target)


class _Product(_AWRF):
    NAME = "nDCG * AWRF (TREC Fair)"
    __name__ = "nDCG_AWRF"

    def fairness(self) -> Measure:
        """The product of both."""
        return Product(self.relevance(), super().fairness())


def _value(
    measure: Measure,
    collection: Collection,
    topic: str,
    grades: Grades,
    ranking: list[str],
    dimension: str = "",
    target: JudgedBy = TARGET,
) -> float:
    """`judged_value` by these judgments; nan where it is not defined."""
    value = judged_value(measure, replace(collection, qrels={topic: grades}), topic, ranking, dimension, target)
    return math.nan if value is None else value


class _MeanOfDefined(ir_measures.MeanAgg):
    """The mean of all values that are not nan."""

    def add(self, value: float) -> None:
        if not math.isnan(value):
            super().add(value)


class _Evaluator(ir_measures.Evaluator):
    """Measures runs against one set of judgments."""

    def __init__(self, measures: Sequence[_Measure], qrels: Mapping[str, Grades]) -> None:
        super().__init__(measures, set(qrels))
        self._measures, self._qrels = measures, qrels

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        scores = RunConverter(run).as_dict_of_dict()
        for measure in self._measures:
            for topic, grades in self._qrels.items():
                scored = scores.get(topic, {})
                ranking = sorted(scored, key=lambda id: (-scored[id], id))
                yield Metric(topic, measure, measure.value(topic, grades, ranking))


class _Provider(ir_measures.Provider):
    """Computes these measures, and no others."""

    NAME = "fairagent"

    def supports(self, measure: ir_measures.Measure) -> bool:
        """Whether it is one of these, with parameters that make sense."""
        if not isinstance(measure, _Measure):
            return False
        measure.validate_params()
        return True

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> _Evaluator:
        return _Evaluator(list(measures), QrelsConverter(qrels).as_dict_of_dict())


nDCG, AWRF, nDCG_AWRF = _NDCG(), _AWRF(), _Product()

if "fairagent" not in ir_measures.providers.registry:
    # First in line: others know measures by name, this one by class.
    ir_measures.DefaultPipeline.providers.insert(0, ir_measures.providers.register(_Provider()))
