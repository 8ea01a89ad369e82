"""An encoder without a bias subspace (SentenceDebias, Liang et al. 2020), as a folder that any encoder setting takes.

    python evaluations/debias/split.py STEREOSET_FOLDER evaluations/debias/split
    python evaluations/debias/sentence_debias.py evaluations/debias/split/avoid.jsonl runs/sentence-debias

The pairs are the passages of the library in which the lexicon swaps a word, each with what comes of it.
"""

from __future__ import annotations

import argparse
import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.papers.debias_rag.avoid import Lexicon, load_lexicon, read_avoid
from fairagent.retrieve.encoders import open_sentence_model
from fairagent.types import FloatArray

FLAT = 1e-6
"""A direction in which sentences differ by less, relative to the first, is rounding."""


def counterfactuals(texts: Sequence[str], lexicon: Lexicon, kind: str = "") -> list[tuple[str, str]]:
    """Each text of the class (""; of any) that the lexicon swaps a word in, with the text that comes of it."""
    of_kind = [text for text in texts if kind in ("", lexicon.tag(text))]
    return [(text, other) for text in of_kind if (other := lexicon.swap(text)) != text]


def bias_subspace(first: FloatArray, second: FloatArray, k: int = 1) -> FloatArray:
    """The `k` directions (k, d) in which the vectors of pairs, (n, d) each, differ the most; orthonormal.

    The principal components of all vectors, each without the mean of its pair. Raises UsageError for k < 1, DataError
    where the pairs do not differ in so many directions.

    >>> bias_subspace(np.array([[1.0, 2.0], [1.0, 5.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])).round(6).tolist()
    [[0.0, 1.0]]
    """
    if k < 1:
        raise UsageError(f"a bias subspace has at least one direction, not {k}")
    half = (np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)) / 2
    # The other half of each pair is its mirror image, and changes no direction.
    _, sizes, directions = np.linalg.svd(half, full_matrices=False)
    if k > int((sizes > FLAT * max(sizes[:1].sum(), FLAT)).sum()):
        raise DataError(f"{len(half)} pairs of counterfactual sentences do not differ in {k} directions; give more")
    chosen = directions[:k]
    # Of the two signs of a direction the one whose largest part is positive.
    largest = chosen[np.arange(k), np.abs(chosen).argmax(axis=1)]
    return np.asarray(chosen * np.sign(largest)[:, None])


def without(vectors: FloatArray, subspace: FloatArray) -> FloatArray:
    """The vectors (n, d) without what they have in the directions of the subspace (k, d).

    >>> without(np.array([[3.0, 4.0]]), np.array([[0.0, 1.0]])).tolist()
    [[3.0, 0.0]]
    """
    return np.asarray(vectors - (vectors @ subspace.T) @ subspace)


def save_debiased(
    name: str, pairs: Sequence[tuple[str, str]], folder: Path, k: int = 1, device: str = "cpu"
) -> FloatArray:
    """Write the encoder `name` without the subspace of the pairs to `folder`; the subspace, (k, d).

    Raises BackendUnavailable where the encoder is not on this machine, DataError as `bias_subspace`.
    """
    torch = importlib.import_module("torch")
    if not pairs:
        raise DataError("there is no pair of counterfactual sentences; give texts in which the lexicon swaps a word")
    model = open_sentence_model(name, device).model
    unit = model.similarity_fn_name != "dot"
    sides = [
        model.encode_document([pair[side] for pair in pairs], normalize_embeddings=unit, show_progress_bar=False)
        for side in (0, 1)
    ]
    subspace = bias_subspace(sides[0], sides[1], k)
    with warnings.catch_warnings():
        # The library has moved its layers; those before the move have them here alone.
        warnings.simplefilter("ignore", DeprecationWarning)
        layers = importlib.import_module("sentence_transformers.models")
        width = subspace.shape[1]
        layer = layers.Dense(width, width, bias=False, activation_function=torch.nn.Identity())
    keep = np.eye(width) - subspace.T @ subspace
    with torch.no_grad():
        layer.linear.weight.copy_(torch.tensor(keep, dtype=layer.linear.weight.dtype))
    # Lengths of 1 come before the projection, as in the paper, and after it again where vectors are compared by cosine.
    ends = [layers.Normalize(), layer, layers.Normalize()] if unit else [layer]
    for end in ends:
        model.append(end)
    model.save_pretrained(str(folder), create_model_card=False)
    return subspace


def main(arguments: list[str] | None = None) -> None:
    """Write the encoder's folder, and say what it was made from."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--lexicon", default="")
    parser.add_argument("--kind", default="gender", help="the bias class of the passages; '' for all")
    parser.add_argument("-k", type=int, default=1, help="how many directions are taken out")
    options = parser.parse_args(arguments)
    texts = [passage.text for passage in read_avoid(options.library)]
    pairs = counterfactuals(texts, load_lexicon(options.lexicon), options.kind)
    save_debiased(options.encoder, pairs, options.folder, options.k)
    print(f"{options.folder}: {options.encoder} without {options.k} direction(s), from {len(pairs)} pairs")


if __name__ == "__main__":
    main()
