from __future__ import annotations

import pytest

from fairagent.errors import DataError
from fairagent.measures.trec_fair import TrackRun


def test_ranks_start_at_one_in_every_ranking() -> None:
    run = TrackRun.of("mine", {"B": [[5, 6], [6, 5, 7]], "A": [[1]]})
    assert (run.topics, run.topic.tolist(), run.lengths.tolist()) == (("B", "A"), [0, 0, 1], [2, 3, 1])
    assert run.ranks().tolist() == [1, 2, 1, 2, 3, 1]
    assert run.line_topics().tolist() == [0, 0, 0, 0, 0, 1]
    assert run.discounts().round(5).tolist() == [1.0, 1.0, 1.0, 1.0, 0.63093, 1.0]


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        ([3, 4, 3], "run 'mine', topic A: page 3 is listed twice in a ranking"),
        ([-1], "run 'mine': page ids are whole numbers from 0 to 2147483647"),
        ([1.5], "page ids are whole numbers"),
    ],
)
def test_what_is_no_ranking_is_refused(ranking: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        TrackRun.of("mine", {"A": [ranking]})


def test_two_rankings_may_list_the_same_page() -> None:
    assert TrackRun.of("mine", {"A": [[3], [3]]}).pages.tolist() == [3, 3]
