"""LaMP: its seven tasks as Fair RAG uses them, its files, a question's own items, asking it, and the items' labels.

What of a profile's entries is searched is stated for LaMP-1 alone; for the others it is all of their prose.

u_j - u_base is the utility of the answer from item j alone, less that of the answer without any item; an item is useful
where that is above 0. Labels are a generator's own. They are stored in a file, a line each, whose first line says what
they are made from; each is forced to the disk, so that whatever ends the work takes away nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairagent.answer.context import shortened
from fairagent.collection.records import Faults, Record, checked_id, listed, read_text, shown
from fairagent.errors import DataError, Fault, ReplyError, UsageError
from fairagent.evaluate.fingerprint import changes
from fairagent.evaluate.kind import JsonObject
from fairagent.evaluate.questions import answer_to
from fairagent.evaluate.workers import Workers
from fairagent.llm import Message, Model
from fairagent.llm.prompts import Calls, Prompts
from fairagent.llm.request import estimate_tokens
from fairagent.measures.answers import StringUtility, parse_utility
from fairagent.papers.fair_rag.okapi import okapi_scores
from fairagent.retrieve.encoders import Encoder
from fairagent.settings import ModelSettings
from fairagent.settings.faults import no_such
from fairagent.storage.files import LineFile, locked, unsealed, whole_lines
from fairagent.storage.readers import Malformed, as_text, file_bytes, parse_json
from fairagent.types import Answer, FloatArray, Topic
from fairagent.types.clean import visible

T = TypeVar("T")


def candidates(input: str) -> str:
    """The titles of the two references that are to choose from; ValueError where they are not there.

    >>> candidates('Which reference is it? [1]: "Fair search" [2]: "Fast search"')
    'Fair search Fast search'
    """
    first, end = re.search(r'\[1\]:\s*+"', input), input.rfind('"')
    # A title may hold quotes, and what looks like the second one: the last that has a title behind it is.
    second = re.compile(r'"\s*+\[2\]:\s*+"')
    seconds = [one for one in second.finditer(input, first.end() + 1) if one.end() < end] if first else []
    if not first or not seconds:
        raise ValueError('the input does not end with two titles, as in [1]: "..." [2]: "..."')
    return f"{input[first.end() : seconds[-1].start()]} {input[seconds[-1].end() : end]}"


def after(mark: str) -> Callable[[str], str]:
    """Finds the query after the first `mark` of an input; ValueError where nothing follows.

    >>> after("review:")("How many stars? review: A fine pen.")
    'A fine pen.'
    """

    def find(input: str) -> str:
        text = input.partition(mark)[2].strip()
        if not text:
            raise ValueError(f"nothing follows after {mark!r} in the input, which begins {shown(input)}")
        return text

    return find


@dataclass(frozen=True)
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
        return self.name.lower().replace("-", "_")

    @cached_property
    def label_utility(self) -> StringUtility:
        """The string utility by which items are labeled."""
        return parse_utility(self.label_metric, self.labels)

    @cached_property
    def utility(self) -> StringUtility:
        return parse_utility(self.metric, self.labels)


TAGS = (
    *("sci-fi", "based on a book", "comedy", "action", "twist ending", "dystopia", "dark comedy", "classic"),
    *("psychology", "fantasy", "romance", "thought-provoking", "social commentary", "violence", "true story"),
)
"""Those that LaMP-2 gives movies."""

_PAPER, _TITLED, _TEXT, _MOVIE = ("title", "abstract"), ("title", "text"), ("text",), ("description", "tag")
_REVIEW, _STARS = ("text", "score"), ("1", "2", "3", "4", "5")
_LISTED = (
    LampTask("LaMP-1", _PAPER, _PAPER, ("title",), "title", candidates, ("[1]", "[2]"), "accuracy", "accuracy"),
    LampTask("LaMP-2", _MOVIE, _MOVIE[:1], _MOVIE, "description", after("description:"), TAGS, "accuracy", "accuracy"),
    LampTask("LaMP-3", _REVIEW, _TEXT, _REVIEW[::-1], "text", after("review:"), _STARS, "accuracy", "absolute-error"),
    LampTask("LaMP-4", _TITLED, _TITLED, _TITLED, "text", after("article:")),
    LampTask("LaMP-5", _PAPER, _PAPER, _PAPER, "abstract", after(":")),
    LampTask("LaMP-6", _TITLED, _TITLED, _TITLED, "text", after(":")),
    LampTask("LaMP-7", _TEXT, _TEXT, _TEXT, "text", after(":")),
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
        raise UsageError(f"LaMP has {no_such('task', name, TASKS)}")
    return task


LIMIT = 1000
"""So many questions of a file, the first ones, as the paper says; its code takes one more."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a profile: the `text` that is searched, and the `fields` that a prompt shows, by their names."""

    id: str
    text: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LampQuestion:
    """One question: the whole `input` for a generator, its part that is the `query`, the profile, the valid outputs."""

    id: str
    task: LampTask
    input: str
    query: str
    items: tuple[Item, ...]
    golds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lamp:
    """The first questions of a task, of `total` in the file; `sha256` is that of both files."""

    task: LampTask
    questions: tuple[LampQuestion, ...]
    total: int
    sha256: str

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def topics(self) -> Mapping[str, Topic]:
        return {question.id: Topic(question.id, question.query) for question in self.questions}

    def __str__(self) -> str:
        return f"{self.task.name}: {len(self.questions):,} of {self.total:,} questions"


def load_lamp(task: str, questions: Path | str, outputs: Path | str, limit: int | None = LIMIT) -> Lamp:
    """The first `limit` (None: all) questions of a task, in the order of the file, which may be gzipped.

    `questions` is LaMP's [{"id", "input", "profile": [{"id", ...}]}], `outputs` its {"task", "golds": [{"id",
    "output"}]}; other keys are ignored. An output may also be a list of valid answers, of which the one that fits best
    counts. Raises DataError with what is wrong in both files, each fault with the ids of the question and of the
    profile's entry; UsageError for an unknown task.
    """
    of = parse_task(task)
    source, wanted = Path(questions), Path(outputs)
    faults, digest = Faults(), sha256()

    def read_json(path: Path) -> Any:
        """What the file holds, which goes into `digest`; None where it cannot be read."""
        try:
            content = file_bytes(path, 1 << 31, unzipped=True)
            digest.update(content)
            if (value := parse_json(as_text(content))) is None:
                faults.add(path, None, "holds null and nothing else")
            return value
        except FileNotFoundError:
            faults.add(path, None, "no such file")
        except OSError as error:
            faults.add(path, None, f"cannot be read ({error.strerror or error})")
        except Malformed as error:
            faults.add(path, error.line, f"not JSON ({error})")
        return None

    def outputs_of(id: str, gold: Record) -> tuple[str, ...]:
        several = gold.get("output")
        each = [{"output": one} for one in several] if isinstance(several, list) and several else [gold]
        valid = tuple(_text(one, "output") for one in each)
        for output in valid:
            if of.labels and output.strip() not in of.labels:
                raise ValueError(f"{shown(output)} is none of {listed(of.labels)}")
            if not output.replace(".", "").strip():
                raise ValueError(f"the output {shown(output)} has no words")
        return valid

    def question_of(id: str, record: Record) -> LampQuestion:
        def item_of(id: str, entry: Record) -> Item:
            fields = {name: _text(entry, name) for name in of.fields}
            searched = " ".join(fields[name] for name in of.searched)
            return Item(id, searched, {name: fields[name] for name in of.shown})

        input = _text(record, "input")
        query, what = of.find_query(input), f"question {id!r}: item"
        items = _by_id(source, record.get("profile"), what, faults, item_of, least=0)
        return LampQuestion(id, of, input, query, tuple(items.values()), golds.get(id, ()))

    record = read_json(wanted)
    named = record.get("task") if isinstance(record, dict) else None
    golds: dict[str, tuple[str, ...]] = {}
    if isinstance(named, str) and named.replace("_", "-") != of.name:
        faults.add(wanted, None, f"the task is {named!r}, expected {of.name.replace('-', '_')!r}")
    elif record is not None:
        listed_golds = record.get("golds") if isinstance(record, dict) else None
        golds = _by_id(wanted, listed_golds, "gold of question", faults, outputs_of)
    records = read_json(source)
    read: dict[str, LampQuestion] = {}
    if records is not None:
        first = records[:limit] if isinstance(records, list) else records
        read = _by_id(source, first, "question", faults, question_of)
    for id in read if golds else ():
        if id not in golds:
            faults.add(wanted, None, f"no gold for question {shown(id)}")
    faults.check(of.name)
    return Lamp(of, tuple(read.values()), len(records), digest.hexdigest())


def _by_id(
    path: Path, entries: Any, what: str, faults: Faults, read: Callable[[str, Record], T], least: int = 1
) -> dict[str, T]:
    """Id -> what is read of each entry, of which there are `least`; what is wrong goes to `faults`."""
    values: dict[str, T] = {}
    if not isinstance(entries, list) or len(entries) < least:
        faults.add(path, None, f"expected a list of {what}s, got {shown(entries)}")
        return values
    for number, entry in enumerate(entries, start=1):
        where = f"{what} number {number}"
        try:
            if not isinstance(entry, dict):
                raise ValueError(f"expected an object, got {shown(entry)}")
            where = f"{what} {(id := checked_id(read_text(entry, 'id'), 'the'))!r}"
            if id in values:
                raise ValueError("it is there twice")
            values[id] = read(id, entry)
        except UnicodeEncodeError:
            no_text = "a text holds half of a surrogate pair (\\ud...), which is no Unicode text"
            faults.add(path, None, f"{where}: {no_text}")
        except ValueError as error:
            faults.add(path, None, f"{where}: {error}")
    return values


def _text(record: Record, name: str) -> str:
    text = read_text(record, name)
    text.encode()
    return text


def score_items(question: LampQuestion, engine: Literal["okapi"] | Encoder) -> FloatArray:
    """The score of each item of the question for its query, (n,), finite: Okapi's, or inner products of vectors.

    Raises DataError where an encoder gives what is no number.
    """
    texts = [item.text for item in question.items]
    if engine == "okapi":
        return okapi_scores(question.query, texts)
    if not texts:
        return np.zeros(0)
    # Sparse where the engine is.
    products: Any = engine.documents(texts) @ engine.queries([question.query]).T
    dense = products.toarray() if hasattr(products, "toarray") else products
    scores: FloatArray = np.asarray(dense, dtype=np.float64)[:, 0]
    if not np.isfinite(scores).all():
        item = question.items[int(np.argmin(np.isfinite(scores)))]
        raise DataError(f"question {question.id!r}: {engine.name} gives item {item.id!r} a score that is no number")
    return scores


TOKENS = 512
"""What a whole prompt may have, by our estimate; its question gets half of it at the most."""
NO_ANSWER = "the model gave no answer"


def answer_from(model: Model, prompts: Prompts, question: LampQuestion, items: Sequence[Item]) -> Answer:
    """The model's answer to `question` from `items`, best first; there may be none.

    A model that declines, says nothing, or had not finished thinking at the template's limit has answered with "", and
    the notes begin with NO_ANSWER. Raises what else `Model.complete` raises.
    """
    messages = messages_for(prompts, question, items)
    try:
        return answer_to(model, prompts[question.task.prompt], messages)
    except ReplyError as error:
        return Answer("", notes=(f"{NO_ANSWER}: {error}",), usage=error.usage, source="llm")


def messages_for(
    prompts: Prompts, question: LampQuestion, items: Sequence[Item], tokens: int = TOKENS
) -> tuple[Message, ...]:
    """The prompt, of about `tokens` at the most: the question is cut to half of them, the items to what is left.

    Every item gets the same room; of its fields the long one is cut first. A template that itself takes more than
    `tokens` is not cut.
    """

    def within(item: Item, room: int) -> Mapping[str, str]:
        """The item's fields in `room` tokens: half of them for those that are short, what is left for the long one."""
        long = question.task.long
        short = {name: shortened(visible(text), room // 2) for name, text in item.fields.items() if name != long}
        left = max(0, room - estimate_tokens(*short.values()))
        return {**short, long: shortened(visible(item.fields[long]), left)}

    query = shortened(visible(question.input), tokens // 2)
    room = (tokens - estimate_tokens(query)) // len(items) if items else 0
    while True:
        shown = [within(item, room) for item in items]
        messages = prompts.render(question.task.prompt, query=query, items=shown)
        beyond = estimate_tokens(*(text for _, text in messages)) - tokens
        if beyond <= 0 or not room:
            return messages
        # Quotation marks and line breaks take more room in JSON than they have themselves.
        room = max(0, room - -(-beyond // len(items)))


# --- labels

Key = tuple[str, str | None]
"""What a label is of: a question and one of its items, or none."""

FEWEST = 2
"""So many useful items a question needs to be part of the experiment."""


@dataclass(frozen=True, slots=True)
class Label:
    """The `utility` of the answer to one question from one item; `item` None: from none."""

    question: str
    item: str | None
    utility: float
    answer: str
    notes: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Labels:
    """What the items of each question are worth: question id -> u_j - u_base (n,), in the order of its items.

    With a utility of which less is better, u_base - u_j. `unanswered` counts the answers that a model did not give.
    """

    gains: Mapping[str, FloatArray]
    unanswered: int = 0

    def useful(self, question: str) -> NDArray[np.bool_]:
        """Which items of the question are useful, (n,)."""
        return self.gains[question] > 0

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The questions with at least 2 useful items, in their order."""
        return tuple(id for id in self.gains if self.useful(id).sum() >= FEWEST)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many questions are left out, and how many answers a model did not give."""
        left = len(self.gains) - len(self.counted)
        notes = [f"{left:,} of {len(self.gains):,} questions have fewer than {FEWEST} useful items and are left out"]
        if self.unanswered:
            notes.append(f"{self.unanswered:,} answers were not given (declined or empty) and count as empty")
        return tuple(notes[not left :])


@dataclass(frozen=True)
class Labeling:
    """Labels in the file `path`: from the questions, the templates, and the `generator` as its settings describe it.

    Which questions of the file are taken is no part of it: labels made for few of them go on to be those of many.
    """

    lamp: Lamp
    prompts: Prompts
    generator: Mapping[str, Any]
    model: ModelSettings
    path: Path

    @property
    def made_from(self) -> JsonObject:
        task = self.lamp.task
        return {
            # Of the file and of how a prompt is made; labels of another one are not read.
            "format": 2,
            "task": task.name,
            "data": self.lamp.sha256,
            "utility": task.label_utility.name,
            "tokens": TOKENS,
            "prompt": self.prompts[task.prompt].sha256,
            "generator": dict(self.generator),
        }

    def estimate(self) -> Calls:
        """What the labels that are not in the file yet will take at most; raises what `stored` raises."""
        missing = list(self._missing(self.stored()))
        prompts = (messages_for(self.prompts, question, items) for question, items in missing)
        read = sum(estimate_tokens(*(text for _, text in messages)) for messages in prompts)
        longest = self.prompts[self.lamp.task.prompt].longest_reply(self.model.max_tokens)
        return Calls(self.model, len(missing), read, len(missing) * longest)

    def make(self, model: Model, workers: Workers) -> Labels:
        """Label all items of all questions, one call each and one for each question without items; file them.

        Those in the file already are not made again; one process at a time works in its folder. Raises what `stored`
        and `answer_from` raise, BudgetExceeded where the budget ends: all that was paid for is stored.
        """

        def label(question: LampQuestion, items: tuple[Item, ...]) -> Label:
            answer = answer_from(model, self.prompts, question, items)
            worth = self.lamp.task.label_utility(answer.text, question.golds)
            return Label(question.id, items[0].id if items else None, worth, answer.text, answer.notes)

        with locked(self.path.parent):
            labels = self.stored()
            with LineFile(self.path) as file:
                if not self.path.stat().st_size:
                    file.write(json.dumps({"made_from": self.made_from}))

                def store(label: Label) -> None:
                    file.write(json.dumps(asdict(label)))
                    labels[label.question, label.item] = label

                workers.for_each(((label, missing) for missing in self._missing(labels)), store)
        return self._labels(labels)

    def read(self) -> Labels:
        """The labels of all items of all questions; DataError where some are missing, or no question is left."""
        labels = self._labels(self.stored())
        if not labels.counted:
            raise DataError(f"{self.path}: no question has {FEWEST} useful items, so there is nothing to measure")
        return labels

    def stored(self) -> dict[Key, Label]:
        """The labels in the file by question and item; none where there is no file. A torn last line is ignored.

        Raises DataError where a line is no label with a utility in its range, and where the first line names something
        else than these labels are made from.
        """
        head, *lines = list(whole_lines(self.path)) or [b""]
        if not head:
            return {}
        try:
            before = parse_json(unsealed(head).decode())["made_from"]
            different = changes({"systems": {}, **before}, {"systems": {}, **self.made_from})
        except (ValueError, KeyError, TypeError) as error:
            different = [f"says not what they are made from ({error}): {shown(head)}"]
        if different:
            others = "these utility labels were made from something else; name another file to have others made"
            raise DataError(f"{self.path}: {others}", [Fault(self.path, 1, change) for change in different])
        labels: dict[Key, Label] = {}
        faults: list[Fault] = []
        for number, line in enumerate(lines, start=2):
            try:
                label = Label(**parse_json(unsealed(line).decode()))
                upper = self.lamp.task.label_utility.upper
                if not isinstance(label.question, str) or not 0 <= label.utility <= upper:
                    raise ValueError(f"the utility of {shown(label.question)} is not from 0 to {upper:g}")
                labels[label.question, label.item] = label
            except (ValueError, TypeError) as error:
                faults.append(Fault(self.path, number, f"no label ({error})"))
        if faults:
            raise DataError("utility labels are damaged; remove these lines to have them made again", faults)
        return labels

    def _missing(self, labels: Mapping[Key, Label]) -> Iterator[tuple[LampQuestion, tuple[Item, ...]]]:
        """What has no label yet: a question and one item of it, or none."""
        for question in self.lamp.questions:
            for items in ((), *((item,) for item in question.items)):
                if (question.id, items[0].id if items else None) not in labels:
                    yield question, items

    def _labels(self, labels: Mapping[Key, Label]) -> Labels:
        missing = [f"{question.id}/{items[0].id if items else '-'}" for question, items in self._missing(labels)]
        if missing:
            raise DataError(
                f"{self.path}: {len(missing):,} utility labels are missing (question/item: {listed(missing, most=5)}); "
                "have them made before they are used"
            )
        sign = -1.0 if self.lamp.task.label_utility.lower_is_better else 1.0
        gains, unanswered = {}, 0
        for question in self.lamp.questions:
            of = [labels[question.id, item] for item in (None, *(item.id for item in question.items))]
            gains[question.id] = sign * np.array([one.utility - of[0].utility for one in of[1:]], dtype=float)
            unanswered += sum(any(note.startswith(NO_ANSWER) for note in one.notes) for one in of)
        return Labels(gains, unanswered)
