"""What a utility experiment will ask of its language model, at most: every document as long as its share allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.evaluate.utility.writing import PROMPT
from fairagent.filter.pages import LONGEST_TITLE
from fairagent.llm.request import estimate_tokens
from fairagent.prompts import Prompts
from fairagent.prompts.calls import LETTER, Calls


def writing(name: str, system: SystemPlan, plan: Plan, queries: Sequence[str]) -> Iterator[Calls]:
    """The calls for the topics of `plan` in one row; the answers from no documents are the first row's."""
    section = plan.utility
    if section is None or not system.settings.generate.templates:
        return
    settings, prompts = system.settings, Prompts(system.settings.prompts)
    for k in (0, *section.ks) if name == plan.baseline else section.ks:
        text = LETTER * 4 * (settings.context.tokens // max(k, 1))
        passages = [{"title": LETTER * LONGEST_TITLE, "text": text}] * k or None
        around = estimate_tokens(*(part for _, part in prompts.render(PROMPT, query="", passages=passages)))
        read = section.runs * sum(around + estimate_tokens(query) for query in queries)
        calls = section.runs * len(queries)
        yield Calls(settings.model, calls, read, calls * prompts[PROMPT].longest_reply(settings.model.max_tokens))
