"""evaluations/data/build.py on small originals, made up in the formats of the real ones."""

from __future__ import annotations

import csv
import gzip
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "evaluations" / "data"
SCRIPT: dict[str, Any] = runpy.run_path(str(DATA / "build.py"))
BUILDERS = SCRIPT["BUILDERS"]


def rows(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# --- Reuters-21578 ------------------------------------------------------------------------------------------------

BODY = " ".join(f"word{n}" for n in range(20))


def story(number: int, body: str, topics: str = "", places: str = "", has: str = "YES") -> str:
    return (
        f'<REUTERS TOPICS="{has}" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="{number}">\n'
        f"<DATE> 3-MAR-1987 09:16:02.85</DATE>\n<TOPICS>{topics}</TOPICS>\n<PLACES>{places}</PLACES>\n"
        f"<UNKNOWN> \n&#5;&#5;&#5;RM</UNKNOWN>\n<TEXT>&#2;\n<TITLE>S&amp;L  NUMBER {number}</TITLE>\n"
        f"<DATELINE>    LONDON, March 3 - </DATELINE><BODY>{body}\n REUTER\n&#3;</BODY></TEXT>\n</REUTERS>\n"
    )


def test_reuters(tmp_path: Path) -> None:
    told = [
        story(7, f"First\n{BODY}", "<D>cocoa</D><D>ignore_step-of</D>", "<D>uk</D><D>usa</D><D>france</D>"),
        story(8, f"First {BODY}", "<D>cocoa</D>"),  # the same body again
        story(9, "Nineteen words are not enough " + " ".join(["word"] * 14), "<D>cocoa</D>"),
        story(10, f"No topics {BODY}", has="NO"),
        story(11, f"Second {BODY}", "<D>zinc</D><D>cocoa</D>", "<D>peru</D>"),
    ]
    write(tmp_path / "reut2-000.sgm", "<!DOCTYPE lewis>\n" + "".join(told))
    built = BUILDERS["reuters21578"](tmp_path)
    assert rows(built["docs.jsonl.gz"]) == [
        {"id": "R00007", "title": "S&L NUMBER 7", "text": f"LONDON, March 3 - First {BODY}"},
        {"id": "R00011", "title": "S&L NUMBER 11", "text": f"LONDON, March 3 - Second {BODY}"},
    ]
    assert built["groups.tsv.gz"] == [
        "id\tdate\tplaces\tregions\toecd1987",
        "R00007\t3-MAR-1987\tuk|usa|france\tEurope|Northern America\toecd",
        "R00011\t3-MAR-1987\tperu\tLatin America and the Caribbean\tnon-oecd",
    ]
    # N06 is cocoa, N59 zinc.
    assert built["qrels.tsv"] == ["N06\t0\tR00007\t1", "N06\t0\tR00011\t1", "N59\t0\tR00011\t1"]


@pytest.mark.shared
def test_the_table_of_places_gives_the_measured_regions(shared: Path) -> None:
    places = {row["place"]: row for row in SCRIPT["table"](DATA / "reuters21578_places.tsv", "\t")}
    with gzip.open(shared / "data" / "reuters21578" / "groups.tsv.gz", "rt", encoding="utf-8") as file:
        measured = list(csv.DictReader(file, delimiter="\t"))
    assert len(measured) == 11_320
    for row in measured:
        where = [places[place] for place in row["places"].split("|") if place]
        assert row["regions"] == "|".join(dict.fromkeys(place["region"] for place in where))
        assert row["oecd1987"] == "|".join(dict.fromkeys(place["oecd1987"] for place in where))


# --- the others ---------------------------------------------------------------------------------------------------


def test_allsides(tmp_path: Path) -> None:
    words = " ".join(f"w{n}" for n in range(120))
    for id, topic, side in (("b2", "women's_issues", "left"), ("a1", "nobody's_topic", "center")):
        article = {"ID": id, "topic": topic, "bias_text": side, "title": " A  title ", "content": f"{words}\nmore"}
        write(tmp_path / "data" / "jsons" / f"{id}.json", json.dumps(article))
    built = BUILDERS["allsides"](tmp_path)
    assert [row["id"] for row in rows(built["docs.jsonl.gz"])] == ["a1", "b2"]
    assert rows(built["docs.jsonl.gz"])[0]["title"] == "A title"
    assert rows(built["docs.jsonl.gz"])[0]["text"] == " ".join(f"w{n}" for n in range(100))
    assert built["groups.tsv.gz"] == ["id\tleaning", "a1\tcenter", "b2\tleft"]
    assert built["qrels.tsv"] == ["women's_issues\t0\tb2\t1"]
    assert rows(built["topics.jsonl"])[3] == {"n": "campaign_finance", "title": "campaign finance"}
    assert dict(SCRIPT["compared"]("allsides", built))["topics.jsonl: 49 lines, the same as measured"]


# --- the command --------------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_the_sums_are_those_of_the_measured_data(shared: Path) -> None:
    for row in SCRIPT["table"](DATA / "sums.tsv", "\t"):
        path = shared / "data" / row["collection"] / row["file"]
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = data.decode().removesuffix("\n").split("\n")
        assert (len(lines), SCRIPT["digest"](lines)) == (int(row["lines"]), row["sha256"]), path
