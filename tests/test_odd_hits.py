"""Hits without texts, scores, ids or groups, and objects of a newer version: `fair_rerank` works, or says why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairagent import fair_rerank
from fairagent.errors import DataError, UsageError

HALF = {"f": 0.5, "m": 0.5}


class Slotted:
    """An object that names its fields in `__slots__`."""

    __slots__ = ("id", "properties")

    def __init__(self, id: str, gender: str) -> None:
        self.id, self.properties = id, {"gender": gender}


class Moved:
    """An object whose field raises since a new version."""

    id = "a"

    @property
    def score(self) -> float:
        raise RuntimeError("gone in 3.0: use .relevance")


@pytest.mark.parametrize(
    ("hits", "groups"),
    [
        pytest.param([{"gender": "f"}, {"gender": "m"}], "gender", id="no id, text or score"),
        pytest.param(
            [SimpleNamespace(metadata=SimpleNamespace(gender=one)) for one in "fm"], "gender", id="metadata an object"
        ),
        pytest.param(
            [SimpleNamespace(id=one, properties={"gender": one}) for one in "fm"], "properties.gender", id="a new name"
        ),
        pytest.param([Slotted(one, one) for one in "fm"], "properties.gender", id="slots"),
    ],
)
def test_what_is_enough(hits: Any, groups: Any) -> None:
    fair = fair_rerank(hits, groups, HALF)
    assert sorted(map(id, fair.hits)) == sorted(map(id, hits))
    assert fair.after[0].shares.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("hits", "error", "said"),
    [
        pytest.param([{}], UsageError, r"hit 1 is a dict \({}\), which has no id", id="nothing"),
        pytest.param([Moved()], DataError, "hit 1 cannot be read: .*gone in 3.0", id="a field that raises"),
        pytest.param([Slotted("a", "f")], UsageError, "there are: id, properties", id="metadata by a new name"),
        pytest.param(
            SimpleNamespace(items=[{"id": 1}]), UsageError, "holds none in body, hits, points", id="a new list"
        ),
    ],
)
def test_what_is_not_is_one_clear_error(hits: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        fair_rerank(hits, "gender", HALF)
