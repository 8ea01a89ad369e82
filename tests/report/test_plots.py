"""The plots as SVG: what is in them, and that nothing in them can reach out or be read as anything but text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from fairagent.evaluate.tables import LinePlot, PlotLine, PlotPoint
from fairagent.report.plots import MARKERS, Chart, color_number, exposure_plot, line_plot, marker_number, ticks

from fairagent.report.plots import trade_off, trade_off_plot  # isort: skip

from .runs import SYSTEMS, made_run, tiny_run


@pytest.fixture(scope="module")
def plots():
    """One plot of each kind."""
    run, systems, dimension = made_run(), SYSTEMS, "region"
    points = tuple(PlotPoint(f"k={k}", k, k / 10) for k in (0, 1, 5))
    lines = (PlotLine(systems[0], 0, points, points[:1]), PlotLine(systems[1], 1, points[::-1]))
    return {
        "trade-off": trade_off_plot(trade_off(run, dimension)[1], systems, ("nDCG@20", "AWRF@20")),
        "exposure": exposure_plot(run.mean_exposures(dimension), systems),
        "lines": line_plot(LinePlot("over k", ("k", "U"), lines, diagonal=True)),
    }


def elements(svg: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(tag))


def test_every_color_is_a_class_of_the_page(plots):
    for svg in plots.values():
        for element in ElementTree.fromstring(svg).iter():
            for name in ("fill", "stroke"):
                assert element.get(name, "none") == "none", element.attrib
        for path in elements(svg, "path"):
            assert re.match(r"[fk]-(s\d|ink|muted|paper|grid)", path.get("class", ""))


def test_nothing_is_drawn_outside_of_the_picture(plots):
    for name, svg in plots.items():
        height = float(ElementTree.fromstring(svg).get("viewBox").split()[3])
        for path in elements(svg, "path"):
            if not path.get("transform"):
                points = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d"))
                assert all(-1 <= float(x) <= 361 and -1 <= float(y) <= height + 1 for x, y in points), name


def test_no_two_of_many_systems_look_alike():
    looks = {(color_number(k), MARKERS[marker_number(k)]) for k in range(30)}
    assert len(looks) == 30
    assert [k for k in range(30) if color_number(k) == 0] == [0]


def test_places_and_ticks_by_hand():
    chart = Chart(112, (0, 2), (0, 10), left=46, bottom=40)
    assert [chart.at(*point) for point in ((0, 0), (2, 10), (1, 5))] == [(46, 72), (346, 12), (196, 42)]
    assert ticks((0, 1)) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks((0.93, 0.99)) == pytest.approx([0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99])
    assert ticks((3, 3)) == [3]


def test_trade_off_takes_relevance_from_all_topics_and_an_oracle_is_on_no_front():
    a, b = trade_off(tiny_run(), "gender")[1]
    assert (a.x.mean, a.y.mean) == pytest.approx((0.6, 0.9))
    assert (b.x.mean, b.y.mean) == pytest.approx((0.55, 0.85))
    assert (a.front, b.front) == (True, False)
    a, b = trade_off(tiny_run(oracle_systems=("A",)), "gender")[1]
    assert (a.oracle, a.front, b.front) == (True, False, True)
