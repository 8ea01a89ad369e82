"""The plots as SVG: what is in them, and that nothing in them can reach out or be read as anything but text."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from fairagent.report.page import page
from fairagent.report.plots import (
    MARKERS,
    color_number,
    cost_plot,
    exposure_plot,
    gains_plot,
    gap_plot,
    marker_number,
    trade_off_plot,
)
from fairagent.report.point_names import Box
from fairagent.report.points import trade_off
from fairagent.report.series import gap_paths, mean_exposures
from fairagent.report.spending import cost_trade_off
from fairagent.report.svg import Names, inline_svg, plot_style

from .runs import SYSTEMS, made_run, tiny_run

HOSTILE = '</text><script>alert(1)</script> $x^2$ & "q" \x00\ud800 判事'
SHOWN = '</text><script>alert(1)</script> $x^2$ & "q" \ufffd\ufffd 判事'


def drawn(systems=SYSTEMS, dimension="region"):
    """One plot of each kind."""
    run = made_run()
    paths = gap_paths(run)[-1]
    return {
        "trade-off": trade_off_plot(trade_off(run, dimension), systems, ("nDCG@20", "AWRF@20"), "a-"),
        "cost": cost_plot(cost_trade_off(run).points[dimension], systems, ("dollars", "AWRF@20"), "f-"),
        "exposure": exposure_plot(mean_exposures(run, dimension), systems, "b-"),
        "gap": gap_plot(paths, systems[paths.system], 2.0, "c-"),
        "gains": gains_plot({1: [0.2, -0.1], 3: [0.3, 0.4]}, systems, "d-"),
    }


@pytest.fixture(scope="module")
def plots():
    return drawn()


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


def test_equal_input_gives_equal_bytes(plots):
    assert drawn() == plots


def test_each_is_one_labeled_image(plots):
    for svg in plots.values():
        root = ElementTree.fromstring(svg)
        assert root.tag == "svg"
        assert root.get("role") == "img"
        assert len(root.get("aria-label")) > 40
        assert root.get("viewBox").startswith("0 0 360 ")


def test_no_style_and_no_color_of_matplotlib_is_left(plots):
    for svg in plots.values():
        assert "style" not in svg
        assert "#00f" not in svg
        assert "http" not in svg
        assert "metadata" not in svg


def test_every_color_is_a_class_of_the_page(plots):
    for svg in plots.values():
        for element in ElementTree.fromstring(svg).iter():
            for name in ("fill", "stroke"):
                assert element.get(name, "none") == "none", element.attrib


def test_references_point_into_the_same_plot(plots):
    for svg in plots.values():
        root = ElementTree.fromstring(svg)
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        used = {element.get("href")[1:] for element in root.iter() if element.get("href")}
        used |= {element.get("clip-path")[5:-1] for element in root.iter() if element.get("clip-path")}
        assert used == set(ids)
        assert len(ids) == len(set(ids))


def test_names_are_text_whatever_they_say():
    for svg in drawn((HOSTILE,) * len(SYSTEMS)).values():
        root = ElementTree.fromstring(svg)
        assert not list(root.iter("script"))
        assert SHOWN in ElementTree.tostring(root, encoding="unicode", method="text") + root.get("aria-label")


def test_every_group_and_its_target_is_named(plots):
    labels = mean_exposures(made_run(), "region")[0].labels
    assert set(labels) <= set(texts(plots["exposure"]))
    label = ElementTree.fromstring(plots["exposure"]).get("aria-label")
    assert all(f"{group}: target " in label for group in labels)


def test_the_trade_off_names_axes_and_systems(plots):
    shown = texts(plots["trade-off"])
    assert {"nDCG@20", "AWRF@20", "BM25", "agent, exposure"} <= set(shown)
    label = ElementTree.fromstring(plots["trade-off"]).get("aria-label")
    assert label.count("Pareto front") == 1


def test_the_front_of_costs_falls_to_the_cheap_side(plots):
    """From the dear side, where the edge is highest, to the cheapest point, and down."""
    titles = [title.text for title in ElementTree.fromstring(plots["cost"]).iter("title")]
    assert titles[0].startswith("BM25\ndollars 0.000\nAWRF@20 0.")
    (edge,) = [
        path.get("d")
        for path in ElementTree.fromstring(plots["cost"]).iter("path")
        if path.get("stroke-dasharray") and "k-ink" in path.get("class", "")
    ]
    xs, ys = zip(*[map(float, pair) for pair in re.findall(r"[ML ]*([\d.]+)[ ,]+([\d.]+)", edge)], strict=True)
    assert list(xs) == sorted(xs, reverse=True)
    assert list(ys) == sorted(ys)


def test_points_tell_their_numbers_where_a_pointer_rests(plots):
    titles = [title.text for title in ElementTree.fromstring(plots["trade-off"]).iter("title")]
    assert len(titles) == len(SYSTEMS)
    assert titles[0].startswith("BM25\nnDCG@20 0.")


def test_long_names_are_cut_beside_points():
    run = tiny_run()
    svg = trade_off_plot(trade_off(run, "gender"), ("A" * 100, "B"), ("x", "y"), "a-")
    assert "A" * 25 + "…" in texts(svg)


def test_nothing_is_drawn_outside_of_the_measured_range():
    run = tiny_run()
    svg = gap_plot(gap_paths(run)[0], "B", 0.5, "a-")
    assert {"1", "2", "3"} <= set(texts(svg))


def test_one_system_at_one_point_can_be_drawn():
    run = tiny_run()
    alone = [point for point in trade_off(run, "gender") if point.system == 0]
    assert "<svg" in trade_off_plot(alone, run.systems, ("x", "y"), "a-")


def test_no_two_of_many_systems_look_alike():
    looks = {(color_number(k), MARKERS[marker_number(k)]) for k in range(30)}
    assert len(looks) == 30
    assert [k for k in range(30) if color_number(k) == 0] == [0]


def test_boxes_meet_where_they_overlap():
    box = Box(0, 0, 2, 2)
    assert box.meets(Box(1, 1, 3, 3))
    assert not box.meets(Box(2, 0, 3, 2))
    assert not box.meets(Box(0, 2.5, 2, 3))


def test_a_users_matplotlibrc_changes_nothing(plots):
    import matplotlib

    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert drawn() == plots


def test_stand_ins_are_replaced_once():
    from matplotlib.figure import Figure

    names = Names()
    with plot_style():
        figure = Figure(figsize=(1, 1))
        figure.text(0.5, 0.5, names("@0 and $@1$"))
        assert texts(inline_svg(figure, "label", names, "x-")) == ["@0 and $@1$"]


def test_matplotlib_is_loaded_for_drawing_alone():
    code = "import sys, fairagent.report.page; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert page(tiny_run()).count('class="plot"') == 4
