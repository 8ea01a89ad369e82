"""The TREC Fair Ranking track made up: articles, metadata and topics in the official files' names and formats.

    python benchmarks/made_up_track.py FOLDER [--documents 100000] [--year 2022] [--topics 50]

Articles have the length of the real ones (480 words in the mean, log-normal) and words by Zipf's law, with a vocabulary
that grows like that of text. Some words of an article are of its WikiProject, as many of another one, and some of its
region and gender: keywords find relevant pages and others, and groups have words of their own. `--topics` are those of
each split, train and eval. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from fairagent.measures.trec_fair import RULES_2022
from fairagent.measures.trec_fair.pages import DIMENSIONS_2021, QUALITIES

WORDS, COMMON = 5_000_000, 20_000
LENGTH = 300
"""Words of an article, the median."""
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "ol")]
LABELS = {rule.dimension.name: rule.dimension.labels for rule in RULES_2022}
REGIONS = [label for label in LABELS["sub-geo"][1:] if label != "Oceania"]
CONTINENTS = DIMENSIONS_2021[0].labels[1:]
PRONOUNS = {"female": ("she", "her", "woman"), "male": ("he", "his", "man"), "non-binary": ("they", "their", "person")}
OF_PROJECT, OF_GROUP = 0.03, 0.02
"""The shares of an article's words that are of its WikiProject (and of another one), and of its region or gender."""
FIRST_EVAL = 101
"""The ids of the evaluation's topics begin here, those of the training's with 1."""


@cache
def word(rank: int) -> str:
    """A word for each rank, the frequent ones short."""
    number, parts = rank + 1, []
    while number:
        number, place = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[place])
    return "".join(parts)


def write_track(folder: Path, documents: int, year: int = 2022, topics: int = 50, median: int = LENGTH) -> Path:
    """Write all files of a year into `folder`; `median` is the number of words of an article. Return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(year)
    ids = np.arange(documents) * 11 + 12
    numbers = [*range(1, topics + 1), *range(FIRST_EVAL, FIRST_EVAL + topics)]
    own = {number: [word(rank) for rank in rng.integers(300, 30_000, 40).tolist()] for number in numbers}
    projects, others = rng.choice(numbers, (2, documents))
    pages = [page(rng, id) for id in ids.tolist()]
    _write_topics(folder, year, ids, projects, own)
    with lines_of(folder / METADATA[year]) as file:
        file.writelines(json.dumps(one if year == 2022 else of_2021(one)) + "\n" for one in pages)
    with lines_of(folder / CORPUS[year]) as file:
        drawn = zip(ids.tolist(), projects, others, pages, texts(rng, documents, median), strict=True)
        for id, project, other, one, text in drawn:
            words = spiced(rng, text, own[project], own[other], groups_words(one))
            title = " ".join(words[:3])
            body = {"plain": " ".join(words)} if year == 2022 else {"text": wikitext(title, words)}
            url = f"https://en.wikipedia.org/wiki/{id}"
            file.write(json.dumps({"id": id, "title": title, "url": url, **body}) + "\n")
    return folder


CORPUS = {2022: "trec_corpus_20220301_plain.json.gz", 2021: "trec_corpus.json.gz"}
METADATA = {2022: "trec_2022_articles_discrete_assessed.json.gz", 2021: "trec_metadata_eval.json.gz"}


def texts(rng: np.random.Generator, documents: int, median: int = LENGTH) -> Iterator[list[str]]:
    """The words of articles."""
    ranks = np.arange(1, WORDS + 1)
    # Zipf's law for the frequent words, twice as steep beyond: the vocabulary then grows as that of real text does.
    cumulative = np.cumsum(1 / (ranks + 2.7) / np.maximum(1.0, ranks / COMMON) ** 0.75)
    for length in (rng.lognormal(np.log(median), 0.97, documents).astype(int) + 5).tolist():
        drawn = cumulative.searchsorted(rng.random(length) * cumulative[-1])
        yield list(map(word, drawn.tolist()))


def spiced(
    rng: np.random.Generator, words: list[str], of_project: list[str], of_other: list[str], of_groups: list[str]
) -> list[str]:
    """The words, some of them replaced by those of the article's WikiProject, of another one, and of its groups."""
    for own, share in ((of_project, OF_PROJECT), (of_other, OF_PROJECT), (of_groups, OF_GROUP)):
        if own:
            # At least one, also in short articles; the first of `own` are more frequent.
            count = max(1, int(share * len(words)))
            places = rng.integers(0, len(words), count).tolist()
            for place, which in zip(places, (len(own) * rng.random(count) ** 2).astype(int).tolist(), strict=True):
                words[place] = own[which]
    return words


def groups_words(page: dict[str, Any]) -> list[str]:
    """Words that articles of a page's groups have more often."""
    of_gender = [one for gender in page["gender"] for one in PRONOUNS[gender]]
    return [*of_gender, *("".join(filter(str.isalpha, region)).lower() for region in page["page_subcont_regions"])]


def wikitext(title: str, words: list[str]) -> str:
    """An article as its source: a template, bold words, links and a reference."""
    half = len(words) // 2
    first, second = " ".join(words[:half]), " ".join(words[half:-1])
    begin = f"{{{{Infobox|name={title}}}}}\n'''{title}''' {first}<ref>{{{{cite}}}}</ref>"
    return f"{begin}\n== More ==\n{second} [[{words[-1]}]]"


def page(rng: np.random.Generator, id: int) -> dict[str, Any]:
    """The metadata of a page in 2022; a third of the pages are about people, one woman for three men."""
    person = rng.random() < 0.33
    gender = str(rng.choice(["female", "male", "non-binary"], p=[0.245, 0.75, 0.005])) if person else ""
    picked = {name: LABELS[name][rng.integers(len(LABELS[name]))] for name in ("alpha", "age", "pop", "langs")}
    # The later regions have fewer pages.
    places = (len(REGIONS) * rng.random(rng.integers(3)) ** 2).astype(int).tolist()
    return {
        "page_id": id,
        "pred_qual": rng.random(),
        "qual_cat": QUALITIES[rng.integers(len(QUALITIES))],
        "page_countries": [],
        "page_subcont_regions": sorted({REGIONS[place] for place in places}),
        "source_countries": {},
        "source_subcont_regions": {REGIONS[rng.integers(len(REGIONS))]: int(rng.integers(1, 30)), "UNK": 3},
        "gender": [gender] if gender else [],
        "occupations": [LABELS["occ"][rng.integers(1, len(LABELS["occ"]))]] if person else [],
        "years": [1901],
        "num_sitelinks": 3,
        "first_letter_category": picked["alpha"],
        "creation_date_category": picked["age"],
        "relative_pageviews_category": picked["pop"],
        "num_sitelinks_category": picked["langs"],
    }


def of_2021(page: dict[str, Any]) -> dict[str, Any]:
    """The metadata of the same page in 2021."""
    continents = {CONTINENTS[REGIONS.index(region) % len(CONTINENTS)] for region in page["page_subcont_regions"]}
    return {
        "page_id": page["page_id"],
        "quality_score": page["pred_qual"],
        "quality_score_disc": page["qual_cat"],
        "geographic_locations": sorted(continents),
        "gender": page["gender"],
    }


def _write_topics(
    folder: Path, year: int, ids: np.ndarray[Any, Any], projects: np.ndarray[Any, Any], own: dict[int, list[str]]
) -> None:
    """The topics of both splits with their relevant pages, and their keywords."""
    for split, chosen in (
        ("train", [number for number in own if number < FIRST_EVAL]),
        ("eval", [number for number in own if number >= FIRST_EVAL]),
    ):
        judged = {number: ids[projects == number].tolist() for number in chosen}
        about = {number: {"title": " ".join(own[number][:2]), "keywords": own[number][:5]} for number in chosen}
        if year == 2022:
            records = [{"id": n, "title": about[n]["title"], "rel_docs": judged[n]} for n in chosen]
            put(folder / f"trec_2022_{split}_reldocs.jsonl", records)
            put(folder / f"{split}_topics_meta.jsonl", [{"topic_id": n, **about[n]} for n in chosen])
            continue
        plain = [{"id": n, **about[n], "scope": "Made up.", "homepage": f"https://example.org/{n}"} for n in chosen]
        named = "trec_topics.json.gz" if split == "train" else "2021-eval-topics-with-qrels.json.gz"
        put(folder / named, [{**one, "rel_docs": judged[one["id"]]} for one in plain])
        if split == "eval":
            put(folder / "eval-topics.json.gz", plain)


def put(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records as JSON lines."""
    with lines_of(path) as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


@contextmanager
def lines_of(path: Path) -> Iterator[TextIO]:
    """A file to write lines to, gzipped without a time by its name."""
    if path.suffix != ".gz":
        with path.open("w", encoding="utf-8", newline="\n") as plain:
            yield plain
        return
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 3, raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as file,
    ):
        yield file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--year", type=int, choices=CORPUS, default=2022)
    parser.add_argument("--topics", type=int, default=50)
    chosen = parser.parse_args()
    write_track(chosen.folder, chosen.documents, chosen.year, chosen.topics)


if __name__ == "__main__":
    main()
