"""The seven tasks of LaMP as Fair RAG uses them (seed_systems.md, sections 1.2 and 1.9).

What of a profile's entries is searched is stated for LaMP-1 alone; for the others it is all of their prose.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairagent.errors import UsageError
from fairagent.measures.answers import StringUtility, parse_utility

_FIRST = re.compile(r'\[1\]:\s*+"')
_SECOND = re.compile(r'"\s*+\[2\]:\s*+"')


def candidates(input: str) -> str:
    """The titles of the two references that are to choose from; ValueError where they are not there.

    >>> candidates('Which reference is it? [1]: "Fair search" [2]: "Fast search"')
    'Fair search Fast search'
    """
    first, end = _FIRST.search(input), input.rfind('"')
    # A title may hold quotes, and what looks like the second one: the last that has a title behind it is.
    seconds = [one for one in _SECOND.finditer(input, first.end() + 1) if one.end() < end] if first else []
    if not first or not seconds:
        raise ValueError('the input does not end with two titles, as in [1]: "..." [2]: "..."')
    return f"{input[first.end() : seconds[-1].start()]} {input[seconds[-1].end() : end]}"


@dataclass(frozen=True, slots=True)
class After:
    """Finds the query after the first `mark` of an input; ValueError where nothing follows.

    >>> After("review:")("How many stars? review: A fine pen.")
    'A fine pen.'
    """

    mark: str

    def __call__(self, input: str) -> str:
        """The text after the mark."""
        text = input.partition(self.mark)[2].strip()
        if not text:
            raise ValueError(f"nothing follows after {self.mark!r} in the input")
        return text


@dataclass(frozen=True, slots=True)
class LampTask:
    """One task of LaMP: how it is searched, prompted and measured.

    A profile's entries have the `fields`. Those `searched` make the text that is scored for a query, which `find_query`
    takes from a question's input (ValueError where it cannot); those `shown` stand in a prompt, with `long` cut where
    there is no room. `labels` are all answers that there are, none where answers are free text. `label_metric` says
    whether an item is useful, `metric` what an answer is worth in the experiment: names of string utilities.
    """

    name: str
    fields: tuple[str, ...]
    searched: tuple[str, ...]
    shown: tuple[str, ...]
    long: str
    find_query: Callable[[str], str]
    labels: tuple[str, ...] = ()
    label_metric: str = "rouge-l"
    metric: str = "rouge-l"

    @property
    def prompt(self) -> str:
        """The id of the template that its questions are asked with."""
        return self.name.lower().replace("-", "_")

    @property
    def label_utility(self) -> StringUtility:
        """The string utility by which items are labeled."""
        return parse_utility(self.label_metric, self.labels)

    @property
    def utility(self) -> StringUtility:
        """The string utility of the experiment."""
        return parse_utility(self.metric, self.labels)

    def __str__(self) -> str:
        return self.name


TAGS = (
    *("sci-fi", "based on a book", "comedy", "action", "twist ending", "dystopia", "dark comedy", "classic"),
    *("psychology", "fantasy", "romance", "thought-provoking", "social commentary", "violence", "true story"),
)
"""Those that LaMP-2 gives movies."""

_PAPER, _TITLED, _TEXT, _MOVIE = ("title", "abstract"), ("title", "text"), ("text",), ("description", "tag")
_REVIEW, _STARS = ("text", "score"), ("1", "2", "3", "4", "5")
_LISTED = (
    LampTask("LaMP-1", _PAPER, _PAPER, ("title",), "title", candidates, ("[1]", "[2]"), "accuracy", "accuracy"),
    LampTask("LaMP-2", _MOVIE, _MOVIE[:1], _MOVIE, "description", After("description:"), TAGS, "accuracy", "accuracy"),
    LampTask("LaMP-3", _REVIEW, _TEXT, _REVIEW[::-1], "text", After("review:"), _STARS, "accuracy", "absolute-error"),
    LampTask("LaMP-4", _TITLED, _TITLED, _TITLED, "text", After("article:")),
    LampTask("LaMP-5", _PAPER, _PAPER, _PAPER, "abstract", After(":")),
    LampTask("LaMP-6", _TITLED, _TITLED, _TITLED, "text", After(":")),
    LampTask("LaMP-7", _TEXT, _TEXT, _TEXT, "text", After(":")),
)
TASKS: Mapping[str, LampTask] = {task.name: task for task in _LISTED}
"""Name -> task: citations, movie tags, ratings, headlines, titles of papers, subjects of e-mails, tweets."""


def parse_task(name: str) -> LampTask:
    """The task of this name, written "LaMP-4" or "LaMP_4"; UsageError, naming all, for another.

    >>> parse_task("LaMP_4").name
    'LaMP-4'
    """
    task = TASKS.get(name.replace("_", "-"))
    if task is None:
        raise UsageError(f"{name!r} is no task of LaMP; there are: {', '.join(TASKS)}")
    return task
