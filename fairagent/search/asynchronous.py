"""Work for programs that run on an event loop: awaited, or step by step; whoever stops waiting ends it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from typing import Any, TypeVar

from fairagent.storage.cancellation import Cancellation, cancelled_by

T = TypeVar("T")


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


async def said_by(work: Callable[[Callable[[Any], None]], T]) -> AsyncIterator[Any]:
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
