"""A script in a process of its own that is ended by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap


def interrupted(script: str, after: float = 0.3) -> tuple[str, str, int]:
    """What a script prints and complains of after it was interrupted, and its exit code.

    It prints "ready" first; so many seconds later it gets the signal, and must still be at it then.
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    environ = {**os.environ, "JAVA_HOME": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            try:
                process.wait(timeout=after)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                out, error = process.communicate(timeout=250)
                return out, error, process.returncode
            raise AssertionError(f"it ended of itself: {process.communicate()}")
        finally:
            process.kill()
