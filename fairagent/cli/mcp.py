"""`fairagent mcp`: search, answer and exposure as tools for other agents."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import closing

from fairagent.cli import options
from fairagent.storage.packages import expect_installed


def mcp(
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    settings: options.SettingsFile = None,
    assignments: options.Assignments = None,
    log_format: options.LogFormat = "text",
    log_texts: options.LogTexts = False,
) -> None:
    """Serve the tools search, answer and exposure to another agent, over the Model Context Protocol.

    It reads standard input and writes standard output; the agent that starts it ends it, by closing standard input or
    by a signal. All calls together share the settings' budget, and none can choose files or servers.
    """
    expect_installed("mcp", "fairagent mcp")
    options.logged_as(log_format, log_texts)
    from fairagent.studio.desk import Desk
    from fairagent.studio.lanes import Lanes
    from fairagent.studio.tools import mcp_server

    called = options.overrides(assignments, collection=collection, index=index)
    with closing(Desk(options.settings_file(settings), called)) as desk:
        desk.warm()
        # In a thread that nobody waits for, as those are that it starts: the one that reads standard input waits until
        # that ends, and would keep the process after a signal.
        ended: Future[None] = Future()

        def run() -> None:
            try:
                ended.set_result(mcp_server(desk, Lanes()).run())
            except BaseException as error:
                ended.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            ended.result()
        except* BrokenPipeError:
            # The other agent read no more, and has left.
            pass
