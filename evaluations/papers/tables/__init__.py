"""Which experiment file holds which published table, and where in it each number stands."""

from __future__ import annotations

from functools import cache

from .debias_rag import debias_rag
from .fair_qr import fair_qr
from .fair_rag import fair_rag
from .fairft import fairft, trainings
from .file import Body, File
from .small import ORDER, Small, small
from .utility import utility

__all__ = ["files", "smalls", "trainings", "twins"]


@cache
def files() -> tuple[File, ...]:
    """All of them, paper by paper."""
    return (*fair_rag(), *utility(), *fairft(), *fair_qr(), *debias_rag())


@cache
def smalls() -> dict[str, Small]:
    """Name of a table's file -> its small twin."""
    return {file.name: small(file) for file in files()}


@cache
def twins() -> dict[str, tuple[Body, tuple[str, ...]]]:
    """Name -> the keys of a small file and the tables' files that it is of, the cheapest kind first.

    Tables share one where their twins are equal but for systems that the other lacks.
    """
    found: list[tuple[Body, list[str]]] = []
    for name, twin in sorted(smalls().items(), key=lambda pair: -len(pair[1].body["systems"])):
        of = next((of for body, of in found if _holds(body, twin.body)), None)
        if of is None:
            found.append((twin.body, [name]))
        else:
            of.append(name)
    found.sort(key=lambda pair: ORDER.index(pair[0].get("kind", "")))
    return {of[0].replace("/", "_"): (body, tuple(of)) for body, of in found}


def _holds(larger: Body, smaller: Body) -> bool:
    """Whether the second's keys are the first's, but for systems that it lacks."""
    same = {**larger, "systems": 0} == {**smaller, "systems": 0}
    return same and smaller["systems"].items() <= larger["systems"].items()
