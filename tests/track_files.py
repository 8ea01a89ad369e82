"""The track's official files, small and made up, in exactly their formats."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ARTICLES: list[dict[str, Any]] = [
    {"id": 12, "title": "Ada", "url": "https://en.wikipedia.org/wiki/Ada", "plain": "Ada wrote programs in London."},
    {"id": 7, "title": "Nauru", "url": "https://en.wikipedia.org/wiki/Nauru", "plain": "An island of phosphate."},
    {"id": 12, "title": "Ada again", "url": "https://en.wikipedia.org/wiki/Ada", "plain": "Not read."},
    {"id": 70000001, "title": "Bob", "url": "https://en.wikipedia.org/wiki/Bob", "plain": "Bob wrote programs."},
]
PAGES: list[dict[str, Any]] = [
    {
        "page_id": 12,
        "pred_qual": 0.7,
        "qual_cat": "C",
        "page_countries": ["United Kingdom"],
        "page_subcont_regions": ["Northern Europe", "Southern Asia"],
        "source_subcont_regions": {"UNK": 1, "Northern Europe": 3},
        "gender": ["female", "transgender male"],
        "occupations": ["mathematician", "writer"],
        "first_letter_category": "a-d",
        "creation_date_category": "2001-2006",
        "relative_pageviews_category": "High",
        "num_sitelinks_category": "5+ languages",
    },
    {
        "page_id": 7,
        "qual_cat": "Stub",
        "page_subcont_regions": ["Micronesia", "Polynesia", "Caribbean"],
        "source_subcont_regions": {},
        "gender": [],
        "occupations": [],
        "first_letter_category": "l-r",
        "creation_date_category": "2007-2011",
        "relative_pageviews_category": "Low",
        "num_sitelinks_category": "English only",
    },
    {"page_id": 12, "qual_cat": "FA", "page_subcont_regions": ["Antarctica"], "gender": ["male"]},
    {
        "page_id": 70000001,
        "qual_cat": "B",
        "page_subcont_regions": ["Atlantis"],
        "source_subcont_regions": {"UNK": 2},
        "gender": ["non-binary"],
        "occupations": ["writer"],
        "first_letter_category": "a-d",
        "creation_date_category": "2017-2022",
        "relative_pageviews_category": "Low",
        "num_sitelinks_category": "English only",
    },
]
TOPICS: list[dict[str, Any]] = [
    {"id": 101, "title": "Computing", "rel_docs": [12, 70000001, 12, 99]},
    {"id": 102, "title": "Islands", "rel_docs": [7]},
]
KEYWORDS: list[dict[str, Any]] = [
    {"topic_id": 101, "title": "Computing", "keywords": ["programs", "wrote"]},
    {"topic_id": 102, "title": "Islands", "keywords": ["island"]},
    {"topic_id": 5, "title": "Of the other split", "keywords": ["x"]},
]
TOPICS_2021: list[dict[str, Any]] = [
    {
        "id": 101,
        "title": "Computing",
        "keywords": ["programs", "wrote"],
        "scope": "Articles about computing.",
        "homepage": "https://en.wikipedia.org/wiki/Wikipedia:WikiProject_Computing",
        "rel_docs": [12, 70000001],
    }
]
PAGES_2021: list[dict[str, Any]] = [
    {"page_id": 12, "quality_score_disc": "C", "geographic_locations": ["Europe", "Asia"], "gender": ["female"]},
    {"page_id": 7, "quality_score_disc": "Stub", "geographic_locations": ["Oceania"], "gender": []},
]

FILES_2022 = {
    "trec_corpus_20220301_plain.json.gz": ARTICLES,
    "trec_2022_articles_discrete_assessed.json.gz": PAGES,
    "trec_2022_eval_reldocs.jsonl": TOPICS,
    "topics_keywords.jsonl": KEYWORDS,
}
FILES_2021 = {
    "trec_corpus.json.gz": [{**page, "text": page["plain"]} for page in ARTICLES],
    "trec_metadata_eval.json.gz": PAGES_2021,
    "2021-eval-topics-with-qrels.json.gz": TOPICS_2021,
}
for article in FILES_2021["trec_corpus.json.gz"]:
    del article["plain"]

Files = Mapping[str, Iterable[Any] | None]


def write_track(folder: Path, files: Files = FILES_2022, changed: Files | None = None) -> Path:
    """Write the files, some of them replaced (None leaves one out); return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in {**files, **(changed or {})}.items():
        if records is not None:
            lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
            raw = "".join(f"{line}\n" for line in lines).encode()
            (folder / name).write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
    return folder
