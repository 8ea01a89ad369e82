"""A Python that has not installed some packages: to be run before anything else of a program."""

from __future__ import annotations

from collections.abc import Iterable

_HIDE = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {modules} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


def hiding(modules: Iterable[str], code: str) -> str:
    """Code after which these modules are not found, and then `code`."""
    return _HIDE.replace("{modules}", repr(set(modules))) + code
