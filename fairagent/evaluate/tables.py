"""Tables, line plots and sections of the page as values; tables become text, Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType

from markupsafe import Markup, escape

from fairagent.types.clean import in_line, spreadsheet_cell

ORACLE = "†"
"""Marks systems that looked at the judgments."""
GAP = 2
"""Spaces between two columns of text."""
WIDTH = 80
"""Characters of a line where nothing says how wide it may be, as in a file."""
LATEX_WIDTH = 62
"""Characters that a table of an article may have, two for the space between columns: its text is 345 pt wide at 10 pt,
a figure 5 pt, that space 12 pt."""
ROOMY, PAGE_WIDTH = 110, 150
"""Characters of a row on a page: up to which cells stand apart, and that there is room for where they stand close."""
NO_NAMES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, the line `above` it (a dimension), and how its numbers are written (a format).

    `none` stands where there is no value, `short` in the place of the name where a line has so many letters.
    """

    name: str
    form: str = ".4f"
    above: str = ""
    none: str = "-"
    short: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with marks: `raised` behind the number (+, -); the `best` of its column is bold in LaTeX and HTML."""

    value: object
    raised: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of values: texts, numbers, None, or `Cell`s.

    The first column is on the left, the others on the right. `systems`: the first cells name systems. `folded`: a page
    shows it when opened. `prose`: its cells are sentences, which a page breaks into lines. `notes` stand below.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[object, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    systems: bool = False
    folded: bool = False
    prose: bool = False

    @classmethod
    def of(
        cls,
        columns: Iterable[str | Column],
        rows: Iterable[Sequence[object]],
        title: str = "",
        notes: Iterable[str] = (),
        **about: bool,
    ) -> Table:
        """A table from plain values; of a column a name will do.

        >>> print(Table.of(["system", "nDCG"], [("BM25", 0.5), ("other", None)]).text())
        system    nDCG
        BM25    0.5000
        other        -
        """
        made = tuple(one if isinstance(one, Column) else Column(one) for one in columns)
        return cls(made, tuple(map(tuple, rows)), title, tuple(notes), **about)

    def text(self, width: int = 0, names: Mapping[str, str] = NO_NAMES) -> str:
        """Aligned lines: title, columns, rows, notes.

        With a `width` no row is longer: columns have their short names, `names` shortens those in the first column (as
        does the table itself, with a note, for others that are too long), and the columns stand in blocks.
        """
        title = [in_line(self.title)] if self.title else []
        # A cell with a mark is wider, and so is every other of its column.
        spaces = [any(isinstance(row[place], Cell) for row in self.rows) for place in range(len(self.columns))]
        rows = [list(map(_shown, row, self.columns, spaces)) for row in self.rows]
        above = [in_line(column.above) for column in self.columns]
        more: list[str] = []
        if width:
            rows, more = _shortened(rows, names, width // 3)
            lines = fitted([in_line(column.short or column.name) for column in self.columns], above, rows, width)
        else:
            head = [[in_line(column.name) for column in self.columns]]
            lines = list(aligned([*([above] if any(above) else []), *head, *rows]))
        return "\n".join([*title, *lines, *more, *map(in_line, self.notes)])

    def markdown(self) -> str:
        """A table of Markdown: title and notes as paragraphs."""
        rows = [[f"{column.above} {column.name}".strip() for column in self.columns], *self._plain()]
        barred = [[in_line(cell).replace("|", "\\|") for cell in row] for row in rows]
        lines = [f"| {' | '.join(row)} |" for row in barred]
        lines.insert(1, f"|---|{'--:|' * (len(self.columns) - 1)}")
        notes = "\n".join(f"* {in_line(note)}" for note in self.notes)
        return "\n\n".join(part for part in (in_line(self.title), "\n".join(lines), notes) if part) + "\n"

    def csv(self) -> str:
        """Names and values; numbers keep every digit, None is empty."""
        page = io.StringIO()
        writer = csv.writer(page, lineterminator="\n")
        for row in ([column.name for column in self.columns], *(map(_value, row) for row in self.rows)):
            writer.writerow([spreadsheet_cell(value) if isinstance(value, str) else value for value in row])
        return page.getvalue()

    def filled(self) -> Table:
        """Without the columns, after the first, that are empty or 0 in all rows."""
        empty = (None, "", "-", 0, "0")
        shown = [any(_value(row[place]) not in empty for row in self.rows) for place in range(len(self.columns))]
        places = [place for place, some in enumerate(shown) if some or not place]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in places), rows=rows)

    def latex(self, names: Mapping[str, str] = NO_NAMES) -> str:
        """`tabular`s for booktabs, each at most as wide as an article's text, the title and notes in comments.

        `names` shortens those in the first column.
        """
        rows, more = _shortened(self._plain(), names, LATEX_WIDTH // 3)
        heads = [in_line(column.short or column.name) for column in self.columns]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        comments = [f"% {in_line(line)}" for line in (self.title, *more, *self.notes) if line]
        parts = blocks(widths, [column.above for column in self.columns], 1, LATEX_WIDTH) or [[]]
        tabulars = ["\n".join(self._tabular([0, *part], heads, rows, widths)) for part in parts]
        if any(map(_BEYOND_LATIN.search, tabulars)):
            comments.append("% has letters beyond Latin: for LuaLaTeX or XeLaTeX, with a font that has them")
        return "\n".join([*comments, "\n\\par\\medskip\n".join(tabulars), ""])

    def _tabular(
        self, places: Sequence[int], heads: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
    ) -> Iterator[str]:
        """The lines of one `tabular` with the columns in these places."""
        room = LATEX_WIDTH - widths[0] - GAP
        broken = f"p{{{room / LATEX_WIDTH:.2f}\\textwidth}}"
        yield rf"\begin{{tabular}}{{l{''.join('r' if widths[place] <= room else broken for place in places[1:])}}}"
        yield r"\toprule"
        above, rules = [], []
        for name, group in groupby(enumerate(places), key=lambda pair: self.columns[pair[1]].above):
            at = [number for number, _ in group]
            above.append(rf"\multicolumn{{{len(at)}}}{{c}}{{{tex(name)}}}" if name else " & ".join([""] * len(at)))
            rules += [rf"\cmidrule(lr){{{at[0] + 1}-{at[-1] + 1}}}"] if name else []
        if rules:
            yield " & ".join(above) + r" \\"
            yield " ".join(rules)
        yield " & ".join(r"$\times$".join(map(tex, heads[place].split("*"))) for place in places) + r" \\"
        yield r"\midrule"
        for values, row in zip(self.rows, rows, strict=True):
            cells = []
            for place in places:
                value, shown = values[place], row[place]
                raised, best = (value.raised, value.best) if isinstance(value, Cell) else ("", False)
                text = tex(shown.removesuffix(raised) if raised else shown)
                cells.append((rf"\textbf{{{text}}}" if best else text) + (f"$^{{{raised}}}$" if raised else ""))
            yield " & ".join(cells) + r" \\"
        yield r"\bottomrule"
        yield r"\end{tabular}"

    def html(self, names: Mapping[str, Markup]) -> Markup:
        """A `<table>` that can be sorted; `names` says how a system is shown.

        Columns below headings stand in several where a page has no room for all of them side by side.
        """
        heads = [column.short or column.name for column in self.columns]
        widths = [max(map(len, column)) + GAP for column in zip(heads, *self._plain(), strict=True)]
        above = [column.above for column in self.columns]
        close = sum(widths) + GAP * len(widths) > ROOMY
        parts = blocks(widths, above, 1, PAGE_WIDTH) if any(above) else [list(range(1, len(widths)))]
        return Markup("\n").join(self._html([0, *part], close, names) for part in parts)

    def _html(self, places: Sequence[int], close: bool, names: Mapping[str, Markup]) -> Markup:
        right = ' class="n"'
        head = ""
        for key, place in enumerate(places):
            column = self.columns[place]
            full = Markup(' title="{}"').format(column.name) if column.short not in ("", column.name) else ""
            side = right if key and not self.prose else ""
            head += f'<th scope="col"{side} data-key="{key}"{full}>{escape(column.short or column.name)}</th>'
        if any(self.columns[place].above for place in places):
            # As in text: what several columns share stands once, above their short names.
            spans = ""
            for above, group in groupby(self.columns[place].above for place in places):
                count = len(list(group))
                span = f'<th scope="colgroup" class="group" colspan="{count}">{escape(above)}</th>'
                spans += span if above else "<td></td>" * count
            head = f"{spans}</tr>\n<tr>{head}"
        body = ""
        for row in self.rows:
            first = str(_value(row[0]))
            body += f'<tr><th scope="row">{escape(names.get(first, first) if self.systems else first)}</th>'
            for place in places[1:]:
                cell, value = row[place], _value(row[place])
                raw = f' data-value="{value}"' if isinstance(value, int | float) else ""
                text = escape("–" if value is None else _shown(cell, self.columns[place], False))
                shown = f"<b>{text}</b>" if isinstance(cell, Cell) and cell.best else text
                body += f"<td{'' if self.prose else right}{raw}>{shown}</td>"
            body += "</tr>\n"
        start = f'<table class="sortable{" close" * close}">'
        return Markup(f"{start}\n<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>")

    def _plain(self) -> list[list[str]]:
        return [
            [_shown(cell, column, False) for cell, column in zip(row, self.columns, strict=True)] for row in self.rows
        ]


def _value(cell: object) -> object:
    return cell.value if isinstance(cell, Cell) else cell


def _shown(cell: object, column: Column, spaced: bool) -> str:
    """A cell as text; `spaced`: with a space in the place of a mark."""
    value, raised = (cell.value, cell.raised) if isinstance(cell, Cell) else (cell, "")
    if value is None or isinstance(value, str):
        text = column.none if value is None else in_line(value)
    else:
        text = format(value, "," if isinstance(value, int) and column.form == ".4f" else column.form)
    return text + (raised or " " * spaced)


def p_value(p: float | None, least: float = 0.0) -> str:
    """A p-value for people; of one that is the `least` that a test can say, that it is no larger.

    >>> p_value(0.00001), p_value(0.25), p_value(None), p_value(0.002, 0.002)
    ('<.0001', '0.2500', '-', '<=.0020')
    """
    if p is None:
        return "-"
    bound = least > 0 and p <= least * (1 + 1e-9)
    return f"<={p:.4f}".replace("0.", ".") if bound else "<.0001" if p < 0.0001 else f"{p:.4f}"


def p_phrase(p: float, least: float = 0.0) -> str:
    """A p-value in a sentence, such as p = 0.2500, p < .0001 or p <= .0020."""
    text = p_value(p, least)
    number = text.lstrip("<=")
    return f"p {text.removesuffix(number) or '='} {number}"


_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "<": "$<$",
        ">": "$>$",
        # At the beginning of a row it would be an option of the line break before it.
        "[": "{[}",
        ORACLE: r"$^\dagger$",
        "…": r"\ldots{}",
        "≥": r"$\ge$",
        "≤": r"$\le$",
    }
)
_BEYOND_LATIN = re.compile(r"[\u0250-\u1dff\u2e80-\U0010ffff]")
"""Letters that pdfLaTeX has not."""


def tex(text: str) -> str:
    """A text as LaTeX sets it."""
    return re.sub(r"^-(?=\d)", "$-$", in_line(text).translate(_TEX))


def short_names(names: Iterable[str], longest: int) -> dict[str, str]:
    """Each name that is longer than `longest` -> a shorter one that no other name has.

    >>> short_names(["BM25", "retrieve, then re-rank", "retrieve, then rewrite"], 12)
    {'retrieve, then re-rank': 'retrieve, t…', 'retrieve, then rewrite': 'retriev… (2)'}
    """
    shorter: dict[str, str] = {}
    all = list(dict.fromkeys(names))
    taken = {name for name in all if len(name) <= longest}
    for name in all:
        made, number = name, 1
        while len(made) > longest or made in taken.difference([name]):
            sign = "…" if number == 1 else f"… ({number})"
            made, number = f"{name[: max(longest - len(sign), 1)].rstrip()}{sign}", number + 1
        if made != name:
            taken.add(made)
            shorter[name] = made
    return shorter


def _shortened(
    rows: Sequence[Sequence[str]], names: Mapping[str, str], longest: int
) -> tuple[list[list[str]], list[str]]:
    """The rows with short names in the first column, and a note on each name that `names` has not."""
    firsts = []
    for text in (row[0] for row in rows):
        # Whatever marks stand behind a name.
        marks = ("", *(text[place:] for place in range(len(text)) if text[place] == " "))
        short = (names[full] + mark for mark in marks if (full := text[: len(text) - len(mark)]) in names)
        firsts.append(next(short, text))
    more = short_names(firsts, longest)
    notes = [f"{short} is {name}" for name, short in more.items()]
    return [[more.get(first, first), *row[1:]] for first, row in zip(firsts, rows, strict=True)], notes


def blocks(widths: Sequence[int], above: Sequence[str], leads: int, most: int) -> list[list[int]]:
    """The places of the columns of each block of at most `most` characters, the `leads` first ones left out.

    Columns below the same name stay together where they fit into one block; one that fits into none is one alone.

    >>> blocks([10, 6, 6, 6, 6], ["", "gender", "gender", "region", "region"], leads=1, most=30)
    [[1, 2], [3, 4]]
    """
    room = most - sum(width + GAP for width in widths[:leads]) + GAP
    made: list[list[int]] = []
    left = 0
    for _, group in groupby(range(leads, len(widths)), key=lambda place: above[place]):
        places = list(group)
        whole = sum(widths[place] + GAP for place in places)
        for part in [places] if whole <= room else [[place] for place in places]:
            size = sum(widths[place] + GAP for place in part)
            # A group that is parted begins a block of its own.
            if not made or size > left or (whole > room and part[0] == places[0]):
                made.append([])
                left = room
            made[-1] += part
            left -= size
    return made


def aligned(table: Sequence[Sequence[str]], widths: Sequence[int] = (), left: Container[int] = (0,)) -> Iterator[str]:
    """The rows with columns of one width, the first to the left, the others to the right."""
    widths = widths or [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        pairs = enumerate(zip(row, widths, strict=True))
        cells = (cell.ljust(width) if place in left else cell.rjust(width) for place, (cell, width) in pairs)
        yield (" " * GAP).join(cells).rstrip()


def fitted(head: Sequence[str], above: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The lines of a table of at most `width` characters (but for words that are longer), blank ones between blocks.

    Every block begins with the first column, and with those columns of words behind it that leave half of the width.
    `above` are names, each written once above its columns.
    """

    def is_number(cell: str) -> bool:
        return cell[:1].isdigit() or (cell[:1] in "+-.[$<" and any(map(str.isdigit, cell)))

    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    columns = list(zip(*rows, strict=True)) or [()] * len(head)
    leads = 1
    while leads < len(head) - 1 and sum(widths[: leads + 1]) < width // 2 and not any(map(is_number, columns[leads])):
        leads += 1
    room = max(width - sum(widths[:leads]) - GAP * leads, width // 3)
    lines: list[str] = []
    for block in blocks([min(one, room) for one in widths], above, leads, width) or [[]]:
        places, shown = [*range(leads), *block], []
        for full in (head, *rows):
            # As many lines as its longest cell takes.
            cells = [full[place] for place in places]
            parts = [textwrap.wrap(cell, room) if at and len(cell) > room else [cell] for at, cell in enumerate(cells)]
            for number in range(max(map(len, parts))):
                shown.append([part[number] if number < len(part) else "" for part in parts])
        left = {0, *(at for at, place in enumerate(places) if place >= leads and widths[place] > room)}
        spans = [max(map(len, column)) for column in zip(*shown, strict=True)]
        written = []
        for name, group in groupby(range(len(places)), key=lambda at: above[places[at]]):
            under = list(group)
            span = sum(spans[at] + GAP for at in under) - GAP
            if len(name) > span:
                spans[under[-1]] += len(name) - span
                span = len(name)
            ruled = len(under) > 1 and name and len(name) + 4 <= span
            written.append(f" {name} ".center(span, "-") if ruled else name.rjust(span))
        titles = [(" " * GAP).join(written)] if any(above[place] for place in places) else []
        lines += [*([""] if lines else []), *titles, *aligned(shown, spans, left)]
    return lines


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One point of a line: what it is called, and its two means."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line: its name, its color's number, its points in order, and points of it that stand alone (hollow)."""

    name: str
    color: int
    points: tuple[PlotPoint, ...]
    alone: tuple[PlotPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class LinePlot:
    """Lines over two axes; `diagonal` draws where both are the same."""

    caption: str
    axes: tuple[str, str]
    lines: tuple[PlotLine, ...]
    diagonal: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph; a `warning` stands out."""

    text: str
    warning: bool = False


PagePart = Note | Table | LinePlot


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of the page: its name in the list of sections, its title, and its parts from top to bottom.

    Plots stand side by side, with one `legend` of the lines: (name, color's number).
    """

    name: str
    title: str
    parts: tuple[PagePart, ...]
    legend: tuple[tuple[str, int], ...] = ()
