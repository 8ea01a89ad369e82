"""Nothing that is installed counts as absent: each such name costs a walk through the syntax of every test."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

from lacking import absent, packages

from fairagent.storage.packages import module_of


def test_what_is_installed_is_not_absent() -> None:
    installed = set()
    for package in packages():
        try:
            distribution(package)
        except PackageNotFoundError:
            continue
        installed.add(module_of(package))
    assert packages()
    assert not absent().keys() & installed
