"""Worst-case estimates of model calls, which each part gives before any call is made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairagent.llm.prompts import Prompts
from fairagent.llm.request import estimate_tokens
from fairagent.settings import ModelSettings, Settings

LETTER = "x"
"""What stands for the letters of texts that are not known yet; a token is four of them."""
STAND_IN = "keywords"
"""A word of usual length."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A number of calls of one model, and their input and output tokens in total."""

    model: ModelSettings
    calls: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Case:
    """The case that a part gives its worst case for: these queries, under these settings.

    `group` is the longest name among the groups, with its dimension.
    """

    settings: Settings
    prompts: Prompts
    queries: Sequence[str]
    group: tuple[str, str] = ("", "")

    def calls(self, prompt: str, times: int = 1, **variables: object) -> Calls:
        """`times` calls for each query; `variables` are those of the template but for the query."""
        around = self.tokens(prompt, query="", **variables)
        read = times * sum(around + estimate_tokens(query) for query in self.queries)
        return self.counted(prompt, times * len(self.queries), read)

    def tokens(self, prompt: str, **variables: object) -> int:
        """About how many tokens the template filled with `variables` has."""
        return estimate_tokens(*(text for _, text in self.prompts.render(prompt, **variables)))

    def counted(self, prompt: str, calls: int, read: int) -> Calls:
        """That many calls with that many input tokens in total, each with the longest reply."""
        model = self.settings.model
        return Calls(model, calls, read, calls * self.prompts[prompt].longest_reply(model.max_tokens))


def together(model: ModelSettings, some: Iterable[Calls]) -> Calls:
    """The sum of several calls of one model."""
    counts = [(one.calls, one.input_tokens, one.output_tokens) for one in some]
    calls, read, written = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    return Calls(model, calls, read, written)
