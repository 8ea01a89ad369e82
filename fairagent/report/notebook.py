"""Results as notebooks show them: documents with their groups, and exposure above target, as the page draws them."""

from collections.abc import Sequence

from markupsafe import Markup

from fairagent.evaluate.outcome import GroupShares
from fairagent.report.answer import CUT_OFF
from fairagent.report.page import template, templates
from fairagent.report.text import gap_text
from fairagent.report.topics import Palette, chips, exposure_bar
from fairagent.types import AnswerResult, Exposure, SearchResult
from fairagent.types.clean import in_line, printable

Named = tuple[str, Sequence[Exposure]]
"""What a ranking is called, and its exposure in each dimension."""


def html_of(result: SearchResult | AnswerResult) -> str:
    """A result as HTML that stands in a page of others: its styles hold inside it alone, and it has no script."""
    named: list[Named] = []
    if isinstance(result, SearchResult):
        trace, text, numbered = result.trace, None, "rank"
        named = [("before", trace.steps[0].exposures), ("after", trace.exposures)]
        verdict = "".join(f"{change}. " for change in trace.changes)
        facts = f"{verdict}gap {gap_text(trace.steps[0].gap)} → {gap_text(trace.gap)}; {trace.stopped}"
        lines = [(hit.rank, hit, False) for hit in result.hits]
    else:
        answer, numbered, facts = result.answer, "source", f"answered by {result.answer.source}"
        text = f"{answer.text}{CUT_OFF}" if answer.truncated else answer.text
        lines = [(number, hit, number in answer.cited) for number, hit in enumerate(result.context, start=1)]
        if one := result.attribution:
            named = [("read", one.retrieved), (one.called, one.exposures)]
    groups = [(exposure.dimension, label) for exposure in (named[-1][1] if named else ()) for label in exposure.labels]
    colors: Palette = {group: number for number, group in enumerate(groups)}
    # A row a dimension, with a bar for each ranking.
    rows = [
        (
            printable(of_dimension[0].dimension),
            [
                (name, exposure_bar(GroupShares.of(one), colors))
                for (name, _), one in zip(named, of_dimension, strict=True)
            ],
        )
        for of_dimension in zip(*(exposures for _, exposures in named), strict=True)
    ]
    # Colors and groups as on the page, inside the result's own element.
    inside = "".join(map(template, ("groups.css", "notebook.css")))
    return (
        templates()
        .get_template("notebook.html")
        .render(
            style=Markup(template("colors.css").replace(":root", ".fairagent") + f".fairagent {{ {inside} }}"),
            query=result.query.text,
            facts=facts,
            answer=text,
            numbered=numbered,
            lines=[(number, in_line(hit.name), chips(hit.groups, colors), cited) for number, hit, cited in lines],
            rows=rows,
            colors=colors,
        )
    )
