"""A fair ranking as a PyTerrier transformer: queries in (qid, query), results out (with docno, rank, score).

    from fairagent.guests.pyterrier import fair_transformer

    fair = fair_transformer(agent)
    fair.search("jazz musicians")
    pt.Experiment([bm25, fair % 10], topics, qrels, [AWRF(groups=table) @ 10, "ndcg_cut_10"])

PyTerrier need not start Java for this. In one process Java runs once: where this package has started it (for an index
of Anserini's, or an analyzer of Lucene's), Terrier's own retrievers refuse to start ("VM is already running"); run them
in another process and pass their results on.
"""

from numbers import Integral
from typing import Any

import numpy as np

from fairagent.retrieve.base import as_query
from fairagent.search.agent import FairAgent
from fairagent.storage.packages import expect_installed
from fairagent.types import Query


def fair_transformer(agent: FairAgent) -> Any:
    """A `pyterrier.Transformer` whose results are those of the pipeline's search.

    The query's `qid` is its topic id. Results keep the columns of their query, best first; ranks start at PyTerrier's
    first rank, 0. Raises BackendUnavailable where PyTerrier is not installed; the transformer raises what the search
    does (UsageError for a missing query), and PyTerrier's InputValidationError for a frame without qid and query.
    """
    expect_installed("pyterrier", "fair_transformer")
    import pyterrier

    # Here and not above: there is no base class where PyTerrier is not installed.
    class FairTransformer(pyterrier.Transformer):  # type: ignore[misc]
        name = "fairagent"

        def transform(self, queries: Any) -> Any:
            pyterrier.validate.query_frame(queries, extra_columns=["query"], context=self)
            # A query of digits alone may have become a number; a missing one, nan, is none.
            texts = [as_query(str(one) if isinstance(one, Integral) else one).text for one in queries["query"]]
            pairs = zip(queries["qid"], texts, strict=True)
            rankings = [agent.search(Query(text, str(topic))).ranking for topic, text in pairs]
            rows = np.repeat(np.arange(len(queries)), [len(ranking) for ranking in rankings])
            results = queries.iloc[rows].reset_index(drop=True)
            results["docno"] = np.array([id for ranking in rankings for id in ranking.ids], dtype=object)
            first = pyterrier.model.FIRST_RANK
            results["rank"] = np.array([first + place for one in rankings for place in range(len(one))], dtype=np.int64)
            results["score"] = np.concatenate([np.zeros(0), *(ranking.scores for ranking in rankings)])
            return results

        def __repr__(self) -> str:
            return "FairTransformer()"

    return FairTransformer()
