"""Running an experiment: whatever ends it, repeating it gives the same; nothing is mixed; topics fail for all alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.errors import BudgetExceeded, DataError, TransientModelError, UsageError
from fairagent.evaluate.run import load_run, read_outcomes

from . import words

FEW = words.EXPERIMENT + "topics: [T01, T02, T03, T04]\n"


@pytest.fixture(autouse=True)
def _no_trouble():
    yield
    words.trouble.clear()


def files(folder: Path) -> dict[str, bytes]:
    """All that a run wrote, but for how long it took and the order in which it came."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("timings.csv", "journal.jsonl")
    }


def test_workers_and_order_change_nothing(tmp_path: Path) -> None:
    file = words.write(tmp_path)
    runs = []
    for workers in (1, 4):
        words.run(file, tmp_path / f"{workers}", workers)
        runs.append(files(tmp_path / f"{workers}"))
    assert runs[0] == runs[1]

    backwards = tmp_path / "backwards"
    backwards.mkdir()
    for name in ("journal.jsonl", "run.json"):
        (backwards / name).write_bytes((tmp_path / "1" / name).read_bytes())
    lines = (backwards / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (backwards / "journal.jsonl").write_bytes(b"".join(reversed(lines)))
    words.run(file, backwards)
    assert files(backwards) == runs[0]


def test_what_has_changed_is_refused_and_named(tmp_path: Path) -> None:
    """The experiment, its collection, and each file of it: of one dimension, so that an intersection is none of it."""
    plain = "{profile: engine, engine: words}"
    once = words.EXPERIMENT + "dimensions: [gender]\n"
    file = words.write(tmp_path, once)
    words.run(file, tmp_path / "run", limit=2)
    before = files(tmp_path / "run")
    of_experiment, of_collection = "experiment.yaml", "collection.yaml"
    for name, old, new, named in (
        (of_experiment, "seed: 7", "seed: 8", "seed: was 7, is 8"),
        (of_experiment, "order: exposure", "order: plain", 'systems.fair.settings.engine.order: was "exposure", is'),
        (of_experiment, plain, plain.replace("}", ", depth: 9}"), "systems.plain.settings.depth: was 500, is 9"),
        (of_experiment, "seed: 7", "seed: 7\nmeasures: [nDCG@5]", "measures: was"),
        (of_experiment, "[gender]\n", "[gender, era]\n", 'dimensions: was ["gender"], is ["gender", "era"]'),
        (of_collection, "query: title", "query: title, group: title", "collection.settings: was"),
        (of_collection, "male]}", "male], applies_to: {column: era}}", "collection.settings: was"),
        (of_collection, "male]}", "male], predicted: true}", "collection.settings: was"),
        (of_collection, "population:", "intersections: {a: [gender, era]}\npopulation:", "collection.settings: was"),
        ("docs.jsonl", "d39", "d40", "collection.documents: was"),
        ("topics.jsonl", '"T19"', '"T20"', "collection.topics.jsonl: was"),
        ("qrels.tsv", "d39 1", "d39 2", "collection.qrels.tsv: was"),
        ("groups.tsv", "d39", "d40", "collection.groups.tsv: was"),
    ):
        whole = (tmp_path / name).read_text(encoding="utf-8")
        assert old in whole, old
        (tmp_path / name).write_text(whole.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(UsageError, match="--new") as refusal:
            words.run(file, tmp_path / "run", limit=2)
        assert named in str(refusal.value)
        assert files(tmp_path / "run") == before
        (tmp_path / name).write_text(whole, encoding="utf-8")
    file.write_text(once.replace("seed: 7", "seed: 8"), encoding="utf-8")
    words.run(file, tmp_path / "run", new=True, limit=2)
    words.run(file, tmp_path / "run", limit=2)


def test_more_topics_and_systems_are_added_to_what_is_done(tmp_path: Path) -> None:
    file = words.write(tmp_path)
    words.run(file, tmp_path / "whole")
    without = words.EXPERIMENT.replace(
        "  random: {profile: engine, engine: {kind: words, order: random}, rerank: plackett-luce}\n", ""
    )
    file.write_text(without, encoding="utf-8")
    words.run(file, tmp_path / "grown", limit=3)
    assert load_run(tmp_path / "grown").systems == ("plain", "fair")
    # A limit is one of all topics, with those that nobody has judged.
    assert len(read_outcomes(tmp_path / "grown")) == 3 * 2
    file.write_text(words.EXPERIMENT, encoding="utf-8")
    words.run(file, tmp_path / "grown")
    assert files(tmp_path / "grown") == files(tmp_path / "whole")
    assert len(read_outcomes(tmp_path / "grown")) == 20 * 3

    # A system that was left out for a while may not come back as another one.
    file.write_text(without, encoding="utf-8")
    words.run(file, tmp_path / "grown")
    file.write_text(words.EXPERIMENT.replace("order: random", "order: plain"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"systems\.random\.settings\.engine\.order"):
        words.run(file, tmp_path / "grown")


def test_a_failing_topic_is_left_out_for_all_systems(tmp_path: Path) -> None:
    file = words.write(tmp_path)
    words.trouble["exposure T03"] = lambda: DataError("the text is gone")
    run = words.run(file, tmp_path / "run")
    assert run.excluded == {"T19": "no relevant document", "T03": "fair failed: the text is gone"}
    assert {row.topics for row in run.comparisons if not row.dimension} == {18}
    assert not run.partial
    text = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert "left out for all systems, fair failed: the text is gone: 1 topic (T03)" in text
    assert "left out for all systems, no relevant document: 1 topic (T19)" in text
    for system in run.systems:
        # What the others rank is part of what they submit.
        ranked = (tmp_path / "run" / "runs" / f"{system}.txt").read_text(encoding="utf-8")
        assert ("T03" in ranked, "T19" in ranked) == (system != "fair", True)
    assert "T03" not in (tmp_path / "run" / "topics.csv").read_text(encoding="utf-8")

    # The same means as without the topic.
    others = "topics: [" + ", ".join(f"T{n:02d}" for n in range(20) if n != 3) + "]\nseed: 7"
    file.write_text(words.EXPERIMENT.replace("seed: 7", others), encoding="utf-8")
    words.trouble.clear()
    assert words.run(file, tmp_path / "without").comparisons == run.comparisons


def test_a_failed_topic_is_tried_again_but_not_for_ever(tmp_path: Path) -> None:
    file = words.write(tmp_path, FEW)
    words.trouble["T03"] = lambda: TransientModelError("overloaded")
    for attempt in (1, 2, 3, 3):
        assert "T03" in words.run(file, tmp_path / "run").excluded
        failed = [outcome for outcome in read_outcomes(tmp_path / "run") if outcome.failed]
        assert len(failed) == 3 * attempt
    words.trouble.clear()
    assert "T03" in words.run(file, tmp_path / "run").excluded

    words.trouble["T03"] = lambda: TransientModelError("overloaded")
    words.run(file, tmp_path / "other")
    words.trouble.clear()
    assert "T03" not in words.run(file, tmp_path / "other").excluded
    words.run(file, tmp_path / "whole")
    assert files(tmp_path / "other") == files(tmp_path / "whole")


def test_what_ends_a_run_leaves_partial_results(tmp_path: Path) -> None:
    file = words.write(tmp_path)
    words.run(file, tmp_path / "whole")
    words.trouble["T10"] = lambda: BudgetExceeded("10 calls are used up")
    with pytest.raises(BudgetExceeded, match="used up"):
        words.run(file, tmp_path / "run")
    text = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert "PARTIAL" in text
    partial = load_run(tmp_path / "run")
    assert partial.partial
    assert 5 <= partial.comparisons[0].topics <= 10
    words.trouble.clear()
    assert not words.run(file, tmp_path / "run").partial
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    file = words.write(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("mine", encoding="utf-8")
    for new in (False, True):
        with pytest.raises(UsageError, match="holds no run"):
            words.run(file, tmp_path / "mine", new=new)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["note.txt"]


def test_what_a_strangers_part_raises_fails_its_topic_alone_and_an_error_of_ours_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = words.write(tmp_path)
    words.trouble["T03"] = lambda: ZeroDivisionError("a bug")
    failed = {(one.topic, one.failed) for one in words.run(file, tmp_path / "run").outcomes if one.failed}
    assert {topic for topic, _ in failed} == {"T03"}
    assert all("failed for" in said and "ZeroDivisionError: a bug" in said for _, said in failed)

    def faulty(*values: object) -> None:
        raise ZeroDivisionError("a bug")

    words.trouble.clear()
    monkeypatch.setattr("fairagent.evaluate.judging.judged_value", faulty)
    with pytest.raises(ZeroDivisionError):
        words.run(file, tmp_path / "other")
    assert not any(outcome.failed for outcome in read_outcomes(tmp_path / "other"))
