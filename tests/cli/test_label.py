"""`fairagent label`: from a column with gaps to a collection with made labels, by words, by vectors and by asking."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fairagent.cli.label import ask_for_labels as ask
from fairagent.collection import load_collection
from fairagent.errors import UsageError
from fairagent.labeling.labeler import LabelAsking
from fairagent.search.pipeline import open_site

from .conftest import Call, Small, write_collection

pytest.importorskip("sklearn")

WORDS = "female: [she, her]\nmale: [he, his]\n"


def gaps(folder: Path, given: int = 12) -> Path:
    """The small collection, in which so many of its 24 genders are known: of every second one."""
    file = write_collection(folder)
    lines = (folder / "groups.tsv").read_text(encoding="utf-8").splitlines()
    head, rows = lines[0], [line.split("\t") for line in lines[1:]]
    rows = [[id, gender if n % 2 == 0 and n < 2 * given else "", era] for n, (id, gender, era) in enumerate(rows)]
    (folder / "groups.tsv").write_text("\n".join([head, *map("\t".join, rows)]) + "\n", encoding="utf-8")
    return file


def test_by_words_and_what_an_experiment_says_of_it(call: Call, small: Small, tmp_path: Path) -> None:
    file = gaps(tmp_path)
    (tmp_path / "words.yaml").write_text(WORDS, encoding="utf-8")
    arguments = ("label", "--dimension", "gender", "--by", "words", "--words", str(tmp_path / "words.yaml"))
    where = ("-c", str(file), "--index", str(small.index))
    result = call.well(*arguments, *where)
    assert re.search("12 labels made, 6 abstained(.|\n)*under label error", result.stdout)
    path = tmp_path / "small.gender.labels.jsonl"
    records = {one["id"]: one for one in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    assert records["d00"] == {"id": "d00", "gender": "male", "source": "given"}
    chances = records["d01"]["gender"]
    assert chances["male"] > 0.5 > chances.get("female", 0)
    assert records["d24"]["source"] == "words: abstained"

    assert "--force" in call.refused(2, *arguments, *where)

    file.write_text(f"# Of mine.\n{file.read_text(encoding='utf-8')}# The end.\n", encoding="utf-8")
    call.well(*arguments, "--force", "--write", *where)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# Of mine.\nname: small\n")
    assert text.endswith("target: trec-estimated\npopulation:\n  gender: {female: 0.5, male: 0.5}\n# The end.\n")
    assert "#     gender: {column: gender, labels: [female, male]}\n" in text
    assert load_collection(file).groups.predicted == ("gender",)
    assert set(load_collection(file).groups.dimensions) == {"era", "gender"}
    experiment = "{name: a, collection: collection.yaml, dimensions: [gender], systems: {plain: {profile: engine}}}"
    (tmp_path / "experiment.yaml").write_text(experiment, encoding="utf-8")
    run = call.well("evaluate", str(tmp_path / "experiment.yaml"), "--run", str(tmp_path / "run"), "--details")
    head, row = [line for line in run.stdout.splitlines() if line.startswith(("system ", "plain "))][:2]
    assert "under label error" in head
    assert re.search(r"0\.\d{3} \[0\.\d{3}, [01]\.\d{3}\]", row)
    found = call.well("search", "lawyer", "-c", str(file), "--index", str(small.index))
    verdict = " ".join(found.stdout.partition("rank")[0].split())
    # Of the dimension whose labels were made alone.
    assert re.findall(r"AWRF [01]\.\d\d \[0\.\d\d, [01]\.\d\d\] under label error", verdict)[1:] == []
    assert re.search(r"gender: [^:]*; AWRF .* under label error", verdict)


def test_what_is_missing(call: Call, small: Small, tmp_path: Path) -> None:
    where = ("-c", str(gaps(tmp_path)), "--index", str(small.index))
    assert "--by words needs --words FILE" in call.refused(2, "label", "--by", "words", *where)
    assert "0 labeled examples of 'faith'" in call.refused(4, "label", "--dimension", "faith", *where)
    assert "which dimension?" in call.refused(2, "label", *where)


@pytest.mark.vectors
def test_by_vectors_and_by_asking(call: Call, tmp_path: Path) -> None:
    file = gaps(tmp_path)
    where = ("-c", str(file), "--index", str(tmp_path / "index"))
    call.well("index", *where)
    result = call.well("label", "--dimension", "gender", *where)
    assert "classifier (light): 1.000 right" in result.stdout

    site = open_site(file, tmp_path / "index")
    answers, asked = iter(["1", "", "nonbinary", "q"]), list[str]()

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    examples = tmp_path / "more.jsonl"
    ask(site, "gender", examples, 20, answer)
    records = [json.loads(line) for line in examples.read_text(encoding="utf-8").splitlines()]
    assert [one["gender"] for one in records] == ["female", "nonbinary"]
    # The text is beside it, for Label Studio and Argilla.
    document = next(one for one in site.collection.source if one.id == records[0]["id"])
    assert records[0]["text"] == document.text
    # A label that is given is never written over.
    before = examples.read_bytes()
    for id, label in ((document.id, "male"), ("d00", "female"), ("d26", ""), ("d26", "two\nlines")):
        with pytest.raises(UsageError):
            LabelAsking(site, "gender", examples).answer(replace(document, id=id), label)
    assert examples.read_bytes() == before
    assert len(asked) == 4
    # Who was answered for is not asked for again.
    ask(site, "gender", examples, 20, lambda prompt: "2")
    records = [json.loads(line) for line in examples.read_text(encoding="utf-8").splitlines()]
    assert len({one["id"] for one in records}) == len(records) == 18

    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    before = examples.read_bytes()
    with pytest.raises(KeyboardInterrupt) as ended:
        ask(open_site(gaps(tmp_path / "b"), tmp_path / "index"), "gender", tmp_path / "other.jsonl", 2, interrupted)
    assert "every answer is in" in ended.value.__notes__[0]
    assert examples.read_bytes() == before
