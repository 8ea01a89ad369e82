"""How a table is set: names shortened, columns parted into blocks that fit a width, cells broken into lines."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

GAP = 2
"""Spaces between two columns of text."""
LATEX_WIDTH = 62
"""Characters that a table of an article may have, two for the space between columns: its text is 345 pt wide at 10 pt,
a figure 5 pt, that space 12 pt."""
WIDTH = 80
"""Characters of a line where nothing says how wide it may be, as in a file."""


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


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A cell with a name in its short form, whatever marks stand behind it.

    >>> renamed("a long name †", {"a long name": "a l…"})
    'a l… †'
    """
    for marks in ("", *(text[place:] for place in range(len(text)) if text[place] == " ")):
        if (full := text.removesuffix(marks) if marks else text) in names:
            return names[full] + marks
    return text


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


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def aligned(table: Sequence[Sequence[str]], widths: Sequence[int] = (), left: Container[int] = (0,)) -> Iterator[str]:
    """The rows with columns of one width, the first to the left, the others to the right.

    >>> list(aligned([["a", "1"], ["bcd", "23"]]))
    ['a     1', 'bcd  23']
    """
    widths = widths or _widths(table)
    for row in table:
        cells = (
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield (" " * GAP).join(cells).rstrip()


def fitted(head: Sequence[str], above: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The lines of a table of at most `width` characters (but for words that are longer), blank ones between blocks.

    Every block begins with the first column, and with those columns of words behind it that leave half of the width.
    `above` are names, each written once above its columns.

    >>> for line in fitted(["", "a", "b", "a"], ["", "one", "one", "two"], [["x", "1.5000", "2.5000", "3.5000"]], 20):
    ...     print(line)
       ---- one -----
            a       b
    x  1.5000  2.5000
    <BLANKLINE>
          two
            a
    x  3.5000
    """
    widths = _widths([head, *rows])
    columns = list(zip(*rows, strict=True)) or [()] * len(head)
    leads = 1
    while leads < len(head) - 1 and sum(widths[: leads + 1]) < width // 2 and not any(map(_number, columns[leads])):
        leads += 1
    room = max(width - sum(widths[:leads]) - GAP * leads, width // 3)
    broken = {place for place in range(leads, len(head)) if widths[place] > room}
    lines: list[str] = []
    for block in blocks([min(one, room) for one in widths], above, leads, width) or [[]]:
        places = [*range(leads), *block]
        shown = [row for full in (head, *rows) for row in _lines([full[place] for place in places], room)]
        left = {0, *(number for number, place in enumerate(places) if place in broken)}
        lines += [*([""] if lines else []), *_block(shown, [above[place] for place in places], left)]
    return lines


def _number(cell: str) -> bool:
    return cell[:1].isdigit() or (cell[:1] in "+-.[$<" and any(map(str.isdigit, cell)))


def _lines(cells: Sequence[str], room: int) -> Iterator[list[str]]:
    """A row as so many lines as its longest cell takes."""
    parts = [textwrap.wrap(cell, room) if place and len(cell) > room else [cell] for place, cell in enumerate(cells)]
    for number in range(max(map(len, parts))):
        yield [part[number] if number < len(part) else "" for part in parts]


def _block(rows: Sequence[Sequence[str]], above: Sequence[str], left: Container[int]) -> Iterator[str]:
    widths, written = _widths(rows), []
    for name, group in groupby(range(len(above)), key=lambda place: above[place]):
        places = list(group)
        span = sum(widths[place] + GAP for place in places) - GAP
        if len(name) > span:
            widths[places[-1]] += len(name) - span
            span = len(name)
        ruled = len(places) > 1 and name and len(name) + 4 <= span
        written.append(f" {name} ".center(span, "-") if ruled else name.rjust(span))
    if any(above):
        yield (" " * GAP).join(written)
    yield from aligned(rows, widths, left)
