"""Plain text from wikitext and HTML by simple rules.

What is dropped: comments, references, templates (and with them infoboxes), tables, files and categories, tags, styles
and scripts. What stays: running text, the shown text of links, headings, lists, and of formulas and code the source.
Text that templates would have produced is lost, so counts of terms differ a little from the track's own plain text:
prefer its plain corpus. Time grows with the length of the text, whatever is in it.
"""

import html
import re
from html.parser import HTMLParser

DEEPEST = 20
"""Templates and links within each other are resolved this many times."""
HIDDEN = frozenset(("script", "style", "head", "template", "noscript"))

_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_EXTERNAL = re.compile(r"\[(?:https?:)?//[^\s\[\]]*(?:\s([^\[\]]*))?\]")
_UNSHOWN = re.compile(r"\s*(?:file|image|category):", re.IGNORECASE)
_REFERENCE = re.compile(r"<ref\b[^<>]*?(/?)>", re.IGNORECASE)
_REFERENCE_END = re.compile(r"</ref\s*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MARKS = re.compile(r"'{2,}|^=+|(?<!=)=+[ \t]*$|^[*#:;]+|__[A-Z]+__", re.MULTILINE)
_SPACE = re.compile(r"\s+")


def wikitext_to_text(source: str) -> str:
    """The words of a page's wikitext, in one line.

    >>> wikitext_to_text("'''Ada''' {{born|1815}} was a [[mathematician|programmer]].<ref>Fuegi</ref>")
    'Ada was a programmer.'
    """
    text = _without(source, re.compile("<!--"), re.compile("-->"))
    text = _without(text, _REFERENCE, _REFERENCE_END)
    for _ in range(DEEPEST):
        text, count = _TEMPLATE.subn(" ", text)
        if not count:
            break
    text = _without(text, re.compile(r"\{\|"), re.compile(r"\|\}"))
    for _ in range(DEEPEST):
        text, count = _LINK.subn(_shown, text)
        if not count:
            break
    text = _EXTERNAL.sub(lambda link: link[1] or " ", text)
    text = html.unescape(_MARKS.sub(" ", _TAG.sub(" ", text)))
    return re.sub(r" ([,.;:)])", r"\1", _SPACE.sub(" ", text)).strip()


def html_to_text(source: str) -> str:
    """The words that a browser would show of an HTML page, in one line.

    >>> html_to_text("<style>p {}</style><p>Ada <b>Lovelace</b> &amp; co<!-- not shown -->.</p>")
    'Ada Lovelace & co.'
    """
    reader = _Words()
    reader.feed(source)
    reader.close()
    return _SPACE.sub(" ", "".join(reader.pieces)).strip()


class _Words(HTMLParser):
    """Gathers what stands between tags; block tags separate words."""

    _INLINE = frozenset(("a", "abbr", "b", "bdi", "cite", "code", "em", "i", "q", "s", "small", "span", "strong", "u"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in HIDDEN
        if tag not in self._INLINE:
            self.pieces.append(" ")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in HIDDEN))
        if tag not in self._INLINE:
            self.pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def _without(text: str, start: re.Pattern[str], end: re.Pattern[str]) -> str:
    """The text without what stands from each `start` to the next `end`; what is never closed stays."""
    kept, place = [], 0
    while opening := start.search(text, place):
        # <ref name="x"/> has no content.
        closing = opening if opening.groups() and opening[1] else end.search(text, opening.end())
        if closing is None:
            break
        kept.append(text[place : opening.start()])
        place = closing.end()
    return "".join([*kept, text[place:]])


def _shown(link: re.Match[str]) -> str:
    target, _, label = link[1].rpartition("|")
    return " " if _UNSHOWN.match(target or label) else label
