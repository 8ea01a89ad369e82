"""A collection of long documents from end to end: passages are searched and read, documents are ranked and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent import build_index, load_collection, open_agent
from fairagent.errors import IndexMismatch

SETTINGS = """\
name: long
documents: {path: docs.jsonl, title: title}
groups: {path: docs.jsonl, dimensions: {gender: {}}}
population: {gender: {female: 0.5, male: 0.5}}
chunks: {tokens: 64, overlap: 16}
"""


@pytest.fixture(scope="module")
def settings_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pages of 60 sentences, one of which, far down, is about lawyers."""
    pytest.importorskip("llama_index.core")
    folder = tmp_path_factory.mktemp("long")
    pages = []
    for n in range(12):
        gender = "female" if n >= 8 else "male"
        lines = [f"Page {n} speaks of garden {n * i % 17} and river {i}." for i in range(60)]
        name = chr(65 + n)
        lines[40] = f"He was a lawyer, a lawyer of {name}ville." if gender == "male" else f"She, {name}, was a lawyer."
        pages.append({"id": f"d{n}", "title": f"Page {n}", "text": " ".join(lines), "gender": gender})
    (folder / "docs.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    (folder / "long.yaml").write_text(SETTINGS, encoding="utf-8")
    build_index(load_collection(folder / "long.yaml"), folder / "index")
    return folder / "long.yaml"


def test_documents_are_ranked_and_their_best_passages_read(settings_file: Path) -> None:
    agent = open_agent(
        settings_file,
        settings_file.parent / "index",
        n=6,
        expansion={"documents": 0},
        target="uniform",
        rerank={"fairness": 9},
    )
    result = agent.answer("lawyer")
    assert len(result.search.ranking) == 6
    assert set(result.search.ranking.ids) < {f"d{n}" for n in range(12)}
    # Exposure is that of documents, through their group labels.
    assert {label for hit in result.search.hits for label in hit.groups["gender"]} == {"female", "male"}
    assert result.search.trace.exposures[0].unknown == 0
    assert result.search.trace.steps[0].ranking.ids[:8] == tuple(sorted(f"d{n}" for n in range(8)))
    # The sentence about lawyers lies beyond the first passage of each page.
    assert result.answer.text.count("lawyer") >= 6
    assert len(result.cited) == 6
    texts = agent.retriever.passages(result.query, result.search.ranking.ids)
    assert all("lawyer" in text.text and len(text.text) < 600 for text in texts)
    assert [hit.title for hit in result.context] == [text.title for text in texts]


def test_other_chunks_are_another_index(settings_file: Path) -> None:
    other = settings_file.with_name("other.yaml")
    other.write_text(SETTINGS.replace("64", "80"), encoding="utf-8")
    with pytest.raises(IndexMismatch, match="fingerprint"):
        open_agent(other, settings_file.parent / "index")
