"""Add-ons at fault: each is refused in one sentence that names the package and says what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from running import Install

from fairagent.extend import EXTEND_VERSION, Part
from fairagent.settings.plugins import load, load_plugins

GROUP = "fairagent.rerankers"
GOOD = "from fairagent.extend import Part\n\nclass Shuffle(Part):\n    kind: str = 'shuffle'\n"


@pytest.fixture
def shuffling(install: Install) -> Callable[..., None]:
    """Installs a package with a re-ranker: its name, its module's code, and the `fairagent.extend` that it needs."""

    def shuffling(package: str, code: str, version: int | str = "") -> None:
        declared = {"fairagent.extend": {str(version): package}} if version else {}
        install(package, {GROUP: {"shuffle": f"{package}:Shuffle"}, **declared}, **{f"{package}.py": code})

    return shuffling


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
def test_an_add_on_at_fault(shuffling: Install, code: str, version: str, what: str, remedy: str) -> None:
    shuffling("shuffling", code, version)
    with pytest.raises(ValueError, match="re-ranker 'shuffle' of shuffling") as caught:
        shuffle()
    assert what in str(caught.value)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["", EXTEND_VERSION, "any"])
def test_a_version_that_is_ours_or_none(shuffling: Install, version: str) -> None:
    shuffling(f"shuffling{version}", GOOD, version)
    assert issubclass(shuffle(), Part)
    assert "shuffle" in load_plugins("re-ranker", GROUP, Part, "a part")


def test_a_name_that_two_packages_bring(shuffling: Install) -> None:
    shuffling("one", GOOD)
    shuffling("other", GOOD)
    with pytest.raises(ValueError, match=r"claimed by o.* \(o.*:Shuffle\) and o.*; uninstall all but one"):
        shuffle()
