"""Systems with `sampling.alpha` in ranking experiments: means over draws, their spread, or an error."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from evaluate import words
from fairagent import open_agent
from fairagent.collection import load_collection
from fairagent.evaluate.run import Results

pytestmark = pytest.mark.usefixtures("no_variables")

DRAWN = """\
name: drawn
collection: collection.yaml
seed: 7
draws: 5
measures: [nDCG@4, "AWRF(unknown=ignore)@4"]
topics: [T00, T01, T02]
systems:
  plain: {profile: engine, engine: words}
  drawn: {profile: engine, engine: words, sampling: {alpha: 1, pool: 12}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("drawn")
    return words.run(words.write(folder, DRAWN), folder / "run")


def of_drawn(run: Results) -> dict[str, dict[str, float]]:
    return {one.topic: one.values[""] | one.values["gender"] for one in run.outcomes if one.system == "drawn"}


def test_values_are_means_over_the_draws_with_their_deviation_beside(run: Results) -> None:
    folder = Path(str(run.provenance["collection"]["file"])).parent  # type: ignore[index]
    collection = load_collection(folder / "collection.yaml")
    agent = open_agent(collection, profile="engine", engine="words", n=4, sampling={"alpha": 1, "pool": 12, "seed": 7})
    assert agent.draws
    for outcome in run.outcomes:
        if outcome.system != "drawn":
            assert outcome.record is None
            continue
        relevant, samples = collection.qrels[outcome.topic], agent.sample(collection.topics[outcome.topic], 5)
        weights = [1 / math.log2(max(rank, 2)) for rank in (1, 2, 3, 4)]
        values = []
        for number in range(5):
            gains = [float(relevant.get(id, 0) > 0) for id in samples.ranking(number).ids]
            values.append(np.dot(weights, gains) / sum(weights[:3]))
        (name,) = outcome.values[""]
        assert outcome.values[""][name] == pytest.approx(np.mean(values))
        assert outcome.record is not None
        assert outcome.record["draws"] == 5
        assert outcome.record["spread"][""][name] == pytest.approx(np.std(values, ddof=1))
        # What is shown, and stands in run files, is the first draw.
        assert tuple(hit.id for hit in outcome.hits) == samples.ranking(0).ids
        assert len(outcome.tail) > 0


def test_the_seed_decides_and_each_system_may_have_its_own(run: Results, tmp_path: Path) -> None:
    again = words.run(words.write(tmp_path / "again", DRAWN), tmp_path / "again" / "run")
    assert of_drawn(again) == of_drawn(run)
    other = words.run(words.write(tmp_path / "other", DRAWN.replace("seed: 7", "seed: 8")), tmp_path / "other" / "run")
    assert of_drawn(other) != of_drawn(run)
    own = DRAWN.replace("seed: 7", "seed: 8").replace("pool: 12}", "pool: 12, seed: 7}")
    assert of_drawn(words.run(words.write(tmp_path / "own", own), tmp_path / "own" / "run")) == of_drawn(run)


def test_what_cannot_be_drawn_is_refused_before_anything_runs(tmp_path: Path) -> None:
    random = "cannot draw from rerank: plackett-luce"
    for old, new, said in (
        ("pool: 12}", "pool: 12}, rerank: plackett-luce", f"{random}, which is one draw"),
        ("pool: 12}", "pool: 12}, rerank: [plackett-luce, mmr]", random),
        ("nDCG@4", "changed@4", "changed@4 compares two rankings, and sampling.alpha draws many of drawn"),
        ("draws: 5", "draws: 0", "draws"),
    ):
        assert old in DRAWN
        assert said in words.refused(words.write(tmp_path, DRAWN.replace(old, new)))
    assert not (tmp_path / "run").exists()


def test_a_run_file_without_scores_cannot_be_drawn(tmp_path: Path) -> None:
    file = words.write(
        tmp_path, DRAWN.replace("engine: words, sampling", "engine: {kind: run-file, path: run.txt}, sampling")
    )
    lines = "".join(f"T{n:02d}\td{rank:02d}\n" for n in range(20) for rank in range(1, 8))
    (tmp_path / "run.txt").write_text(lines, encoding="utf-8")
    assert "sampling.alpha" in words.refused(file)
