"""The page of prompts, and its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from fastapi import FastAPI, Request
from starlette.responses import Response

from fairagent.extend import PlainRecord
from fairagent.studio.calls import FilledDraft, SaveRequest, TrialRequest
from fairagent.studio.desk import Listener
from fairagent.studio.lanes import Lanes
from fairagent.studio.prompt_desk import PromptDesk

WAITING = 50
"""Checks that may wait."""

Answered = Callable[[Request, Callable[[Listener], PlainRecord]], Awaitable[Response]]
"""Does work in a lane, and answers with its events or with its record."""


def add_prompts(app: FastAPI, desk: PromptDesk, told: Answered, reply: Callable[[PlainRecord], Response]) -> None:
    """Add the calls of the page; `told` does what may take a model's time, `reply` sends a record."""
    # Who types is not to wait for searches, and a template that takes its second holds up no search.
    lane = Lanes(lanes=1, waiting=WAITING)

    async def done(work: Callable[[], PlainRecord]) -> Response:
        return reply(await asyncio.wrap_future(lane.submit(work)))

    @app.get("/api/prompts", summary="The prompt templates, and the folder of one's own")
    async def templates() -> Response:
        return await done(desk.templates)

    @app.get("/api/prompts/{id}", summary="The versions of a template, and what its variables are")
    async def template(id: str) -> Response:
        return await done(partial(desk.template, id))

    @app.post("/api/prompts/check", summary="What is wrong with a template, and the prompt that it is filled to")
    async def check(asked: FilledDraft) -> Response:
        return await done(partial(desk.check, asked))

    @app.post("/api/prompts/try", summary="What a model replies to the shipped template and to this one")
    async def tried(asked: TrialRequest, request: Request) -> Response:
        """Events with `Accept: text/event-stream`: `tried` for each reply, then `result` or `error`.

        Where the model fails, `ended` of the result says where; what was tried before is there.
        """
        return await told(request, partial(desk.tried, asked))

    @app.post("/api/prompts/save", summary="Keep a template in the folder of one's own")
    async def save(asked: SaveRequest) -> Response:
        """409 where its file is not as it was when it was read: nothing is written then."""
        return await done(partial(desk.save, asked))

    @app.get("/api/prompts/{id}/comparison", summary="An experiment that compares a template with the shipped one")
    async def compared(id: str) -> Response:
        return await done(partial(desk.comparison, id))
