"""`PromptDesk`: templates shown, checked, filled, tried beside the shipped ones, and kept in the user's folder.

An experiment that compares the shipped templates with those of a folder, as `fairagent evaluate` takes it.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from fairagent.extend import (
    SPECIMENS,
    BackendUnavailable,
    BudgetExceeded,
    DataError,
    FairAgentError,
    Fault,
    ModelError,
    PlainRecord,
    PromptError,
    Prompts,
    Query,
    ReplyError,
    Settings,
    UsageError,
    estimate_tokens,
    flow,
    folder_of,
    meaning,
    nearest,
    resolve,
    shipped_folder,
    usage_record,
    variants,
    visible,
)
from fairagent.studio.calls import Draft, FilledDraft, SaveRequest, SearchRequest, TrialRequest
from fairagent.studio.desk import Desk, Listener, beside, nobody
from fairagent.studio.own_prompts import OwnPrompt, OwnPrompts
from fairagent.studio.tryout import (
    READERS,
    REFINERS,
    FilledTemplate,
    RecordingModel,
    TryoutReply,
    refining_part,
    tryout_of,
)

OF_ALL = {"collection", "index", "prompts", "n", "cache", "budget", "prices"}
"""Settings that are no systems', or that an experiment decides."""
LOOPS = ("choose_action", "group_keywords", "group_passages", "judge_relevance")
"""Templates that the loop asks with, as its settings say."""


def comparison(id: str, settings: Settings, folder: Path) -> PlainRecord:
    """The experiment's file, the commands that run it, and what stands in the way of its telling anything of `id`."""
    asking = settings
    if id in REFINERS:
        asking = resolve(settings, {"loop": "fair-qr", "refine": refining_part(id, settings)})
    values = {
        name: value for name, value in asking.model_dump(mode="json", exclude_unset=True).items() if name not in OF_ALL
    }
    if settings.index:
        values["index"] = str(Path(settings.index).absolute())
    lines = [
        f"name: {id}, shipped and edited",
        f"collection: {flow(str(Path(settings.collection).absolute()))}",
        "baseline: shipped",
        *(f"{name}: {flow(value)}" for name, value in _of_all(settings).items()),
        "settings:",
        *(f"  {name}: {flow(value)}" for name, value in values.items()),
        "systems:",
        "  shipped: {prompts: ''}",
        f"  edited: {flow({'prompts': str(folder.absolute())})}",
    ]
    file = f"compare-{id}.yaml"
    commands = [shlex.join(["fairagent", command, file]) for command in ("estimate", "evaluate")]
    return {"file": file, "yaml": "\n".join(lines) + "\n", "commands": commands, "note": _note(id, settings)}


def _of_all(settings: Settings) -> PlainRecord:
    given = settings.model_dump(mode="json", exclude_unset=True)
    return {name: given[name] for name in ("budget", "prices") if given.get(name)}


def _note(id: str, settings: Settings) -> str:
    """Why the rankings of such an experiment would all be the same; "" where they need not be."""
    if id in REFINERS or (id in LOOPS and id in settings.loop.templates):
        return ""
    if id in LOOPS:
        return (
            f"With these settings nothing asks with {id}: set what does under `settings` (docs/prompts_and_models.md)."
        )
    return (
        f"Rankings do not depend on {id}, so that this experiment shows no difference. Take a kind that asks with it "
        "(`fairagent evaluate --template KIND`), with the same two systems."
    )


FOLDER = Path("my-prompts")
"""Where templates are kept where neither the settings nor the command name a folder of the user's."""
SHIPPED, EDITED = "shipped", "edited"
MOST_SAID = 3
"""Faults that one sentence names."""
EXAMPLES = "filled with examples; with a query, from a search"
NO_MODEL = "trying a template needs a language model; start the studio with --set model.name=NAME"


class PromptDesk:
    """The templates of a desk; `folder` is the user's, None: that of the settings, else `my-prompts`."""

    def __init__(self, desk: Desk, folder: Path | None) -> None:
        used = desk.settings.prompts
        named = folder_of(used) if used not in variants() else None
        self._desk = desk
        self._own = OwnPrompts(folder or named or FOLDER)
        self._shipped = Prompts()

    def templates(self) -> PlainRecord:
        """All shipped templates, where one's own are kept, and what the server's own searches are asked with."""
        settings = self._desk.settings
        return {
            "folder": str(self._own.folder),
            "used": settings.prompts or SHIPPED,
            "model": settings.model.name or None,
            "templates": [
                {
                    "id": id,
                    "purpose": self._shipped[id].head.purpose,
                    "own": self._own.path(id).is_file(),
                    "refines": id in REFINERS,
                    "reads": id in READERS,
                }
                for id in self._shipped.ids
            ],
        }

    def template(self, id: str) -> PlainRecord:
        """A template's versions, the shipped one first, and its variables; UsageError for an unknown id."""
        head = self._shipped[self._known(id)].head
        optional = head.variables.optional
        return {
            "id": id,
            "purpose": head.purpose,
            "reply": head.reply,
            "versions": list(self._versions(id)),
            "own": self._own_record(id),
            "variables": [
                {
                    "name": name,
                    "required": name not in optional,
                    "meaning": meaning(id, name),
                    "example": json.dumps(SPECIMENS[id][name], ensure_ascii=False),
                }
                for name in (*head.variables.required, *optional)
            ],
        }

    def check(self, asked: FilledDraft) -> PlainRecord:
        """What is wrong with a draft, line by line; if nothing, the messages that it is filled to; and its changes."""
        prompts, faults = self._read(asked)
        shown = FilledTemplate((), "")
        if prompts:
            try:
                shown = self._fill(asked, prompts)
            except PromptError as error:
                faults = error.faults
            except FairAgentError as error:
                shown = FilledTemplate((), f"not filled: {error}")
        prompt = prompts[asked.id] if prompts else None
        return {
            "faults": [{"line": fault.line, "message": fault.message} for fault in faults],
            "hidden": [number for number, line in enumerate(asked.template.split("\n"), 1) if visible(line) != line],
            "about": shown.about,
            "messages": [{"role": role, "text": text} for role, text in shown.messages],
            "tokens": estimate_tokens(*(text for _, text in shown.messages)),
            "longest_reply": prompt and prompt.longest_reply(self._desk.settings.model.max_tokens),
            "diff": self._diff(asked),
        }

    def tried(self, asked: TrialRequest, told: Listener = nobody) -> PlainRecord:
        """What comes of the shipped template and of the draft, on each topic; `told` ("tried", ...) as it comes.

        A reply that cannot be used is an outcome of its template; where the model itself fails, `ended` says where and
        why, and what was tried before stays. Raises UsageError without a model, for a draft with faults, and for
        topics that there are not.
        """
        if not self._desk.settings.model.name:
            raise UsageError(NO_MODEL)
        sides = {SHIPPED: self._shipped, EDITED: self._sound(asked)}
        topics = asked.topics or (asked.topic,)
        text = "" if asked.topics else asked.query
        queries = [self._desk.query_of(SearchRequest(query=text, topic=topic)) for topic in dict.fromkeys(topics)]
        found: list[PlainRecord] = []
        ended = None
        for query, side in ((query, side) for query in queries for side in sides):
            where = {"topic": query.id, "query": query.text, "side": side}
            try:
                found.append(where | self._tried(asked, sides[side], query))
            except (ModelError, BudgetExceeded, BackendUnavailable) as error:
                ended = f"the {side} template on {query.id or repr(query.text)}: {error}"
                found.append(where | {"error": str(error)})
            told("tried", found[-1])
            if ended:
                break
        return {"tried": found, "of": len(queries) * len(sides), "ended": ended, "gaps": _gaps(found)}

    def save(self, asked: SaveRequest) -> PlainRecord:
        """Keep a draft in the user's folder; raises what `OwnPrompts.save` does, and UsageError for one with faults."""
        self._sound(asked)
        self._own.save(asked.id, asked.template, asked.was)
        return {"own": self._own_record(asked.id)}

    def comparison(self, id: str) -> PlainRecord:
        """An experiment that compares the shipped template with that of the user's folder."""
        self._known(id)
        saved = self._own.path(id).is_file()
        return {"saved": saved, **comparison(id, self._desk.settings, self._own.folder)}

    def _known(self, id: str) -> str:
        if id not in self._shipped.ids:
            raise UsageError(f"no prompt template {id!r}; {nearest(id, self._shipped.ids)}")
        return id

    def _versions(self, id: str) -> Iterable[PlainRecord]:
        for name in (SHIPPED, *variants()):
            path = (shipped_folder() / "variants" / name if name != SHIPPED else shipped_folder()) / f"{id}.j2"
            if path.is_file():
                yield {"name": name, "template": path.read_text(encoding="utf-8")}

    def _own_record(self, id: str) -> PlainRecord:
        """The user's own version: its text (None: there is none), its SHA-256, and why it cannot be read."""
        path = self._own.path(id)
        try:
            written = self._own.read(id)
        except UsageError as error:
            return {"file": str(path), "template": None, "sha256": "", "fault": str(error)}
        return {"file": str(path), "template": _text(written), "sha256": written.sha256, "fault": None}

    def _read(self, draft: Draft) -> tuple[Prompts | None, Sequence[Fault]]:
        try:
            return Prompts(drafts={self._known(draft.id): draft.template}), ()
        except PromptError as error:
            return None, error.faults

    def _sound(self, draft: Draft) -> Prompts:
        prompts, faults = self._read(draft)
        if prompts is None:
            listed = "; ".join(f"line {fault.line or 1}: {fault.message}" for fault in faults[:MOST_SAID])
            raise UsageError(f"the template has {len(faults)} fault{'s' * (len(faults) != 1)}: {listed}")
        return prompts

    def _fill(self, asked: FilledDraft, prompts: Prompts) -> FilledTemplate:
        if asked.query.strip() or asked.topic:
            query = self._desk.query_of(SearchRequest(query=asked.query, topic=asked.topic))
            return tryout_of(asked.id, prompts, self._desk.site, query, asked.group, asked.documents).show()
        return FilledTemplate(
            prompts.render(asked.id, **SPECIMENS[asked.id]), "filled with examples; with a query, from a search"
        )

    def _diff(self, draft: Draft) -> list[str]:
        before = self._shipped[draft.id].path.read_text(encoding="utf-8").splitlines()
        return list(
            difflib.unified_diff(before, draft.template.splitlines(), f"shipped/{draft.id}.j2", "edited", lineterm="")
        )

    def _tried(self, asked: TrialRequest, prompts: Prompts, query: Query) -> PlainRecord:
        """One template on one query; raises where the model, or what it takes to ask it, fails."""
        model = RecordingModel(self._desk.site.model)
        try:
            trying = tryout_of(asked.id, prompts, self._desk.site, query, asked.group, asked.documents)
            shown = trying.show()
            if not shown.messages:
                return {"about": shown.about, "replies": []}
            reply = trying.send(model)
        except (ReplyError, DataError) as error:
            return {"about": "", "replies": model.texts, "error": str(error)}
        if model.failed:
            raise model.failed
        return {"about": shown.about, **_reply_record(reply)}


def _text(written: OwnPrompt) -> str | None:
    return written.text if written.sha256 else None


def _reply_record(reply: TryoutReply) -> PlainRecord:
    record: PlainRecord = {
        "replies": list(reply.texts),
        "rows": [row._asdict() for row in reply.rows],
        "end": reply.end,
        "usage": usage_record(reply.usage.whole),
        "cached": bool(reply.usage.saved),
    }
    if reply.result:
        trace = reply.result.trace
        ranks = {id: rank for rank, id in enumerate(trace.steps[0].ranking.ids, start=1)}
        record["gap"] = {"before": trace.steps[0].gap, "after": trace.gap}
        record["hits"] = [beside(hit, "engine_rank", ranks) for hit in reply.result.hits]
    return record


def _gaps(found: Iterable[PlainRecord]) -> PlainRecord | None:
    """The mean gaps over the topics on which both were tried, and on how many the draft's is lower or higher."""
    gaps: dict[Any, dict[str, float]] = {}
    for one in found:
        if "gap" in one:
            gaps.setdefault((one["topic"], one["query"]), {})[one["side"]] = one["gap"]["after"]
    pairs = [(one[SHIPPED], one[EDITED]) for one in gaps.values() if len(one) == 2]
    if not pairs:
        return None
    return {
        "topics": len(pairs),
        SHIPPED: fmean(shipped for shipped, _ in pairs),
        EDITED: fmean(edited for _, edited in pairs),
        "lower": sum(edited < shipped for shipped, edited in pairs),
        "higher": sum(edited > shipped for shipped, edited in pairs),
    }
