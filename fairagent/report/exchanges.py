"""What models were asked for each topic, as the page shows it: from the transcript beside the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairagent.llm.exchange import Exchange
from fairagent.llm.transcript import read_transcript

LONGEST = 4_000
"""Characters of one text."""
MOST = 2_000_000
"""Characters of all exchanges of the page together, about."""

Asked = Mapping[tuple[str, str], Sequence["ShownExchange"]]
"""(topic, system) -> its exchanges, in the order of the transcript."""


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """One exchange without times, which differ from run to run: (role, text) of each message, the reply, its tokens.

    `faults` are why attempts, or all of it, came to nothing.
    """

    prompt: str
    messages: tuple[tuple[str, str], ...]
    reply: str
    faults: tuple[str, ...]
    input_tokens: int
    output_tokens: int


def shown_exchanges(path: Path) -> Asked:
    """The exchanges of a transcript; of the same question to the same end only the last, which may be from the cache.

    Long texts are cut, and what would make the page too large is left out: all of it is in the file. Nothing where
    there is none.
    """
    last: dict[tuple[str, str], dict[object, ShownExchange]] = {}
    for one in read_transcript(path):
        if one and one.topic:
            last.setdefault((one.topic, one.system), {})[one.prompt, one.messages] = _shown(one)
    found, room = {}, MOST
    for key, exchanges in last.items():
        listed = list(exchanges.values())
        room -= sum(len(one.reply) + sum(len(text) for _, text in one.messages) for one in listed)
        if room < 0:
            break
        found[key] = listed
    return found


def _shown(one: Exchange) -> ShownExchange:
    messages = tuple((role, _cut(text)) for role, text in one.messages)
    faults = (*(attempt.error for attempt in one.attempts), *([one.error] if one.error else []))
    return ShownExchange(one.prompt, messages, _cut(one.text), faults, one.input_tokens, one.output_tokens)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"
