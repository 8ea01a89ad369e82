"""A test of one's own search function with the pytest plugin that fairagent brings: `pytest test_search.py`."""

import pytest

HALF = {"female": 0.5, "male": 0.5}
SHELF = [
    {"id": "1", "text": "Ella sang jazz in Harlem.", "gender": "female"},
    {"id": "2", "text": "Miles played jazz on the trumpet.", "gender": "male"},
    {"id": "3", "text": "Nina wrote jazz and songs of protest.", "gender": "female"},
    {"id": "4", "text": "Ruth argued before the court.", "gender": "female"},
    {"id": "5", "text": "Thurgood sat on the court.", "gender": "male"},
]


def search(query):
    """Put your own here: what it returns may be the hits of any engine, the best first."""
    return [row for row in SHELF if query in row["text"]]


def test_all_queries(assert_exposure_of):
    assert_exposure_of(search, ["jazz", "court"], groups="gender", target=HALF, at=10, min_share={"female": 0.3})


@pytest.mark.parametrize("query", ["jazz", "court"])
def test_each_query(assert_exposure_of, query):
    assert_exposure_of(search, query, groups="gender", target=HALF, at=10, gap=0.2)
