"""What a person reads of a search in a terminal: the ranking with its groups, exposure as bars, and how numbers look.

Tables and bars are rich renderables. `plain` prints one to a string, for those who are in no terminal; whatever a
console here prints, nothing in it steers the terminal.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fairagent.types import Exposure, Hit, Ranking, Trace, exposure_rows
from fairagent.types.change import ExposureChange, percent
from fairagent.types.clean import in_line, printable

MINUS = "\N{MINUS SIGN}"
BLOCKS = " ▏▎▍▌▋▊▉█"
"""A cell that is filled by 0 to 8 eighths."""


def draw_bar(share: float, target: float | None, width: int, ascii_only: bool = False) -> tuple[str, int]:
    """The bar's `width` characters for `share` of its length, and the place (from 0) of the tick at `target`.

    In ASCII a cell is full from one half on.
    """
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    filled = [min(8, max(0, eighths - 8 * cell)) for cell in range(width)]
    tick = width if target is None else min(width - 1, int(width * min(max(target, 0.0), 1.0)))
    cells = ["#" if ascii_only and eighths >= 4 else " " if ascii_only else BLOCKS[eighths] for eighths in filled]
    if tick < width:
        cells[tick] = "|" if ascii_only else "│"
    return "".join(cells), tick


@dataclass(frozen=True, slots=True)
class ExposureBar:
    """`share` beside `target` as a rich renderable that takes the width it is given; `full` is a full bar's share."""

    share: float
    target: float | None
    full: float
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        target = None if self.target is None else self.target / self.full
        drawn, tick = draw_bar(self.share / self.full, target, options.max_width, options.ascii_only)
        text = Text(drawn, self.style, no_wrap=True, end="")
        text.stylize("bold yellow", tick, tick + 1)
        yield text


class CleanConsole(Console):
    """A console of rich that makes every piece of text printable; its own colors and movements stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave it to the program to end: rich ends it at once."""
        raise


def console(**about: Any) -> Console:
    """A console on standard output, or wherever `about` (rich's options) says; texts are no markup, [b] is [b]."""
    return CleanConsole(highlight=False, markup=False, **about)


ORACLE = "ORACLE: a target or the groups came from the relevance judgments; no fair comparison with runs without them"
"""What every output of a run says that looked at the judgments inside the loop."""


def plain(renderable: RenderableType, width: int = 100) -> str:
    """`renderable` as text without colors, in lines of at most `width` characters."""
    page = io.StringIO()
    # In a notebook rich would show it there and then.
    console(file=page, width=width, color_system=None, force_jupyter=False).print(renderable)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"


def gap_text(gap: float) -> str:
    """A gap or divergence (nats)."""
    return f"{gap:.4f}"


def groups_text(shares: Mapping[str, float]) -> str:
    """The groups that one document belongs to, with their shares where these differ; "-" where none is known.

    >>> groups_text({"Asia": 0.5, "Europe": 0.5}), groups_text({"Asia": 0.75, "Europe": 0.25}), groups_text({})
    ('Asia, Europe', 'Asia 75%, Europe 25%', '-')
    """
    if len(set(shares.values())) > 1:
        return ", ".join(f"{label} {percent(share)}" for label, share in shares.items())
    return ", ".join(shares) or "-"


def hits_table(hits: Sequence[Hit], engines: Ranking | None = None) -> Table:
    """The ranking: rank, title (the id where there is none), the groups of each dimension.

    With the `engines` list for the query: also the rank and the score that each document has there. The final
    order has no scores that mean anything: most re-rankers give none.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("rank", justify="right", no_wrap=True)
    ranks = {} if engines is None else {id: rank for rank, id in enumerate(engines.ids, start=1)}
    moved = engines is not None and any(ranks.get(hit.id) != hit.rank for hit in hits)
    if moved:
        table.add_column("was", justify="right", no_wrap=True)
    dimensions = list(hits[0].groups) if hits else []
    for name in ("title", *dimensions):
        table.add_column(Text(name))
    if engines is not None:
        table.add_column("score", justify="right", no_wrap=True)
    for hit in hits:
        groups = [one_line(groups_text(hit.groups[name]), "" if hit.groups[name] else "dim") for name in dimensions]
        was = ranks.get(hit.id)
        score = [] if engines is None else ["-" if was is None else f"{engines.scores[was - 1]:.3f}"]
        rank = [str(hit.rank), *([str(was or "new")] if moved else [])]
        table.add_row(*rank, one_line(hit.name), *groups, *score)
    if engines is not None:
        meant = "was: the rank in the engine's own list; score: the engine's" if moved else "score: the engine's"
        table.caption, table.caption_justify = Text(meant, "dim"), "left"
    return table


def verdict_text(changes: Iterable[ExposureChange]) -> Text:
    """The verdict, a line a dimension; what is worse than before stands out."""
    lines = [Text(in_line(str(one)), "bold red" if one.worse else "bold") for one in changes]
    return Text("\n").join(lines)


def one_line(text: str, style: str = "") -> Text:
    """Text that is cut, not wrapped, where a column must be narrower than it (a column that may not wrap is not)."""
    return Text(in_line(text), style, no_wrap=True, overflow="ellipsis")


TARGETS = {
    "estimated": "each group's share of the engine's own list",
    "trec-estimated": "half of it from the engine's own list, half from the population",
    "qrels": "each group's share of the relevant documents",
    "trec": "half of it from the relevant documents, half from the population",
}
"""What the names of targets that do not speak for themselves mean."""


@dataclass(frozen=True, slots=True)
class ExposureBars:
    """Two exposures as bars beside the target: a block a dimension, on one scale, a row a group, last no label."""

    names: tuple[str, str]
    pairs: tuple[tuple[Exposure, Exposure], ...]
    trace: Trace

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 1), expand=True)
        # Both bars are as wide as each other; a narrow terminal cuts labels, not numbers, which take about 30.
        width = min(40, max(8, (options.max_width - 30) * 5 // 18))
        table.add_column("exposure", ratio=1)
        for name in self.names:
            table.add_column(name, width=width, no_wrap=True)
            table.add_column("", justify="right", no_wrap=True)
        table.add_column("target", justify="right", no_wrap=True)
        for before, after in self.pairs:
            table.add_row(Text(before.dimension, "bold"))
            rows = list(zip(exposure_rows(before), exposure_rows(after), strict=True))
            if not any(rows[-1][0][1:]) and not any(rows[-1][1][1:]):
                rows.pop()
            full = max(max(was.share, now.share, now.target or 0) for was, now in rows)
            for was, now in rows:
                bars = [ExposureBar(one.share, now.target, full, of) for one, of in ((was, "blue"), (now, "green"))]
                due = "-" if now.target is None else percent(now.target)
                label = one_line(f"  {now.label}")
                table.add_row(label, bars[0], percent(was.share), bars[1], percent(now.share), due)
            gaps = gap_text(before.divergence), gap_text(after.divergence)
            table.add_row(one_line("  divergence"), "", gaps[0], "", gaps[1], style="dim")
        trace, oracle = self.trace, (" (oracle)", "bold red") if self.trace.oracle else ""
        meant = "".join(f"; {name} is {TARGETS[name]}" for name in dict.fromkeys(trace.targets) if name in TARGETS)
        table.caption = Text.assemble((f"| is the target: {targets_text(trace)}", "dim"), oracle, (meant, "dim"))
        table.caption_justify = "left"
        yield table


def exposure_table(trace: Trace) -> ExposureBars:
    """The first ranking's exposure and the final one's."""
    pairs = zip(trace.steps[0].exposures, trace.exposures, strict=True)
    return ExposureBars(("before", "after"), tuple(pairs), trace)


def targets_text(trace: Trace) -> str:
    """Where the targets come from, e.g. "trec-estimated" or "gender given, region population"."""
    if len(set(trace.targets)) == 1:
        return trace.targets[0]
    pairs = zip(trace.exposures, trace.targets, strict=True)
    return ", ".join(f"{exposure.dimension} {source}" for exposure, source in pairs)


def signed(value: float) -> str:
    """A difference with its sign, to three decimals.

    >>> signed(0.1742), signed(-0.0004), signed(-0.25)
    ('+0.174', '0.000', '−0.250')
    """
    return f"{value:+.3f}".replace("-", MINUS) if round(value, 3) else "0.000"


def listed(names: Sequence[str]) -> str:
    """Some names in a sentence.

    >>> listed(["gender", "region", "age"]), listed(["gender"])
    ('gender, region and age', 'gender')
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
