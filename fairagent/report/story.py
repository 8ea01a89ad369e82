"""The story of a trace: what was searched, who lacked what, which words were tried, and why it ended."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairagent.report.text import ORACLE, gap_text, plain, targets_text
from fairagent.types import Alarm, Exposure, Group, Step, Term, Trace, Usage, exposure_rows
from fairagent.types.change import percent
from fairagent.types.clean import in_line
from fairagent.types.common import counted, dollars

StoryLine = tuple[str, Text]
"""What the line is about, and its text."""

TOPIC_WORDS_SHOWN = 8
"""How many of the (usually a hundred) topic words the story names."""

_CANDIDATES = {"best": "the last list accepted", "last": "the last list retrieved", "union": "all lists accepted"}


def story_text(trace: Trace, width: int = 100) -> str:
    """The story as plain text in lines of at most `width` characters."""
    return plain(story(trace), width)


def story(trace: Trace, after: Iterable[StoryLine] = (), alarms: tuple[Alarm, ...] | None = None) -> RenderableType:
    """The story, a numbered paragraph a step, then the end, the lines `after` the search, and the alarms."""
    page = Table.grid(padding=(0, 1))
    page.add_column(justify="right", no_wrap=True)
    page.add_column(no_wrap=True, max_width=16, style="dim")
    page.add_column(ratio=1)
    reached: Step | None = None
    for number, step in enumerate(trace.steps, start=1):
        _add(page, f"{number}.", _step(step, reached))
        reached = step if step.accepted else reached
    _add(page, "", _ending(trace))
    _add(page, "", after)
    for alarm in trace.alarms if alarms is None else alarms:
        _add(page, "!", [("alarm", Text(str(alarm), "bold red"))])
    return page


def _add(page: Table, number: str, lines: Iterable[StoryLine]) -> None:
    for place, (name, text) in enumerate(lines):
        # What is quoted must begin no line that looks like one of ours.
        text.plain = in_line(text.plain)
        page.add_row("" if place else number, in_line(name), text)


def _step(step: Step, before: Step | None) -> Iterator[StoryLine]:
    """A step's lines; `before` is the last accepted step before it, None for the first."""
    if before is None:
        yield (
            "query",
            Text.assemble((step.query.text or "(empty)", "bold"), f" ({counted(len(step.ranking), 'document')})"),
        )
        yield from _exposed(step.exposures, gap_text(step.gap))
        yield from (("note", Text(note, "dim")) for note in step.notes)
    elif step.why:
        yield from _decided(step, before)
    elif step.aim is None:
        yield step.source, Text(f"{_terms(step.added, TOPIC_WORDS_SHOWN)} ({counted(len(step.ranking), 'document')})")
        yield from _exposed(step.exposures, f"{gap_text(step.gap)}, was {gap_text(before.gap)}")
    else:
        yield from _refinement(step, before, step.aim)


def _decided(step: Step, before: Step) -> Iterator[StoryLine]:
    """An action of the loop: what it did, and what would be served by it."""
    yield step.source, Text(step.why)
    yield from (("note", Text(note, "dim")) for note in step.notes)
    yield from _proposed(step)
    if step.exposures:
        verdict = ("accepted", "green") if step.accepted else (f"discarded: {step.reason}", "red")
        worse = (f", less fair in {', '.join(step.worse)}" if step.worse else "", "red")
        yield "gap", Text.assemble(f"{gap_text(step.gap)}, was {gap_text(before.gap)}: ", verdict, worse)
    if step.entered:
        yield "entered", Text(f"{counted(step.entered, 'document')} from the whole collection")


def _refinement(step: Step, before: Step, aim: Group) -> Iterator[StoryLine]:
    share, target = _share_and_target(aim, before.exposures)
    yield "aim", Text.assemble((str(aim), "bold cyan"), f": {percent(share)}, target {percent(target)}")
    if step.added:
        yield step.source, Text(_terms(step.added, len(step.added)), "cyan")
    else:
        yield step.source, Text("nothing to add")
    if step.dropped:
        yield "dropped", Text(f"{', '.join(step.dropped)} (not in the index)", "dim")
    yield from _proposed(step)
    if step.added:
        share, _ = _share_and_target(aim, step.exposures)
        verdict = ("accepted", "green") if step.accepted else ("discarded", "red")
        change = f"{gap_text(step.gap)}, was {gap_text(before.gap)}; {aim.label} now {percent(share)}: "
        worse = (f", less fair in {', '.join(step.worse)}" if step.worse else "", "red")
        yield "gap", Text.assemble(change, verdict, worse)


def _proposed(step: Step) -> Iterator[StoryLine]:
    """How much of what a model proposed is usable, and why the rest is not."""
    if step.proposals:
        yield "proposed", Text(str(step.proposals), "dim")
    if step.refused:
        yield "refused", Text("; ".join(step.refused), "dim")


def _ending(trace: Trace) -> Iterator[StoryLine]:
    if trace.profile:
        yield "profile", Text(trace.profile)
    if trace.engine:
        yield "engine", Text(trace.engine)
    if trace.stopped:
        yield "stopped", Text(trace.stopped)
    yield "final ranking", Text(_final(trace))
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
    own = max(0.0, trace.seconds - trace.engine_seconds - usage.seconds)
    seconds = f"{trace.seconds:.2f} s (engine {trace.engine_seconds:.2f}, model {usage.seconds:.2f}, own {own:.2f})"
    yield "cost", Text(f"{seconds}, {usage_text(usage)}")


def _final(trace: Trace) -> str:
    reranked = "as it is" if trace.reranker == "none" else f"re-ranked ({trace.reranker})"
    if len(trace.steps) == 1:
        return f"from the list retrieved, {reranked}"
    if any(step.why for step in trace.steps):
        return f"from the last step accepted, {reranked}"
    candidates = _CANDIDATES.get(trace.candidates, trace.candidates)
    return f"from {candidates} ({trace.candidates}), {reranked}"


def usage_text(usage: Usage) -> str:
    """Calls, tokens and dollars.

    >>> usage_text(Usage(1, 1200, 34, 0.0021))
    '1 model call, 1,200 tokens in, 34 out, $0.0021'
    """
    if not usage.calls:
        return "no model calls"
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    return f"{counted(usage.calls, 'model call')}, {tokens}, {dollars(usage.cost)}"


def _exposed(exposures: Sequence[Exposure], gap: str) -> Iterator[StoryLine]:
    """What the groups have, and the gap; nothing where nothing was measured."""
    yield from map(_shares, exposures)
    if exposures:
        yield "gap", Text(gap)


def _shares(exposure: Exposure) -> StoryLine:
    """Every group's share, its target in parentheses."""
    parts = []
    for place, (label, share, target) in enumerate(exposure_rows(exposure)):
        if place < len(exposure.labels) or share or target:
            due = "" if target is None else f" ({'' if place else 'target '}{percent(target)})"
            parts.append(f"{label} {percent(share)}{due}")
    if exposure.importance < 1:
        parts.append(f"counts by {percent(exposure.importance)}: so far does {exposure.dimension} apply to the query")
    return exposure.dimension, Text(", ".join(parts))


def _share_and_target(group: Group, exposures: Sequence[Exposure]) -> tuple[float, float]:
    exposure = next(exposure for exposure in exposures if exposure.dimension == group.dimension)
    place = exposure.labels.index(group.label)
    return float(exposure.shares[place]), float(exposure.target[place])


def _terms(terms: Sequence[Term], shown: int) -> str:
    """Words with their weights in Lucene's notation, which no line break can part."""
    listed = ", ".join(f"{term.text}^{term.weight:.3g}" for term in terms[:shown])
    return listed if len(terms) <= shown else f"{listed} and {len(terms) - shown} more"
