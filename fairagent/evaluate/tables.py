"""Tables, line plots and sections of the page as values; tables become text, Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType

from markupsafe import Markup, escape

from fairagent.evaluate.layout import GAP, LATEX_WIDTH, aligned, blocks, fitted, renamed, short_names
from fairagent.types.clean import in_line, spreadsheet_cell

ORACLE = "†"
"""Marks systems that looked at the judgments."""
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
    """A value with marks: `raised` behind the number (+, -), which text sets off by a space where there is none.

    The `best` of its column is bold in LaTeX and on the page.
    """

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
        rows = self._rows(spaced=True)
        above = [in_line(column.above) for column in self.columns]
        if not width:
            head = [[in_line(column.name) for column in self.columns]]
            head = [above, *head] if any(above) else head
            return "\n".join([*title, *aligned([*head, *rows]), *map(in_line, self.notes)])
        rows, more = _shortened(rows, names, width // 3)
        head_short = [in_line(column.short or column.name) for column in self.columns]
        return "\n".join([*title, *fitted(head_short, above, rows, width), *more, *map(in_line, self.notes)])

    def _rows(self, spaced: bool) -> list[list[str]]:
        """The cells as texts; `spaced`: with a space in the place of a mark where others of their column have one."""
        marked = [
            spaced and any(isinstance(row[place], Cell) for row in self.rows) for place in range(len(self.columns))
        ]
        return [
            [_shown(cell, column, space) for cell, column, space in zip(row, self.columns, marked, strict=True)]
            for row in self.rows
        ]

    def markdown(self) -> str:
        r"""A table of Markdown: title and notes as paragraphs.

        >>> print(Table.of(["system", "nDCG"], [("A|B", 0.5)]).markdown())
        | system | nDCG |
        |---|--:|
        | A\|B | 0.5000 |
        <BLANKLINE>
        """
        head = [f"{column.above} {column.name}".strip() for column in self.columns]
        cells = [
            [_shown(cell, column, False) for cell, column in zip(row, self.columns, strict=True)] for row in self.rows
        ]
        lines = [f"| {' | '.join(in_line(cell).replace('|', BAR) for cell in row)} |" for row in (head, *cells)]
        lines.insert(1, f"|---|{'--:|' * (len(self.columns) - 1)}")
        notes = "\n".join(f"* {in_line(note)}" for note in self.notes)
        return "\n\n".join(part for part in (in_line(self.title), "\n".join(lines), notes) if part) + "\n"

    def csv(self) -> str:
        """Names and values; numbers keep every digit, None is empty."""
        page = io.StringIO()
        writer = csv.writer(page, lineterminator="\n")
        writer.writerow([spreadsheet_cell(column.name) for column in self.columns])
        for row in self.rows:
            writer.writerow(
                [spreadsheet_cell(value) if isinstance(value, str) else value for value in map(_value, row)]
            )
        return page.getvalue()

    def filled(self) -> Table:
        """Without the columns, after the first, that are empty or 0 in all rows."""
        kept = [
            place
            for place in range(len(self.columns))
            if not place or any(_value(row[place]) not in (None, "", "-", 0, "0") for row in self.rows)
        ]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in kept), rows=rows)

    def latex(self, names: Mapping[str, str] = NO_NAMES) -> str:
        """`tabular`s for booktabs, each at most as wide as an article's text, the title and notes in comments.

        `names` shortens those in the first column.
        """
        rows, more = _shortened(self._rows(spaced=False), names, LATEX_WIDTH // 3)
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
            yield " & ".join(_tex_cell(values[place], row[place]) for place in places) + r" \\"
        yield r"\bottomrule"
        yield r"\end{tabular}"

    def html(self, names: dict[str, Markup]) -> Markup:
        """A `<table>` that can be sorted; `names` says how a system is shown.

        Columns below headings stand in several where a page has no room for all of them side by side.
        """
        heads = [column.short or column.name for column in self.columns]
        widths = [max(map(len, column)) + GAP for column in zip(heads, *self._rows(spaced=False), strict=True)]
        above = [column.above for column in self.columns]
        close = sum(widths) + GAP * len(widths) > ROOMY
        parts = blocks(widths, above, 1, PAGE_WIDTH) if any(above) else [list(range(1, len(widths)))]
        return Markup("\n").join(self._html([0, *part], close, names) for part in parts)

    def _html(self, places: Sequence[int], close: bool, names: dict[str, Markup]) -> Markup:
        columns = [self.columns[place] for place in places]
        head = "".join(
            f'<th scope="col"{self._right(key)} data-key="{key}"{self._title(one)}>{escape(one.short or one.name)}</th>'
            for key, one in enumerate(columns)
        )
        if any(one.above for one in columns):
            # As in text: what several columns share stands once, above their short names.
            groups = ((above, len(list(own))) for above, own in groupby(columns, lambda one: one.above))
            spans = (
                f'<th scope="colgroup" class="group" colspan="{count}">{escape(above)}</th>'
                if above
                else "<td></td>" * count
                for above, count in groups
            )
            head = f"{''.join(spans)}</tr>\n<tr>{head}"
        body = (
            "<tr>" + "".join(self._html_cell(place, row[place], names) for place in places) + "</tr>\n"
            for row in self.rows
        )
        start = f'<table class="sortable{" close" * close}">'
        return Markup(f"{start}\n<thead><tr>{head}</tr></thead>\n<tbody>{''.join(body)}</tbody></table>")

    def _html_cell(self, place: int, cell: object, names: dict[str, Markup]) -> str:
        value, column = _value(cell), self.columns[place]
        if not place:
            shown = names.get(str(value)) if self.systems else None
            return f'<th scope="row">{escape(str(value)) if shown is None else shown}</th>'
        text = "–" if value is None else _shown(cell, column, False)
        raw = f' data-value="{value}"' if isinstance(value, int | float) else ""
        best = isinstance(cell, Cell) and cell.best
        return f"<td{self._right(place)}{raw}>{f'<b>{escape(text)}</b>' if best else escape(text)}</td>"

    @staticmethod
    def _title(column: Column) -> Markup | str:
        """The name in full, where a short one is shown."""
        return Markup(' title="{}"').format(column.name) if column.short not in ("", column.name) else ""

    def _right(self, place: int) -> str:
        """What sets a column to the right, the first one and sentences aside."""
        return _RIGHT if place and not self.prose else ""


_RIGHT = ' class="n"'
BAR = "\\|"
"""A bar within a cell of Markdown."""


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
    """A p-value in a sentence.

    >>> p_phrase(0.00001), p_phrase(0.25), p_phrase(0.002, 0.002)
    ('p < .0001', 'p = 0.2500', 'p <= .0020')
    """
    sign, number = re.fullmatch("(<?=?)(.*)", p_value(p, least)).groups()  # type: ignore[union-attr]
    return f"p {sign or '='} {number}"


def _value(cell: object) -> object:
    return cell.value if isinstance(cell, Cell) else cell


def _shown(cell: object, column: Column, spaced: bool) -> str:
    value, raised = (cell.value, cell.raised) if isinstance(cell, Cell) else (cell, "")
    if value is None or isinstance(value, str):
        text = column.none if value is None else in_line(value)
    else:
        text = format(value, "," if isinstance(value, int) and column.form == ".4f" else column.form)
    return text + (raised or " " * spaced)


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
_MINUS = re.compile(r"^-(?=\d)")


def tex(text: str) -> str:
    """A text as LaTeX sets it."""
    return _MINUS.sub("$-$", in_line(text).translate(_TEX))


def _tex_cell(cell: object, shown: str) -> str:
    raised, best = (cell.raised, cell.best) if isinstance(cell, Cell) else ("", False)
    text = tex(shown.removesuffix(raised) if raised else shown)
    return (rf"\textbf{{{text}}}" if best else text) + (f"$^{{{raised}}}$" if raised else "")


def _shortened(
    rows: Sequence[Sequence[str]], names: Mapping[str, str], longest: int
) -> tuple[list[list[str]], list[str]]:
    """The rows with short names in the first column, and a note on each name that `names` has not."""
    firsts = [renamed(row[0], names) for row in rows]
    more = short_names(firsts, longest)
    notes = [f"{short} is {name}" for name, short in more.items()]
    return [[more.get(first, first), *row[1:]] for first, row in zip(firsts, rows, strict=True)], notes


# --- what a kind of experiment shows on the page --------------------------------------------------------------------


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
