"""The normalized expected utility beside the authors' code, in its own reading of which runs are looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent.measures.expected_utility import normalized_expected_utility

pytestmark = pytest.mark.shared


def test_the_authors_values(shared: Path) -> None:
    cases = json.loads((shared / "golden/seed_systems/expected_utility.json").read_text())["cases"]
    compared = 0
    for case in cases:
        worst = case["utility_upper_bound"] if case["lower_is_better"] else None
        for alpha, of_query in case["authors_normalised_eu_for_bm25"].items():
            for query, expected in of_query.items():
                runs = [of[query] for name, of in case["runs"].items() if name.startswith(("bm25", "gold"))]
                highest = min(run["min"] for run in runs) if worst is not None else max(run["max"] for run in runs)
                found = normalized_expected_utility(case["runs"][f"bm25_alpha{alpha}"][query]["EU"], highest, worst)
                assert found == pytest.approx(expected, rel=1e-9), (case["id"], alpha, query)
                compared += 1
    assert compared == 3 * 4 * 5
