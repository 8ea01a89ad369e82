"""An audit of a log of requests as one HTML page that needs nothing else, as text, and as a record.

The page says what was measured and how, in words that an auditor can file. It is built as the page of a run is
(`fairagent.report.page`): one style sheet by its hash, no script, and what comes from outside is text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fairagent.evaluate.audit import (
    LARGEST_WINDOW,
    LAST,
    LEAST_WINDOW,
    RESAMPLES,
    SIGNIFICANT,
    SMALLEST_CHANGE,
    Audit,
    AuditedDimension,
)
from fairagent.measures.drift import PERMUTATIONS
from fairagent.report import plots
from fairagent.report.page import STYLES, digest, template, templates
from fairagent.storage.files import write_whole
from fairagent.types.change import percent
from fairagent.types.common import counted

FALSE_ALARMS = "2 of 300"
"""Of simulated logs of 400 requests without a change those with an alarm (`rates` of tests/evaluate/test_audit.py)."""


def write_audit(audit: Audit, path: Path) -> None:
    """Write the page, which only its owner can read: a log of queries is private."""
    write_whole(path, audit_page(audit), private=True)


def audit_page(audit: Audit) -> str:
    """The text of the page."""
    style = "".join(map(template, STYLES))
    return (
        templates()
        .get_template("audit.html")
        .render(
            audit=audit,
            style=Markup(style),
            policy=f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'; form-action 'none'",
            markers=plots.MARKERS,
            courses={one.name: _course(one) for one in audit.dimensions},
            method=list(method(audit)),
            outline=OUTLINE,
            facts=facts(audit),
        )
    )


def _course(of: AuditedDimension) -> Markup:
    windows = [window.name for window in of.windows]
    groups = {
        group.label: [(one.shares[g], one.low[g], one.high[g]) for one in of.windows]
        for g, group in enumerate(of.groups)
    }
    return plots.course_plot(windows, groups, [group.due for group in of.groups])


def facts(audit: Audit) -> str:
    """What was audited, in a sentence."""
    when = f", from {audit.begins} to {audit.ends}" if audit.begins else ""
    first = f"the first {audit.n} documents of each" if audit.n else "all documents shown"
    queries = f" for {counted(audit.queries, 'query').replace('querys', 'queries')}" if audit.queries > 1 else ""
    return f"{counted(audit.requests, 'request')}{queries}{when}; {first}, collection {audit.collection}, {audit.form}"


def audit_text(audit: Audit) -> str:
    """What a terminal shows."""
    return "\n".join(_lines(audit))


def _lines(audit: Audit) -> Iterator[str]:
    yield f"{audit.log}: {facts(audit)}"
    for alarm in audit.alarms:
        yield f"! {alarm.what} changed from {alarm.before:.3f} to {alarm.after:.3f} (p {alarm.holm:.4f} after Holm)"
    if audit.drifts and not audit.alarms:
        yield f"no alarm: {len(audit.drifts)} series in the first and the last {audit.tested[0]:,} requests"
    for one in audit.dimensions:
        yield ""
        yield f"{one.name}; due: {one.target}; without a label {percent(one.unlabeled)} of the attention"
        for group in one.groups:
            yield (
                f"  {group.label}: {group.share:.3f} [{group.low:.3f}, {group.high:.3f}] of the attention, due "
                f"{group.due:.3f}; {group.least:.3f} to {group.most:.3f}, whatever the missing labels are"
            )
        for worst in one.worst[:3]:
            yield f"  worst: {worst.query!r}, {worst.distance:.3f} off, {worst.lacking} lacks most ({worst.requests}x)"
    if audit.quality is not None:
        yield f"estimated nDCG {audit.quality:.3f}"
    if audit.calls:
        yield f"models: {audit.unusable:,} of {audit.calls:,} replies could not be used"
    if audit.unknown_ids:
        yield f"note: {audit.unknown_ids}"
    yield from (f"note: {note}" for note in audit.notes)


def audit_record(audit: Audit) -> dict[str, Any]:
    """The audit as `--json` has it, with the method in words."""
    return {**asdict(audit), "alarms": [one.what for one in audit.alarms], "method": list(method(audit))}


def method(audit: Audit) -> Iterator[str]:
    """What was measured, how, and why, a paragraph each."""
    ranks = f"its first {audit.n} ranks" if audit.n else "the ranks that were shown"
    yield (
        f"Measure: group exposure. A request hands out an attention of 1 over {ranks}, by the discount "
        f"{audit.discount} of a reader who goes down the list; a group gets the weights of its documents' ranks, and a "
        "document of several groups is spread over them. It is measured because what people see is what a ranking "
        "decides; it does not say who clicked, nor whether what was shown was right."
    )
    for one in audit.dimensions:
        yield (
            f"Target of {one.name}: {one.target}. A group is due its share of what documents with a label got, so that "
            "missing labels are no one's fault; who chose this target, and why it is the right one for this service, "
            "is to be added by the provider."
        )
    yield (
        f"Uncertainty: 95 % percentile intervals of {RESAMPLES:,} bootstrap resamples of the requests. Requests for "
        "the same query resemble each other: intervals are too narrow where a few queries are most of the log."
    )
    yield (
        "Missing labels: the share of attention of documents without a label stands beside the groups. The bounds give "
        "each group none of it, and all of it: the truth lies between, whatever the labels are."
    )
    yield (
        f"Changes: the first {LAST:.0%} of the requests ({LEAST_WINDOW} to {LARGEST_WINDOW:,}) against the last, by a "
        f"permutation test of each series' mean ({PERMUTATIONS:,} permutations), corrected for the number of series "
        f"(Holm). An alarm is p < {SIGNIFICANT} and a change of {SMALLEST_CHANGE} or more. Of simulated logs of 400 "
        f"requests without a change {FALSE_ALARMS} had an alarm; the correction promises one in twenty at most. "
        "An alarm says that the mean changed and not why: other queries, documents, labels or another ranking."
    )
    if audit.unknown_ids:
        yield f"Documents: {audit.unknown_ids}. They count as documents without a label."


OUTLINE = (
    (
        "Article 34(1), risk assessment",
        "Which systemic risk this is evidence on: 34(1)(b), actual or foreseeable negative effects for the exercise of "
        "fundamental rights, such as non-discrimination (Article 21 of the Charter). To add: the service, the groups "
        "and why these, severity and probability. Due at least once a year, and before functionalities are deployed "
        "that are likely to have a critical impact on the risks.",
    ),
    (
        "Article 34(2), what influences the risk",
        "34(2)(a): the design of recommender systems and any other relevant algorithmic system. To add: engine, "
        "re-ranker and their settings in the period above, and what changed when.",
    ),
    (
        "Article 34(3), documents",
        "Supporting documents of a risk assessment are kept for at least three years. To keep: this page, its JSON, "
        "the log or account, the collection file with its groups and targets, and the version of fairagent.",
    ),
    (
        "Article 35(1), mitigation",
        "35(1)(d): testing and adapting algorithmic systems, including recommender systems. To add: which measure "
        "follows from the shares and alarms above, what it is expected to change, and the audit after it.",
    ),
)
"""Article of Regulation (EU) 2022/2065 -> what of it this page is evidence on, and what the provider has to add."""
