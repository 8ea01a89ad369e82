"""Profiles: each one loads and says what its paper says; which layer wins; and that a part is replaced or merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairagent.papers.rivals.dlf import DLFConfig
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.search.loop.config import FairQRConfig
from fairagent.search.refine import LlmConfig
from fairagent.search.rerank.exposure import ExposureConfig
from fairagent.search.rerank.relevance import ChainConfig, FusedRerankConfig, OriginalConfig
from fairagent.search.rerank.similarity import GraphConfig, MMRConfig
from fairagent.settings import Settings, lay, load_settings
from fairagent.settings.tree import profiles, read_profile

pytestmark = pytest.mark.usefixtures("no_variables")

NAMES = ("agent", "debias-rag", "engine", "fair-answers", "fair-filter", "fair-qr", "fair-qr-deep", "fair-rag")
NAMES += ("fairft", "labeled", "offline")


def loaded(name: str, **overrides: Any) -> Settings:
    return load_settings(overrides={"profile": name, **overrides}, environ={})


def test_every_profile_is_settings_and_remembers_its_name() -> None:
    assert profiles() == NAMES
    for name in NAMES:
        chosen = loaded(name)
        assert chosen.profile == name
        # All that it sets is something that there is, and stands there.
        assert chosen.given.keys() == {*read_profile(name), "profile"}
        assert chosen == Settings(profile=name)


@pytest.mark.parametrize(("name", "depth"), [("fair-qr", 20), ("fair-qr-deep", 0)])
def test_fair_qr(name: str, depth: int) -> None:
    chosen = loaded(name)
    assert (chosen.engine, chosen.loop, chosen.loops) == (BM25Config(), FairQRConfig(rerank_depth=depth), True)
    assert (chosen.expansion.documents, chosen.iterations, chosen.candidates) == (0, 5, "best")
    assert (chosen.refine, chosen.rerank) == (LlmConfig(drift=100, on_error="keep"), OriginalConfig())
    assert chosen.model.temperature == 0.3


def test_with_a_model_the_default_is_the_agent_and_without_one_offline(tmp_path: Path) -> None:
    assert loaded("offline").model_copy(update={"profile": ""}) == Settings()
    file = tmp_path / "settings.yaml"
    file.write_text("model: {name: some}\n", encoding="utf-8")
    assert load_settings(file, {}, {}) == loaded("agent", model={"name": "some"})
    assert load_settings(None, {}, {"FAIRAGENT_MODEL__NAME": "some"}).profile == "agent"
    assert load_settings(file, {"model": {"name": ""}}, {}).profile == "offline"
    assert load_settings(file, {"profile": "fair-qr"}, {}).profile == "fair-qr"
    # What is laid already, as an experiment's systems are, says what it is.
    assert load_settings(None, lay({"model": {"name": "some"}}), {}).profile == ""


# --- which layer wins -------------------------------------------------------------------------------------------


def test_a_profile_lies_right_below_the_layer_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("profile: fair-rag\nn: 7\nsampling: {pool: 50}\n", encoding="utf-8")
    chosen = load_settings(file, {"sampling": {"seed": 3}}, {})
    assert (chosen.n, chosen.context.documents) == (7, 5)
    assert (chosen.sampling.alpha, chosen.sampling.pool, chosen.sampling.seed) == (1.0, 50, 3)
    # In a higher layer it beats values in a lower one, sections key by key.
    file.write_text("n: 7\ndepth: 70\nloop: fair-qr\nsampling: {alpha: 8, seed: 3}\n", encoding="utf-8")
    chosen = load_settings(file, environ={"FAIRAGENT_PROFILE": "fair-rag", "FAIRAGENT_SAMPLING__POOL": "10"})
    assert (chosen.n, chosen.depth, chosen.loop.kind) == (5, 70, "none")
    assert (chosen.sampling.alpha, chosen.sampling.pool, chosen.sampling.seed) == (1.0, 10, 3)


def test_settings_made_by_hand_lie_over_their_profile() -> None:
    chosen = Settings(profile="fair-qr", refine={"keyword_weight": 2}, rerank="mmr", iterations=1)
    assert chosen.refine == LlmConfig(drift=100, keyword_weight=2, on_error="keep")
    assert (chosen.rerank, chosen.iterations, chosen.candidates) == (MMRConfig(), 1, "best")
    # Whoever copies or reads them again changes nothing.
    assert Settings.model_validate(chosen.model_dump(mode="json")) == chosen
    assert chosen.model_copy(update={"n": 3}).refine == chosen.refine


# --- parts over parts -------------------------------------------------------------------------------------------

MMR = {"kind": "mmr", "relevance": 0.3}


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        (MMR, "fused", FusedRerankConfig()),
        (MMR, {"kind": "fused", "refined": 0.1}, FusedRerankConfig(refined=0.1)),
        (MMR, "mmr", MMRConfig(relevance=0.3)),
        (MMR, {"kind": "mmr", "by": "groups"}, MMRConfig(relevance=0.3, by="groups")),
        (MMR, {"by": "groups"}, MMRConfig(relevance=0.3, by="groups")),
        ("mmr", {"by": "groups"}, MMRConfig(by="groups")),
        ({"kind": "exposure", "fairness": 1}, {"unlabeled": 0}, ExposureConfig(fairness=1, unlabeled=0)),
        ({"fairness": 1}, {"kind": "exposure", "unlabeled": 0}, ExposureConfig(unlabeled=0)),
        ({"fairness": 1}, "mmr", MMRConfig()),
        (MMRConfig(relevance=0.3), {"by": "groups"}, MMRConfig(relevance=0.3, by="groups")),
        (MMRConfig(relevance=0.3), "fused", FusedRerankConfig()),
        (MMR, MMRConfig(by="groups"), MMRConfig(by="groups")),
    ],
)
def test_a_part_of_another_kind_replaces_and_of_the_same_merges(below: Any, above: Any, expected: Any) -> None:
    assert load_settings(overrides=lay({"rerank": below}, {"rerank": above}), environ={}).rerank == expected


def test_a_chain_is_laid_over_as_a_whole() -> None:
    below = {"rerank": [MMR, "fused"]}
    for above, expected in ((["fused"], [FusedRerankConfig()]), ({"kind": "chain", "parts": ["mmr"]}, [MMRConfig()])):
        chosen = load_settings(overrides=lay(below, {"rerank": above}), environ={}).rerank
        assert list(chosen.inner) == expected
    assert load_settings(overrides=lay(below, {"rerank": "mmr"}), environ={}).rerank == MMRConfig()


@pytest.mark.parametrize(
    ("below", "keys", "expected"),
    [
        ("offline", {"fairness": 2}, [GraphConfig(), ExposureConfig(fairness=2)]),
        ("agent", {"fairness": 2}, [GraphConfig(), ExposureConfig(fairness=2)]),
        ("", {"fairness": 2}, [GraphConfig(), ExposureConfig(fairness=2)]),
        ("agent", {"weight": 0.1, "unlabeled": 1}, [GraphConfig(weight=0.1), ExposureConfig(unlabeled=1)]),
        # Of several that have the key it is the last one's.
        (["mmr", {"kind": "dlf"}, "mmr"], {"encoder": "x"}, [MMRConfig(), DLFConfig(), MMRConfig(encoder="x")]),
        ([{"fairness": 1, "unlabeled": 1}], {"fairness": 2}, [ExposureConfig(fairness=2, unlabeled=1)]),
        (["mmr", ["exposure"]], {"unlabeled": 1}, [MMRConfig(), ChainConfig(parts=(ExposureConfig(unlabeled=1),))]),
    ],
)
def test_keys_over_a_chain_are_those_of_the_part_that_has_them(below: Any, keys: Any, expected: list[Any]) -> None:
    layer = {"profile": below} if isinstance(below, str) else {"rerank": below}
    for model in ({}, {"model": {"name": "m"}}):
        chosen = load_settings(overrides=lay({**layer, **model}, {"rerank": keys}), environ={})
        assert list(chosen.rerank.inner) == expected
        again = Settings(rerank=chosen.rerank, **model)
        assert load_settings(overrides=lay(again.given, {"rerank": keys}), environ={}).rerank == chosen.rerank
    assert load_settings(overrides={**model, "rerank": {"fairness": 2}}, environ={}).rerank.inner[0].kind == "graph"


def test_laying_changes_no_layer() -> None:
    below, above = {"rerank": dict(MMR), "expansion": {"terms": 1}}, {"rerank": {"by": "groups"}, "profile": "engine"}
    lay(below, above)
    assert below == {"rerank": MMR, "expansion": {"terms": 1}}
    assert above == {"rerank": {"by": "groups"}, "profile": "engine"}
    assert lay() == {}
