"""The Prompts page: templates shown, checked, filled, tried against the shipped ones, saved in the user's folder."""

from __future__ import annotations

import difflib
import hashlib
import json
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from fairagent.errors import (
    BackendUnavailable,
    BudgetExceeded,
    DataError,
    FairAgentError,
    Fault,
    ModelError,
    PromptError,
    ReplyError,
    UsageError,
)
from fairagent.evaluate.judging import judged_value
from fairagent.llm import Message
from fairagent.llm.prompts import Prompts, check_prompts, folder_of, shipped_folder, variants
from fairagent.llm.prompts.template import LARGEST_TEMPLATE, meaning, specimens
from fairagent.llm.request import estimate_tokens
from fairagent.measures import NDCG
from fairagent.report.record import PlainRecord, hit_record, usage_record
from fairagent.search.refine import REFINERS
from fairagent.settings import Settings
from fairagent.settings.faults import no_such
from fairagent.storage.files import write_whole
from fairagent.storage.readers import Malformed, as_text, file_bytes
from fairagent.studio.app import Studio, StudioPage
from fairagent.studio.desk import Desk, Draft, FilledDraft, SaveRequest, SearchRequest, TrialRequest
from fairagent.studio.lanes import FileChanged, Listener, ignore_event
from fairagent.studio.tryout import READERS, RecordingModel, tryout_of
from fairagent.types import Query
from fairagent.types.clean import LONGEST_QUERY, visible
from fairagent.types.common import counted

CHECKS_WAITING = 50
FOLDER = Path("my-prompts")
"""The user's folder of templates where neither the settings nor the command name one."""
SHIPPED, AGAINST, EDITED = "shipped", "against", "edited"
"""What the sides of a trial are called: the first is the shipped template, or the text that a request names."""
LOOPS = ("group_keywords", "group_passages", "judge_relevance", "steer_search")
"""Templates that the loop asks with, as its settings say."""
Pair = tuple[PlainRecord, PlainRecord]


class PromptPage(StudioPage):
    """The page and its calls."""

    links = (("/prompts", "Prompts"),)
    position = 1
    assets = ("prompts.js", "draw-prompts.js", "editor.js", "prompts.css")

    def add(self, app: FastAPI, studio: Studio) -> None:
        desk = PromptDesk(studio.desk, studio.prompts)
        # Who types is not to wait for searches, and a template that takes its second holds up no search.
        lane = studio.lanes.beside(1, CHECKS_WAITING)

        @app.get("/api/prompts", summary="The prompt templates, and the folder of one's own")
        async def templates() -> Response:
            return await studio.json(desk.templates, lane)

        @app.get("/api/prompts/{id}", summary="The versions of a template, and what its variables are")
        async def template(id: str) -> Response:
            return await studio.json(partial(desk.template, id), lane)

        @app.post("/api/prompts/check", summary="What is wrong with a template, and the prompt that it is filled to")
        async def check(body: FilledDraft) -> Response:
            return await studio.json(partial(desk.check, body), lane)

        @app.post("/api/prompts/try", summary="What a model replies to two versions of a template")
        async def trial(body: TrialRequest, request: Request) -> Response:
            """Events with `Accept: text/event-stream`: `tried` for each reply, then `result` or `error`.

            Where the model fails, `ended` of the result says where; what was tried before is there.
            """
            return await studio.reply(request, partial(desk.trial, body), studio.models)

        @app.post("/api/prompts/save", summary="Save a template in the folder of one's own")
        async def save(body: SaveRequest) -> Response:
            """409 where its file is not as it was when it was read: nothing is written then."""
            return await studio.json(partial(desk.save, body), lane)

        @app.get("/prompts", include_in_schema=False)
        async def page() -> Response:
            return studio.html("prompts.html", longest=LONGEST_QUERY)


class PromptDesk:
    """The templates of a desk; `folder` is the user's, None: that of the settings, else `my-prompts`.

    It need not exist yet. Nothing is written but its own files: no shipped template, and none that a link leads to.
    """

    def __init__(self, desk: Desk, folder: Path | None) -> None:
        used = desk.settings.prompts
        named = folder_of(used) if used not in variants() else None
        self._desk = desk
        self.folder = folder or named or FOLDER
        self._lock = threading.Lock()
        self._shipped = Prompts()

    def templates(self) -> PlainRecord:
        """All shipped templates, the user's folder, and what the server's own searches are prompted with."""
        settings = self._desk.settings
        return {
            "folder": str(self.folder),
            "used": settings.prompts or SHIPPED,
            "model": settings.model.name or None,
            "templates": [
                {
                    "id": id,
                    "purpose": self._shipped[id].head.purpose,
                    "own": self._path(id).is_file(),
                    "refines": id in REFINERS,
                    "reads": id in READERS,
                }
                for id in self._shipped.ids
            ],
        }

    def template(self, id: str) -> PlainRecord:
        """A template's versions, the shipped one first, and its variables; UsageError for an unknown id."""
        head = self._shipped[self._known(id)].head
        files = {SHIPPED: self._shipped[id].path}
        files |= {name: shipped_folder() / "variants" / name / f"{id}.j2" for name in variants()}
        return {
            "id": id,
            "purpose": head.purpose,
            "reply": head.reply,
            "versions": [
                {"name": name, "template": file.read_text(encoding="utf-8")}
                for name, file in files.items()
                if file.is_file()
            ],
            "own": self._own_record(id),
            "variables": [
                {
                    "name": name,
                    "required": name not in head.variables.optional,
                    "meaning": meaning(id, name),
                    "example": json.dumps(specimens()[id][name], ensure_ascii=False),
                }
                for name in (*head.variables.required, *head.variables.optional)
            ],
        }

    def check(self, draft: FilledDraft) -> PlainRecord:
        """What is wrong with a draft, line by line; if nothing, the messages that it is filled to; and its changes."""
        prompts, faults = self._read(draft)
        messages: Sequence[Message] = ()
        about = ""
        if prompts:
            try:
                if draft.query.strip() or draft.topic:
                    query = self._desk.query_of(SearchRequest(query=draft.query, topic=draft.topic))
                    tryout = tryout_of(draft.id, prompts, self._desk.site, query, draft.group, draft.documents)
                    messages, about = tryout.messages, tryout.about
                else:
                    messages = prompts.render(draft.id, **specimens()[draft.id])
                    about = "filled with examples; with a query, from a search"
            except PromptError as error:
                faults = error.faults
            except FairAgentError as error:
                about = f"not filled: {error}"
        before = self._shipped[draft.id].path.read_text(encoding="utf-8").splitlines()
        after, names = draft.template.splitlines(), (f"shipped/{draft.id}.j2", "edited")
        return {
            "faults": [{"line": fault.line, "message": fault.message} for fault in faults],
            "hidden": [number for number, line in enumerate(draft.template.split("\n"), 1) if visible(line) != line],
            "about": about,
            "messages": [{"role": role, "text": text} for role, text in messages],
            "tokens": estimate_tokens(*(text for _, text in messages)),
            "longest_reply": prompts and prompts[draft.id].longest_reply(self._desk.settings.model.max_tokens),
            "diff": list(difflib.unified_diff(before, after, *names, lineterm="")),
        }

    def trial(self, draft: TrialRequest, listen: Listener = ignore_event) -> PlainRecord:
        """The replies to two versions of a template on each topic; an event ("tried", ...) for each."""
        if not self._desk.settings.model.name:
            raise UsageError("trying a template needs a language model; start the studio with --set model.name=NAME")
        first = self._sound(Draft(id=draft.id, template=draft.against)) if draft.against else self._shipped
        sides = {AGAINST if draft.against else SHIPPED: first, EDITED: self._sound(draft)}
        text = "" if draft.topics else draft.query
        topics = dict.fromkeys(draft.topics or (draft.topic,))
        queries = [self._desk.query_of(SearchRequest(query=text, topic=topic)) for topic in topics]
        trials: list[PlainRecord] = []
        ended = None
        for query, side in ((query, side) for query in queries for side in sides):
            trial = {"topic": query.id, "query": query.text, "side": side}
            try:
                trial |= self._trial(draft, sides[side], query)
            except (ModelError, BudgetExceeded, BackendUnavailable) as error:
                ended = f"the {side} template on {query.id or repr(query.text)}: {error}"
                trial["error"] = str(error)
            trials.append(trial)
            listen("tried", trial)
            if ended:
                break
        pairs, names = pairs_of(trials, list(sides)), list(sides)
        return {
            "tried": trials,
            "of": len(queries) * len(sides),
            "ended": ended,
            **means_of(pairs, names),
            "no_effect": no_effect(pairs),
            "unused": unused(draft.id, draft.id in REFINERS, self._desk.settings),
        }

    def save(self, draft: SaveRequest) -> PlainRecord:
        """Save a draft in the user's folder, if its file's SHA-256 is still `was`; UsageError for one with faults."""
        self._sound(draft)
        path = self._path(draft.id)
        if self.folder.resolve().is_relative_to(shipped_folder().resolve()):
            raise UsageError(f"{self.folder} is that of the shipped templates; name another with --prompts")
        if path.is_symlink():
            raise UsageError(f"{path} is a link to another file; nothing was written")
        with self._lock:
            own = self._own_record(draft.id)
            if own["fault"]:
                raise UsageError(own["fault"])
            if own["sha256"] != draft.was:
                raise FileChanged(f"{path} was changed meanwhile; nothing was written, and your text is still here")
            write_whole(path, draft.template)
        return {"own": self._own_record(draft.id)}

    def _known(self, id: str) -> str:
        if id not in self._shipped.ids:
            raise UsageError(no_such("prompt template", id, self._shipped.ids))
        return id

    def _path(self, id: str) -> Path:
        return self.folder / f"{id}.j2"

    def _own_record(self, id: str) -> PlainRecord:
        """The user's own version: its text (None: there is none), its SHA-256, and why it cannot be read."""
        path = self._path(id)
        record: PlainRecord = {"file": str(path), "template": None, "sha256": "", "fault": None}
        try:
            content = file_bytes(path, LARGEST_TEMPLATE, within=self.folder)
            return {**record, "template": as_text(content), "sha256": hashlib.sha256(content).hexdigest()}
        except FileNotFoundError:
            return record
        except (OSError, Malformed) as error:
            return {**record, "fault": f"{path} cannot be read as a template ({error}); move it away, or mend it"}

    def _read(self, draft: Draft) -> tuple[Prompts | None, Sequence[Fault]]:
        checked = check_prompts(drafts={self._known(draft.id): draft.template})
        return checked.prompts, checked.faults

    def _sound(self, draft: Draft) -> Prompts:
        prompts, faults = self._read(draft)
        if prompts is None:
            listed = "; ".join(f"line {fault.line or 1}: {fault.message}" for fault in faults[:3])
            raise UsageError(f"the template has {len(faults)} error{'s' * (len(faults) != 1)}: {listed}")
        return prompts

    def _trial(self, draft: TrialRequest, prompts: Prompts, query: Query) -> PlainRecord:
        """One template on one query; raises where the model, or what it takes to ask it, fails."""
        model = RecordingModel(self._desk.site.model)
        try:
            tryout = tryout_of(draft.id, prompts, self._desk.site, query, draft.group, draft.documents)
            if not tryout.messages:
                return {"about": tryout.about, "replies": []}
            reply = tryout.send(model)
        except (ReplyError, DataError) as error:
            return {"about": "", "replies": model.texts, "error": str(error)}
        if model.failed:
            raise model.failed
        record: PlainRecord = {
            "about": tryout.about,
            "prompt": hashlib.sha256(repr(tryout.messages).encode()).hexdigest(),
            "replies": list(reply.texts),
            "rows": [row._asdict() for row in reply.rows],
            "end": reply.end,
            "usage": usage_record(reply.usage.whole),
            "cached": bool(reply.usage.saved),
        }
        if reply.result:
            trace = reply.result.trace
            first, n = trace.steps[0].ranking, self._desk.settings.n
            ranks = {id: rank for rank, id in enumerate(first.ids, start=1)}
            record["gap"] = {"before": trace.steps[0].gap, "after": trace.gap}
            record["kept"] = any(step.accepted for step in trace.steps[1:])
            record["hits"] = [{**hit_record(hit), "engine_rank": ranks.get(hit.id)} for hit in reply.result.hits]
            # None where nobody has judged what it asks for.
            topic, collection = self._desk.collection.topics.get(query.id), self._desk.collection
            lists = (first, reply.result.ranking) if topic is not None and topic.query == query.text else ()
            values = [judged_value(NDCG(n), collection, query.id, one.top(n).ids) for one in lists]
            judged = values and None not in values
            record["ndcg"] = {"measure": f"nDCG@{n}", "before": values[0], "after": values[1]} if judged else None
        return record


def pairs_of(trials: Sequence[PlainRecord], sides: Sequence[str]) -> list[Pair]:
    """The trials of the first and of the second of the `sides` on each topic on which both came to something."""
    topics: dict[Any, dict[str, PlainRecord]] = {}
    for trial in trials:
        if "error" not in trial:
            topics.setdefault((trial["topic"], trial["query"]), {})[trial["side"]] = trial
    return [(one[sides[0]], one[sides[1]]) for one in topics.values() if len(one) == 2]


def means_of(pairs: Sequence[Pair], sides: Sequence[str]) -> dict[str, PlainRecord | None]:
    """The mean gaps and nDCG of both sides; None without a ranking, and where no topic is judged.

    Of the gaps also on how many topics the second's is lower or higher, of nDCG also that of the first list.
    """

    def of(key: str, more: PlainRecord, pairs: list[Pair]) -> PlainRecord:
        means = {side: fmean(pair[place][key]["after"] for pair in pairs) for place, side in enumerate(sides)}
        return {"topics": len(pairs), **more, **means}

    gaps, ndcg = ([pair for pair in pairs if all(one.get(key) for one in pair)] for key in ("gap", "ndcg"))
    rose = [two["gap"]["after"] - one["gap"]["after"] for one, two in gaps]
    lower_higher = {"lower": sum(one < 0 for one in rose), "higher": sum(one > 0 for one in rose)}
    before = {"before": fmean(one["ndcg"]["before"] for one, _ in ndcg)} if ndcg else {}
    measure = {"measure": ndcg[0][0]["ndcg"]["measure"]} if ndcg else {}
    return {
        "gaps": of("gap", lower_higher, gaps) if gaps else None,
        "ndcg": of("ndcg", measure | before, ndcg) if ndcg else None,
    }


def no_effect(pairs: Sequence[Pair]) -> str:
    """That the second version changes nothing against the first, in a sentence; "" where it changes something.

    Where there are rankings these are compared, and else the replies.
    """

    def equal(key: str) -> bool:
        return all(left.get(key) == right.get(key) for left, right in pairs)

    ranked = any("hits" in trial for pair in pairs for trial in pair)
    lists = [[[hit["id"] for hit in trial.get("hits", ())] for trial in pair] for pair in pairs]
    if not pairs or (any(left != right for left, right in lists) if ranked else not equal("replies")):
        return ""
    on = "on this query" if len(pairs) == 1 else f"on all {counted(len(pairs), 'topic')}"
    if not any(trial["replies"] for pair in pairs for trial in pair):
        return f"This text changes nothing: no model was called {on} ({pairs[0][0]['about']})."
    why = "both prompts are equal" if equal("prompt") else "the replies are equal"
    if ranked and not equal("prompt") and not equal("replies"):
        why = "other replies come to the same documents in the same order, or the loop takes none of them"
    return f"This text changes nothing {on}: {why}."


def unused(id: str, refines: bool, settings: Settings) -> str:
    """Why searches with these settings do not depend on a template, though a trial asks with it; "" where they do."""
    try:
        if id in settings.loop.asks_with(settings):
            return ""
    except UsageError:
        return ""
    if refines or id in LOOPS:
        how = f"loop: {settings.loop}, refine: {settings.refine}" if refines else f"loop: {settings.loop}"
        return f"Searches with this studio's settings ({how}) do not ask with {id}: saving it changes none of them."
    return f"Rankings do not depend on {id}, which asks for something else."
