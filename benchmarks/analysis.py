"""The light core's analyzers against Lucene's: how many texts and words have other terms (0 of all), and how fast.

    python benchmarks/analysis.py collections [FILE.yaml ...] | fuzz [CASES] | words | speed | golden | classes

`collections` compares every document and topic of the collections in evaluations/ whose data are here, `fuzz` random
texts of all scripts, `words` the stems of those collections' words, each analyzer by itself. `golden` writes
tests/retrieve/bm25/lucene_terms.jsonl, `classes` prints which characters Lucene's word breaks do not tell apart, as
fairagent/retrieve/bm25/word_classes.py has them. All but `speed` need the extra `lucene`.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairagent.collection import load_collection
from fairagent.errors import FairAgentError
from fairagent.retrieve.bm25.analysis import open_analyzer
from fairagent.retrieve.bm25.words import split_words
from fairagent.retrieve.lucene.analysis import Analyzer as LuceneAnalyzer

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "retrieve" / "bm25" / "lucene_terms.jsonl"
SHARED_NAMES = ("english", "english-nostem", "whitespace")


def compare(name: str, texts: Iterable[str]) -> tuple[int, list[str]]:
    """How many texts there are, and those with other terms than Lucene's."""
    light, lucene = open_analyzer(name), LuceneAnalyzer(name)
    count, other = 0, []
    for count, text in enumerate(texts, 1):  # noqa: B007
        if light.terms(text) != lucene.terms(text):
            other.append(text)
    return count, other


def show(what: str, name: str, count: int, other: list[str]) -> None:
    print(f"{what}, {name}: {count} texts, {len(other)} differ", flush=True)
    light, lucene = open_analyzer(name), LuceneAnalyzer(name)
    for text in other[:10]:
        ours, theirs = light.terms(text), lucene.terms(text)
        at = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if len(set(pair)) > 1), 0)
        print("  ", ascii(text[:80]), ascii(ours[at : at + 3]), "Lucene:", ascii(theirs[at : at + 3]))


def collection_files() -> Iterator[Path]:
    yield from sorted((ROOT / "evaluations" / "collections").glob("*.yaml"))


def texts_of(path: Path) -> Iterator[str]:
    """The texts and topics of a collection; nothing where its data are not here."""
    try:
        collection = load_collection(path)
    except FairAgentError as error:
        print(f"{path.name}: not here ({str(error).splitlines()[0][:80]})", file=sys.stderr)
        return
    for document in collection.documents():
        yield document.text
        if document.title:
            yield document.title
    for topic in collection.topics.values():
        yield topic.query


# Every script, punctuation that joins words, marks, emoji, what is not assigned.
RANGES = (
    (0x20, 0x7F), (0x20, 0x7F), (0, 0x20), (0xA0, 0x250), (0x250, 0x590), (0x590, 0x600), (0x600, 0x900),
    (0x900, 0xE00), (0xE00, 0x1200), (0x1200, 0x2000), (0x2000, 0x2070), (0x2070, 0x2400), (0x2400, 0x2E80),
    (0x2E80, 0x3100), (0x3100, 0xD800), (0x4E00, 0xA000), (0xAC00, 0xD7B0), (0xE000, 0x10000), (0xFE00, 0x10000),
    (0x10000, 0x20000), (0x1F000, 0x1FB00), (0x1F1E6, 0x1F200), (0x20000, 0x30000), (0xE0000, 0xE0200),
    (0x30000, 0x110000),
)  # fmt: skip
FREQUENT = (
    "aAbZsS015 __..,;:''\"\"’·‿#*\n\u200d\u200d\ufe0f\ufe0f\ufe0e\u20e3\u0301\u00adאבג״カナーかの漢字가กาลາဗкм"
    "İΣς𝐚😀👩Ⓜℹ☝🇩🇪🏽\U000e0067\U000e007f"
)


def random_texts(cases: int, seed: int = 1) -> Iterator[str]:
    """Short texts that mix scripts, each of a few characters that Lucene may tell apart."""
    rng = random.Random(seed)
    for _ in range(cases):
        few = rng.random() < 0.5
        length = rng.choice((3, 8, 20, 40))
        yield "".join(
            rng.choice(FREQUENT) if few or rng.random() < 0.4 else chr(rng.randrange(*rng.choice(RANGES)))
            for _ in range(length)
        )


def long_texts(cases: int, seed: int = 2) -> Iterator[str]:
    """Texts with words about as long as Lucene allows, or much longer."""
    rng = random.Random(seed)
    for _ in range(cases):
        parts = []
        for _ in range(rng.randrange(1, 6)):
            part = "".join(rng.choices(FREQUENT, k=rng.randrange(1, 4)))
            parts.append(part * rng.choice((1, 2, 64, 84, 100, 127, 128, 129, 250, 254, 255, 256, 300, 600)))
        yield "".join(parts)


def words_of_collections() -> list[str]:
    counts = Counter[str]()
    for path in collection_files():
        for text in texts_of(path):
            counts.update(split_words(text))
    return list(counts)


def speed() -> None:
    texts = [text for path in collection_files() for text in texts_of(path)]
    for what, chosen in (
        ("ASCII", [text for text in texts if text.isascii()]),
        ("not only ASCII", [text for text in texts if not text.isascii()]),
    ):
        began = time.process_time()
        words = sum(len(split_words(text)) for text in chosen)
        took = time.process_time() - began
        print(f"{what}: {len(chosen)} texts, {words} words, {words / took / 1e6:.2f} million words a CPU second")


def main(what: str, *rest: str) -> None:
    if what == "speed":
        speed()
    elif what == "collections":
        for path in map(Path, rest) if rest else collection_files():
            texts = list(texts_of(path))
            show(path.stem, "english", *compare("english", texts))
    elif what == "words":
        words = words_of_collections()
        for name in SHARED_NAMES:
            show("words of the collections", name, *compare(name, words))
    elif what == "fuzz":
        cases = int(rest[0]) if rest else 100_000
        for name in SHARED_NAMES:
            show("random texts", name, *compare(name, random_texts(cases)))
            show("long words", name, *compare(name, long_texts(cases // 20)))


if __name__ == "__main__":
    main(*sys.argv[1:] or ["speed"])
