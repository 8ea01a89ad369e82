"""The story of a search or an answer: what was searched, who lacked what, which words were tried, and why it ended.

Also what a person reads of an answer: its text, its numbered sources with their groups, and two answers side by side.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairagent.report.text import ORACLE, gap_text, groups_text, one_line, plain, targets_text
from fairagent.types import (
    UNKNOWN,
    Alarm,
    AnswerResult,
    Exposure,
    Group,
    Removal,
    Step,
    Term,
    Trace,
    Usage,
    exposure_rows,
)
from fairagent.types.change import percent
from fairagent.types.clean import in_line
from fairagent.types.common import counted, dollars

StoryLine = tuple[str, Text]
"""What the line is about, and its text."""

TOPIC_WORDS_SHOWN = 8
"""How many of the (usually a hundred) topic words the story names."""


def story_text(trace: Trace, width: int = 100) -> str:
    """The story as plain text in lines of at most `width` characters."""
    return plain(story(trace), width)


def story(trace: Trace, after: Iterable[StoryLine] = (), alarms: tuple[Alarm, ...] | None = None) -> RenderableType:
    """The story, a numbered paragraph a step, then the end, the lines `after` the search, and the alarms."""
    page = Table.grid(padding=(0, 1))
    page.add_column(justify="right", no_wrap=True)
    page.add_column(no_wrap=True, max_width=16, style="dim")
    page.add_column(ratio=1)

    def add(number: str, lines: Iterable[StoryLine]) -> None:
        for place, (name, text) in enumerate(lines):
            # What is quoted must begin no line that looks like one of ours.
            text.plain = in_line(text.plain)
            page.add_row("" if place else number, in_line(name), text)

    reached: Step | None = None
    for number, step in enumerate(trace.steps, start=1):
        add(f"{number}.", _step(step, reached))
        reached = step if step.accepted else reached
    add("", _ending(trace))
    add("", after)
    for alarm in trace.alarms if alarms is None else alarms:
        add("!", [("alarm", Text(str(alarm), "bold red"))])
    return page


def _step(step: Step, before: Step | None) -> Iterator[StoryLine]:
    """A step's lines; `before` is the last accepted step before it, None for the first."""
    documents = f" ({counted(len(step.ranking), 'document')})"
    if before is None:
        yield "query", Text.assemble((step.query.text or "(empty)", "bold"), documents)
        yield from _exposed(step.exposures, gap_text(step.gap))
        yield from (("note", Text(note, "dim")) for note in step.notes)
        return
    gap = f"{gap_text(step.gap)}, was {gap_text(before.gap if step.was is None else step.was)}"
    worse = (f", less fair in {', '.join(step.worse)}" if step.worse else "", "red")
    if step.why:
        # An action of the loop: what it did, and what would be served by it.
        yield step.source, Text(step.why)
        yield from (("note", Text(note, "dim")) for note in step.notes)
        yield from _proposed(step)
        if step.exposures:
            verdict = ("accepted", "green") if step.accepted else (f"discarded: {step.reason}", "red")
            if step.objectives:
                without, with_it = step.objectives
                gap += f"; J {with_it:.4f}, was {without:.4f}"
            yield "gap", Text.assemble(f"{gap}: ", verdict, worse)
        if step.entered:
            yield "entered", Text(f"{counted(step.entered, 'document')} from the whole collection")
    elif step.aim is None:
        yield step.source, Text(f"{_terms(step.added, TOPIC_WORDS_SHOWN)}{documents}")
        yield from _exposed(step.exposures, gap)
    else:
        share, target = _share_and_target(step.aim, before.exposures)
        yield "aim", Text.assemble((str(step.aim), "bold cyan"), f": {percent(share)}, target {percent(target)}")
        added = Text(_terms(step.added, len(step.added)), "cyan") if step.added else Text("nothing to add")
        yield step.source, added
        yield from _proposed(step)
        if step.added:
            share, _ = _share_and_target(step.aim, step.exposures)
            verdict = ("accepted", "green") if step.accepted else ("discarded", "red")
            yield "gap", Text.assemble(f"{gap}; {step.aim.label} now {percent(share)}: ", verdict, worse)


def _proposed(step: Step) -> Iterator[StoryLine]:
    """How much of what a model proposed is usable, and why the rest is not."""
    if step.dropped:
        yield "dropped", Text(f"{', '.join(step.dropped)} (not in the index)", "dim")
    if step.proposals:
        yield "proposed", Text(str(step.proposals), "dim")
    if step.refused:
        yield "refused", Text("; ".join(step.refused), "dim")


def _ending(trace: Trace) -> Iterator[StoryLine]:
    for name, text in (("profile", trace.profile), ("engine", trace.engine), ("stopped", trace.stopped)):
        if text:
            yield name, Text(text)
    lists = {"best": "the last list accepted", "last": "the last list retrieved", "union": "all lists accepted"}
    source = f"{lists.get(trace.candidates, trace.candidates)} ({trace.candidates})"
    if len(trace.steps) == 1:
        source = "the list retrieved"
    elif any(step.why for step in trace.steps):
        source = "the last step accepted"
    reranked = "as it is" if trace.reranker == "none" else f"re-ranked ({trace.reranker})"
    yield "final ranking", Text(f"from {source}, {reranked}")
    if entered := sum(step.entered for step in trace.steps):
        yield "entered", Text(f"{trace.entered:,} of {counted(entered, 'document')} from the whole collection")
    for note in trace.notes:
        yield "note", Text(note, "bold red")
    if draw := trace.draw:
        how = f"Plackett-Luce, alpha {draw.alpha:g}, seed {draw.seed}, request {draw.request}"
        yield "drawn", Text(f"from {counted(draw.pool, 'candidate')} ({how})")
    yield from _exposed(trace.exposures, gap_text(trace.gap))
    if trace.exposures:
        yield "target", Text(targets_text(trace))
    if trace.oracle:
        yield "", Text(ORACLE, "bold red")
    usage = trace.usage
    rest = max(0.0, trace.seconds - trace.engine_seconds - usage.seconds)
    seconds = f"{trace.seconds:.2f} s (engine {trace.engine_seconds:.2f}, model {usage.seconds:.2f}, own {rest:.2f})"
    yield "cost", Text(f"{seconds}, {usage_text(usage)}")


def usage_text(usage: Usage) -> str:
    """Calls, tokens and dollars.

    >>> usage_text(Usage(1, 1200, 34, 0.0021))
    '1 model call, 1,200 tokens in, 34 out, $0.0021'
    >>> usage_text(Usage(2, 1200, 34, None, estimated=True))
    '2 model calls, 1,200 tokens in, 34 out (estimated), price unknown'
    """
    if not usage.calls:
        return "no model calls"
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out" + " (estimated)" * usage.estimated
    return f"{counted(usage.calls, 'model call')}, {tokens}, {dollars(usage.cost)}"


def _exposed(exposures: Sequence[Exposure], gap: str) -> Iterator[StoryLine]:
    """Every group's share, its target in parentheses, and the gap; nothing where nothing was measured."""
    for exposure in exposures:
        parts = []
        for place, (label, share, target) in enumerate(exposure_rows(exposure)):
            if place < len(exposure.labels) or share or target:
                due = "" if target is None else f" ({'' if place else 'target '}{percent(target)})"
                parts.append(f"{label} {percent(share)}{due}")
        if exposure.importance < 1:
            applies = f"so far does {exposure.dimension} apply to the query"
            parts.append(f"counts by {percent(exposure.importance)}: {applies}")
        yield exposure.dimension, Text(", ".join(parts))
    if exposures:
        yield "gap", Text(gap)


def _share_and_target(group: Group, exposures: Sequence[Exposure]) -> tuple[float, float]:
    exposure = next(exposure for exposure in exposures if exposure.dimension == group.dimension)
    place = exposure.labels.index(group.label)
    return float(exposure.shares[place]), float(exposure.target[place])


def _terms(terms: Sequence[Term], shown: int) -> str:
    """Words with their weights in Lucene's notation, which no line break can part."""
    listed = ", ".join(f"{term.text}^{term.weight:.3g}" for term in terms[:shown])
    return listed if len(terms) <= shown else f"{listed} and {len(terms) - shown} more"


# --- answers --------------------------------------------------------------------------------------------------------

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
    for number, hit in enumerate(result.context, start=1):
        weight = attribution.weights[number - 1] if attribution else float(number in result.answer.cited)
        groups = [one_line(groups_text(hit.groups[name])) for name in dimensions]
        mark = "yes" if weight == 1 else f"{weight:.2f}" if weight else ""
        table.add_row(f"[{number}]", one_line(hit.name), *groups, mark, style="" if weight else "dim")
    return table


def removed_text(removed: Sequence[Removal]) -> str:
    """What of each group was left out, without groups of which nothing was.

    >>> removed_text([Removal(Group("gender", "female"), 4, 1), Removal(Group("gender", "male"), 6, 0)])
    'female (gender) 25% of 4'
    """
    lost = [
        f"{'no label' if one.group.label == UNKNOWN else one.group.label} ({one.group.dimension}) "
        f"{percent(one.share)} of {one.seen:g}"
        for one in removed
        if one.removed
    ]
    return ", ".join(lost) or "nothing"


def answer_story(result: AnswerResult) -> RenderableType:
    """The search's story, then the filter, the context, the answer and what it rests on."""
    return story(result.search.trace, _answer_lines(result), result.alarms)


def _answer_lines(result: AnswerResult) -> Iterator[StoryLine]:
    answer, attribution, count = result.answer, result.attribution, len(result.context)
    yield "", Text()
    if result.filtered:
        verdicts = result.filtered.verdicts
        retained = sum(verdict.kept for verdict in verdicts)
        yield "filter", Text(f"kept {retained} of {len(verdicts)}; {usage_text(result.filtered.usage)}")
        yield "removed", Text(removed_text(result.removed))
        if unanswered := sum(not verdict.complete for verdict in verdicts):
            yield "", Text(f"{unanswered} without a usable verdict, so filter.on_error decided", "red")
    if debiased := result.debiased:
        of_class = f" of class {debiased.bias_class}" if debiased.bias_class else ""
        parts = (
            f"{counted(len(debiased.avoided), 'passage')}{of_class} to avoid",
            f"{counted(len(debiased.made), 'counterfactual')} made of them, {len(debiased.survived)} survived the "
            f"filter, {len(debiased.placed)} won a place",
            f"{counted(len(debiased.dropped), 'candidate')} dropped",
            usage_text(debiased.usage),
        )
        yield "debiasing", Text("; ".join(parts))
        moved = abs(debiased.theta_after[0] - debiased.theta_before[0])
        thetas = (debiased.theta_before, debiased.theta_after)
        before, after = (", ".join(f"{weight:.4f}" for weight in theta) for theta in thetas)
        yield "", Text(f"theta moved by {moved:.4f}, from ({before}) to ({after})")
        yield from (("", Text(note, "red")) for note in debiased.notes)
    yield "context", Text(counted(count, "document"))
    yield from (("", Text(note, "bold red")) for note in result.notes)
    writers = {"extractive": "sentences of the documents as they stand", "llm": "by the language model"}
    if writer := writers.get(answer.source, answer.source):
        yield "answer", Text(f"{writer}, citing {len(answer.cited)} of {count}; {usage_text(answer.usage)}")
    yield from (("", Text(note, "red")) for note in answer.notes)
    if result.exposures.context:
        gaps = result.search.trace.gap, result.exposures.context_gap, result.exposures.cited_gap
        ranking, context, cited = map(gap_text, gaps)
        where = f"gap {ranking} in the ranking, {context} in the context, {cited} in the citations"
        if (least := result.exposures.least_gap) is not None:
            where += f"; {count} of the {len(result.search.retrieved)} candidates can reach {gap_text(least)}"
        yield "target", Text(f"{where}; the cited sources hold {percent(result.support)} of the answer's words")
    if result.aimed:
        yield "given", Text(str(result.aimed))
    if result.uncited:
        yield "not cited", Text(removed_text(result.uncited))
    if answer.revision:
        yield "", Text(f"{'revised' if answer.revision.kept else 'not revised'}: {answer.revision.why}")
    if attribution:
        resting = int((attribution.weights > 0).sum())
        yield "rests on", Text(f"{resting} of {len(attribution.weights)} documents, by {attribution.kind}")
        yield from (("", Text(note, "red")) for note in attribution.notes)
        for shown, used in zip(attribution.retrieved, attribution.exposures, strict=True):
            groups = zip(used.labels, used.shares.tolist(), shown.shares.tolist(), strict=True)
            shares = [
                f"{label} {percent(share)} ({'' if place else 'retrieved '}{percent(was)})"
                for place, (label, share, was) in enumerate(groups)
            ]
            yield used.dimension, Text(", ".join(shares))
    yield "all", Text(f"{result.seconds:.2f} s, {usage_text(result.usage)}")


def comparison_table(left: tuple[str, AnswerResult], right: tuple[str, AnswerResult]) -> Table:
    """Two named answers: contexts with their groups, texts, and the groups' exposure beside the target of `right`."""
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
