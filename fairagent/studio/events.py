"""What happens in a search, told to a browser while it happens: server-sent events."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable

from fairagent.clean import logger
from fairagent.errors import FairAgentError
from fairagent.report.record import Record
from fairagent.studio.desk import Told
from fairagent.studio.lanes import Lanes
from fairagent.studio.said import FAULT, cleaned

log = logger(__name__)

Work = Callable[[Told], Record]
"""What a lane does; it tells what happens, and returns what has come of it."""


class Gone(Exception):
    """Nobody listens any more; it ends the work of whoever tells something."""


def event(kind: str, record: Record) -> str:
    r"""One server-sent event, whose data is one line of JSON.

    >>> event("text", {"text": "a\nb"})
    'event: text\ndata: {"text": "a\\nb"}\n\n'
    """
    return f"event: {kind}\ndata: {json.dumps(cleaned(record), allow_nan=False)}\n\n"


def events(lanes: Lanes, work: Work) -> AsyncIterator[str]:
    """The events of `work`, the last of them its result or its error; raises Busy before the first.

    Where the listener goes, the work ends at the next thing that it tells.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Record]]()
    gone = threading.Event()

    def tell(kind: str, record: Record) -> None:
        if gone.is_set():
            raise Gone
        loop.call_soon_threadsafe(told.put_nowait, (kind, record))

    def working() -> None:
        try:
            tell("result", work(tell))
        except Gone:
            pass
        except FairAgentError as error:
            tell_last("error", {"error": str(error), "kind": type(error).__name__})
        except Exception:
            log.exception(FAULT)
            tell_last("error", {"error": FAULT, "kind": "Exception"})

    def tell_last(kind: str, record: Record) -> None:
        if not gone.is_set():
            tell(kind, record)

    lanes.submit(working)

    async def listening() -> AsyncIterator[str]:
        try:
            kind = ""
            while kind not in ("result", "error"):
                kind, record = await told.get()
                yield event(kind, record)
        finally:
            gone.set()

    return listening()
