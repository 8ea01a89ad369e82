"""docs/extending.md: what stands there as it stands, installed, and what becomes of plugins that are at fault."""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from evaluate import words
from running import Install

import fairagent.extend
from fairagent.collection import Collection
from fairagent.errors import FairAgentError, PromptError, UsageError
from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.fingerprint import fingerprint
from fairagent.extend import Prompts
from fairagent.guests.testing import LoopbackServer
from fairagent.measures import parse_measure
from fairagent.report.page import page
from fairagent.search.pipeline import open_agent
from fairagent.settings.parts import BUILT_IN, SLOTS, read_part

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
LONGEST = 30
TEXTS = {"m1": "he is a lawyer", "m2": "he a lawyer", "m3": "he, lawyer", "f1": "she is a lawyer", "f2": "she a lawyer"}
"""The first letter of an id is the group; `u` has none."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


TURNS, PLACES, OVERLAP, PRECISION, VARIETY = blocks("python")


@pytest.fixture
def parts(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three parts of the page: two installed as it says, the engine as if it were shipped."""
    described, asking, *_ = (tomllib.loads(block)["project"] for block in blocks("toml"))
    (template,) = blocks("jinja")
    install(described["name"], described["entry-points"], **{f"{module_of(described)}.py": TURNS})
    places = {f"{module_of(asking)}.py": PLACES, "refine_by_places.j2": template}
    install("places", asking["entry-points"], **places)
    install("another", {}, **{"overlap.py": OVERLAP})
    monkeypatch.setitem(BUILT_IN["engine"], "overlap", "overlap:OverlapConfig")


def module_of(described: Mapping[str, Any]) -> str:
    (module,) = {point.partition(":")[0] for named in described["entry-points"].values() for point in named.values()}
    return str(module)


@pytest.fixture
def collection(no_variables: None) -> Collection:
    gender = {"m": "male", "f": "female"}
    rows = [
        {"id": id, "title": id.upper(), "text": text, "gender": gender.get(id[0], "")}
        for id, text in {**TEXTS, "u1": "lawyer lawyer"}.items()
    ]
    return Collection.from_records(rows, groups=["gender"], title="title")


@pytest.mark.parametrize("block", blocks("python"))
def test_each_part_is_short_and_made_of_what_is_public(block: str) -> None:
    assert len([line for line in block.splitlines() if line.strip()]) <= LONGEST
    imported = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name for node in imported for alias in node.names
    }
    assert modules <= {"dataclasses", "fairagent.extend", "numpy", "pydantic", "typing"}


def test_the_page_names_every_slot_and_its_entry_points() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([\w.]+)` \|$", PAGE, re.MULTILINE)
    assert dict(rows) == {name: slot.group for name, slot in SLOTS.items()}


def test_what_is_public_is_few_and_used_on_the_page() -> None:
    names = fairagent.extend.__all__
    assert len(names) <= 70
    assert [name for name in names if not re.search(rf"\b{name}\b", PAGE)] == []
    reference = (Path(fairagent.extend.__file__).parents[1] / "docs/reference/extend.md").read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"^\| `{name}` \| `\S+` \| \w", reference, re.MULTILINE)] == []


# --- the parts --------------------------------------------------------------------------------------------------


def test_the_engine_searches_and_is_answered_from(parts: None, collection: Collection) -> None:
    assert str(read_part("engine", "overlap")) == "overlap"
    agent = open_agent(collection, target="uniform", profile="engine", engine="overlap", n=3)
    found = agent.search("a lawyer")
    # Ties stand by id.
    assert (found.ranking.ids, found.ranking.scores.tolist()) == (("f1", "f2", "m1"), [2, 2, 2])
    assert [hit.title for hit in found.hits] == ["F1", "F2", "M1"]
    assert not agent.search("nobody").hits
    assert agent.answer("a lawyer").answer.text == "F2: she a lawyer [2]. M1: he is a lawyer [3]."


@pytest.mark.parametrize(
    ("rerank", "expected"),
    [
        ("turns", ["f1", "m1", "f2", "m2", "m3", "u1"]),
        ({"kind": "turns", "block": 2}, ["f1", "f2", "m1", "m2", "m3", "u1"]),
        (["original", "turns"], ["f1", "m1", "f2", "m2", "m3", "u1"]),
    ],
)
def test_the_installed_reranker_serves(parts: None, collection: Collection, rerank: Any, expected: list[str]) -> None:
    agent = open_agent(collection, target="uniform", profile="engine", engine="overlap", rerank=rerank, n=6)
    found = agent.search("lawyer")
    assert list(found.ranking.ids) == expected
    assert found.trace.reranker == ("original, turns" if isinstance(rerank, list) else "turns")


def test_the_installed_reranker_in_an_experiment(parts: None, tmp_path: Path) -> None:
    systems = (
        "systems:\n  plain: {profile: engine, engine: words}\n  turns: {profile: engine, engine: words, rerank: turns}"
    )
    file = words.write(tmp_path / "words", f"name: mine\ncollection: collection.yaml\n{systems}\n")
    run = words.run(file, tmp_path / "run", limit=3)
    assert run.systems == ("plain", "turns")
    assert not any(outcome.failed for outcome in run.outcomes)


@pytest.fixture
def measured(install: Install) -> None:
    """The measure and the kind of the page, installed as it says."""
    for code, block in zip((PRECISION, VARIETY), blocks("toml")[2:], strict=True):
        about = tomllib.loads(block)["project"]
        install(module_of(about), about["entry-points"], **{f"{module_of(about)}.py": code})


def test_the_installed_measure_in_an_experiment(measured: None, tmp_path: Path) -> None:
    text = words.EXPERIMENT + "measures: [P@4, P@4*AWRF@4, nDCG@4]\n"
    run = words.run(words.write(tmp_path / "words", text), tmp_path / "run")
    assert run.measures[:2] == ("P@4", "P@4*AWRF(discount=log2-max2, log=e, unknown=group)@4")
    for one in run.answered:
        assert one.values[""]["P@4"] == sum(hit.relevant for hit in one.hits) / 4
    assert {row.dimension for row in run.comparisons if row.measure.startswith("P@4*")} == {"gender", "era"}


def test_a_measure_of_a_package_is_read_and_named(measured: None) -> None:
    assert str(parse_measure("P@10")) == "P@10"
    with pytest.raises(UsageError, match=r"no measure 'Q'.* P,"):
        parse_measure("Q@10")
    with pytest.raises(UsageError, match="P has no further option 'log=2'"):
        parse_measure("P(log=2)@10")


def variety(folder: Path, text: str = "kind: variety\nname: mine\nk: 3\n") -> Path:
    systems = words.EXPERIMENT.partition("systems:")[2]
    return words.write(folder, f"{text}collection: collection.yaml\nsystems:{systems}")


def test_the_installed_kind_runs_from_the_file_to_the_page(measured: None, tmp_path: Path) -> None:
    file = variety(tmp_path / "words")
    run = words.run(file, tmp_path / "run")
    assert (run.n, run.measures, run.systems) == (3, ("groups shown",), ("plain", "fair", "random"))
    for one in run.outcomes:
        for name in ("gender", "era"):
            assert one.values[name]["groups shown"] == len({group for hit in one.hits for group in hit.groups[name]})
    text = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert "groups shown is how many groups the first k documents belong to" in text
    assert "groups shown" in page(run)
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:7]))
    assert words.run(file, tmp_path / "run").comparisons == run.comparisons


ASKING = {"refine": {"kind": "places", "drift": 3}, "target": "uniform", "loop": "fair-qr", "cache": ""}


def test_the_refiner_asks_and_the_loop_goes_on(parts: None, collection: Collection) -> None:
    with LoopbackServer(lambda request: '{"keywords": ["f1", "her", "x.org"]}') as server:
        model = {"name": "tiny", "base_url": server.url}
        agent = open_agent(collection, engine="overlap", rerank="none", n=3, model=model, **ASKING)
        trace = agent.search("he lawyer").trace
    asked = server.requests[0]["messages"][-1]["content"]
    assert asked.startswith('Somebody searches for "he lawyer". In which cities do people of the group "female" live?')
    first, refined, repeated = trace.steps
    assert (first.ranking.ids[:3], refined.ranking.ids[:3]) == (("m1", "m2", "f1"), ("f1", "m1", "m2"))
    assert [(term.text, term.weight) for term in refined.added] == [("f1", 1), ("her", 1)]
    assert (refined.source, str(refined.aim), refined.accepted) == ("places", "female (gender)", True)
    assert refined.refused == ("x.org: an address",)
    assert (repeated.added, trace.stopped) == ((), "repeated: none of the model's 3 keywords is new")
    assert trace.usage.calls == len(server.requests) == 2


def test_its_template_is_known_by_its_hash_and_may_be_replaced(parts: None, tmp_path: Path) -> None:
    (template,) = blocks("jinja")
    assert Prompts()["refine_by_places"].sha256 == hashlib.sha256(template.encode()).hexdigest()
    mine = tmp_path / "mine" / "refine_by_places.j2"
    mine.parent.mkdir()
    mine.write_text(template.replace("version: 1", "version: 2"), encoding="utf-8")
    assert Prompts(mine.parent)["refine_by_places"].head.version == 2
    mine.write_text(template.replace("reply: Keywords", "reply: text"), encoding="utf-8")
    with pytest.raises(PromptError, match="has to be Keywords or ReasonedKeywords"):
        Prompts(mine.parent)


# --- a loop of another package ------------------------------------------------------------------------------------

ONCE = """\
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from fairagent.extend import Group, LoopResult, Part, Refiner, RefineState, Search, Site


@dataclass(frozen=True)
class Once:
    refiner: Refiner

    def run(self, search: Search) -> LoopResult:
        (first,) = search.steps
        search.on_step(first)
        memberships = dict(zip((one.dimension for one in first.exposures), search.meter.memberships(first.ranking.ids)))
        group = Group(first.exposures[0].dimension, first.exposures[0].labels[0])
        refinement = self.refiner.refine(
            RefineState(search.query, first.query, first.ranking, memberships, first.exposures, group, frozenset())
        )
        query = replace(first.query, terms=refinement.terms)
        step = replace(first, query=query, ranking=search.retrieve(query), source=refinement.source,
                       added=refinement.terms, usage=refinement.usage)
        search.on_step(step)
        return LoopResult(step.ranking, (first, step), "once")


class OnceConfig(Part):
    of_groups: ClassVar[bool] = True
    kind: Literal["once"] = "once"

    def uses(self, settings) -> tuple[Part, ...]:
        return (settings.refine,)

    def build(self, site: Site) -> Once:
        return Once(site.settings.refine.build(site))
"""
FAIR_QR_ONCE = """\
name: two loops
collection: collection.yaml
settings: {model: {name: tiny, base_url: "http://127.0.0.1:1/v1"}}
systems:
  shipped: {engine: words, rerank: none, loop: fair-qr, refine: llm, iterations: 1}
  foreign: {engine: words, rerank: none, loop: once, refine: llm, iterations: 1}
  silent: {engine: words, rerank: none, loop: once, refine: none}
"""


@pytest.fixture
def once(install: Install) -> None:
    install("once", {"fairagent.loops": {"once": "once:OnceConfig"}}, **{"once.py": ONCE})


def test_a_foreign_loop_counts_with_the_refiner_that_it_uses(once: None, tmp_path: Path) -> None:
    file = words.write(tmp_path / "words", FAIR_QR_ONCE)
    checked = check_experiment(file, environ={"OPENAI_API_KEY": "none"})
    asks = {name: system.asks for name, system in checked.plan.systems.items()}
    assert asks == {"shipped": ("refine_query",), "foreign": ("refine_query",), "silent": ()}
    shipped, foreign, silent = estimate(checked)
    assert (foreign.calls, foreign.model) == (shipped.calls, "tiny") == (20, "tiny")
    assert foreign.input_tokens == shipped.input_tokens > 0
    assert silent.calls == 0
    prompts = {name: made_from.get("prompts") for name, made_from in fingerprint(checked, {})["systems"].items()}
    template = {"refine_query.j2": Prompts()["refine_query"].sha256}
    assert {name: prompts[name] for name in asks} == {"shipped": template, "foreign": template, "silent": None}
    # Who asks a model needs one, whoever brings the loop.
    words.write(tmp_path / "words", FAIR_QR_ONCE.replace("name: tiny, ", ""))
    with pytest.raises(FairAgentError) as caught:
        check_experiment(file, environ={"OPENAI_API_KEY": "none"})
    assert [name for name in asks if f"systems.{name}" in str(caught.value)] == ["shipped", "foreign"]


def test_a_foreign_loop_serves(once: None, parts: None, collection: Collection) -> None:
    with LoopbackServer(['{"keywords": ["f1", "her"]}']) as server:
        model = {"name": "tiny", "base_url": server.url}
        chosen = {"engine": "overlap", "rerank": "none", "refine": "llm", "target": "uniform", "cache": "", "n": 3}
        trace = open_agent(collection, loop="once", model=model, **chosen).search("he lawyer").trace
    assert (trace.stopped, trace.usage.calls, len(server.requests)) == ("once", 1, 1)
    assert (trace.steps[1].source, [term.text for term in trace.steps[1].added]) == ("llm", ["f1", "her"])
