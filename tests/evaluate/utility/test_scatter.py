"""Topics one by one: utility against ranking quality, with the line of least squares."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fairagent.evaluate.query_groups import cloud
from fairagent.evaluate.tables import PlotPoint
from fairagent.papers.utility.kind import summary, topic_points
from fairagent.report.page import page

from . import library

pytestmark = pytest.mark.usefixtures("no_variables")


def scattered(folder: Path, ks: str) -> Path:
    file = library.write(folder)
    text = file.read_text(encoding="utf-8")
    assert "utility: {" in text
    file.write_text(text.replace("utility: {", f"utility: {{scatter: {ks}, "), encoding="utf-8")
    return file


def test_the_line_by_hand(same_words: None, tmp_path: Path) -> None:
    """Of `run` at k = 1 the first question has nDCG 1/3 and U -5/11, the second 0 and 0."""
    run = library.run(scattered(tmp_path, "[1]"), tmp_path / "run")
    points = {point.name: (point.x, point.y) for point in topic_points(run, run.kind.utility, "run", 1)}
    assert points == {"q1": (pytest.approx(1 / 3), pytest.approx(-5 / 11)), "q2": (0, 0)}
    fits = {f"{one.system} k={one.k}": one.fit for one in summary(run, run.kind.utility)}
    fit = fits["run k=1"]
    assert fit is not None
    assert (fit.slope, fit.intercept) == (pytest.approx(-15 / 11), pytest.approx(0))
    # All of the oracle's lists are as good as can be.
    assert fits["Rel k=1"] is None
    with (tmp_path / "run" / "utility.csv").open(encoding="utf-8", newline="") as rows:
        found = {(row["system"], row["k"]): row for row in csv.DictReader(rows)}
    assert float(found["run", "1"]["fit_slope"]) == pytest.approx(-15 / 11)
    assert found["Rel", "1"]["fit_slope"] == ""
    html = page(run)
    plot = html.partition("topic by topic")[2].partition("</figure>")[0]
    assert "against nDCG@1, topic by topic" in html
    assert "against nDCG@2, topic by topic" not in html
    assert "<title>run q1" in plot
    assert "run: fit 0.000 0.000, fit 0.333 -0.455" in html


def test_a_cloud_without_spread_has_no_line() -> None:
    points = [PlotPoint("a", 0.5, 1.0), PlotPoint("b", 0.5, 2.0)]
    line = cloud("name", 3, points)
    assert (line.points, line.alone, line.color) == ((), tuple(points), 3)
    assert cloud("name", 3, []).points == ()
