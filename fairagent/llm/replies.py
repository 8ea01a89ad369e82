"""Reading what a model wrote: without its thoughts, and the JSON object that was requested, mended where needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from pydantic import ValidationError

from fairagent.errors import ReplyInvalid
from fairagent.llm.request import ModelRequest, Reply
from fairagent.settings.faults import fault_lines
from fairagent.storage.readers import parse_json

LONGEST_REPLY = 1 << 18
"""Characters of a reply that is to be JSON: 60,000 tokens; a longer one is not read."""
MOST_PARTS = 10_000
"""Brackets and commas of such a reply: to name each value that is wrong takes longer than anybody reads."""
LONGEST_MENDED, DEEPEST_MENDED, MOST_MENDED = 20_000, 10, 5
"""Characters and depth of an object that is not quite JSON, and how many of a reply: mending more takes seconds."""

R = TypeVar("R", bound=Reply)

# What reasoning models put around their thoughts: tags, or the channels of the harmony format, of which `final` is the
# answer. Servers without a parser for a model's format pass them on, often without the opening tag, which is in the
# prompt already.
_WORDS = "think|thinking|thoughts?|reasoning|seed:think"
_TAG = re.compile(
    rf"(?P<open><(?:{_WORDS})>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)\b[^<]{{0,80}}<\|message\|>)"
    rf"|(?P<close></(?:{_WORDS})>|\[/THINK\]|◁/think▷|<\|channel\|>final\b[^<]{{0,80}}<\|message\|>)"
    r"|<\|(?:end|return|start)\|>(?:assistant)?",
    re.IGNORECASE,
)
_BEGUN = re.compile(
    r"(?:<\|(?:start\|>[a-z]{0,9}|channel\|>[^<]{0,80}(?:<\|?[a-z]{0,8}\|?)?|[a-z]{0,8}\|?)|[<\[◁]/?[a-z:]{0,12})\Z",
    re.IGNORECASE,
)
"""The beginning of a tag at the end of what has come so far."""


@dataclass(slots=True)
class Thoughts:
    """Leaves out what a model thinks aloud, of a reply that comes in pieces.

    Thoughts begin where a line does. A closing tag without an opening one: all that came before it was thought.
    """

    thinking: bool = False
    _waiting: str = ""
    _line: str = ""

    def read(self, piece: str) -> tuple[str, bool]:
        """What of the answer is sure after the next `piece`, and whether all that was returned before was thought."""
        text, answer, forget, at = self._waiting + piece, "", False, 0
        begun = _BEGUN.search(text, max(0, len(text) - 120))
        end = begun.start() if begun else len(text)
        self._waiting = text[end:]
        for tag in _TAG.finditer(text, 0, end):
            before = text[at : tag.start()]
            if tag["open"]:
                line = (self._line + answer + ("" if self.thinking else before)).rpartition("\n")[2]
                if self.thinking or line.strip():
                    # A tag that is spoken of.
                    continue
            if not self.thinking:
                answer += before
            at = tag.end()
            if tag["open"]:
                self.thinking = True
            elif tag["close"]:
                if not self.thinking:
                    answer, forget, self._line = "", True, ""
                self.thinking = False
        if not self.thinking:
            answer += text[at:end]
        self._line = (self._line + answer).rpartition("\n")[2]
        return answer, forget

    def close(self) -> str:
        """What was held back, at the end of the reply; "" where the thoughts never ended."""
        answer, _ = self.read("\n") if self._waiting else ("", False)
        return answer.removesuffix("\n")


def without_thoughts(text: str) -> str:
    """A reply without what the model thought aloud; "" where its thoughts never end.

    >>> without_thoughts("<think>A judge?</think> No."), without_thoughts("A judge?</think> No.")
    (' No.', ' No.')
    >>> without_thoughts("<think>Let me see")
    ''
    """
    thoughts = Thoughts()
    return thoughts.read(text)[0] + thoughts.close()


def parse_reply(text: str, reply: type[R]) -> R:
    r"""The last JSON object in `text` that is a `reply`; see `read_object`.

    >>> class Keywords(Reply):
    ...     keywords: list[str]
    >>> parse_reply('Of course:\n```json\n{"keywords": ["judge", "court"]}\n```', Keywords)
    Keywords(keywords=['judge', 'court'])
    """
    return read_object(text, reply)[0]


def read_object(text: str, reply: type[R]) -> tuple[R, tuple[str, ...]]:
    """The last JSON object in `text` that is a `reply`, and what was mended of it.

    Thoughts, prose, drafts and code fences around it are skipped. What can be mended without asking is: commas,
    quotes, comments and line breaks that JSON has not, other keys, an object in an object, a list without its key,
    numbers and lists as text. Raises ReplyInvalid with the text and the faults of the last object (the first 5,
    shortened), or where it is too long.
    """
    read = without_thoughts(text)
    if len(read) > LONGEST_REPLY or sum(map(read.count, "[{,")) > MOST_PARTS:
        raise ReplyInvalid(f"the reply is longer than {LONGEST_REPLY:,} characters, or {MOST_PARTS:,} values", raw=text)
    fault = (
        "it holds no JSON object" if read.strip() or not text.strip() else "it holds nothing but the model's thoughts"
    )
    objects = list(_braced(read)) or re.findall(r"\[.*\]", read, re.DOTALL)
    for place, candidate in enumerate(reversed(objects)):
        try:
            return reply.model_validate_json(candidate), ()
        except ValidationError as error:
            faults = error.errors(include_url=False)
        if place < MOST_MENDED and (mended := _mended(candidate, reply)):
            return mended
        if not place:
            fault = "; ".join(one[:200].removeprefix("(top): ") for one in fault_lines(reply, faults[:5]))
    raise ReplyInvalid(f"the reply is not the JSON object that was requested: {fault}", raw=text)


def _mended(candidate: str, reply: type[R]) -> tuple[R, tuple[str, ...]] | None:
    """The `candidate` as a `reply` with what was mended; None where that would be a guess."""
    depths = accumulate((sign in "{[") - (sign in "}]") for sign in candidate)
    if len(candidate) > LONGEST_MENDED or max(depths) > DEEPEST_MENDED:
        return None
    if candidate[0] == "{" and ":" not in candidate:
        # Prose in braces.
        return None
    done: list[str] = []
    # RankGPT's form of an order, [2] > [1].
    candidate = re.sub(r"(?<=\d)\] > \[(?=\d)", ", ", candidate)
    try:
        value = parse_json(candidate)
    except ValueError:
        from json_repair import loads

        value = loads(candidate, skip_json_loads=True)
        done.append("not quite JSON")
    lists = [name for name, one in reply.model_fields.items() if "list" in str(one.annotation)]
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & reply.model_fields.keys():
        [value] = value.values()
        done.append("an object in an object")
    if isinstance(value, list) and len(lists) == len(reply.model_fields) == 1:
        value = {lists[0]: value}
        done.append("a list without its key")
    if not isinstance(value, dict):
        return None
    for strict in (True, False):
        for _ in range(2):
            try:
                return reply.model_validate(value, strict=strict), tuple(done if strict else (*done, "values as text"))
            except ValidationError as error:
                faults = error.errors(include_url=False, include_context=False)
            for one in faults:
                *path, last = one["loc"]
                holder: Any = value
                for step in path:
                    holder = holder[step]
                if one["type"] == "extra_forbidden":
                    del holder[last]
                    done.append("other keys")
                elif one["type"] == "list_type" and isinstance(one["input"], str):
                    holder[last] = [part.strip() for part in re.split(r"[,;\n]", one["input"]) if part.strip()]
                    done.append("a list as text")
            done = list(dict.fromkeys(done))
    return None


def _braced(text: str) -> Iterator[str]:
    """Every outermost {...} of `text`, in one pass; braces inside JSON strings do not count."""
    depth, start, quoted, escaped = 0, 0, False, False
    for place, sign in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = sign == "\\", sign != '"'
        elif sign == "{":
            start, depth = (start, depth + 1) if depth else (place, 1)
        elif depth and sign == '"':
            quoted = True
        elif depth and sign == "}":
            depth -= 1
            if not depth:
                yield text[start : place + 1]


def read_reply(request: ModelRequest, text: str) -> tuple[Any, tuple[str, ...]]:
    """`text` as the reply that `request` asks for, and what was mended; ReplyInvalid where it is none, or refused."""
    assert request.reply is not None
    reply, mended = read_object(text, request.reply)
    for role, example in request.messages:
        # An example shows the form; its answer is one to another question.
        if role == "assistant" and not request.tools and reply == parse_reply(example, request.reply):
            repeated = ReplyInvalid("the reply repeats the answer of an example", raw=text)
            repeated.echo = True
            raise repeated
    if request.accept is not None:
        try:
            request.accept(reply)
        except ReplyInvalid as error:
            error.raw = error.raw or text[:2000]
            raise
    return reply, mended
