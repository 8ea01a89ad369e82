"""axe-core in the browser that tests drive: what keeps people out of a page, by the rules of WCAG.

It comes with the package axe-playwright-python, of which nothing else is used: neither it nor playwright is imported.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import Browser

_FOUND = find_spec("axe_playwright_python")
AXE = Path(_FOUND.origin).with_name("axe.min.js") if _FOUND and _FOUND.origin else None
needs_axe = pytest.mark.skipif(
    AXE is None and "BROWSER_REQUIRED" not in os.environ,
    reason="axe-core is not there (pip install --no-deps axe-playwright-python)",
)
"""Skips a test without axe-core; with the variable BROWSER_REQUIRED the test fails there instead."""
BARRIERS = ("serious", "critical")


def barriers(page: Browser) -> list[str]:
    """What axe-core calls serious or critical: the rule, the element and why, each a line."""
    assert AXE, "axe-core is not there (pip install --no-deps axe-playwright-python)"
    page.run(f"{AXE.read_text(encoding='utf-8')}; 0")
    found = page.run(
        "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations))"
    )
    return [
        f"{rule['id']}: {node['html'][:160]}: {' '.join(node['failureSummary'].split())}"
        for rule in json.loads(found)
        if rule["impact"] in BARRIERS
        for node in rule["nodes"]
    ]
