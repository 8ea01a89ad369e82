"""A run for people who look into it: its topics, what each system made of them, and the calls of models.

The files are read anew when they have changed, so that a run that goes on is shown as far as it has come. A run of the
folder is opened by its name alone, which is compared with the existing ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairagent.extend import (
    HEAD,
    JOURNAL,
    TRANSCRIPT,
    Exchange,
    Outcome,
    PlainRecord,
    Run,
    UsageError,
    answers,
    exchange_in,
    labels_of,
    load_run,
    read_head,
    read_outcomes,
    whole_lines,
)

OPEN = 4
"""Runs that stay in memory."""
TOPICS_SHOWN = 500
EXCHANGES_SHOWN = 200
"""Of one topic and system."""
LONGEST_SHOWN = 20_000
"""Characters of a text of an exchange, unless the whole exchange is requested."""
LONGEST_SEARCH = 200
"""Characters of what is searched for."""
EXCERPT = 60
"""Characters on each side of a match."""
MATCHES_SHOWN = 3
"""Of a topic."""

State = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """Where a line of a transcript is: its number (from 1), and its bytes."""

    number: int
    start: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class RunFolder:
    """A run as its files have it: `outcomes` are (topic, system) -> outcome, `exchanges` (topic, system) -> places.

    `damaged` lines of the transcript cannot be read.
    """

    folder: Path
    head: Mapping[str, Any]
    outcomes: Mapping[tuple[str, str], Outcome]
    exchanges: Mapping[tuple[str, str], Sequence[TranscriptLine]]
    damaged: int

    @property
    def systems(self) -> list[str]:
        """The systems, in order."""
        return list(self.head["plan"]["systems"])

    @property
    def topics(self) -> list[str]:
        """The ids of the topics, in order."""
        return list(self.head["plan"]["topics"])

    def overview(self, text: str = "") -> PlainRecord:
        """The run and its topics, at most `TOPICS_SHOWN`: all, or those in which `text` occurs (in any case)."""
        if len(text) > LONGEST_SEARCH:
            raise UsageError(f"what is searched for is longer than {LONGEST_SEARCH} characters")
        matches = self._matches(text.casefold()) if text else {}
        rows = [self._row(topic, matches.get(topic, [])) for topic in self.topics if not text or topic in matches]
        plan = self.head["plan"]
        return {
            "name": self.folder.name,
            "title": plan["experiment"]["name"],
            "kind": plan["experiment"]["kind"],
            "collection": self.head["provenance"]["collection"]["name"],
            "systems": self.systems,
            "outcomes": len(self.outcomes),
            "planned": len(self.topics) * len(self.systems),
            "topics": rows[:TOPICS_SHOWN],
            "found": len(rows),
            "exchanges": sum(map(len, self.exchanges.values())),
            "beside": self._beside_topics(),
            "damaged": self.damaged,
        }

    def topic(self, id: str) -> PlainRecord:
        """What every system made of a topic, with its exchanges; UsageError where the run has no such topic.

        Those of no topic are under "": calls made when the systems were opened.
        """
        if id and id not in self.topics:
            raise UsageError(f"the run {self.folder.name!r} has no topic {id!r}")
        return {
            "run": self.folder.name,
            "id": id,
            "query": self._query(id),
            "excluded": self.head["excluded"].get(id),
            "labels": labels_of(self.head["plan"]["measures"]),
            "systems": [self._system(id, system) for system in (self.systems if id else [""])],
        }

    def exchange(self, number: int) -> PlainRecord:
        """The exchange on a line of the transcript, uncut; UsageError where there is none."""
        for place in (place for places in self.exchanges.values() for place in places if place.number == number):
            if exchange := exchange_in(self._line(place)):
                return exchange_record(exchange, number, None)
        raise UsageError(f"line {number} of {self.folder.name}/{TRANSCRIPT} is no exchange")

    def _system(self, topic: str, system: str) -> PlainRecord:
        places = self.exchanges.get((topic, system), ())
        outcome = self.outcomes.get((topic, system))
        return {
            "system": system,
            "outcome": {**asdict(outcome), "tail": None} if outcome else None,
            "exchanges": [
                exchange_record(exchange, place.number, LONGEST_SHOWN)
                for place in places[:EXCHANGES_SHOWN]
                if (exchange := exchange_in(self._line(place)))
            ],
            "hidden": max(0, len(places) - EXCHANGES_SHOWN),
        }

    def _row(self, topic: str, matches: Sequence[PlainRecord]) -> PlainRecord:
        own = [outcome for system in self.systems if (outcome := self.outcomes.get((topic, system)))]
        return {
            "id": topic,
            "query": self._query(topic),
            "excluded": self.head["excluded"].get(topic),
            "done": len(own),
            "failed": [outcome.system for outcome in own if outcome.failed is not None],
            "calls": sum(outcome.calls for outcome in own),
            "exchanges": sum(len(self.exchanges.get((topic, system), ())) for system in self.systems),
            "matches": list(matches[:MATCHES_SHOWN]),
            "found": len(matches),
        }

    def _query(self, topic: str) -> str:
        own = (self.outcomes.get((topic, system)) for system in self.systems)
        return next((outcome.query for outcome in own if outcome), "")

    def _beside_topics(self) -> int:
        """Exchanges that are no topic's: of what systems are opened with."""
        return sum(len(places) for (topic, _), places in self.exchanges.items() if not topic)

    def _matches(self, text: str) -> dict[str, list[PlainRecord]]:
        """Topic -> where `text` (casefolded) occurs in it."""
        matches: dict[str, list[PlainRecord]] = {}
        known = set(self.topics)
        for topic, system, where, whole in self._texts():
            at = whole.casefold().find(text)
            if at >= 0 and topic in known:
                start, end = max(0, at - EXCERPT), at + len(text) + EXCERPT
                matches.setdefault(topic, []).append({"system": system, "where": where, "text": whole[start:end]})
        return matches

    def _texts(self) -> Iterator[tuple[str, str, str, str]]:
        """All that can be searched: topic, system, what it is, text."""
        for topic in self.topics:
            yield topic, "", "topic", f"{topic}: {self._query(topic)}"
        for (topic, system), outcome in self.outcomes.items():
            yield topic, system, "failure", outcome.failed or ""
            yield topic, system, "answer", outcome.answer.text if outcome.answer else ""
            for step in outcome.steps:
                yield topic, system, "query", step.query
        for (topic, system), places in self.exchanges.items():
            for place in places:
                if exchange := exchange_in(self._line(place)):
                    for where, text in exchange_texts(exchange):
                        yield topic, system, f"exchange {place.number}, {where}", text

    def _line(self, place: TranscriptLine) -> bytes:
        # A run that was started over meanwhile has other lines, or none.
        with suppress(OSError), (self.folder / TRANSCRIPT).open("rb") as file:
            file.seek(place.start)
            return file.read(place.length)
        return b""


def exchange_texts(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Every text of an exchange, and what it is."""
    yield "prompt", exchange.prompt
    yield from exchange.messages
    for attempt in exchange.attempts:
        yield "attempt", attempt.text
        yield "error", attempt.error
    yield "reply", exchange.text
    yield "error", exchange.error


def exchange_record(exchange: Exchange, number: int, longest: int | None) -> PlainRecord:
    """An exchange for a page; of each text at most `longest` characters, and how many more there are."""

    def shown(text: str) -> PlainRecord:
        return {"text": text[:longest], "more": max(0, len(text) - longest) if longest is not None else 0}

    return {
        **asdict(exchange),
        "number": number,
        "messages": [{"role": role, **shown(text)} for role, text in exchange.messages],
        "answer": shown(exchange.text),
        "text": None,
        "attempts": [{**asdict(one), "text": None, "answer": shown(one.text)} for one in exchange.attempts],
    }


def open_run(folder: Path) -> RunFolder:
    """The run in a folder as it is now; raises what `read_outcomes` does."""
    return _opened(folder, _state(folder))


def whole_run(folder: Path) -> Run:
    """The run with all its comparisons, as tables have it; raises what `load_run` does."""
    return _loaded(folder, _state(folder)[:2])


def _state(folder: Path) -> State:
    return tuple(_stat(folder / name) for name in (HEAD, JOURNAL, TRANSCRIPT))


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


@lru_cache(maxsize=OPEN)
def _opened(folder: Path, state: State) -> RunFolder:
    """`state` only tells one state of the files from another."""
    head = read_head(folder)
    exchanges: dict[tuple[str, str], list[TranscriptLine]] = {}
    start = damaged = 0
    for number, line in enumerate(whole_lines(folder / TRANSCRIPT), start=1):
        if exchange := exchange_in(line):
            places = exchanges.setdefault((exchange.topic, exchange.system), [])
            places.append(TranscriptLine(number, start, len(line)))
        else:
            damaged += 1
        start += len(line)
    return RunFolder(folder, head, answers(read_outcomes(folder, head)), exchanges, damaged)


@lru_cache(maxsize=OPEN)
def _loaded(folder: Path, state: State) -> Run:
    """`state` as above."""
    return load_run(folder)
