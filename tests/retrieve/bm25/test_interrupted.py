"""The index in a process of its own: nothing is printed, and an interruption is one wherever it arrives."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")]

MADE = """
    import sys
    from pathlib import Path
    from fairagent.retrieve.bm25.search import BM25Retriever
    from fairagent.retrieve.bm25.build import build_index
    from fairagent.types import Document, Query

    class Made:
        name = "made"
        made = [Document("d1", "lawyers in court"), Document("d2", "a quiet harbor")]
        def documents(self):
            return iter(self.made)
        def fingerprint(self):
            return "as made"

    build_index(Made(), Path(FOLDER))
    retriever = BM25Retriever(Path(FOLDER), Made())
"""


AGAIN_AND_AGAIN = """
    import random, signal
    from fairagent.retrieve.light import build_light

    class Many(Made):
        made = [Document(f"d{n}", f"lawyers in court word{n} " * 9) for n in range(400)]

    def interrupt(number, frame):
        raise KeyboardInterrupt

    # What is imported meanwhile is there: an interruption in `exec` of a text, as of a dataclass, ends Python as
    # interrupted when all is done, though it was caught.
    build_light(retriever, Path(FOLDER + "2-light-before"))
    signal.signal(signal.SIGALRM, interrupt)
    # Of an interruption that arrives in somebody's __del__ Python prints a line, and nobody else hears of it.
    sys.unraisablehook = lambda ignored: None
    chance, folder, interrupted = random.Random(28), Path(FOLDER + "2"), 0
    for _ in range(60):
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.001, 0.12))
            build_index(Many(), folder)
            build_light(BM25Retriever(folder), Path(FOLDER + "2-light"))
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted += 1
    build_index(Many(), folder)
    print(interrupted > 10, BM25Retriever(folder, Many()).search(Query("word7"), 3).ids)
"""


def test_an_interruption_is_one_wherever_it_comes(tmp_path):
    """Also while an array is written, of which numpy makes a TypeError; and what is built afterwards is whole."""
    script = (MADE + AGAIN_AND_AGAIN).replace("FOLDER", repr(str(tmp_path / "index")))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True ('d7',)\n", "", 0)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("index2-light")) == [
        "index",
        "index2",
    ]
