"""Parts of settings: every kind that there is, the short forms, what is wrong and where, and what a part tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import collecting
import pytest

from fairagent.errors import SettingsError
from fairagent.papers.debias_rag.stage import DebiasRAGConfig
from fairagent.papers.rivals.fa_star_ir import FAStarIRConfig
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.retrieve.relevance_model import RM3Config
from fairagent.retrieve.run_file import RunFileConfig
from fairagent.retrieve.vectors import DenseConfig
from fairagent.search.rerank.exposure import ExposureConfig
from fairagent.search.rerank.relevance import ChainConfig, OriginalConfig
from fairagent.search.rerank.similarity import MMRConfig
from fairagent.settings import Part, Settings, Without, load_settings
from fairagent.settings.parts import BUILT_IN, SLOTS, kinds, part_class, read_part, shipped
from fairagent.settings.plugins import plugins
from fairagent.settings.section import meanings

ALL = [(slot, kind) for slot in SLOTS for kind, home in shipped(slot).items() if home.startswith("fairagent.")]
"""What is shipped: other tests add kinds of their own to the table."""


def loaded(**overrides: Any) -> Settings:
    return load_settings(overrides=overrides, environ={})


# --- the table --------------------------------------------------------------------------------------------------


def has_a_home_and_says_what_it_is(slot: str, kind: str) -> None:
    found = part_class(slot, kind)
    assert issubclass(found, Part)
    assert found.model_fields["kind"].default == kind
    assert found.__doc__
    assert found.__doc__ != Part.__doc__
    for name in found.model_fields:
        assert name == "kind" or meanings(found)[name], f"{kind}.{name}"
    assert f"{found.__module__}:{found.__name__}" == shipped(slot)[kind]


def test_every_kind_has_a_home_and_says_what_it_is() -> None:
    assert collecting.faults(has_a_home_and_says_what_it_is, ALL) == []


def test_every_slot_is_a_setting_with_its_default() -> None:
    assert SLOTS.keys() == BUILT_IN.keys() <= Settings.model_fields.keys()
    chosen = Settings()
    for slot, described in SLOTS.items():
        assert described.default in BUILT_IN[slot]
        # Scores are smoothed before exposure is looked at.
        expected = read_part("rerank", ["graph", {}]) if slot == "rerank" else read_part(slot, {})
        assert read_part(slot, {}).kind == described.default
        # Which target, is somebody's choice.
        assert getattr(chosen, slot) == (None if slot == "target" else expected)


def test_kinds_are_the_built_in_ones_first() -> None:
    for slot, found in SLOTS.items():
        assert kinds(slot) == (*BUILT_IN[slot], *(kind for kind in plugins(found.group) if kind not in BUILT_IN[slot]))


def test_none_is_no_such_part() -> None:
    for slot in ("loop", "refine", "rerank", "filter", "debias", "attribute"):
        part = read_part(slot, "none")
        assert part == Without()
        assert part.build(None) is None
        assert (part.templates, part.sees_groups, list(part.worst_case(None))) == ((), False, [])


# --- forms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("mmr", MMRConfig()),
        ({"kind": "mmr"}, MMRConfig()),
        ({"kind": "mmr", "relevance": 0.3}, MMRConfig(relevance=0.3)),
        (MMRConfig(by="groups"), MMRConfig(by="groups")),
        (["mmr", {"fairness": 1}], ChainConfig(parts=(MMRConfig(), ExposureConfig(fairness=1)))),
        ({"kind": "chain", "parts": ["mmr"]}, ChainConfig(parts=(MMRConfig(),))),
        (["original", ["mmr"]], ChainConfig(parts=(OriginalConfig(), ChainConfig(parts=(MMRConfig(),))))),
        ([], ChainConfig(parts=())),
    ],
)  # fmt: skip
def test_forms_of_a_part(value: Any, expected: Part) -> None:
    assert loaded(rerank=value).rerank == read_part("rerank", value) == expected


def test_a_part_that_holds_another(tmp_path: Path) -> None:
    assert loaded(engine="rm3").engine == RM3Config(engine=BM25Config())
    found = loaded(engine={"kind": "rm3", "terms": 5, "engine": {"kind": "bm25", "k1": 1.2}}).engine
    assert found == RM3Config(terms=5, engine=BM25Config(k1=1.2))
    assert loaded(engine={"kind": "rm3", "engine": "dense"}).engine == RM3Config(engine=DenseConfig())


# --- what is wrong ----------------------------------------------------------------------------------------------


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"refine": "groundd"}, "refine: no refiner of kind 'groundd'; did you mean 'grounded'?"),
    ({"refine": "gpt"}, "refine: no refiner of kind 'gpt'; there are: feedback, llm, grounded, none"),
    ({"rerank": {"fairnes": 1}}, "rerank.parts[1].fairnes: unknown key of re-ranker 'exposure'; did you mean 'fairn"),
    ({"rerank": {"refined": 1}}, "rerank.parts[1].refined: unknown key of re-ranker 'exposure'; fused has it"),
    ({"generate": {"language": "fr"}}, "generate.language: unknown key of generator 'extractive'; llm has it"),
    ({"engine": {"kind": "splade"}}, "engine.model: is missing"),
    ({"engine": {"kind": "rm3", "engine": {"kind": "bm25", "k": 1}}}, "engine.engine.k: unknown key of engine 'bm25';"),
    ({"loop": {"rerank_depth": 20}}, "loop.rerank_depth: unknown key of loop 'widen'; fair-qr has it"),
    ({"rerank": ["mmr", {"kind": "mmr", "fairness": 1}]},
     "rerank.parts[1].fairness: unknown key of re-ranker 'mmr'; exposure has it"),
    ({"rerank": {"kind": "mmr", "relevance": 3}}, "rerank.relevance: expected 1 or less (got 3)"),
    ({"rerank": None}, "rerank: expected a kind of re-ranker, or `kind:` and its keys (got nothing)"),
    ({"target": {"gender": "corpu"}}, "target.gender: no target of kind 'corpu'; did you mean 'corpus'?"),
]  # fmt: skip


@pytest.mark.parametrize(("overrides", "expected"), WRONG)
def test_what_is_wrong_is_said_with_its_place(overrides: dict[str, Any], expected: str) -> None:
    with pytest.raises(SettingsError) as raised:
        loaded(**overrides)
    first, said = str(raised.value).splitlines()
    assert first == "settings: 1 error"
    assert said.startswith(f"  {expected}")


# --- what a part tells ------------------------------------------------------------------------------------------


SEES: dict[str, list[Any]] = {
    "rerank": ["exposure", "fa-star-ir", "deltr", "dlf", "representative", {"kind": "mmr", "by": "groups"},
               ["original", {"kind": "mmr", "by": "groups"}]],
    "loop": ["widen", "fair-qr"],
    "refine": ["feedback", "llm", "grounded"],
}  # fmt: skip
SEES_NONE: dict[str, list[Any]] = {
    "rerank": ["mmr", "graph", "plackett-luce", {"kind": "adaptive", "policy": "none"}, ["original", "mmr"]],
    "engine": ["rm3"],
}


def test_who_looks_at_groups() -> None:
    for sees, table in ((True, SEES), (False, SEES_NONE)):
        for slot, values in table.items():
            assert [value for value in values if read_part(slot, value).sees_groups != sees] == []


def test_whether_settings_loop_and_look_at_groups() -> None:
    qr: dict[str, Any] = {"loop": "fair-qr"}
    for given, loops, sees in (
        ({}, True, True),
        ({"loop": "none"}, False, True),
        ({"rerank": "mmr"}, True, True),
        ({"loop": "none", "rerank": "mmr"}, False, False),
        # The part `refine` is that of one loop.
        ({"refine": "none", "iterations": 0}, True, True),
        (qr, True, True),
        ({**qr, "refine": "none"}, False, True),
        ({**qr, "iterations": 0}, False, True),
        ({**qr, "rerank": "mmr"}, True, True),
        ({**qr, "refine": "none", "rerank": "mmr"}, False, False),
        ({**qr, "iterations": 0, "rerank": "none"}, False, False),
    ):
        chosen = loaded(**given)
        assert (chosen.loops, chosen.sees_groups) == (loops, sees), given


def test_files_are_taken_from_beside_the_settings() -> None:
    run = RunFileConfig(path="run.txt").relative_to(Path("/data"))
    assert run == RunFileConfig(path="/data/run.txt")
    assert run.files == {"path": Path("/data/run.txt")}
    rag = DebiasRAGConfig(library="avoid.jsonl").relative_to(Path("/data"))
    assert (rag.library, rag.lexicon) == ("/data/avoid.jsonl", "")
    assert rag.files["library"] == Path("/data/avoid.jsonl")
    assert DebiasRAGConfig(library="/else/avoid.jsonl").relative_to(Path("/data")).library == "/else/avoid.jsonl"
    assert FAStarIRConfig().relative_to(Path("/data")) == FAStarIRConfig()
    # Of the parts that a part holds as well.
    rm3 = RM3Config(engine=RunFileConfig(path="run.txt")).relative_to(Path("/data"))
    assert rm3 == RM3Config(engine=RunFileConfig(path="/data/run.txt"))
    assert rm3.files == {"0.path": Path("/data/run.txt")}
    chain = ChainConfig(parts=(MMRConfig(), ChainConfig(parts=())))
    assert (chain.relative_to(Path("/data")), chain.files) == (chain, {})
