"""The files under evaluations/utility are right; those of TREC Deep Learning need only what their page says."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fairagent.errors import FairAgentError
from fairagent.evaluate.check import check_experiment

FOLDER = Path(__file__).resolve().parents[3] / "evaluations" / "utility"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
COUNTED = {2019: 43, 2020: 54}
WITH_THREE = {2019: 36, 2020: 46}
"""Topics with a passage of grade 3."""


@pytest.mark.shared
def test_cranfield(shared: Path, same_words: None, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    checked = check_experiment(FOLDER / "cranfield.yaml", environ={"FAIRAGENT_INDEX": str(tmp_path)})
    assert "cranfield.yaml" in README
    assert checked.plan.baseline == "Rel"
    assert len(checked.plan.topics) + len(checked.excluded) == 225
    assert [name for name in checked.plan.systems if "reversed" in name] == ["BM25 reversed", "MiniLM reversed"]


@pytest.mark.shared
@pytest.mark.parametrize("year", COUNTED)
def test_trec_deep_learning_with_texts(shared: Path, same_words: None, tmp_path: Path, year: int) -> None:
    data = shared / "data/trec_dl"
    ids: dict[str, None] = {}
    with gzip.open(data / "qrels.tsv.gz", "rt") as qrels, gzip.open(data / "runs_top100.tsv.gz", "rt") as runs:
        for line in (*qrels, *runs):
            ids[line.split()[2]] = None
    (tmp_path / "passages.tsv").write_text("".join(f"{id}\ta passage\n" for id in ids))
    text = (FOLDER.parent / "collections" / f"trec_dl_{year}.yaml").read_text()
    text = text.replace("../../../msmarco/collection.tsv", str(tmp_path / "passages.tsv"))
    (tmp_path / "collection.yaml").write_text(text.replace("../../../shared/data/trec_dl", str(data)))
    experiment = (FOLDER / f"trec_dl_{year}.yaml").read_text().replace("../../../shared/data/trec_dl", str(data))
    file = tmp_path / "experiment.yaml"
    file.write_text(experiment.replace(f"../collections/trec_dl_{year}.yaml", "collection.yaml"))
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    checked = check_experiment(file, environ=environ)
    assert len(checked.plan.topics) == COUNTED[year]
    assert checked.excluded == {}
    file.write_text(file.read_text().replace("relevant: 2", "relevant: 3"))
    assert len(check_experiment(file, environ=environ).plan.topics) == WITH_THREE[year]


@pytest.mark.shared
def test_what_is_missing_is_said(shared: Path) -> None:
    with pytest.raises(FairAgentError) as error:
        check_experiment(FOLDER / "trec_dl_2019.yaml", environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    message = str(error.value)
    assert "msmarco/collection.tsv: no such file (documents)" in message or "bert-large-uncased" in message
    assert "msmarco/collection.tsv" in README
    assert "bert-large-uncased" in README
