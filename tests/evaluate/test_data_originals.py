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


def test_args(tmp_path: Path) -> None:
    write(
        tmp_path / "Data" / "topics.csv",
        'Topic ID,Biased,Annotator Stance,Thesis,Description,Query\n0001,True,,,,hidden\n0002,True,,,"a, b",climate\n',
    )
    head = (
        "Topic ID,Discussion ID,Argument ID,Is Argument?,Stance,Relevance,Logical Quality,Conclusion,Premise,Comment\n"
    )
    arguments = [
        '0001,00000001,00000001,True,Con,2,1,Ban it,"Since, well.",c',
        '0002,00000001,00000001,True,Pro,4,1,Ban it,"Since, well.",c',
        "0002,00000002,00000003,True,Not specified,1,1,Keep it,Why not?,",
        "0002,00000004,00000001,False,Pro,-2,-2,Rules,No argument.,None",
    ]
    write(tmp_path / "Data" / "arguments.csv", head + "\n".join(arguments) + "\n")
    built = BUILDERS["args_sigir19"](tmp_path)
    assert rows(built["docs.jsonl.gz"])[::-1] == [
        {"id": "00000001-00000001", "title": "Ban it", "text": "Since, well."},
        {"id": "00000002-00000003", "title": "Keep it", "text": "Why not?"},
    ]
    assert rows(built["topics.jsonl"]) == [{"n": "0002", "title": "climate"}]
    assert built["qrels.tsv"] == [
        "topic\titeration\tdoc\trel\tstance",
        "0002\t0\t00000001-00000001\t3\tpro",
        "0002\t0\t00000002-00000003\t0\t",
    ]


def test_perspectrum(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "dataset"
    clusters = [
        {"pids": [5, 6], "stance_label_3": "SUPPORT", "stance_label_5": "MILDLY_SUPPORT"},
        {"pids": [7, 5], "stance_label_3": "UNDERMINE", "stance_label_5": "UNDERMINE"},
        {"pids": [8], "stance_label_3": "NOT_A_PERSPECTIVE", "stance_label_5": "NOT_A_PERSPECTIVE"},
    ]
    claims = [
        {"cId": number, "text": f"claim {number}", "source": "procon", "perspectives": clusters, "topics": ["law"]}
        for number in (12, 3)
    ]
    pool = [{"pId": 5, "text": "Because of it – yes", "source": "idebate"}]
    write(folder / "perspectrum_with_answers_v1.0.json", json.dumps(claims))
    write(folder / "perspective_pool_v1.0.json", json.dumps(pool))
    write(folder / "dataset_split_v1.0.json", json.dumps({"12": "dev", "3": "test"}))
    built = BUILDERS["perspectrum"](tmp_path)
    assert built["docs.jsonl.gz"] == ['{"id": "P00005", "text": "Because of it – yes", "source": "idebate"}']
    assert built["qrels.tsv"] == [
        "claim\t0\tdoc\trel\tstance\tstance5",
        "C0012\t0\tP00005\t1\tsupport\tmildly_support",
        "C0012\t0\tP00006\t1\tsupport\tmildly_support",
        "C0012\t0\tP00007\t1\tundermine\tundermine",
    ]
    (topic,) = rows(built["topics.jsonl"])
    assert topic == {
        **{"n": "C0012", "text": "claim 12", "source": "procon", "topics": ["law"], "split": "dev"},
        "stance": {"support": 2, "undermine": 1},
    }


@pytest.mark.parametrize("separator", [",", ";"])
def test_grepbiasir(tmp_path: Path, separator: str) -> None:
    def line(*cells: str) -> str:
        return separator.join(f'"{cell}"' for cell in cells) + "\n"

    folder = tmp_path / "csv_formatted"
    write(
        folder / "queries.csv", separator.join(("q_id", "category", "query")) + "\n" + line("4", "Career", "pay, now")
    )
    head = ("q_id", "d_id", "relevant", "query", "doc_title", "document", "content_gender", "exp_stereotype")
    write(
        folder / "queries-documents_Career.csv",
        separator.join(head) + "\n" + line("4", "0", "1", "pay, now", "Her pay", "She; earns, well.", "F", "none"),
    )
    built = BUILDERS["grepbiasir"](tmp_path)
    assert rows(built["queries.jsonl"]) == [{"q_id": "4", "category": "Career", "query": "pay, now"}]
    assert rows(built["documents.jsonl"]) == [
        {
            **{"q_id": "4", "d_id": "0", "category": "Career", "title": "Her pay", "text": "She; earns, well."},
            **{"gender": "F", "relevant": 1, "exp_stereotype": "none"},
        }
    ]


def test_cranfield(tmp_path: Path) -> None:
    head = ".I 1\n.T\na wing\n in a slipstream .\n.A\nsomebody,m.\n.B\nj. 25, 1958.\n.W\n"
    abstracts = head + "a wing in a slipstream .\n  it was .I think small .\n"
    write(tmp_path / "cran.all.1400", abstracts + ".I 2\n.T\n.A\n.B\n.W\n")
    write(tmp_path / "cran.qry", ".I 001\n.W\nwhat is\na wing .\n.I 004\n.W\nwhy .\n")
    write(tmp_path / "cranqrel", "1 184 2\n2 29  -1 \n")
    built = BUILDERS["cranfield"](tmp_path)
    assert rows(built["docs.jsonl.gz"]) == [
        {"id": "1", "title": "a wing in a slipstream .", "text": "a wing in a slipstream . it was .I think small ."},
        {"id": "2", "title": "", "text": ""},
    ]
    assert rows(built["queries.jsonl"]) == [
        {"id": "1", "orig_id": 1, "text": "what is a wing ."},
        {"id": "2", "orig_id": 4, "text": "why ."},
    ]
    assert built["qrels.tsv"] == ["1\t0\t184\t2", "2\t0\t29\t-1"]


# --- the command --------------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_the_sums_are_those_of_the_measured_data(shared: Path) -> None:
    for row in SCRIPT["table"](DATA / "sums.tsv", "\t"):
        path = shared / "data" / row["collection"] / row["file"]
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = data.decode().removesuffix("\n").split("\n")
        assert (len(lines), SCRIPT["digest"](lines)) == (int(row["lines"]), row["sha256"]), path
