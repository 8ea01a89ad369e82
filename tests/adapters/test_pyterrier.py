"""A fair ranking in PyTerrier's pipelines and experiments (skipped where PyTerrier is not installed)."""

import importlib.util
from typing import Any

import pytest
from scripted import Engine, Proposals, agent, by_letter

from fairagent.guests.pyterrier import fair_transformer

LISTS = {"q": "m1 m2 m3 f1 f2", "q she": "f1 f2 m1 m2", "r": "f3 m3", "nothing": ""}
TABLE = by_letter(["m1", "m2", "m3", "f1", "f2", "f3"])

needs_pyterrier = pytest.mark.skipif(
    importlib.util.find_spec("pyterrier") is None, reason="the package pyterrier is not installed"
)


def fair(**settings: Any) -> Any:
    return agent(Engine(LISTS), Proposals(*["she"] * 9), groups=TABLE, **({"iterations": 1} | settings))


def topics(*rows: tuple[str, str]) -> Any:
    import pandas

    return pandas.DataFrame(rows, columns=["qid", "query"])


@needs_pyterrier
def test_the_results_are_those_of_the_search() -> None:
    expected = fair().search("q").ranking
    found = fair_transformer(fair())(topics(("1", "q"), ("2", "nothing"), ("3", "q")))
    assert list(found.columns) == ["qid", "query", "docno", "rank", "score"]
    assert found["qid"].tolist() == ["1"] * 4 + ["3"] * 4
    assert found["docno"].tolist() == [*expected.ids, *expected.ids]
    assert found["rank"].tolist() == [0, 1, 2, 3] * 2
    assert found["score"].tolist() == [*expected.scores, *expected.scores]


@needs_pyterrier
def test_in_a_pipeline_and_an_experiment() -> None:
    import pandas
    import pyterrier

    from fairagent.guests.ir_measures import AWRF, nDCG

    transformer = fair_transformer(fair())
    assert (transformer % 2)(topics(("1", "q")))["docno"].tolist() == list(fair().search("q").ranking.ids[:2])
    assert transformer.search("q")["docno"].tolist() == list(fair().search("q").ranking.ids)
    qrels = pandas.DataFrame({"qid": ["1", "1"], "docno": ["f1", "m1"], "label": [1, 1]})
    plain = pyterrier.Transformer.from_df(
        pandas.DataFrame({"qid": ["1"] * 2, "docno": ["m1", "m2"], "score": [2.0, 1.0], "rank": [0, 1]})
    )
    measures = [AWRF(groups=TABLE) @ 4, nDCG @ 4, pyterrier.measures.RR]
    table = pyterrier.Experiment(
        [plain, transformer], topics(("1", "q")), qrels, measures, names=["plain", "fair"]
    ).set_index("name")
    fairness, relevance, _ = map(str, measures)
    assert table.loc["fair", fairness] > table.loc["plain", fairness]
    assert table.loc["fair", relevance] > 0
