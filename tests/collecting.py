"""A check of many cases in one test: all that is wrong is collected, so that one run says it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def faults(check: Callable[..., object], cases: Iterable[Any]) -> list[str]:
    """What the check raises for each case (of a tuple: for its members), with the case."""
    found = []
    for case in cases:
        try:
            check(*case) if isinstance(case, tuple) else check(case)
        except (Exception, pytest.fail.Exception) as error:
            found.append(f"{check.__name__}, {case}: {type(error).__name__}: {error}")
    return found
