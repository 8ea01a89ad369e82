"""Refinement by a language model: it names words for the under-exposed group; here they are checked as data."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairagent.errors import ReplyError, ReplyInvalid, ReplyRefused
from fairagent.llm import Model, ModelRequest, Reply, ask
from fairagent.llm.clean import visible
from fairagent.prompts import Prompts
from fairagent.refine.base import RefineState
from fairagent.types import Refinement, Term

PROMPT = "refine_query"
MOST_KEYWORDS = 12
LONGEST_KEYWORD = 80
LONGEST_QUERY = 2000
"""Characters of the user's query that the model sees."""
MOST_SHOWN = 20
"""Keywords of the current query that the model sees, the heaviest first."""

_ADDRESS = re.compile(r"://|@|\bwww\.|\w\.[a-z]{2,}\b", re.IGNORECASE)
_OPERATOR = re.compile(r'["^~*?:\\|<>(){}\[\]]|&&|(?:^|\s)[-+!]|\b(?:AND|OR|NOT)\b')
_WORD = re.compile(r"\w+")


class Keywords(Reply):
    """The reply of the prompt `refine_query`."""

    keywords: list[str]


@dataclass(frozen=True, slots=True)
class LlmRefiner:
    """Asks `model` for keywords with the template `refine_query`.

    Each accepted keyword weighs `keyword_weight`, a word of the user's query being 1. Keywords are added to the query
    and never take the place of the user's words, so that a model cannot lead the search away from its topic.
    """

    model: Model
    prompts: Prompts
    keyword_weight: float = 1.0

    def refine(self, state: RefineState) -> Refinement:
        """New keywords for `state.group`; none, and why, where the model declines or says nothing usable.

        Raises what else `Model.complete` raises: TransientModelError (given up), FatalModelError, BudgetExceeded.
        """
        request = ModelRequest(self._messages(state), max_tokens=self.prompts[PROMPT].head.max_tokens)
        try:
            reply, usage = ask(self.model, request, Keywords)
        except ReplyError as error:
            return Refinement((), "llm", f"{_kind(error)}: {error}", error.usage)
        # A topic word of little weight may be named again, which raises its weight; what was added in full may not.
        known = [term.text for term in state.current.terms if term.weight >= self.keyword_weight]
        found = usable_keywords(reply.keywords, state.query.text, [*state.tried, *known])
        note = "" if found else f"none of the model's {len(reply.keywords)} keywords is new and usable"
        return Refinement(tuple(Term(word, self.keyword_weight) for word in found), "llm", note, usage)

    def _messages(self, state: RefineState) -> tuple[tuple[str, str], ...]:
        exposure = state.exposure
        place = exposure.labels.index(state.group.label)
        heaviest = sorted(state.current.terms, key=lambda term: -term.weight)[:MOST_SHOWN]
        return self.prompts.render(
            PROMPT,
            query=visible(state.query.text)[:LONGEST_QUERY],
            dimension=visible(state.group.dimension),
            group=visible(state.group.label),
            share=f"{exposure.shares[place]:.1%}",
            target=f"{exposure.target[place]:.1%}",
            keywords=[visible(term.text) for term in heaviest],
            tried=sorted(visible(word) for word in state.tried),
        )


def usable_keywords(proposed: Sequence[str], query: str, known: Iterable[str]) -> tuple[str, ...]:
    """The proposed keywords that are fit to be searched for and new, at most 12, in their order.

    Zero-width, bidirectional and control characters are taken out, white space is made single, quotes around a keyword
    are dropped. Left out are: the empty and those without a letter or digit; several lines; more than 80 characters;
    web and mail addresses; query operators; repetitions and `known` ones (case does not count); and those that only
    repeat words of `query`.

    >>> usable_keywords(["Barrister", "barrister", "lawyers", "see x.org", "a OR b", "judge"], "lawyers", ["Judge"])
    ('Barrister',)
    """
    query_words = _words(query)
    seen = {_key(word) for word in known}
    found: list[str] = []
    for raw in proposed:
        keyword = _readable(raw)
        if not keyword or _ADDRESS.search(keyword) or _OPERATOR.search(keyword):
            continue
        if _key(keyword) in seen or _words(keyword) <= query_words:
            continue
        seen.add(_key(keyword))
        found.append(keyword)
    return tuple(found[:MOST_KEYWORDS])


def _readable(raw: str) -> str:
    """The keyword as people see it; "" where it is none."""
    text = visible(unicodedata.normalize("NFKC", raw)).strip().strip("\"'“”‘’`").strip()
    if len(text.splitlines()) != 1 or len(text) > LONGEST_KEYWORD:
        return ""
    return " ".join(text.split())


def _key(keyword: str) -> str:
    return " ".join(keyword.casefold().split())


def _words(text: str) -> set[str]:
    return set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _kind(error: ReplyError) -> str:
    if isinstance(error, ReplyRefused):
        return "refused"
    return "invalid reply" if isinstance(error, ReplyInvalid) else "truncated reply"
