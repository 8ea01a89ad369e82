from __future__ import annotations

import json
import math
from dataclasses import fields, replace

from fairagent.report.record import result_record, to_json
from fairagent.types import SearchResult

from .conftest import gender


def test_the_facts_by_hand(result: SearchResult) -> None:
    record = json.loads(to_json(result_record(result)))
    assert record["query"] == {"text": "lawyers", "topic": "T1"}
    assert record["hits"][0] == {
        "rank": 1,
        "id": "d0",
        "title": "First",
        "name": "First",
        "snippet": "First of all.",
        "text": "",
        "columns": {},
        "score": 1.0,
        "groups": {"gender": {"female": 1.0}},
    }
    assert record["targets"] == {"gender": "uniform"}
    assert record["exposure"]["before"][0]["groups"][0] == {"label": "female", "share": 0.1, "target": 0.5}
    assert record["exposure"]["after"][0]["divergence"] == 0.005
    assert record["gap"] == {"before": 0.37, "after": 0.005}
    assert len(record["steps"][1]["added"]) == 100
    assert record["steps"][2]["aim"] == {"dimension": "gender", "label": "female"}
    assert record["steps"][2]["dropped"] == ["zyzzyva"]
    assert record["steps"][2]["usage"] == {"calls": 1, "input_tokens": 1200, "output_tokens": 34, "cost": 0.0021}
    assert [step["accepted"] for step in record["steps"]] == [True, True, True, False]
    assert record["seconds"] == {"all": 1.75, "engine": 0.5, "model": 1.0, "own": 0.25}


def test_no_fact_of_the_trace_is_left_out(result: SearchResult) -> None:
    under = {"exposures": "exposure", "engine_seconds": "seconds"}
    for field in fields(result.trace):
        assert under.get(field.name, field.name) in result_record(result)


def test_what_is_not_finite_is_null(result: SearchResult) -> None:
    trace = replace(result.trace, gap=math.inf, exposures=(gender(0.0, math.inf, unknown=1.0),))
    record = json.loads(to_json(result_record(replace(result, trace=trace))))
    assert record["gap"]["after"] is None
    assert record["exposure"]["after"][0]["divergence"] is None
    assert json.loads(to_json({"a": [math.nan, (-math.inf, 1)]})) == {"a": [None, [None, 1]]}
