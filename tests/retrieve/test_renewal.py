"""What a model makes of documents is brought up to date: made for new texts alone, and the same as made of all."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guests.dense import test_splade as splade

from fairagent.guests.dense.splade import build_splade_index
from fairagent.retrieve import dense as dense_engine
from fairagent.retrieve.dense import PROBE_TEXT, build_dense_index
from fairagent.storage.digests import differences
from fairagent.types import Document

from . import test_dense as dense
from .test_dense import MADE, Made

KINDS = pytest.mark.parametrize(
    ("build", "words"), [(build_dense_index, dense.Words), (build_splade_index, splade.Words)], ids=["dense", "splade"]
)
CHANGED = {7: "a new river", 50: "court court", 51: "law and bank", 99: "boat boats"}
NEW = [Document("new1", "another judge"), Document("new2", "", "River")]
EDITED = Made(
    [
        NEW[0],
        # Some are gone, one has moved, and of one only what is not encoded is another.
        *(replace(one, text=CHANGED.get(n, one.text)) for n, one in enumerate(MADE.made) if n not in (0, 20, 98)),
        replace(MADE.made[20], extra={"year": 1}),
        NEW[1],
    ],
    "edited",
)
FRESH = [" ".join(f"{one.title} {one.text}".split()) for one in (NEW[0], *(EDITED.made[n] for n in (7, 49, 50, 97)))]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "fairagent-files.json"}


@KINDS
@pytest.mark.parametrize("chunk", [16, 1000])
def test_only_new_texts_are_encoded_and_every_file_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Any, words: Any, chunk: int
) -> None:
    monkeypatch.setattr(dense_engine, "CHUNK", chunk)
    build(MADE, tmp_path / "index", words())
    encoder, told = words(), []
    build(EDITED, tmp_path / "index", encoder, told.append)
    assert encoder.encoded == [PROBE_TEXT, *FRESH, "River"]
    assert told[-1] == len(EDITED.made)
    build(EDITED, tmp_path / "anew", words())
    assert files(tmp_path / "index") == files(tmp_path / "anew")
    assert differences(tmp_path / "index", whole=True) == []


@KINDS
def test_nothing_is_taken_over_from_another_model_or_from_damaged_files(tmp_path: Path, build: Any, words: Any) -> None:
    build(MADE, tmp_path / "index", words())
    (name,) = {"vectors.npy", "weights.npy"} & {path.name for path in (tmp_path / "index").iterdir()}
    damaged = bytearray((tmp_path / "index" / name).read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "index" / name).write_bytes(damaged)
    encoder = words()
    build(EDITED, tmp_path / "index", encoder)
    assert len(encoder.encoded) == 1 + len(EDITED.made)
    other = words(name="others")
    build(MADE, tmp_path / "index", other)
    assert len(other.encoded) == 1 + len(MADE.made)
