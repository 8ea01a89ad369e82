"""Cases 108 to 114: embeddings of another encoder; ANN indexes damaged, of others, too poor; processes that die."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from retrieve.test_ann import DOCUMENTS as MANY
from retrieve.test_ann import ENCODER, QUERIES
from retrieve.test_dense import MADE, Made, Words
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.retrieve import ann as ann_build
from fairagent.retrieve import manifest
from fairagent.retrieve.ann import AnnManifest, build_ann, open_ann
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.storage.digests import record_files

from .damage import harm, trials
from .tiny import write

pytest.importorskip("faiss")

DOCUMENTS = Made(MANY.made[:4000])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Embeddings of 4,000 documents, and their ANN index."""
    folder = tmp_path_factory.mktemp("made")
    build_dense_index(DOCUMENTS, folder / "dense", ENCODER)
    build_ann(DenseRetriever(folder / "dense", ENCODER), folder / "ann")
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


def engine(folder: Path) -> DenseRetriever:
    return DenseRetriever(folder / "dense", ENCODER, ann=open_ann(folder / "ann", folder / "dense"))


def test_108_vectors_of_another_encoder_are_refused_with_both_names(tmp_path: Path) -> None:
    build_dense_index(MADE, tmp_path / "dense", Words(name="mine"))
    with pytest.raises(IndexMismatch, match=r"made with 'mine', and 'theirs' makes others; use that model, or build"):
        DenseRetriever(tmp_path / "dense", Words(name="theirs", salt="other"))


def test_109_a_damaged_ann_index_is_refused(made: Path, tmp_path: Path) -> None:
    """Whatever happens to whichever of its files: no ranking changes silently."""
    expected = [engine(made).search(query, 20).ids for query in QUERIES[:3]]
    chance, refused = random.Random(121), 0
    tried = trials(10)
    for number in range(tried):
        copy = tmp_path / f"{number}"
        shutil.copytree(made, copy)
        how = harm(copy / "ann", chance)
        try:
            assert [engine(copy).search(query, 20).ids for query in QUERIES[:3]] == expected, how
        except (IndexMismatch, BackendUnavailable):
            refused += 1
        shutil.rmtree(copy)
    assert refused >= 0.8 * tried


def test_111_an_ann_index_that_is_not_there_is_no_other_search(tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    options = ["-c", str(file), "--index", str(tmp_path / "index"), "--set", "engine=dense"]
    run = CliRunner().invoke
    assert run(app, ["index", *options]).exit_code == 0
    result = run(app, ["search", "law", *options, "--set", "engine.ann=always", "--set", "profile=engine"])
    assert result.exit_code == 3
    assert "no ANN index at" in result.stderr
    assert "make it with `fairagent index`, or set `ann: never`" in " ".join(result.stderr.split())


def test_112_an_ann_index_that_finds_too_little_is_looked_at_further_or_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense, report = DenseRetriever(made / "dense", ENCODER), AnnManifest.read(made / "ann")
    assert report.recall >= ann_build.FLOOR == 0.98
    monkeypatch.setattr(ann_build, "FLOOR", 0.6)
    assert build_ann(dense, tmp_path / "poor").probes < report.probes
    monkeypatch.setattr(ann_build, "FLOOR", 1.01)
    with pytest.raises(DataError, match="set `ann: never` for exact search"):
        build_ann(dense, tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("device", ["cuda:93", "nonsense"])
def test_114_a_device_that_is_not_there_is_named_before_anything_is_embedded(tmp_path: Path, device: str) -> None:
    file = write(tmp_path / "files")
    options = ["-c", str(file), "--index", str(tmp_path / "index"), "--set", "engine={kind: dense, encoder: any}"]
    options += ["--device", device]
    result = CliRunner().invoke(app, ["index", *options])
    assert result.exit_code == 2
    assert f"device '{device}' cannot be used here" in " ".join(result.stderr.split())
    assert not list(tmp_path.glob("index-*"))


def test_110_an_ann_index_of_other_embeddings_is_refused(copy: Path) -> None:
    """Made again, they may be other numbers of the same documents: by another release of the model."""
    vectors = np.load(copy / "dense" / "vectors.npy")
    vectors[5, 3] += 1
    np.save(copy / "dense" / "vectors.npy", vectors)
    record_files(copy / "dense")
    with pytest.raises(IndexMismatch, match=r"vectors: index \w{64}, embeddings"):
        engine(copy)


def test_113_what_was_embedded_stays_where_its_ann_index_is_broken_off(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(copy / "ann")
    before = {path.name: path.read_bytes() for path in (copy / "dense").iterdir()}

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manifest, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        build_ann(DenseRetriever(copy / "dense", ENCODER), copy / "ann")
    assert not (copy / "ann").exists()
    assert {path.name: path.read_bytes() for path in (copy / "dense").iterdir()} == before
