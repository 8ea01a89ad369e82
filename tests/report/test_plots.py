"""The plots as SVG: what is in them, and that nothing in them can reach out or be read as anything but text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from fairagent.evaluate.tables import LinePlot, PlotLine, PlotPoint
from fairagent.report.plots import (
    MARKERS,
    Chart,
    color_number,
    exposure_plot,
    line_plot,
    marker_number,
    ticks,
    trade_off,
    trade_off_plot,
)

from .runs import SYSTEMS, made_run, tiny_run


def drawn(systems=SYSTEMS, dimension="region"):
    """One plot of each kind."""
    run = made_run()
    points = tuple(PlotPoint(f"k={k}", k, k / 10) for k in (0, 1, 5))
    lines = (PlotLine(systems[0], 0, points, points[:1]), PlotLine(systems[1], 1, points[::-1]))
    return {
        "trade-off": trade_off_plot(trade_off(run, dimension)[1], systems, ("nDCG@20", "AWRF@20")),
        "exposure": exposure_plot(run.mean_exposures(dimension), systems),
        "lines": line_plot(LinePlot("over k", ("k", "U"), lines, diagonal=True)),
    }


@pytest.fixture(scope="module")
def plots():
    return drawn()


def elements(svg: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(tag))


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in elements(svg, "text")]


def test_every_color_is_a_class_of_the_page(plots):
    for svg in plots.values():
        for element in ElementTree.fromstring(svg).iter():
            for name in ("fill", "stroke"):
                assert element.get(name, "none") == "none", element.attrib
        for path in elements(svg, "path"):
            assert re.match(r"[fk]-(s\d|ink|muted|paper|grid)", path.get("class", ""))


def points_of(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def test_nothing_is_drawn_outside_of_the_picture(plots):
    for name, svg in plots.items():
        height = float(ElementTree.fromstring(svg).get("viewBox").split()[3])
        for path in elements(svg, "path"):
            if not path.get("transform"):
                assert all(-1 <= x <= 361 and -1 <= y <= height + 1 for x, y in points_of(path.get("d"))), name


def test_no_two_of_many_systems_look_alike():
    looks = {(color_number(k), MARKERS[marker_number(k)]) for k in range(30)}
    assert len(looks) == 30
    assert [k for k in range(30) if color_number(k) == 0] == [0]


def test_a_point_is_where_its_numbers_say():
    chart = Chart(112, (0, 2), (0, 10), left=46, bottom=40)
    assert chart.at(0, 0) == (46, 72)
    assert chart.at(2, 10) == (346, 12)
    assert chart.at(1, 5) == (196, 42)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]), ((0.93, 0.99), [0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99]), ((3, 3), [3])],
)
def test_ticks_are_round(limits, expected):
    assert ticks(limits) == pytest.approx(expected)


def test_trade_off_takes_relevance_from_all_topics():
    a, b = trade_off(tiny_run(), "gender")[1]
    assert (a.x.mean, a.y.mean) == pytest.approx((0.6, 0.9))
    assert (b.x.mean, b.y.mean) == pytest.approx((0.55, 0.85))
    assert (a.front, b.front) == (True, False)


def test_an_oracle_is_on_no_front_and_pushes_nobody_off():
    _, b = trade_off(tiny_run(oracle_systems=("A",)), "gender")[1]
    assert b.front
    a, _ = trade_off(tiny_run(oracle_systems=("A",)), "gender")[1]
    assert a.oracle
    assert not a.front
