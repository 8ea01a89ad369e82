"""model2vec models by name: the mean of token vectors by hand, for a tiny one; nothing is fetched from anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import BackendUnavailable
from fairagent.retrieve.encoders import open_encoder

model2vec = pytest.importorskip("model2vec")

WORDS = ["[UNK]", "judge", "court", "river", "boat"]
VECTORS = np.array([[9, 9, 9], [1, 0, 0], [1, 1, 0], [0, 0, 2], [0, 1, 1]], dtype=np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    place = tmp_path_factory.mktemp("static") / "tiny"
    model2vec.StaticModel(VECTORS, tokenizer).save_pretrained(place)
    return place


def test_vectors_are_means_of_known_words_with_length_one(folder: Path) -> None:
    encoder = open_encoder(f"model2vec:{folder}")
    assert encoder.name == f"model2vec:{folder}"
    found = encoder.documents(["judge court", "river nobody", "", "nobody"])
    expected = [[2 / 5**0.5, 1 / 5**0.5, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert found == pytest.approx(np.array(expected), abs=1e-6)
    assert found.dtype == np.float32
    assert np.array_equal(encoder.queries(["judge court"])[0], found[0])
    assert encoder.documents([]).shape == (0, 3)


def test_a_model_in_the_hub_cache(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[tuple[str, bool]] = []

    def snapshot(name: str, local_files_only: bool) -> str:
        asked.append((name, local_files_only))
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert open_encoder("model2vec:somebody/tiny").documents(["judge"]).shape == (1, 3)
    assert asked == [("somebody/tiny", True)]


@pytest.mark.parametrize("name", ["somebody/nothing-like-it", "nowhere"])
def test_what_is_not_on_this_machine_is_not_fetched(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackendUnavailable, match=f"no model2vec model '{name}' on this machine"):
        open_encoder(f"model2vec:{name}")
