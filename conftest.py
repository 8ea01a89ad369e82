"""A test, or an example in a docstring, that imports a package of an extra which is not installed is skipped.

An import that fails in the core is an error: only those of the tests themselves count, and those of add-ons as modules.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fairagent.errors import BackendUnavailable
from fairagent.storage.packages import is_installed, module_of

ROOT = Path(__file__).resolve().parent
TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BROUGHT = {"starlette": "studio", "pandas": "parquet", "huggingface_hub": "dense", "jnius_config": "lucene"}
"""Modules that come with an extra's packages -> the extra."""
EXTRA_OF = BROUGHT | {
    module_of(re.split(r"[\[><=]", line)[0]): extra
    for extra, listed in PROJECT["optional-dependencies"].items()
    for line in listed
}


def _lacking(error: BaseException | None) -> str:
    """Why what ended with this error is skipped; "" where it is not."""
    if error is None:
        return ""
    frames, trace = [], error.__traceback__
    while trace:
        frames.append((Path(trace.tb_frame.f_code.co_filename), trace.tb_frame.f_code.co_name))
        trace = trace.tb_next
    if isinstance(error, ModuleNotFoundError) and frames and TESTS in frames[-1][0].parents:
        module = (error.name or "").partition(".")[0]
        if module in EXTRA_OF and not is_installed(module):
            return f"needs the extra {EXTRA_OF[module]} ({module})"
    # An add-on says so while it is imported.
    if isinstance(error, BackendUnavailable) and any(name == "<module>" and ROOT in of.parents for of, name in frames):
        return str(error)
    return _lacking(error.__cause__)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """A file that cannot be imported here has no tests."""
    report = yield
    call = getattr(report, "call", None)
    if call and call.excinfo and (why := _lacking(call.excinfo.value)):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, why)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Nor is a test that imports what is not there run, itself or by its fixtures."""
    report = yield
    if call.excinfo and (why := _lacking(call.excinfo.value)):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {why}")
    return report
