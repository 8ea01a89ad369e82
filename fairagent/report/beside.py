"""Two answers to one query side by side: what was read, what was written, and what the groups got of both."""

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairagent.report.answer import RESTING, answer_body
from fairagent.report.text import groups_text, one_line, percent
from fairagent.types import AnswerResult, Exposure, exposure_rows

Named = tuple[str, AnswerResult]
"""What an answer's system is called, and the answer."""


def beside_table(left: Named, right: Named) -> Table:
    """Both contexts with their groups, both answers, and the groups' exposure in each beside the target of `right`."""
    query = right[1].query.text
    table = Table(box=box.SIMPLE_HEAD, title=Text(query, "bold"), pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    for name, _ in (left, right):
        table.add_column(Text(name), ratio=1)
    targets = right[1].search.trace.exposures
    for part in (_sources, answer_body):
        table.add_row(*(part(result) for _, result in (left, right)))
        table.add_row()
    table.add_row(*(_exposures(result, targets) for _, result in (left, right)))
    return table


def _sources(result: AnswerResult) -> RenderableType:
    """The context, its documents' groups behind them; those that are cited stand out."""
    page = Table.grid(padding=(0, 1), expand=True)
    page.add_column(justify="right", no_wrap=True)
    page.add_column(ratio=5)
    page.add_column(ratio=4)
    for number, hit in enumerate(result.context, start=1):
        groups = ", ".join(groups_text(shares) for shares in hit.groups.values())
        style = "bold" if number in result.answer.cited else "dim"
        page.add_row(f"[{number}]", one_line(hit.title or hit.id), one_line(groups), style=style)
    return page if result.context else Text("nothing was found", "dim")


def _exposures(result: AnswerResult, targets: tuple[Exposure, ...]) -> RenderableType:
    """What each group has of the documents that were read and of those that the answer rests on."""
    attribution = result.attribution
    if attribution is None or not targets:
        return Text()
    page = Table.grid(padding=(0, 1), expand=True)
    page.add_column(ratio=1)
    for _ in range(3):
        page.add_column(justify="right", no_wrap=True)
    page.add_row("", "read", RESTING[attribution.kind], "target", style="dim")
    for target, read, cited in zip(targets, attribution.retrieved, attribution.exposures, strict=True):
        for due, *both in zip(*map(exposure_rows, (target, read, cited)), strict=True):
            wanted = "-" if due.target is None else percent(due.target)
            page.add_row(one_line(due.label), *(percent(row.share) for row in both), wanted)
    return page
