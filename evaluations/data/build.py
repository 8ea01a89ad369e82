"""Build a collection's folder from its public original, as the measurements of this repository had it.

    git clone https://github.com/CogComp/perspectrum originals/perspectrum
    python evaluations/data/build.py perspectrum originals/perspectrum ../shared/data/perspectrum

Nothing is downloaded: README.md says where each original is. What is built is compared with what was measured (SHA-256
of the sorted lines, sums.tsv); where it differs, that is said, and the exit code is 7.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import html
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PARTIAL = 7
Files = dict[str, list[str]]
"""File name -> its lines."""


def jsonl(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Rows as JSON lines."""
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def tsv(rows: Iterable[Iterable[object]]) -> list[str]:
    """Rows as tab-separated lines."""
    return ["\t".join(map(str, row)) for row in rows]


def table(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows of a file of separated values, by column."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def loaded(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def one_line(text: str) -> str:
    """Text with single spaces."""
    return " ".join(text.split())


def unique(values: Iterable[str]) -> str:
    """Values in their first order, with bars between."""
    return "|".join(dict.fromkeys(values))


# --- Reuters-21578 ------------------------------------------------------------------------------------------------

STORY = re.compile(r"<REUTERS ([^>]*)>(.*?)</REUTERS>", re.DOTALL)
NUMBER = re.compile(r'NEWID="(\d+)"')
FEWEST_WORDS = 20
SAME = 200
"""Stories whose bodies begin with the same characters are one."""


def element(name: str, story: str) -> str:
    """The text in an element, "" where it is not there."""
    found = re.search(rf"<{name}[^>]*>(.*?)</{name}>", story, re.DOTALL)
    return html.unescape(found[1]) if found else ""


def codes(name: str, story: str) -> list[str]:
    """The codes in an element."""
    return re.findall(r"<D>(.*?)</D>", element(name, story))


def reuters21578(original: Path) -> Files:
    """Stories with human topic codes (relevance) and place codes (groups); the titles of the topics are ours."""
    places = {row["place"]: row for row in table(HERE / "reuters21578_places.tsv", "\t")}
    topics = [json.loads(line) for line in (HERE / "reuters21578_topics.jsonl").read_text("utf-8").splitlines()]
    docs, groups, seen = [], [["id", "date", "places", "regions", "oecd1987"]], set()
    relevant: dict[str, list[str]] = {topic["qid"]: [] for topic in topics}
    for file in given(original, "reut2-*.sgm"):
        for head, story in STORY.findall(file.read_text(encoding="latin-1")):
            body = re.sub(r"\s+(Reuter|REUTER)$", "", one_line(element("BODY", story).replace("\x03", "")))
            if 'TOPICS="YES"' not in head or len(body.split()) < FEWEST_WORDS or body[:SAME] in seen:
                continue
            seen.add(body[:SAME])
            id = f"R{int(NUMBER.findall(head)[0]):05d}"
            text = one_line(f"{element('DATELINE', story)} {body}")
            docs.append({"id": id, "title": one_line(element("TITLE", story)), "text": text})
            where = codes("PLACES", story)
            known = [places[place] for place in where]
            date = element("DATE", story).split()[0]
            regions, oecd = (unique(row[name] for row in known) for name in ("region", "oecd1987"))
            groups.append([id, date, unique(where), regions, oecd])
            for code in codes("TOPICS", story):
                relevant.get(code, []).append(id)
    qrels = tsv((topic["n"], 0, id, 1) for topic in topics for id in relevant[topic["qid"]])
    return {
        "docs.jsonl.gz": jsonl(docs),
        "groups.tsv.gz": tsv(groups),
        "topics.jsonl": jsonl(topics),
        "qrels.tsv": qrels,
    }


# --- AllSides -----------------------------------------------------------------------------------------------------

WORDS = 100
THIRD = 1 / 3


def allsides(original: Path) -> Files:
    """News articles: title and first 100 words; relevant to their one editorial topic; the leaning of the outlet."""
    topics = (HERE / "allsides_topics.txt").read_text(encoding="utf-8").splitlines()
    articles = [loaded(path) for path in given(original, "data/jsons/*.json")]
    docs = [
        {"id": one["ID"], "title": one_line(one["title"]), "text": " ".join(one["content"].split()[:WORDS])}
        for one in articles
    ]
    return {
        "docs.jsonl.gz": jsonl(docs),
        "groups.tsv.gz": tsv([["id", "leaning"], *([one["ID"], one["bias_text"]] for one in articles)]),
        "topics.jsonl": jsonl({"n": topic, "title": topic.replace("_", " ")} for topic in topics),
        "qrels.tsv": tsv((one["topic"], 0, one["ID"], 1) for one in articles if one["topic"] in topics),
        "population.json": jsonl([{"leaning": {"left": THIRD, "center": THIRD, "right": THIRD}}]),
    }


# --- args.me, SIGIR 2019 ------------------------------------------------------------------------------------------

ARGS_TOPICS = "0002 0003 0007 0009 0011 0012 0013 0015 0017 0021 0024 0027 0028 0029 0031 0034 0036 0037 0038 0039"
"""The public half."""
STANCES = {"Pro": "pro", "Con": "con", "Not specified": ""}


def args_sigir19(original: Path) -> Files:
    """Arguments with human relevance (less 1: 0 to 3) and stance, both by topic."""
    (queries,), (arguments,) = given(original, "Data/topics.csv"), given(original, "Data/arguments.csv")
    judged = [
        {**row, "id": f"{row['Discussion ID']}-{row['Argument ID']}"}
        for row in table(arguments)
        if row["Is Argument?"] == "True"
    ]
    docs = {row["id"]: {"id": row["id"], "title": row["Conclusion"], "text": row["Premise"]} for row in judged[::-1]}
    public = set(ARGS_TOPICS.split())
    rows = [
        (row["Topic ID"], 0, row["id"], int(row["Relevance"]) - 1, STANCES[row["Stance"]])
        for row in judged
        if row["Topic ID"] in public
    ]
    topics = [{"n": row["Topic ID"], "title": row["Query"]} for row in table(queries) if row["Topic ID"] in public]
    return {
        "docs.jsonl.gz": jsonl(docs.values()),
        "topics.jsonl": jsonl(topics),
        "qrels.tsv": tsv([("topic", "iteration", "doc", "rel", "stance"), *rows]),
        "population.json": jsonl([{"stance": {"pro": 0.5, "con": 0.5}}]),
    }


# --- Perspectrum --------------------------------------------------------------------------------------------------

SIDES = ("support", "undermine")


def perspectrum(original: Path) -> Files:
    """Perspectives as documents, the claims of train and dev as topics; the stance of a text depends on the claim."""
    names = ("perspective_pool_v1.0", "perspectrum_with_answers_v1.0", "dataset_split_v1.0")
    pool, claims, splits = (loaded(path) for name in names for path in given(original, f"data/dataset/{name}.json"))
    topics, qrels = [], [("claim", "0", "doc", "rel", "stance", "stance5")]
    for claim in sorted(claims, key=lambda claim: claim["cId"]):
        split, id, stances = splits[str(claim["cId"])], f"C{claim['cId']:04d}", Counter[str]()
        if split == "test":
            continue
        seen = set()
        for cluster in claim["perspectives"]:
            for text in cluster["pids"] if cluster["stance_label_3"].lower() in SIDES else ():
                if text not in seen:
                    seen.add(text)
                    stance, fine = cluster["stance_label_3"].lower(), cluster["stance_label_5"].lower()
                    stances[stance] += 1
                    qrels.append((id, "0", f"P{text:05d}", "1", stance, fine))
        row = {"n": id, "text": claim["text"], "source": claim["source"], "topics": claim["topics"]}
        topics.append({**row, "split": split, "stance": dict(stances)})
    docs = [{"id": f"P{one['pId']:05d}", "text": one["text"], "source": one["source"]} for one in pool]
    return {"docs.jsonl.gz": jsonl(docs), "topics.jsonl": jsonl(topics), "qrels.tsv": tsv(qrels)}


# --- GrepBiasIR ---------------------------------------------------------------------------------------------------


def grepbiasir(original: Path) -> Files:
    """Queries with a relevant and another text, each in a female, a male and a neutral wording."""
    (file,) = given(original, "csv_formatted/queries.csv")
    queries = sniffed(file)
    category = {row["q_id"]: row["category"] for row in queries}
    rows = [row for path in given(original, "csv_formatted/queries-documents_*.csv") for row in sniffed(path)]
    docs = [
        {"q_id": row["q_id"], "d_id": row["d_id"], "category": category[row["q_id"]], "title": row["doc_title"]}
        | {"text": row["document"], "gender": row["content_gender"], "relevant": int(row["relevant"])}
        | {"exp_stereotype": row["exp_stereotype"]}
        for row in rows
    ]
    asked = ({name: row[name] for name in ("q_id", "category", "query")} for row in queries)
    return {"documents.jsonl": jsonl(docs), "queries.jsonl": jsonl(asked)}


def sniffed(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, whichever separator its header has."""
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline()
    return table(path, max(",;\t", key=header.count))


# --- Cranfield ----------------------------------------------------------------------------------------------------


def cranfield(original: Path) -> Files:
    """1,400 abstracts, 225 queries (numbered by position, as the judgments have them)."""
    (abstracts,), (questions,), (judged,) = (
        given(original, name) for name in ("cran.all.1400", "cran.qry", "cranqrel")
    )
    docs = [{"id": number, "title": parts["T"], "text": parts["W"]} for number, parts in marked(abstracts)]
    queries = [
        {"id": str(place), "orig_id": int(number), "text": parts["W"]}
        for place, (number, parts) in enumerate(marked(questions), start=1)
    ]
    rows = (line.split() for line in judged.read_text(encoding="utf-8").splitlines() if line.strip())
    qrels = tsv((query, 0, document, grade) for query, document, grade in rows)
    return {"docs.jsonl.gz": jsonl(docs), "queries.jsonl": jsonl(queries), "qrels.tsv": qrels}


def marked(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each record of a SMART file: its number, and its parts by their letters."""
    for record in re.split(r"^\.I ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        number, *parts = re.split(r"^\.([A-Z])\s*$", record, flags=re.MULTILINE)
        yield number.strip(), {letter: one_line(text) for letter, text in zip(parts[::2], parts[1::2], strict=True)}


# --- all ----------------------------------------------------------------------------------------------------------

BUILDERS: dict[str, Callable[[Path], Files]] = {
    one.__name__: one for one in (reuters21578, allsides, args_sigir19, perspectrum, grepbiasir, cranfield)
}


def given(original: Path, pattern: str) -> list[Path]:
    """The files of the original, in order; ends where there is none."""
    if found := sorted(original.glob(pattern)):
        return found
    sys.exit(f"{original / pattern}: no such file; {HERE / 'README.md'} says where the original is")


def write(folder: Path, files: Files) -> None:
    """Write the files, those whose name says so gzipped."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        data = "".join(f"{line}\n" for line in lines).encode()
        (folder / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def digest(lines: Iterable[str]) -> str:
    """SHA-256 of the lines in sorted order."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def compared(name: str, files: Files) -> Iterator[tuple[str, bool]]:
    """What is to be said of each file that was measured, and whether it is the same."""
    for row in table(HERE / "sums.tsv", "\t"):
        if row["collection"] == name:
            lines = files[row["file"]]
            same = digest(lines) == row["sha256"]
            said = "the same as measured" if same else f"NOT the same as measured ({row['lines']} lines)"
            yield f"{row['file']}: {len(lines)} lines, {said}", same


def main() -> None:
    """Build one collection, and compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", choices=BUILDERS)
    parser.add_argument("original", type=Path, help="the folder of the original")
    parser.add_argument("folder", type=Path, help="where to build")
    chosen = parser.parse_args()
    files = BUILDERS[chosen.collection](chosen.original)
    write(chosen.folder, files)
    said = list(compared(chosen.collection, files))
    print(*(text for text, _ in said), sep="\n")
    sys.exit(0 if all(same for _, same in said) else PARTIAL)


if __name__ == "__main__":
    main()
