"""AWRF and nDCG of TREC Fair Ranking, and their product, as measures of ir-measures.

    import ir_measures
    from fairagent.guests.ir_measures import AWRF, nDCG, nDCG_AWRF

    of_gender = AWRF(groups=table, dimension="gender", population={"female": 0.5, "male": 0.5})
    ir_measures.calc_aggregate([of_gender @ 20, nDCG @ 20, ir_measures.RR], qrels, run)

Parameters are those of `fairagent.measures` (`cutoff`, `discount`, `log`, `unknown`), and for AWRF

    groups      a Collection, or its groups, e.g. a GroupTable; documents that it does not know have no known group
    dimension   one of its dimensions; may be left out where there is one
    population  label -> share of the world (of a collection: its own), which the target is averaged with, as TREC does
    target      label -> share: a target of your own, instead of a collection's own, else of the relevant documents' and
                the world's

`nDCG` is that of the track (binary, with the discount 1 / log2(max(rank, 2))), not `ir_measures.nDCG`.

Ties of scores are ordered by document id. A topic for which a measure is not defined (no relevant document, no target)
has the value nan and is left out of the mean; one that the run does not answer counts, as nDCG 0 and as the lowest AWRF
there is, 1 - ln 2 (0 with log 2).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairagent.collection import Collection
from fairagent.collection.table import JoinedGroups
from fairagent.collection.targets import TARGET, judged_by
from fairagent.errors import UsageError
from fairagent.evaluate.judging import JudgedBy, judged_value
from fairagent.measures import AWRF as FairnessMeasure
from fairagent.measures import NDCG as RelevanceMeasure
from fairagent.measures import Measure, Product, parse_discount
from fairagent.search.hits import groups_alone
from fairagent.settings.faults import no_such
from fairagent.storage.packages import expect_installed

expect_installed("ir-measures", "fairagent.guests.ir_measures")
import ir_measures  # noqa: E402
from ir_measures import Metric, ParamInfo  # noqa: E402
from ir_measures.util import QrelsConverter, RunConverter  # noqa: E402

Grades = Mapping[str, int]


class _NDCG(ir_measures.Measure):
    """What the three have in common; `NAME` is not the name of a measure that other providers know."""

    SUPPORTED_PARAMS: dict[str, Any] = {  # noqa: RUF012  # as its base says it
        "cutoff": ParamInfo(dtype=int, required=True, desc="ranking cutoff threshold"),
        "discount": ParamInfo(dtype=str, default="log2-max2", desc="weight of a rank"),
    }
    DEFAULT = math.nan
    NAME, __name__ = "nDCG (TREC Fair)", "nDCG"

    def validate_params(self) -> None:
        if unknown := sorted(self.params.keys() - self.SUPPORTED_PARAMS.keys()):
            raise UsageError(f"{self.__name__} has {no_such('parameter', unknown[0], self.SUPPORTED_PARAMS)}")
        if "cutoff" not in self.params:
            raise UsageError(f"{self.__name__} needs a cut-off, e.g. {self.__name__} @ 20")
        self.measure()
        self.judged()

    def measure(self) -> Measure:
        """This package's measure with these parameters."""
        return RelevanceMeasure(self["cutoff"], parse_discount(self["discount"]))

    def judged(self) -> tuple[Collection, str, JudgedBy | None]:
        """The groups with the population to go with them, the dimension measured, and the target."""
        return groups_alone(JoinedGroups([]), {}), "", TARGET

    def value(self, topic: str, grades: Grades, ranking: list[str]) -> float:
        """The measure of one topic's ranking; nan where it is not defined."""
        collection, dimension, target = self.judged()
        judged = replace(collection, qrels={topic: grades})
        value = judged_value(self.measure(), judged, topic, ranking, dimension, target)
        return math.nan if value is None else value

    def aggregator(self) -> "_MeanOfDefined":
        return _MeanOfDefined()

    def __repr__(self) -> str:
        # All parameters that are no objects, so that the text defines the measure.
        printed = {key: self[key] for key in self.SUPPORTED_PARAMS if key not in ("cutoff", "groups")}
        groups = self.params.get("groups")
        if isinstance(groups, Collection) and groups.target is not None and not self["target"]:
            printed["target"] = judged_by(self.judged()[1], groups, judged=True).name
        options = ", ".join(f"{key}={value}" for key, value in printed.items() if value and value != TARGET)
        return f"{self.__name__}({options})" + (f"@{self.params['cutoff']}" if "cutoff" in self.params else "")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _NDCG) or repr(self) != repr(other):
            return False
        return self.params.get("groups") is other.params.get("groups")

    def __hash__(self) -> int:
        return hash(repr(self))


class _AWRF(_NDCG):
    NAME, __name__ = "AWRF (TREC Fair)", "AWRF"
    SUPPORTED_PARAMS = _NDCG.SUPPORTED_PARAMS | {
        "log": ParamInfo(dtype=str, default="e", desc="logarithm of the divergence, e or 2"),
        "unknown": ParamInfo(dtype=str, default="group", desc="group or ignore"),
        "groups": ParamInfo(required=True, desc="a Collection or its groups"),
        "dimension": ParamInfo(dtype=str, default="", desc="gender, region ..."),
        "population": ParamInfo(default=None, desc="label -> share of the world"),
        "target": ParamInfo(default=None, desc="label -> share"),
    }

    def measure(self) -> Measure:
        return FairnessMeasure(self["cutoff"], parse_discount(self["discount"]), self["log"], self["unknown"])

    def judged(self) -> tuple[Collection, str, JudgedBy | None]:
        if "groups" not in self.params:
            raise UsageError(f"{self.__name__} needs groups: {self.__name__}(groups=table, dimension='gender') @ 20")
        given, dimension = self["population"], self["dimension"]
        population = {} if given is None else {dimension or self["groups"].dimensions[0]: given}
        collection = groups_alone(self["groups"], population)
        there = collection.groups.dimensions
        if dimension:
            collection.groups.labels(dimension)
        elif len(there) != 1:
            raise UsageError(f"{self.__name__} needs a dimension; there are: {', '.join(there)}")
        # Groups alone have no target of their own.
        target = None if isinstance(self["groups"], Collection) else TARGET
        return collection, str(dimension or there[0]), target if self["target"] is None else self["target"]


class _Product(_AWRF):
    NAME, __name__ = "nDCG * AWRF (TREC Fair)", "nDCG_AWRF"

    def measure(self) -> Measure:
        return Product(_NDCG.measure(self), super().measure())


class _MeanOfDefined(ir_measures.MeanAgg):
    """The mean of all values that are not nan."""

    def add(self, value: float) -> None:
        if not math.isnan(value):
            super().add(value)


class _Evaluator(ir_measures.Evaluator):
    """Measures runs against one set of judgments."""

    def __init__(self, measures: Sequence[_NDCG], qrels: Mapping[str, Grades]) -> None:
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
        if not isinstance(measure, _NDCG):
            return False
        measure.validate_params()
        return True

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> _Evaluator:
        return _Evaluator(list(measures), QrelsConverter(qrels).as_dict_of_dict())


nDCG, AWRF, nDCG_AWRF = _NDCG(), _AWRF(), _Product()

if "fairagent" not in ir_measures.providers.registry:
    # First in line: others know measures by name, this one by class.
    ir_measures.DefaultPipeline.providers.insert(0, ir_measures.providers.register(_Provider()))
