"""What is copied is the search that was shown: the same settings, the same query."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fairagent.cli.options import overrides
from fairagent.cli.search_options import ListOptions
from fairagent.settings import SearchOptions, load_settings
from fairagent.studio.calls import Choices
from fairagent.studio.desk import StartSettings
from fairagent.studio.recipes import recipes
from fairagent.types import Query

QUERY = 'it\'s a "test"; rm -rf $HOME'
CHOICES = [
    Choices(),
    Choices(profile="fair-qr", n=7, dimensions=("gender", "a b")),
    Choices(rerank="mmr", target="uniform", loop="none"),
    Choices(profile="engine"),
]


@pytest.fixture(params=[True, False], ids=["file", "no file"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> StartSettings:
    file = tmp_path / "a file.yaml"
    file.write_text("n: 30\nrerank: {kind: exposure, fairness: 0.5}\n", encoding="utf-8")
    given = {"engine": {"kind": "bm25", "k1": 1.2}, "collection": "a b/c.yaml", "index": "i"}
    return StartSettings(file if request.param else None, given)


@pytest.mark.parametrize("choices", CHOICES)
def test_python_opens_the_same_settings(
    origin: StartSettings, choices: Choices, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []

    class Agent:
        def search(self, query: object) -> str:
            opened.append(query)
            return "found"

    def open_agent(settings: str | None = None, **more: Any) -> Agent:
        opened.append(load_settings(Path(settings) if settings else None, more))
        return Agent()

    monkeypatch.setattr("fairagent.open_agent", open_agent, raising=False)
    exec(recipes(origin, choices, Query(QUERY))["python"], {})
    assert opened == [origin.settings(choices), QUERY]


@pytest.mark.parametrize("choices", CHOICES)
def test_the_command_has_the_same_settings(origin: StartSettings, choices: Choices) -> None:
    program, command, query, *words = shlex.split(recipes(origin, choices, Query(QUERY, "T1"))["command"])
    assert (program, command, query) == ("fairagent", "search", QUERY)
    pairs = list(zip(words[::2], words[1::2], strict=True))
    named = {name: value for name, value in pairs if name != "--set"}
    assert named.pop("--topic") == "T1"
    file = named.pop("--settings", None)
    options = {name.removeprefix("--"): value for name, value in named.items()}
    given = overrides([value for name, value in pairs if name == "--set"], **options)
    assert load_settings(Path(file) if file else None, given) == origin.settings(choices)


@pytest.mark.parametrize("choices", CHOICES)
def test_the_file_has_the_same_settings(origin: StartSettings, choices: Choices, tmp_path: Path) -> None:
    settings = origin.settings(choices)
    file = tmp_path / "copied.yaml"
    file.write_text(recipes(origin, choices, Query(QUERY))["yaml"], encoding="utf-8")
    assert load_settings(file) == settings


def test_a_topic_is_in_the_script(origin: StartSettings) -> None:
    assert f"agent.search(Query({QUERY!r}, 'T1'))" in recipes(origin, Choices(), Query(QUERY, "T1"))["python"]


OPTIONS = [
    SearchOptions(fairness=4, n=7),
    SearchOptions(unknown="ignore"),
    SearchOptions(shares={"gender": {"female": 0.25, "male": 0.75}}, unknown=0.1),
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda one: "-".join(one.given))
@pytest.mark.parametrize("choices", [Choices(), Choices(rerank="exposure", n=3, target="uniform")])
def test_an_order_is_in_all_three(
    origin: StartSettings, choices: Choices, options: SearchOptions, tmp_path: Path
) -> None:
    expected = options.over(origin.settings(choices), ("gender", "region"))
    made = recipes(origin, choices, Query(QUERY), options=options, dimensions=("gender", "region"))
    file = tmp_path / "copied.yaml"
    file.write_text(made["yaml"], encoding="utf-8")
    assert load_settings(file) == expected
    words = shlex.split(made["command"])
    sets = [value for name, value in pairwise(words) if name == "--set"]
    named = {"collection": "a b/c.yaml", "index": "i"}
    assert load_settings(origin.file, overrides(sets, **named)) == expected
    called = ", ".join(f"{name}={value!r}" for name, value in options.given.items())
    assert f"agent.search({QUERY!r}, {called})" in made["python"]


def test_a_filter_is_in_all_three(origin: StartSettings, tmp_path: Path) -> None:
    options = SearchOptions(where={"city": ("Oslo", "it's"), "gender": ("female",)})
    made = recipes(origin, Choices(), Query(QUERY), options=options)
    words = shlex.split(made["command"])
    pairs = [value for name, value in pairwise(words) if name == "--where"]
    assert pairs == ["city=Oslo", "city=it's", "gender=female"]
    assert ListOptions(where=pairs).asked == options
    assert f"where={options.given['where']!r}" in made["python"]
    comment = made["yaml"].splitlines()[0]
    assert [value for name, value in pairwise(shlex.split(comment)) if name == "--where"] == pairs
    file = tmp_path / "copied.yaml"
    file.write_text(made["yaml"], encoding="utf-8")
    assert load_settings(file) == origin.settings(Choices())
