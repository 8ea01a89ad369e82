"""Add-ons at fault: each is refused in one sentence that names the package and says what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairagent.extend import EXTEND_VERSION, Part
from fairagent.settings.plugins import all_entry_points, load, load_plugins

Install = Callable[..., None]
GROUP = "fairagent.rerankers"
GOOD = "from fairagent.extend import Part\n\nclass Shuffle(Part):\n    kind: str = 'shuffle'\n"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package: its name, its module's code, and the version of `fairagent.extend` that it declares."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(package: str, code: str, version: int | str = "", value: str = "") -> None:
        about = tmp_path / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
        declared = f"[fairagent.extend]\n{version} = {package}\n" if version else ""
        entries = f"[{GROUP}]\nshuffle = {value or f'{package}:Shuffle'}\n{declared}"
        (about / "entry_points.txt").write_text(entries, encoding="utf-8")
        (tmp_path / f"{package}.py").write_text(code, encoding="utf-8")
        all_entry_points.cache_clear()
        sys.modules.pop(package, None)

    yield install
    all_entry_points.cache_clear()


def shuffle() -> object:
    return load("re-ranker", "shuffle", {}, GROUP, Part, "fairagent.extend.Part")


@pytest.mark.parametrize(
    ("code", "version", "what", "remedy"),
    [
        ("import no_such_package", "", "ModuleNotFoundError", "install what it needs, or uninstall"),
        ("from fairagent.extend import NoSuchName", "", "NoSuchName", "install what it needs, or uninstall"),
        ("1 / 0", "", "ZeroDivisionError", "mend it, or uninstall"),
        ("", "", "AttributeError", "mend it, or uninstall"),
        ("Shuffle = dict", "", "is no fairagent.extend.Part", ""),
        # It is not even imported.
        ("1 / 0", EXTEND_VERSION + 1, f"needs version {EXTEND_VERSION + 1} of fairagent.extend", "update fairagent"),
    ],
)
def test_an_add_on_at_fault(install: Install, code: str, version: str, what: str, remedy: str) -> None:
    install("shuffling", code, version)
    with pytest.raises(ValueError, match="re-ranker 'shuffle' of shuffling") as caught:
        shuffle()
    assert what in str(caught.value)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["", EXTEND_VERSION, "any"])
def test_a_version_that_is_ours_or_none(install: Install, version: str) -> None:
    install(f"shuffling{version}", GOOD, version)
    assert issubclass(shuffle(), Part)
    assert "shuffle" in load_plugins("re-ranker", GROUP, Part, "a part")


def test_a_name_that_two_packages_bring(install: Install) -> None:
    install("one", GOOD)
    install("other", GOOD)
    with pytest.raises(ValueError, match=r"claimed by o.* \(o.*:Shuffle\) and o.*; uninstall all but one"):
        shuffle()
