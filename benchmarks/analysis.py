"""The light core's analyzers against Lucene's: how many texts and words have other terms (0 of all), and how fast.

    python benchmarks/analysis.py collections [FILE.yaml ...] | fuzz [CASES] | words | speed | golden

`collections` compares every document and topic of the collections in evaluations/ whose data are here, `fuzz` random
texts of all scripts, `words` the words of those collections, each analyzer by itself. `golden` writes
tests/retrieve/bm25/lucene_terms.jsonl. All but `speed` need the extra `lucene`.

Where fairagent/retrieve/bm25/word_breaks.txt comes from: Lucene's StandardTokenizerImpl holds a table of classes, one
for all characters that its rules do not tell apart (ZZ_CMAP_TOP, ZZ_CMAP_BLOCKS; read by reflection). Its 29 classes
are sets with the Unicode properties that the package regex names (Word_Break, LB=SA, Script=Han, Script=Hiragana,
Extended_Pictographic, Emoji), in the version that Lucene was made with.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairagent.collection import load_collection
from fairagent.errors import FairAgentError
from fairagent.retrieve.bm25.analysis import Analyzer, open_analyzer, split_words

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "retrieve" / "bm25" / "lucene_terms.jsonl"
SHARED_NAMES = ("english", "english-nostem", "whitespace")


def lucene_analyzer(name: str) -> Analyzer:
    from fairagent.guests.lucene.bm25 import LuceneAnalyzer

    return LuceneAnalyzer(name)


def compare(name: str, texts: Iterable[str]) -> tuple[int, list[str]]:
    """How many texts there are, and those with other terms than Lucene's."""
    light, lucene = open_analyzer(name), lucene_analyzer(name)
    count, other = 0, []
    for count, text in enumerate(texts, 1):  # noqa: B007
        if light.terms(text) != lucene.terms(text):
            other.append(text)
    return count, other


def show(what: str, name: str, count: int, other: list[str]) -> None:
    print(f"{what}, {name}: {count} texts, {len(other)} differ", flush=True)
    light, lucene = open_analyzer(name), lucene_analyzer(name)
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


WESTERN = " aAbZsS019_..,;:''\"\"’‘·éÉßÆþ×÷ªº¼©\u00ad“”–…€ŁıȺʼ\t\n\x85\xa0"


def random_texts(cases: int, seed: int = 1) -> Iterator[str]:
    """Short texts: of ASCII, of western languages, of one or two blocks, of what is frequent, of everything."""
    rng = random.Random(seed)
    kinds = (FREQUENT, WESTERN, "".join(filter(str.isascii, FREQUENT)))
    for _ in range(cases):
        few, ranges = rng.choice(kinds), rng.sample(RANGES, k=rng.choice((1, 2, len(RANGES))))
        known = rng.choice((0.0, 0.4, 0.95, 1.0))
        yield "".join(
            rng.choice(few) if rng.random() < known else chr(rng.randrange(*rng.choice(ranges)))
            for _ in range(rng.choice((3, 8, 20, 40)))
        )


PARTS = (
    "a e i o u y b l t s bl log able ible abli ibli ology ational tional enci anci izer bli "
    "alli entli eli ousli ization "
    "ation ator alism iveness fulness ousness "
    "aliti iviti biliti logi icate ative alize iciti ical ful ness al ance ence "
    "er ic ant ement ment ent sion tion ou ism ate iti ous ive "
    "ize e ll ss sses ies s eed ed ing at iz y ie é 1 ' cc kk vv hh ww xx dd tt ll ed ing"
)


def random_words(cases: int, seed: int = 3) -> Iterator[str]:
    """Words of what Porter's rules look at."""
    rng = random.Random(seed)
    for _ in range(cases):
        yield "".join(rng.choices(PARTS.split(), k=rng.randrange(1, 7)))


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


def write_golden() -> None:
    """Some hundred texts with Lucene's terms: hand-made ones are in the tests themselves."""
    texts = {
        "english": [*random_texts(250, 4), *random_words(150, 4), *long_texts(5, 4)],
        "english-nostem": [*random_texts(100, 5), *long_texts(2, 5)],
        "whitespace": [*random_texts(100, 6), *long_texts(2, 6)],
    }
    with GOLDEN.open("w", encoding="ascii") as file:
        for name, chosen in texts.items():
            lucene = lucene_analyzer(name)
            for text in chosen:
                file.write(json.dumps({"analyzer": name, "text": text, "terms": lucene.terms(text)}) + "\n")


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
    elif what == "golden":
        write_golden()
    elif what == "fuzz":
        cases = int(rest[0]) if rest else 100_000
        for name in SHARED_NAMES:
            show("random texts", name, *compare(name, random_texts(cases)))
            show("random words", name, *compare(name, random_words(cases)))
            show("long words", name, *compare(name, long_texts(cases // 20)))


if __name__ == "__main__":
    main(*sys.argv[1:] or ["speed"])
