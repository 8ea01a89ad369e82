"""The official measures of the TREC Fair Ranking track, 2022 and 2021, exact and sparse.

pages = Pages.from_alignments(...)          # or fairagent.collection.trec_fair.read_pages
track = TrackEvaluator(2022, 1, ["gender"], pages, qrels)
track.evaluate(run).mean("score")
track.over(SUBSETS_2022["internal"]).evaluate(run)
"""

from fairagent.measures.trec_fair.dimensions import DIMENSIONS_2021, DIMENSIONS_2022, QUALITIES, SUBSETS_2022, Dimension
from fairagent.measures.trec_fair.evaluator import (
    LONGEST,
    Evaluation,
    Task,
    Task1Row,
    Task2Row,
    TrackEvaluator,
    Year,
    check_length,
)
from fairagent.measures.trec_fair.pages import (
    LARGEST_ID,
    QUALITY_FIELD,
    RULES_2021,
    RULES_2022,
    Alignment,
    IntArray,
    Pages,
    PagesBuilder,
    Rule,
)
from fairagent.measures.trec_fair.runs import Repeated, TrackRun
from fairagent.measures.trec_fair.targets import Amounts, Space, Targets, averaged_with_world

__all__ = [
    "DIMENSIONS_2021",
    "DIMENSIONS_2022",
    "LARGEST_ID",
    "LONGEST",
    "QUALITIES",
    "QUALITY_FIELD",
    "RULES_2021",
    "RULES_2022",
    "SUBSETS_2022",
    "Alignment",
    "Amounts",
    "Dimension",
    "Evaluation",
    "IntArray",
    "Pages",
    "PagesBuilder",
    "Repeated",
    "Rule",
    "Space",
    "Targets",
    "Task",
    "Task1Row",
    "Task2Row",
    "TrackEvaluator",
    "TrackRun",
    "Year",
    "averaged_with_world",
    "check_length",
]
