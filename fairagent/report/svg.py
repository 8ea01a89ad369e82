"""From a matplotlib figure to SVG that lives inside the page: its colors are the page's, its ids are its own.

Figures are drawn in the stand-in colors below. Each becomes a class (`f-` fill, `k-` stroke) that the style sheet
colors for a light and a dark screen. No style attribute is left, so a strict Content-Security-Policy lets it pass.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from markupsafe import Markup

from fairagent.report.names import readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER, INK, MUTED, GRID = "#00f000", "#00f001", "#00f002", "#00f003"
SERIES = tuple(f"#00f1{k:02d}" for k in range(10))
"""One color a system, the baseline's first; more systems than that use the others again, with other markers."""
TEXT_SIZE = 11

_CLASS_OF = {PAPER: "paper", INK: "ink", MUTED: "muted", GRID: "grid"} | {
    color: f"s{k}" for k, color in enumerate(SERIES)
}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fairagent",
    "text.parse_math": False,
    "font.size": TEXT_SIZE,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "xtick.labelcolor": MUTED,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.color": GRID,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}
_NAMESPACE = re.compile(r"\{[^}]*\}")
_DECIMALS = re.compile(r"-?\d+\.\d{2,}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_KEPT = ("stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "fill-opacity", "stroke-opacity")


class Names:
    """Texts that are put into the finished SVG, and stand-ins for matplotlib to set in their place.

    matplotlib has no glyphs for most scripts and would read what it is given; so it sees no name from outside.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []

    def __call__(self, text: str) -> str:
        """The stand-in for `text`."""
        self._texts.append(readable(text))
        return f"@{len(self._texts) - 1}"

    def behind(self, stand_in: str) -> str:
        """The text that `stand_in` stands for; another text is itself."""
        return self._texts[int(stand_in[1:])] if re.fullmatch(r"@\d+", stand_in) else stand_in


@contextmanager
def plot_style() -> Iterator[None]:
    """The page's style and nothing of the user's matplotlibrc, for figures that are drawn and written inside."""
    from matplotlib import style

    with style.context(["default", _STYLE]):
        yield


def inline_svg(figure: Figure, label: str, names: Names, prefix: str, hints: Sequence[tuple[str, str]] = ()) -> Markup:
    """`figure` as one `<svg>` for a page; the same figure gives the same bytes.

    `label` is what people hear who do not see it. `prefix` makes its ids unique in the page. Each of `hints` is the
    gid of something drawn and the text to show where a pointer rests on it.
    """
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(written.getvalue())
    for element in root.iter():
        element.tag = _NAMESPACE.sub("", element.tag)
        for name in [name for name in element.attrib if name.startswith("{")]:
            element.set(_NAMESPACE.sub("", name), element.attrib.pop(name))
    _add_hints(root, dict(hints))
    _rename_ids(root, prefix)
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag == "style" or _is_nothing(child)]:
            parent.remove(child)
        _color(parent)
        _shorten(parent, names)
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"class": "plot", "viewBox": view, "role": "img", "aria-label": readable(label)})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _add_hints(root: ElementTree.Element, hints: dict[str, str]) -> None:
    for element in root.iter():
        if text := hints.get(element.get("id", "")):
            title = ElementTree.Element("title")
            title.text = readable(text)
            element.insert(0, title)


def _rename_ids(root: ElementTree.Element, prefix: str) -> None:
    """Ids that something refers to become `prefix` and a number; the others go."""
    used = [
        found
        for element in root.iter()
        for name, value in element.attrib.items()
        if name in ("href", "clip-path")
        for found in _REFERENCE.findall(value)
    ]
    new = {old: f"{prefix}{number}" for number, old in enumerate(dict.fromkeys(used))}
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in new:
            element.set("id", new[str(old)])
        for name in ("href", "clip-path"):
            if name in element.attrib:
                element.set(name, _REFERENCE.sub(lambda found: f"#{new[found[1]]}", element.attrib[name]))


def _color(element: ElementTree.Element) -> None:
    """The style attribute, taken apart into classes for colors and attributes for the rest."""
    declared = (part.partition(":") for part in element.attrib.pop("style", "").split(";"))
    style = {name.strip(): value.strip() for name, _, value in declared}
    classes = []
    for name, letter in (("fill", "f"), ("stroke", "k")):
        color = style.get(name, "")
        if color in _CLASS_OF:
            classes.append(f"{letter}-{_CLASS_OF[color]}")
        elif color:
            element.set(name, color)
    if classes:
        element.set("class", " ".join(classes))
    for name in _KEPT:
        if name in style:
            element.set(name, style[name])
    if style.get("text-anchor", "start") != "start":
        element.set("text-anchor", style["text-anchor"])
    size = re.search(r"([\d.]+)px", style.get("font-size", "") or style.get("font", ""))
    if size and float(size[1]) != TEXT_SIZE:
        element.set("font-size", size[1])


def _shorten(element: ElementTree.Element, names: Names) -> None:
    for name in ("d", "x", "y", "transform", "width", "height"):
        if name in element.attrib:
            rounded = _DECIMALS.sub(lambda number: f"{float(number[0]):.1f}", element.attrib[name])
            element.set(name, " ".join(rounded.split()))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    is_text = element.tag in ("text", "title")
    element.text = names.behind(element.text or "") if is_text else None
    element.tail = None


def _is_nothing(element: ElementTree.Element) -> bool:
    """Whether it would not be seen: a background without a color, an empty group."""
    hidden = "fill: none" in element.get("style", "") and "stroke" not in element.get("style", "")
    return (element.tag == "path" and hidden) or (element.tag in ("g", "defs") and not len(element))
