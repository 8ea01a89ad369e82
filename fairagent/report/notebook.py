"""Results as notebooks show them: documents with their groups, and exposure above target, as the page draws them."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from fairagent.evaluate.outcome import GroupShares
from fairagent.report.answer import CUT_OFF
from fairagent.report.page import template, templates
from fairagent.report.text import gap_text
from fairagent.report.topics import GroupBar, Palette, chips, exposure_bar
from fairagent.types import AnswerResult, Exposure, Hit, SearchResult
from fairagent.types.clean import in_line, printable

Named = tuple[str, Sequence[Exposure]]
"""What a ranking is called, and its exposure in each dimension."""


def html_of(result: SearchResult | AnswerResult) -> str:
    """A result as HTML that stands in a page of others: its styles hold inside it alone, and it has no script."""
    if isinstance(result, SearchResult):
        trace = result.trace
        named: list[Named] = [("before", trace.steps[0].exposures), ("after", trace.exposures)]
        verdict = "".join(f"{change}. " for change in trace.changes)
        facts = f"{verdict}gap {gap_text(trace.steps[0].gap)} → {gap_text(trace.gap)}; {trace.stopped}"
        return _drawn(result.query.text, facts, None, "rank", [(hit.rank, hit, False) for hit in result.hits], named)
    attribution, answer = result.attribution, result.answer
    text = f"{answer.text}{CUT_OFF}" if answer.truncated else answer.text
    lines = [(number, hit, number in answer.cited) for number, hit in enumerate(result.context, start=1)]
    named = [("read", attribution.retrieved), (attribution.called, attribution.exposures)] if attribution else []
    return _drawn(result.query.text, f"answered by {answer.source}", text, "source", lines, named)


def _drawn(
    query: str,
    facts: str,
    answer: str | None,
    numbered: str,
    lines: Sequence[tuple[int, Hit, bool]],
    named: Sequence[Named],
) -> str:
    groups = [(exposure.dimension, label) for exposure in (named[-1][1] if named else ()) for label in exposure.labels]
    colors: Palette = {group: number for number, group in enumerate(groups)}
    # Colors and groups as on the page, inside the result's own element.
    inside = "".join(map(template, ("groups.css", "notebook.css")))
    return (
        templates()
        .get_template("notebook.html")
        .render(
            style=Markup(template("colors.css").replace(":root", ".fairagent") + f".fairagent {{ {inside} }}"),
            query=query,
            facts=facts,
            answer=answer,
            numbered=numbered,
            lines=[
                (number, in_line(hit.title or hit.id), chips(hit.groups, colors), cited) for number, hit, cited in lines
            ],
            rows=list(_bars(named, colors)),
            colors=colors,
        )
    )


def _bars(named: Sequence[Named], colors: Palette) -> Iterable[tuple[str, list[tuple[str, GroupBar]]]]:
    """Each dimension with a bar for each ranking."""
    for exposures in zip(*(exposures for _, exposures in named), strict=True):
        bars = [exposure_bar(GroupShares.of(exposure), colors) for exposure in exposures]
        names = [name for name, _ in named]
        yield printable(exposures[0].dimension), list(zip(names, bars, strict=True))
