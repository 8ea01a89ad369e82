"""An experiment on (made-up files of) the real track: what it is judged by is part of what it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from track_files import write_track

from fairagent.errors import UsageError

from . import words


def test_an_experiment_on_the_track(tmp_path: Path) -> None:
    track = write_track(tmp_path / "track")
    (tmp_path / "collection.yaml").write_text(
        "name: track\ntrack: {folder: track, dimensions: [gender, sub-geo]}\n", encoding="utf-8"
    )
    file = tmp_path / "experiment.yaml"
    file.write_text(words.EXPERIMENT, encoding="utf-8")
    run = words.run(file, tmp_path / "run")
    assert run.dimensions == ("gender", "sub-geo")
    assert {outcome.topic for outcome in run.outcomes} == {"101", "102"}
    assert not any(outcome.failed for outcome in run.outcomes)

    (topics,) = track.glob("trec_2022_eval_reldocs.jsonl*")
    topics.write_bytes(topics.read_bytes() + b"\n")
    with pytest.raises(UsageError, match=f"collection.{topics.name}: was"):
        words.run(file, tmp_path / "run")
