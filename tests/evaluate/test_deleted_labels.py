"""evaluations/unlabeled: labels deleted from real collections, on a few topics."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.search.pipeline import open_site, prepare

ROOT = Path(__file__).resolve().parents[2]
COMMAND: dict[str, Any] = runpy.run_path(str(ROOT / "evaluations" / "unlabeled" / "deleted_labels.py"))
Deletion = COMMAND["Deletion"]


@pytest.mark.shared
def test_the_agent_is_fair_by_the_labels_that_it_lost(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On BM25, twelve topics: unlabeled exposure stays the engine's own, and no interval misses the truth."""
    monkeypatch.chdir(tmp_path)
    site = open_site(ROOT / "evaluations" / "collections" / "trec22_biographies.yaml", tmp_path / "index")
    prepare(site, lambda what, done: None)
    topics = COMMAND["counted"](site.collection, "gender")[::2][:12]
    chosen = [*(Deletion(part) for part in (0.3, 0.5, 0.8)), Deletion(0.5, "female")]
    assert set(chosen) < set(COMMAND["deletions"](site.collection, "gender"))
    for deletion in chosen:
        engine, agent = COMMAND["measure"](site, "gender", deletion, topics)
        assert (engine.unlabeled > 0).any()
        assert np.abs(agent.unlabeled - engine.unlabeled).max() <= 0.05
        assert agent.awrf.mean() >= engine.awrf.mean()
        for one in (engine, agent):
            assert one.covered == one.counted > 0
            assert (np.diff(one.ends) > 0).all()
        assert COMMAND["line"](deletion, engine, agent).startswith(str(deletion))
