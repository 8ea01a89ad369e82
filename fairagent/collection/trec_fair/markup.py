"""Plain text from wikitext and HTML by simple rules.

What is dropped: comments, references, templates (and with them infoboxes), tables, files and categories, tags, styles
and scripts. What stays: running text, the shown text of links, headings, lists, and of formulas and code the source.
Text that templates would have produced is lost, so counts of terms differ a little from the track's own plain text:
prefer its plain corpus. Time grows with the length of the text, whatever is in it.
"""

import html
import re

DEEPEST = 20
"""Templates and links within each other are resolved this many times."""
HIDDEN = frozenset(("script", "style", "head", "template", "noscript"))
INLINE = frozenset(("a", "abbr", "b", "bdi", "cite", "code", "em", "i", "q", "s", "small", "span", "strong", "u"))
"""Those that separate no words."""

_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_EXTERNAL = re.compile(r"\[(?:https?:)?//[^\s\[\]]*(?:\s([^\[\]]*))?\]")
_UNSHOWN = re.compile(r"\s*(?:file|image|category):", re.IGNORECASE)
_REFERENCE = re.compile(r"<ref\b[^<>]*?(/?)>", re.IGNORECASE)
_REFERENCE_END = re.compile(r"</ref\s*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MARKS = re.compile(r"'{2,}|^=+|(?<!=)=+[ \t]*$|^[*#:;]+|__[A-Z]+__", re.MULTILINE)
_COMMENT, _COMMENT_END = re.compile("<!--"), re.compile("-->")
# A tag ends before the next one begins, so that nothing is looked at twice.
_HTML_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*+)(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>|<[!?][^<>]*+>")
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")
_SPACE = re.compile(r"\s+")


def wikitext_to_text(source: str) -> str:
    """The words of a page's wikitext, in one line.

    >>> wikitext_to_text("'''Ada''' {{born|1815}} was a [[mathematician|programmer]].<ref>Fuegi</ref>")
    'Ada was a programmer.'
    """
    text = _without(source, _COMMENT, _COMMENT_END)
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
    text = _unescaped(_MARKS.sub(" ", _TAG.sub(" ", text)))
    return re.sub(r" ([,.;:)])", r"\1", _SPACE.sub(" ", text)).strip()


def html_to_text(source: str) -> str:
    """The words that a browser would show of an HTML page, in one line.

    >>> html_to_text("<style>p {}</style><p>Ada <b>Lovelace</b> &amp; co<!-- not shown -->.</p>")
    'Ada Lovelace & co.'
    """
    text = _without(source, _COMMENT, _COMMENT_END)
    pieces, place, hidden = [], 0, ""
    for tag in _HTML_TAG.finditer(text):
        if not hidden:
            pieces.append(text[place : tag.start()])
        place, name = tag.end(), (tag[2] or "").lower()
        if hidden:
            hidden = "" if tag[1] and name == hidden else hidden
        elif name not in INLINE or tag[0].endswith("/>"):
            pieces.append(" ")
            hidden = name if name in HIDDEN and not tag[1] and not tag[0].endswith("/>") else ""
    pieces.append("" if hidden else text[place:])
    return _SPACE.sub(" ", _unescaped("".join(pieces))).strip()


def _unescaped(text: str) -> str:
    """Character references as what they stand for; numbers of no character as U+FFFD, however long they are."""
    return html.unescape(_LONG_REFERENCE.sub("\N{REPLACEMENT CHARACTER}", text))


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
