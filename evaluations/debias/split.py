"""StereoSet in two: an avoid library from the stereotypes of some target terms, a test of all examples of the others.

    python evaluations/debias/split.py STEREOSET_FOLDER OUT [--share 0.5] [--seed 1]

writes OUT/avoid.jsonl and OUT/test.jsonl. No target term is in both; whatever else of the library stands in the test
all the same (a sentence that two terms share) is left out of the library, and counted.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from fairagent.collection.known import overlap, refuse_overlap
from fairagent.papers.debias_rag.avoid import AvoidPassage, write_avoid
from fairagent.papers.debias_rag.benchmarks.items import StereoSetExample, read_stereoset
from fairagent.storage.files import write_whole

FILES = ("intrasentence.jsonl", "intersentence.jsonl")


def passage(example: StereoSetExample) -> str:
    """The stereotype as a text of its own: the sentence, after its context where it is a second one."""
    if example.part == "intrasentence":
        return example.stereotype
    return f"{example.context} {example.stereotype}"


def main() -> None:
    """Write both halves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stereoset", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--share", type=float, default=0.5, help="share of the target terms that the library gets")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    examples = [
        (f"{name[:5]}-{id}", example)
        for name in FILES
        for id, example in read_stereoset(options.stereoset / name).items()
    ]
    terms = sorted({example.target.casefold() for _, example in examples})
    random.Random(options.seed).shuffle(terms)
    ours = set(terms[: round(options.share * len(terms))])
    tested = [example for _, example in examples if example.target.casefold() not in ours]
    asked = [text for example in tested for text in (example.query, *example.sentences)]
    library = [AvoidPassage(id, passage(one), one.kind) for id, one in examples if one.target.casefold() in ours]
    leaking = set(overlap(asked, [one.text for one in library], inside=True))
    apart = [one for one in library if one.text not in leaking]
    refuse_overlap([one.text for one in apart], asked, "the library", "the test", inside=True)

    options.out.mkdir(parents=True, exist_ok=True)
    write_avoid(options.out / "avoid.jsonl", apart)
    keys = {"kind": "bias_type"}
    fields = ("kind", "target", "context", "stereotype", "anti_stereotype", "unrelated")
    lines = [json.dumps({keys.get(name, name): getattr(one, name) for name in fields}) for one in tested]
    write_whole(options.out / "test.jsonl", "\n".join([*lines, ""]))
    print(
        f"{len(terms)} target terms, {len(ours)} of them for the library: {len(apart)} passages "
        f"({len(library) - len(apart)} left out, since the test has them too); {len(tested)} examples to test"
    )


if __name__ == "__main__":
    main()
