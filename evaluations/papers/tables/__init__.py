"""Which experiment file holds which published table, and where in it each number stands."""

from __future__ import annotations

from functools import cache

from .debias_rag import debias_rag
from .fair_qr import fair_qr
from .fair_rag import fair_rag
from .fairft import fairft
from .file import File
from .utility import utility


@cache
def files() -> tuple[File, ...]:
    """All of them, paper by paper."""
    return (*fair_rag(), *utility(), *fairft(), *fair_qr(), *debias_rag())
