"""What the language model took, by system."""

from __future__ import annotations

from dataclasses import dataclass

from fairagent.evaluate.run import Run


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls, tokens, and US dollars (None where a price is not known) over all topics that were tried."""

    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float | None


def costs(run: Run) -> dict[str, Cost]:
    """System -> what its outcomes took together."""
    found = {}
    for system in run.systems:
        own = [outcome for outcome in run.outcomes if outcome.system == system]
        dollars = [outcome.cost for outcome in own]
        found[system] = Cost(
            sum(outcome.calls for outcome in own),
            sum(outcome.input_tokens for outcome in own),
            sum(outcome.output_tokens for outcome in own),
            None if None in dollars else float(sum(filter(None, dollars))),
        )
    return found
