"""Vector search as a part: its ANN index is made where it is wanted, searched, measured by group, and reported."""

from pathlib import Path
from typing import Any

import pytest
from evaluate import words

from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.retrieve import ann, vectors
from fairagent.retrieve.ann import AnnManifest
from fairagent.retrieve.encoders import BUNDLED
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import ann_folder, ann_reports
from fairagent.search.pipeline import open_site, prepare
from fairagent.settings import Settings
from fairagent.types import Query

from .test_dense import Words

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> Words:
    encoder = Words()
    monkeypatch.setattr(vectors, "open_encoder", lambda model, device, served: encoder)
    return encoder


def site(place: Path, **engine: Any) -> Site:
    if not (place / "collection.yaml").exists():
        words.write(place)
    engine = {"kind": "dense", "encoder": BUNDLED, **engine}
    return open_site(place / "collection.yaml", place / "index", Settings(profile="engine", engine=engine))


def told(site: Site) -> list[str]:
    names = dict[str, None]()
    prepare(site, lambda what, done: names.setdefault(what))
    return list(names)


@pytest.mark.parametrize(
    ("when", "exact", "made"), [("auto", 39, True), ("auto", 40, False), ("always", 40, True), ("never", 1, False)]
)
def test_it_is_made_where_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, exact: int, made: bool
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(ann, "EXACT", exact)
    here = site(tmp_path, ann=when)
    assert told(here) == ["indexing words", "embedding words", *(["ANN index of words"] if made else [])]
    assert ann_folder(here, BUNDLED).is_dir() is made
    assert len(list(ann_reports(here))) == made
    assert told(site(tmp_path, ann=when)) == []
    engine = here.settings.engine.build(here)
    assert len(engine.search(Query("judge singer"), 8)) == 8


def test_an_index_that_is_not_there_or_of_other_embeddings_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    here, exact = site(tmp_path, ann="always"), site(tmp_path, ann="never")
    told(exact)
    with pytest.raises(BackendUnavailable, match=r"no ANN index at .*`fairagent index`, or set `ann: never`"):
        here.settings.engine.build(here)
    assert exact.settings.engine.build(exact)
    told(here)
    file = ann_folder(here, BUNDLED) / AnnManifest.FILE
    file.write_text(file.read_text().replace('"vectors": "', '"vectors": "0'))
    with pytest.raises(IndexMismatch, match=r"was not made from the embeddings at .*\(other vectors\)"):
        here.settings.engine.check(here)
    # Who searches without it is not kept from that.
    exact.settings.engine.check(exact)


def test_the_groups_of_the_collection_and_its_topics_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(ann, "COUNTED", 1)
    here = site(tmp_path, ann="always")
    told(here)
    ((place, found),) = ann_reports(here)
    assert place == ann_folder(here, BUNDLED)
    assert (found.queries, found.recall) == (40 + len(here.collection.topics), 1)
    dimensions = here.collection.groups.dimensions
    labels = {f"{name}: {label}" for name in dimensions for label in here.collection.groups.labels(name)}
    assert labels <= set(found.groups) <= labels | {f"{name}: unknown" for name in dimensions}
