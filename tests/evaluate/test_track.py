"""An experiment on (made-up files of) the real track: what it is judged by is part of what it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from track_files import write_track

from fairagent.collection.trec_fair import read_metadata, read_relevant_pages, read_run
from fairagent.errors import UsageError
from fairagent.measures.trec_fair import TrackEvaluator

from . import words


def test_an_experiment_on_the_track(tmp_path: Path) -> None:
    track = write_track(tmp_path / "track")
    (tmp_path / "collection.yaml").write_text(
        "name: track\ntrack: {folder: track, dimensions: [gender, sub-geo], query: keywords}\ntarget: uniform\n",
        encoding="utf-8",
    )
    file = tmp_path / "experiment.yaml"
    file.write_text(words.EXPERIMENT, encoding="utf-8")
    run = words.run(file, tmp_path / "run")
    # The track judges by its own target, whatever systems steer by.
    assert run.targets == {"gender": "trec", "sub-geo": "trec"}
    assert {outcome.topic for outcome in run.outcomes} == {"101", "102"}
    assert not any(outcome.failed for outcome in run.outcomes)

    # What would be submitted to the track says the same as the TREC run beside it.
    submitted, written = tmp_path / "run" / "runs" / "plain.tsv", tmp_path / "run" / "runs" / "plain.txt"
    shown = [(one.topic, hit.id) for one in run.outcomes if one.system == "plain" for hit in one.hits]
    assert len(shown) > 2
    assert submitted.read_text(encoding="utf-8") == "".join(f"{topic}\t{page}\n" for topic, page in shown)
    first, second = (read_run(path, 2022, 1) for path in (submitted, written))
    assert (first.topics, first.pages.tolist()) == (second.topics, second.pages.tolist())
    # The track's own measures say of both what the experiment says.
    pages = read_metadata(track / "trec_2022_articles_discrete_assessed.json.gz", 2022).pages
    qrels = read_relevant_pages(track / "trec_2022_eval_reldocs.jsonl").qrels
    (mean,) = (row.mean for row in run.comparisons if (row.system, row.dimension) == ("plain", ""))
    assert TrackEvaluator(2022, 1, ["gender"], pages, qrels, 20).evaluate(first).mean("ndcg") == pytest.approx(mean)
    words.run(file, tmp_path / "run", new=True)
    assert submitted.is_file()

    (topics,) = track.glob("trec_2022_eval_reldocs.jsonl*")
    topics.write_bytes(topics.read_bytes() + b"\n")
    with pytest.raises(UsageError, match=f"collection.{topics.name}: was"):
        words.run(file, tmp_path / "run")
