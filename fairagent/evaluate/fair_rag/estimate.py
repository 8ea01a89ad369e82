"""What a Fair RAG experiment will ask of language models, at most: a call for each ranking that can be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairagent.evaluate.check import Checked
from fairagent.evaluate.fair_rag.asking import TOKENS
from fairagent.evaluate.fair_rag.lamp import generators, lamp_of
from fairagent.evaluate.plan import SystemPlan
from fairagent.filter.fair import steps
from fairagent.filter.pages import LONGEST_TITLE
from fairagent.llm.request import estimate_tokens
from fairagent.prompts import Prompts
from fairagent.prompts.calls import LETTER, Calls


def drawing(system: SystemPlan, checked: Checked) -> Iterator[Calls]:
    """The calls of one row: an answer for each ranking that can be drawn, and what it is filtered and attributed with.

    Of LaMP's prompts, which are cut to 512 tokens, each is taken to be that long; of others, the texts.
    """
    section, settings = checked.plan.fair_rag, system.settings
    if section is None or system.draws is None:
        return
    prompts, topics = Prompts(settings.prompts), len(checked.plan.topics)
    pool = section.pool
    if section.lamp:
        pool = max((len(question.items) for question in lamp_of(checked.collection).questions), default=1)
    most = min(section.samples, math.perm(max(pool, section.k), section.k)) if system.draws.alpha is not None else 1
    read = TOKENS if section.lamp else settings.context.tokens + section.k * estimate_tokens(LETTER * LONGEST_TITLE)
    for id in system.draws.prompts:
        # A filter looks at each document alone; everything else reads the whole context.
        calls = topics * most * (section.k if id in steps(True) else 1)
        longest = prompts[id].longest_reply(settings.model.max_tokens)
        yield Calls(settings.model, calls, calls * read, calls * longest)


def labeling(checked: Checked) -> Iterator[tuple[str, Calls]]:
    """For each generator whose utility labels are not all there: its model's name, and the calls for the missing."""
    section = checked.plan.fair_rag
    if section is None or section.lamp is None:
        return
    for one in generators(checked.plan.systems, lamp_of(checked.collection), section.lamp).values():
        calls = one.labeling.estimate(one.path, one.system.settings.model)
        if calls.calls:
            yield one.system.settings.model.name, calls
