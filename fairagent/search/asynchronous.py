"""Searches for programs that run on an event loop: awaited, or step by step; whoever stops waiting ends the work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack

from fairagent.search.loop.base import OnStep, ignore_step
from fairagent.settings import OptionValues
from fairagent.storage.cancellation import Cancellation, cancelled_by
from fairagent.types import AnswerResult, Query, SearchResult, Step, Topic

if TYPE_CHECKING:
    from fairagent.answer.citing import CitedSoFar, OnCited

T = TypeVar("T")
AnyQuery = str | Query | Topic


class _Searching(Protocol):
    def search(self, query: AnyQuery, on_step: OnStep = ..., **options: Unpack[OptionValues]) -> SearchResult: ...

    def answer(
        self,
        query: AnyQuery,
        on_text: Callable[[str], None] | None = ...,
        on_step: OnStep = ...,
        on_cited: OnCited | None = ...,
        **options: Unpack[OptionValues],
    ) -> AnswerResult: ...


class Asynchronous:
    """`search` and `answer` for an event loop, each in a thread; a task that is cancelled ends it where it waits."""

    __slots__ = ()

    async def asearch(
        self: _Searching, query: AnyQuery, on_step: OnStep = ignore_step, **options: Unpack[OptionValues]
    ) -> SearchResult:
        """As `search`; `on_step` is called in the thread."""
        return await in_thread(lambda: self.search(query, on_step, **options))

    async def aanswer(
        self: _Searching,
        query: AnyQuery,
        on_text: Callable[[str], None] | None = None,
        on_step: OnStep = ignore_step,
        on_cited: OnCited | None = None,
        **options: Unpack[OptionValues],
    ) -> AnswerResult:
        """As `answer`; `on_text`, `on_step` and `on_cited` are called in the thread."""
        return await in_thread(lambda: self.answer(query, on_text, on_step, on_cited, **options))

    async def stream_search(
        self: _Searching, query: AnyQuery, **options: Unpack[OptionValues]
    ) -> AsyncIterator[Step | SearchResult]:
        """Each step of a search once it has been made, and at last its result."""
        async for one in _stream(lambda say: self.search(query, say, **options)):
            yield one

    async def stream_answer(
        self: _Searching, query: AnyQuery, **options: Unpack[OptionValues]
    ) -> AsyncIterator[Step | str | CitedSoFar | AnswerResult]:
        """Each step, each piece of the answer as it is written, what it cites so far, and at last the result."""
        async for one in _stream(lambda say: self.answer(query, say, say, say, **options)):
            yield one


async def in_thread(work: Callable[[], T], cancellation: Cancellation | None = None) -> T:
    """What `work` returns, done in a thread; when the task is cancelled, the work is as well."""
    # Here and not above: who searches without an event loop waits for none.
    import asyncio

    cancellation = cancellation or Cancellation()

    def working() -> T:
        with cancelled_by(cancellation):
            return work()

    future = asyncio.get_running_loop().run_in_executor(None, copy_context().run, working)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancellation.cancel()
        # How the thread ended is nobody's any more.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


async def _stream(work: Callable[[Callable[[Any], None]], T]) -> AsyncIterator[Any]:
    """What `work` says, then what it returns; raises what it raises. Whoever leaves early ends it."""
    import asyncio

    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def say(one: Any) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, one)

    task = asyncio.ensure_future(in_thread(lambda: work(say)))
    end = object()
    task.add_done_callback(lambda done: queue.put_nowait(end))
    try:
        while (one := await queue.get()) is not end:
            yield one
        yield await task
    finally:
        task.cancel()
