"""The pages of runs: their list, a run for people who look into it, and two runs compared.

The files are read anew when they have changed, so that a run that goes on is shown as far as it has come. A run is
opened by its name alone, which is compared with the existing ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import HTMLResponse, Response

from fairagent.extend import (
    HEAD,
    JOURNAL,
    PAGE,
    TRANSCRIPT,
    Exchange,
    Outcome,
    PlainRecord,
    Run,
    UsageError,
    answers,
    differences,
    exchange_in,
    labels_of,
    load_run,
    open_to_read,
    read_head,
    read_outcomes,
    side_by_side,
    whole_lines,
)
from fairagent.studio.app import PAGES, Studio, StudioPage
from fairagent.studio.run_list import RunList, run_folders
from fairagent.studio.server import POLICY

RUNS_IN_MEMORY = 4
TOPICS_SHOWN = 500
EXCHANGES_SHOWN = 200
"""Of one topic and system."""
LONGEST_SHOWN = 20_000
"""Characters of a text of an exchange, unless the whole exchange is requested."""
LONGEST_SEARCH = 200
EXCERPT = 60
"""Characters on each side of a match."""
MATCHES_SHOWN = 3

TEXT = "text/plain; charset=utf-8"
State = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """Where a line of a transcript is: its number (from 1), and its bytes."""

    number: int
    start: int
    length: int


@dataclass(frozen=True, eq=False)
class RunFolder:
    """A run as its files have it: `outcomes` are (topic, system) -> outcome, `exchanges` (topic, system) -> places.

    `damaged` lines of the transcript cannot be read.
    """

    folder: Path
    head: Mapping[str, Any]
    outcomes: Mapping[tuple[str, str], Outcome]
    exchanges: Mapping[tuple[str, str], Sequence[TranscriptLine]]
    damaged: int

    @cached_property
    def systems(self) -> list[str]:
        """The systems, in order."""
        return list(self.head["plan"]["systems"])

    @cached_property
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
            "without_topic": sum(len(lines) for (topic, _), lines in self.exchanges.items() if not topic),
            "damaged": self.damaged,
        }

    def topic(self, id: str) -> PlainRecord:
        """What every system made of a topic, with its exchanges; UsageError where the run has no such topic."""
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
        with suppress(OSError), open_to_read(self.folder / TRANSCRIPT, self.folder) as file:
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
    states: list[tuple[int, int, int] | None] = []
    for name in (HEAD, JOURNAL, TRANSCRIPT):
        try:
            about = (folder / name).stat()
        except OSError:
            states.append(None)
        else:
            states.append((about.st_ino, about.st_size, about.st_mtime_ns))
    return tuple(states)


@lru_cache(maxsize=RUNS_IN_MEMORY)
def _opened(folder: Path, state: State) -> RunFolder:
    """`state` only tells one state of the files from another."""
    head = read_head(folder)
    exchanges: dict[tuple[str, str], list[TranscriptLine]] = {}
    start = damaged = 0
    for number, line in enumerate(whole_lines(folder / TRANSCRIPT, folder), start=1):
        if exchange := exchange_in(line):
            places = exchanges.setdefault((exchange.topic, exchange.system), [])
            places.append(TranscriptLine(number, start, len(line)))
        else:
            damaged += 1
        start += len(line)
    return RunFolder(folder, head, answers(read_outcomes(folder, head)), exchanges, damaged)


@lru_cache(maxsize=RUNS_IN_MEMORY)
def _loaded(folder: Path, state: State) -> Run:
    """`state` as above."""
    return load_run(folder)


RUN_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Of the frame of a run's page, a file of whoever made it: it has no origin, and can ask this server nothing."""
AROUND = f"{POLICY}; frame-src 'self'"
"""Of the page around that frame."""


def folder_of(root: Path, name: str) -> Path:
    """The folder of a run in `root`, by a name that leads nowhere else; UsageError for an unknown one."""
    for folder in run_folders(root):
        if folder.name == name:
            return folder
    raise UsageError(f"no run {name!r} in {root}")


def page_of(root: Path, name: str) -> bytes:
    """The page of a run; UsageError where there is no such run in `root`, or no page yet, NotRegular for a link."""
    folder = folder_of(root, name)
    try:
        with open_to_read(folder / PAGE, folder) as file:
            return file.read()
    except FileNotFoundError:
        raise UsageError(f"the run {name!r} in {root} has no page yet; fairagent report makes one") from None


def compared(root: Path, left: str, right: str) -> PlainRecord:
    """Two runs side by side: their systems by their measures, and what these systems were made from."""
    first, second = (whole_run(folder_of(root, name)) for name in (left, right))
    rows = side_by_side(first, second)
    names = labels_of(first.measures)
    return {
        "left": left,
        "right": right,
        "collections": [first.collection, second.collection],
        "systems": [one for one in first.systems if one in second.systems],
        "only_left": [one for one in first.systems if one not in second.systems],
        "only_right": [one for one in second.systems if one not in first.systems],
        "rows": [
            {
                "system": row.system,
                "dimension": row.left.dimension,
                "measure": names[row.left.measure],
                "definition": row.left.measure,
                "left": row.left.mean,
                "right": row.right.mean,
                "difference": row.right.difference,
                "better": first.gain(row.left.measure, row.right.mean, row.left.mean),
                "neutral": row.left.measure in first.neutral,
                "p": row.right.randomization_p,
                "wins": row.right.wins,
                "ties": row.right.ties,
                "losses": row.right.losses,
                "topics": row.right.topics,
            }
            for row in rows
        ],
        "differences": differences(first, second),
    }


class RunPages(StudioPage):
    """The list of runs, a run's topics and exchanges, its own page, and two runs compared."""

    links = (("/runs", "Runs"),)
    position = 2
    assets = ("runs.js", "run.js", "compare.js", "report.js", "exchange.js", "runs.css")

    def add(self, app: FastAPI, studio: Studio) -> None:
        """Add the pages and the calls, for the run folders in the studio's folder of runs."""
        root, listed = studio.runs, RunList(studio.runs)

        def run(name: str) -> RunFolder:
            return open_run(folder_of(root, name))

        @app.get("/api/runs", summary="The runs of the server's folder of runs: state, best systems, cost")
        async def runs() -> Response:
            return await studio.json(listed.record)

        @app.get("/api/runs/{name}", summary="The topics of a run, or those in which a text occurs, in any case")
        async def topics(name: str, text: str = "") -> Response:
            return await studio.json(lambda: run(name).overview(text))

        @app.get("/api/runs/{name}/topic", summary="What every system made of a topic, and its calls of models")
        async def topic(name: str, id: str) -> Response:
            return await studio.json(lambda: run(name).topic(id))

        @app.get("/api/runs/{name}/exchange", summary="An exchange with a model, uncut, by its line in the transcript")
        async def exchange(name: str, number: int) -> Response:
            return await studio.json(lambda: run(name).exchange(number))

        @app.get("/api/runs/{name}/page", summary="The page of a run, as it is in its folder (HTML)")
        async def page(name: str) -> Response:
            content = await studio.lanes.do(partial(page_of, root, name))
            # As a download at most: a browser must not show it as a page of this server.
            return Response(content, headers={"content-disposition": "attachment"}, media_type=TEXT)

        @app.get("/api/compared", summary="Two runs side by side: their systems, and what these were made from")
        async def two(left: str, right: str) -> Response:
            return await studio.json(partial(compared, root, left, right))

        @app.get("/runs", include_in_schema=False)
        async def runs_page() -> Response:
            return studio.html("runs.html")

        @app.get("/runs/{name}/topics", include_in_schema=False)
        async def topics_page(name: str) -> Response:
            return studio.html("run.html")

        @app.get("/compare", include_in_schema=False)
        async def compare_page() -> Response:
            return studio.html("compare.html")

        @app.get("/runs/{name}", include_in_schema=False)
        async def run_page(name: str) -> Response:
            around = studio.html("report.html")
            around.headers["content-security-policy"] = AROUND
            return around

        @app.get("/frame", include_in_schema=False)
        async def frame() -> Response:
            own = {"content-security-policy": RUN_POLICY, "x-frame-options": "SAMEORIGIN"}
            return HTMLResponse((PAGES / "frame.html").read_bytes(), headers=own)
