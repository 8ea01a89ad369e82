"""Asking a language model for keywords: what it is shown of the loop, and what becomes of its reply."""

from __future__ import annotations

from collections.abc import Sequence

from fairagent.errors import ReplyError, ReplyInvalid, ReplyRefused
from fairagent.llm import Model, ModelRequest, ask
from fairagent.llm.base import Message
from fairagent.llm.clean import visible
from fairagent.prompts import Prompt
from fairagent.refine.base import RefineState
from fairagent.refine.keywords import REPLIES, Sifted, sift, words_of
from fairagent.types import Refinement, Term

PROMPTS = {"llm": "refine_query", "grounded": "refine_query_grounded"}
"""Refiner -> the template that it asks with."""

LONGEST_QUERY = 2000
"""Characters of the user's query that the model sees."""
MOST_SHOWN = 20
"""Topic words of the current query that the model sees, the heaviest first."""


def shown(state: RefineState) -> dict[str, object]:
    """What every refining template is filled with."""
    exposure = state.exposure
    place = exposure.labels.index(state.group.label)
    of_topic = [term for term in state.current.terms if term.text not in state.tried]
    heaviest = sorted(of_topic, key=lambda term: -term.weight)[:MOST_SHOWN]
    return {
        "query": visible(state.query.text)[:LONGEST_QUERY],
        "dimension": visible(state.group.dimension),
        "group": visible(state.group.label),
        "share": f"{exposure.shares[place]:.1%}",
        "target": f"{exposure.target[place]:.1%}",
        "keywords": [visible(term.text) for term in heaviest],
        "tried": sorted(visible(word) for word in state.tried),
    }


def ask_keywords(
    model: Model,
    prompt: Prompt,
    messages: tuple[Message, ...],
    state: RefineState,
    weight: float,
    drift: float,
    source: str,
) -> Refinement:
    """The model's keywords for `state.group` as terms; none, and why, where it declines or says nothing usable.

    Each weighs `weight` (a word of the user's query being 1), but all together at most `drift` times the user's query,
    so that a talkative model cannot outvote the user. `prompt` is the template that `messages` were made from.

    Raises what else `Model.complete` raises: TransientModelError (given up), FatalModelError, BudgetExceeded.
    """
    request = ModelRequest(messages, max_tokens=prompt.head.max_tokens)
    try:
        reply, usage = ask(model, request, REPLIES[prompt.head.reply])
    except ReplyError as error:
        return Refinement((), source, f"{_kind(error)}: {error}", error.usage)
    # A topic word of little weight may be named again, which raises its weight; what was added in full may not.
    known = [term.text for term in state.current.terms if term.weight >= weight]
    found = sift(reply.keywords, state.query.text, [*state.tried, *known])
    each = weight_of_each(weight, drift, state.query.text, len(found.kept))
    terms = tuple(Term(word, each) for word in found.kept)
    known_already = tuple(f"{word}: nothing new" for word in found.repeated)
    return Refinement(terms, source, _note(reply.keywords, found), usage, found.refused + known_already)


def weight_of_each(weight: float, drift: float, query: str, keywords: int) -> float:
    """The weight of each of so many keywords: `weight`, or less where together they would outweigh the query.

    >>> weight_of_each(1.0, 2.0, "famous lawyers", 3), weight_of_each(1.0, 2.0, "famous lawyers", 8)
    (1.0, 0.5)
    """
    size = max(len(words_of(query)), 1)
    return min(weight, drift * size / max(keywords, 1))


def _note(proposed: Sequence[str], found: Sifted) -> str:
    """Why there is no keyword; "" where there is one."""
    if found.kept:
        return ""
    if found.repeated:
        return f"repeated: none of the model's {len(proposed)} keywords is new"
    return f"none of the model's {len(proposed)} keywords is usable" if proposed else "the model proposes no keyword"


def _kind(error: ReplyError) -> str:
    if isinstance(error, ReplyRefused):
        return "refused"
    return "invalid reply" if isinstance(error, ReplyInvalid) else "truncated reply"
