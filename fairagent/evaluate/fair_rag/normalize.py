"""EU between 0 and 1: each topic's expected utility, divided by the best that any rival row had for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairagent.evaluate.fair_rag.rows import rivals
from fairagent.evaluate.fair_rag.section import HIGHEST, FairRag
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import SystemPlan
from fairagent.measures.expected_utility import normalized_expected_utility

NORMALIZED = "normalized EU"


def with_normalized_utility(
    latest: Mapping[tuple[str, str], Outcome],
    topics: Iterable[str],
    systems: Mapping[str, SystemPlan],
    section: FairRag,
) -> dict[tuple[str, str], Outcome]:
    """`latest`, in which the outcomes of `topics` (which all rows have finished) have their normalized EU as well."""
    against = {name: tuple(rivals(name, systems, section)) for name in systems}
    found = dict(latest)
    for topic in topics:
        for name in systems:
            outcome = latest[topic, name]
            highest = max(latest[topic, rival].values[""][HIGHEST] for rival in against[name])
            normalized = normalized_expected_utility(outcome.values[""]["EU"], highest)
            values = {**outcome.values, "": {**outcome.values[""], NORMALIZED: normalized}}
            found[topic, name] = replace(outcome, values=values)
    return found
