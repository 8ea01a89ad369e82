"""The official measures of the TREC Fair Ranking track, 2022 and 2021, exact and sparse.

pages = Pages.from_alignments(...)          # or fairagent.collection.trec_fair.read_pages
track = TrackEvaluator(2022, 1, ["gender"], pages, qrels)
track.evaluate(run).mean("score")
track.over(SUBSETS_2022["internal"]).evaluate(run)
"""

# ruff: noqa: F403
from fairagent.measures.trec_fair.evaluator import *
from fairagent.measures.trec_fair.pages import *
from fairagent.measures.trec_fair.targets import *
