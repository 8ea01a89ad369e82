"""A plugin of pytest, there wherever fairagent is installed: exposure in the results of one's own search function.

    def test_search(assert_exposure_of):
        assert_exposure_of(search, ["jazz", "law"], groups="gender", target="uniform", min_share={"female": 0.3})

It imports nothing before a test asks for one of its fixtures, and does nothing to tests that do not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairagent.guests.testing.searches import SearchExposure

QUERIES = "fairagent_queries"
"""The option of pytest's configuration that names the file of queries."""
QUERY = "fair_query"
"""The argument of tests that are run once for each of them."""
LARGEST = 1_000_000
"""Bytes of that file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option."""
    parser.addini(QUERIES, f"a file with a query a line; a test with the argument {QUERY} runs once for each")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `fair_query` runs once for each query of the file, unless it names its queries itself."""
    name = str(metafunc.config.getini(QUERIES)) if QUERY in metafunc.fixturenames else ""
    if name and not any(QUERY in str(mark.args[:1]) for mark in metafunc.definition.iter_markers("parametrize")):
        metafunc.parametrize(QUERY, _queries(metafunc.config, name))


def _queries(config: pytest.Config, name: str) -> list[str]:
    """The lines of the file, from the folder of the configuration; those that are empty or begin with # are none."""
    from fairagent.errors import FairAgentError
    from fairagent.storage.readers import Malformed, file_text

    path = (config.inipath.parent if config.inipath else config.rootpath) / name
    try:
        lines = [line.strip() for line in file_text(path, LARGEST).splitlines()]
    except (OSError, FairAgentError, Malformed) as error:
        raise pytest.UsageError(f"{QUERIES}: {error}") from None
    if not (queries := [line for line in dict.fromkeys(lines) if line and not line.startswith("#")]):
        raise pytest.UsageError(f"{QUERIES}: {path} has no query")
    return queries


@pytest.fixture
def fair_query() -> str:
    """One query of the file that `fairagent_queries` names."""
    raise pytest.UsageError(f"{QUERY}: set {QUERIES} in pytest's configuration to a file with a query a line")


@pytest.fixture(scope="session")
def exposure_of() -> Callable[..., "SearchExposure"]:
    """`fairagent.guests.testing.exposure_of`: what a search function shows of each group."""
    from fairagent.guests.testing.searches import exposure_of

    return exposure_of


@pytest.fixture(scope="session")
def assert_exposure_of() -> Callable[..., "SearchExposure"]:
    """`fairagent.guests.testing.assert_exposure_of`: that groups get what they should have."""
    from fairagent.guests.testing.searches import assert_exposure_of

    return assert_exposure_of
