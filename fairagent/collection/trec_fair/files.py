"""Finding the official files of the TREC Fair Ranking track by their published names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairagent.collection.faults import Faults
from fairagent.errors import UsageError
from fairagent.measures.trec_fair import Year

Split = Literal["train", "eval"]

CORPUS: dict[Year, tuple[str, ...]] = {
    2021: ("trec_corpus.json",),
    2022: tuple(f"trec_corpus_20220301_{kind}.json" for kind in ("plain", "text", "html")),
}
METADATA: dict[Year, tuple[str, ...]] = {
    2021: ("trec_metadata_eval.json", "trec_metadata.json"),
    2022: ("trec_2022_articles_discrete_assessed.json", "trec_2022_articles_discrete.json"),
}
"""2022: the official evaluation used the `assessed` file. 2021: gender came with the evaluation."""
TOPICS: dict[tuple[Year, Split], tuple[str, ...]] = {
    (2021, "train"): ("trec_topics.json",),
    (2021, "eval"): ("2021-eval-topics-with-qrels.json", "eval-topics-with-qrels.json"),
    (2022, "train"): ("trec_2022_train_reldocs.jsonl",),
    (2022, "eval"): ("trec_2022_eval_reldocs.jsonl",),
}
KEYWORDS: dict[tuple[Year, Split], tuple[str, ...]] = {
    (2021, "train"): (),
    (2021, "eval"): ("eval-topics.json",),
    (2022, "train"): ("train_topics_meta.jsonl", "topics_keywords.jsonl"),
    (2022, "eval"): ("eval_topics_meta.jsonl", "topics_keywords.jsonl"),
}
"""Files with more about the topics; they may be missing."""


@dataclass(frozen=True, slots=True)
class TrackFiles:
    """Where the files of a year and split are; `corpus` is None where it was not asked for, `keywords` where absent."""

    corpus: Path | None
    metadata: Path
    topics: Path
    keywords: Path | None


def find_track_files(folder: Path | str, year: Year = 2022, split: Split = "eval", corpus: bool = True) -> TrackFiles:
    """The track's files in `folder`, gzipped or not; of several forms the first (see this module's lists).

    Raises one DataError naming every file that is not there, UsageError for another year or split.
    """
    if (year, split) not in TOPICS:
        raise UsageError(f"year {year!r}, split {split!r}: there are the years 2021 and 2022, and train and eval")
    folder, faults = Path(folder), Faults()
    found = TrackFiles(
        _first(folder, CORPUS[year], faults, "corpus") if corpus else None,
        _first(folder, METADATA[year], faults, "metadata"),
        _first(folder, TOPICS[year, split], faults, "topics with relevant pages"),
        next(_there(folder, KEYWORDS[year, split]), None),
    )
    faults.check(f"the files of TREC Fair {year}, {split}")
    return found


def _first(folder: Path, names: Sequence[str], faults: Faults, what: str) -> Path:
    path = next(_there(folder, names), None)
    if path is None:
        faults.add(folder, None, f"no {what}: {' or '.join(names)} (or with .gz) is expected here")
    return path or folder / names[0]


def _there(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        yield from (path for path in (folder / f"{name}.gz", folder / name) if path.is_file())
