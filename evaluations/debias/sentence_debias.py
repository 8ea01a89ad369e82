"""An encoder without a bias subspace (SentenceDebias, Liang et al. 2020), as a folder that any encoder setting takes.

    python evaluations/debias/split.py STEREOSET_FOLDER evaluations/debias/split
    python evaluations/debias/sentence_debias.py evaluations/debias/split/avoid.jsonl runs/sentence-debias

The pairs are the passages of the library in which the lexicon swaps a word, each with what comes of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairagent.papers.debias_rag.avoid import read_avoid
from fairagent.papers.debias_rag.lexicon import load_lexicon
from fairagent.papers.debias_rag.sentence_debias import counterfactuals, save_debiased


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
