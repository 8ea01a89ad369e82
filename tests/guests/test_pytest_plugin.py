"""The plugin of pytest: its fixtures in another project, what a failing test says, and what it costs who needs none."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SEARCH = """
SHELF = {
    "jazz": [{"id": "a", "metadata": {"gender": "men"}}, {"id": "b", "metadata": {"gender": "women"}}],
    "law": [{"id": "c", "metadata": {"gender": "men"}}, {"id": "d", "metadata": {"gender": "men"}}, {"id": "e"}],
}
def search(query):
    return SHELF.get(query, [])
HALF = {"women": 0.5, "men": 0.5}
"""


def test_fixtures_measure_and_assert(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SEARCH
        + """
def test_met(assert_exposure_of):
    shown = assert_exposure_of(search, ["jazz", "law"], "gender", HALF, min_share={"women": 0.25}, gap=10)
    assert shown.shares == {"gender": {"women": 0.25, "men": 0.75}}

def test_measured(exposure_of):
    assert exposure_of(search, ["jazz", "law"], "gender", HALF).worst == "law"

def test_missed(assert_exposure_of):
    assert_exposure_of(search, ["jazz", "law"], "gender", HALF, min_share={"gender": {"women": 0.3}})

def test_men_alone(assert_exposure_of):
    assert_exposure_of(search, "law", "gender", "uniform", min_share={"women": 0.01})
"""
    )
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(
        [
            ">*assert_exposure_of(search*min_share*",
            "E*AssertionError: gender: women gets 25.0% of the attention; the least is 30.0%",
            "E*attention in the first 20 hits, mean of 2 queries",
            "E*gender*share*target*at least*result",
            "E*women*25.0%*50.0%*30.0%*MISSED",
            "E*the worst query is 'law'*women 0%*",
            "E*AssertionError: gender: women gets 0.0% of the attention; the least is 1.0%",
        ]
    )
    assert "searches.py" not in done.stdout.str(), "the traceback goes into the plugin"


def test_a_file_of_queries_is_a_test_each(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nfairagent_queries = queries.txt\n")
    pytester.makefile(".txt", queries="# two\njazz\n\nlaw\njazz\n")
    pytester.makepyfile(
        SEARCH
        + """
import pytest

def test_each(assert_exposure_of, fair_query):
    assert_exposure_of(search, fair_query, "gender", HALF, min_share={"women": 0.5})

@pytest.mark.parametrize("fair_query", ["jazz"])
def test_own(assert_exposure_of, fair_query):
    assert_exposure_of(search, fair_query, "gender", HALF, min_share={"women": 0.5})
"""
    )
    done = pytester.runpytest_inprocess("-rA", "-p", "no:cacheprovider", "-p", "no:xdist")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["PASSED *::test_each?jazz?", "PASSED *::test_own?jazz?", "FAILED *::test_each?law? *"])


@pytest.mark.slow
def test_who_does_not_use_it_imports_no_more_than_the_plugin(tmp_path: Path) -> None:
    """Not even numpy, whatever pytest is asked to do."""
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    assert not {'numpy', 'fairagent.search', 'fairagent.guests.testing'} & set(sys.modules)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
