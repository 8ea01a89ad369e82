"""What a person reads of an answer: its text, its numbered sources with their groups, and whom it gives exposure.

Two answers to one query side by side: what was read, what was written, and what the groups got of both.
"""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairagent.report.story import StoryLine, story, usage_text
from fairagent.report.text import gap_text, groups_text, one_line
from fairagent.types import UNKNOWN, AnswerResult, Attribution, Debiased, Exposure, Removal, exposure_rows
from fairagent.types.change import percent
from fairagent.types.common import counted

_WRITERS = {"extractive": "sentences of the documents as they stand", "llm": "by the language model"}


CUT_OFF = " [cut off here]"
"""What stands after an answer that was truncated."""


def answer_body(result: AnswerResult) -> Text:
    """The answer's text, its citations marked; or why there is none."""
    why = "; ".join([*result.notes, *result.answer.notes]) or "the generator wrote nothing"
    text = Text(result.answer.text or f"No answer: {why}.")
    text.highlight_regex(r"\[\d[^\]]*\]", "bold cyan")
    return text.append(CUT_OFF, "bold red") if result.answer.truncated else text


def sources_table(result: AnswerResult) -> Table:
    """The context as it is numbered: title, the groups of each dimension, whether the answer rests on it."""
    attribution = result.attribution
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("source", justify="right", no_wrap=True)
    dimensions = list(result.context[0].groups) if result.context else []
    for name in ("title", *dimensions):
        table.add_column(Text(name))
    table.add_column(attribution.called if attribution else "cited", no_wrap=True)
    citing = [float(number in result.answer.cited) for number in range(1, len(result.context) + 1)]
    weights = attribution.weights.tolist() if attribution else citing
    for number, (hit, weight) in enumerate(zip(result.context, weights, strict=True), start=1):
        style = "" if weight else "dim"
        groups = [one_line(groups_text(hit.groups[name])) for name in dimensions]
        mark = "yes" if weight == 1 else f"{weight:.2f}" if weight else ""
        table.add_row(f"[{number}]", one_line(hit.name), *groups, mark, style=style)
    return table


def removed_text(removed: Sequence[Removal]) -> str:
    """What each group lost to a filter, those that lost nothing left out.

    >>> from fairagent.types import Group
    >>> removed_text([Removal(Group("gender", "female"), 4, 1), Removal(Group("gender", "male"), 6, 0)])
    'female (gender) 25% of 4'
    """
    lost = [
        f"{'no label' if one.group.label == UNKNOWN else one.group.label} ({one.group.dimension}) "
        f"{percent(one.share)} of {one.seen:g}"
        for one in removed
        if one.removed
    ]
    return ", ".join(lost) or "nothing was removed"


def answer_story(result: AnswerResult) -> RenderableType:
    """The search's story, then the filter, the context, the answer and what it rests on."""
    return story(result.search.trace, _lines(result), result.alarms)


def _lines(result: AnswerResult) -> Iterator[StoryLine]:
    yield "", Text()
    if result.filtered:
        verdicts = result.filtered.verdicts
        retained = sum(verdict.kept for verdict in verdicts)
        yield "filter", Text(f"kept {retained} of {len(verdicts)}; {usage_text(result.filtered.usage)}")
        yield "removed", Text(removed_text(result.removed))
        unanswered = sum(verdict.fair is None for verdict in verdicts)
        if unanswered:
            yield "", Text(f"{unanswered} without a usable verdict, so filter.on_error decided", "red")
    if result.debiased:
        yield from _debiased(result.debiased)
    count = len(result.context)
    yield "context", Text(counted(count, "document"))
    for note in result.notes:
        yield "", Text(note, "bold red")
    answer = result.answer
    writer = _WRITERS.get(answer.source, answer.source)
    if writer:
        yield "answer", Text(f"{writer}, citing {len(answer.cited)} of {count}; {usage_text(answer.usage)}")
    for note in answer.notes:
        yield "", Text(note, "red")
    if result.exposures.context:
        gaps = result.search.trace.gap, result.exposures.context_gap, result.exposures.cited_gap
        ranking, context, cited = map(gap_text, gaps)
        parts = f"gap {ranking} in the ranking, {context} in the context, {cited} in the citations"
        yield "target", Text(f"{parts}; the cited sources hold {percent(result.support)} of the answer's words")
    if answer.revision:
        kept = "revised" if answer.revision.kept else "not revised"
        yield "", Text(f"{kept}: {answer.revision.why}")
    if result.attribution:
        yield from _attribution(result.attribution)
    yield "all", Text(f"{result.seconds:.2f} s, {usage_text(result.usage)}")


def _debiased(debiased: Debiased) -> Iterator[StoryLine]:
    moved = abs(debiased.theta_after[0] - debiased.theta_before[0])
    both = debiased.theta_before, debiased.theta_after
    before, after = (", ".join(f"{weight:.4f}" for weight in theta) for theta in both)
    of_class = f" of class {debiased.bias_class}" if debiased.bias_class else ""
    parts = (
        f"{counted(len(debiased.avoided), 'passage')}{of_class} to avoid",
        f"{counted(len(debiased.made), 'counterfactual')} made of them, {len(debiased.survived)} survived the filter, "
        f"{len(debiased.placed)} won a place",
        f"{counted(len(debiased.dropped), 'candidate')} dropped",
        usage_text(debiased.usage),
    )
    yield "debiasing", Text("; ".join(parts))
    yield "", Text(f"theta moved by {moved:.4f}, from ({before}) to ({after})")
    for note in debiased.notes:
        yield "", Text(note, "red")


def _attribution(attribution: Attribution) -> Iterator[StoryLine]:
    resting = int((attribution.weights > 0).sum())
    yield "rests on", Text(f"{resting} of {len(attribution.weights)} documents, by {attribution.kind}")
    for note in attribution.notes:
        yield "", Text(note, "red")
    for shown, used in zip(attribution.retrieved, attribution.exposures, strict=True):
        groups = zip(used.labels, used.shares.tolist(), shown.shares.tolist(), strict=True)
        parts = [
            f"{label} {percent(share)} ({'' if place else 'retrieved '}{percent(before)})"
            for place, (label, share, before) in enumerate(groups)
        ]
        yield used.dimension, Text(", ".join(parts))


Named = tuple[str, AnswerResult]
"""What an answer's system is called, and the answer."""


def comparison_table(left: Named, right: Named) -> Table:
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
        page.add_row(f"[{number}]", one_line(hit.name), one_line(groups), style=style)
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
    page.add_row("", "read", attribution.called, "target", style="dim")
    for target, read, cited in zip(targets, attribution.retrieved, attribution.exposures, strict=True):
        for due, *both in zip(*map(exposure_rows, (target, read, cited)), strict=True):
            wanted = "-" if due.target is None else percent(due.target)
            page.add_row(one_line(due.label), *(percent(row.share) for row in both), wanted)
    return page
