"""What all tests share: the outside data (skipped where absent), no way out, and Hypothesis without chance or clock."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from running import Install

from fairagent.retrieve import fused
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.settings.plugins import all_entry_points

SETTLED = fused.AutoConfig.resolved
SHARED = Path(__file__).resolve().parents[2] / "shared"
VENDORED = Path(__file__).resolve().parent / "golden" / "files"
GOLDEN = Path(os.environ.get("FAIRAGENT_GOLDEN") or VENDORED).resolve()
"""Whose rows tests/golden judges."""
SEARCH_SERVER = os.environ.get("FAIRAGENT_OPENSEARCH_URL", "")
"""A real OpenSearch or Elasticsearch on this machine, which the tests of tests/retrieve/stores then use too."""

# The same examples on every machine, however slow it is, and nothing left in the working folder.
settings.register_profile("fairagent", derandomize=True, deadline=None, database=None)
settings.load_profile("fairagent")


# A shell starts what runs in the background deaf to Ctrl-C, and so would be the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real collections; a test that needs it skips without it."""
    if not SHARED.is_dir():
        pytest.skip(f"the data are not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of golden files in this repository."""
    return VENDORED


ASKED_FOR = {
    "llm": "asks a real language model; `make test-llm` gets a small one and runs it",
    "night": "takes minutes to an hour; `make night` runs it",
    "slow": "takes 1.5 CPU seconds or more; `make test-slow` runs it",
}
"""Tests with these marks run where `-m` names the mark."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that take long, or ask a real model, run where they are asked for."""
    for item in items:
        mark = next((mark for mark in ASKED_FOR if item.get_closest_marker(mark)), None)
        if mark and mark not in str(config.option.markexpr):
            item.add_marker(pytest.mark.skip(reason=ASKED_FOR[mark]))


@pytest.fixture(scope="session", autouse=True)
def no_setting_is_called_so() -> Iterator[None]:
    """What FAIRAGENT_ names are settings: the golden folder's and the search server's are none of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIRAGENT_GOLDEN", raising=False)
        patch.delenv("FAIRAGENT_OPENSEARCH_URL", raising=False)
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was skipped and how to get it, and how many golden cases hold: of each file, and of all."""
    skipped = Counter(str(one.longrepr[2]) for one in terminalreporter.stats.get("skipped", []))
    if skipped:
        reasons = "; ".join(f"{count} {reason.removeprefix('Skipped: ')}" for reason, count in skipped.most_common())
        terminalreporter.section("skipped")
        terminalreporter.write_line(reasons)
    reports = [one for outcome in ("passed", "failed") for one in terminalreporter.stats.get(outcome, [])]
    counted = sorted(
        dict(one.user_properties)["golden"]
        for one in reports
        if one.when == "call" and "golden" in dict(one.user_properties)
    )
    if not counted:
        return
    terminalreporter.section("golden cases")
    for name, held, rows, differing in [*counted, ("all", *(sum(row[i] for row in counted) for i in (1, 2, 3)))]:
        stated = f" ({differing} as docs/reference/differences.md states)" if differing else ""
        terminalreporter.write_line(f"{held:,} of {rows:,}  {name}{stated}")


@pytest.fixture(scope="session", autouse=True)
def without_vectors() -> Iterator[None]:
    """The default engine is BM25 alone, as where there are no vectors: these are not made for every test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused.AutoConfig, "resolved", lambda self, site, preparing=False: BM25Config())
        yield


@pytest.fixture(autouse=True)
def with_vectors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests marked `vectors` have it as it is."""
    if "vectors" in request.keywords:
        monkeypatch.setattr(fused.AutoConfig, "resolved", SETTLED)


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment without the user's settings, key and server; the loopback interface needs no proxy."""
    for name in list(os.environ):
        if name.startswith(("FAIRAGENT_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package until the test ends: its entry points (group -> name -> value), and its files by name."""
    before = set(sys.modules)

    def install(package: str, points: Mapping[str, Mapping[str, str]], **files: str) -> Path:
        folder = tmp_path / "packages" / package
        about = folder / f"{package.replace('-', '_')}-1.0.dist-info"
        about.mkdir(parents=True)
        lines = [line for group, named in points.items() for line in (f"[{group}]", *map(" = ".join, named.items()))]
        (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(folder)
        all_entry_points.cache_clear()
        return folder

    yield install
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    all_entry_points.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def loopback_alone() -> Iterator[None]:
    """No connection leaves this machine: whoever tries fails his test, whatever errors he expects."""

    def checked(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
        def connecting(used: socket.socket, address: Any) -> Any:
            # A datagram socket that "connects" (some ask for their own address so) sends nothing.
            if used.type == socket.SOCK_STREAM and used.family != socket.AF_UNIX and not _here(str(address[0])):
                # Whoever catches only errors would leave it open, and some later test would be blamed.
                used.close()
                pytest.fail(f"a test tried to reach {address[0]}")
            return connect(used, address)

        return connecting

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, checked(getattr(socket.socket, name)))
        yield


def _here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
