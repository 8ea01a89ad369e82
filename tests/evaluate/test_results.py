"""The files of a run: that others read from them what is in them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fairagent.collection import load_collection
from fairagent.evaluate.outcome import from_value, to_line
from fairagent.evaluate.results import falling, means_table, measure_tables, results_latex, results_text, write_results
from fairagent.evaluate.run import Results, load_run
from fairagent.evaluate.tables import LATEX_WIDTH, Cell, Column, Table

from . import words

MEASURES = "measures: ['nDCG(discount=log2-plus1)@10', 'AWRF(unknown=ignore)@10', 'AWRF(log=2)@10']\n"
ORACLE = (
    "  oracle, of a kind: {profile: engine, engine: {kind: words, order: exposure}, rerank: exposure, target: trec}\n"
)
EXPECTED = "expected: {plain: {'nDCG(discount=log2-plus1)@10': 0.5}}\nabout: What it should show.\n"


ORACLES = "oracle, of a kind"
NUMBER = r"[-+]?[0-9]*[.][0-9]+"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    words.run(words.write(folder, words.EXPERIMENT + ORACLE + MEASURES + EXPECTED), folder / "run")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Results:
    return load_run(folder / "run")


def test_trec_runs_are_read_by_others_as_they_were_meant(folder: Path, run: Results) -> None:
    """Ties: whoever sorts the run by its scores gets our order, and so our value."""
    ir_measures = pytest.importorskip("ir_measures", reason="the package ir_measures is not installed")
    grades = load_collection(folder / "collection.yaml").qrels
    qrels = {topic: dict(of_topic) for topic, of_topic in grades.items() if of_topic}
    ours = {(one.system, one.topic): one.values[""]["nDCG(discount=log2-plus1)@10"] for one in run.answered}
    for system in run.systems:
        path = folder / "run" / "runs" / f"{system.replace(', ', '_').replace(' ', '_')}.txt"
        measured = list(ir_measures.iter_calc([ir_measures.nDCG @ 10], qrels, ir_measures.read_trec_run(str(path))))
        assert len(measured) == 19
        for one in measured:
            assert one.value == pytest.approx(ours[system, one.query_id], abs=1e-9)
    assert sum(len({hit.score for hit in one.hits}) < len(one.hits) for one in run.outcomes) > 10


def test_scores_fall_strictly_even_as_32_bit_floats() -> None:
    scores = [1e9, 1e9, 5.0, 5.0 - 1e-12, 5.0, 0.0, 0.0, -1.0]
    written = [np.float32(score) for score in falling(scores)]
    assert all(below < above for above, below in pairwise(written))
    assert written[0] == 1e9
    assert written[2] == 5
    assert list(falling([])) == []


def test_csv(folder: Path, run: Results) -> None:
    rows = words.rows(folder / "run" / "results.csv")
    assert len(rows) == 4 * (1 + 2 * 2) == len(run.comparisons)
    for row, made in zip(rows, run.comparisons, strict=True):
        assert (row["system"], row["dimension"], row["measure"]) == (made.system, made.dimension, made.measure)
        assert float(row["mean"]) == made.mean
        assert (row["difference"] == "") == (made.system == "plain")
    assert rows[0]["expected"] == "0.5"
    assert {row["oracle"] for row in rows if row["system"] == ORACLES} == {"1"}
    place = ("fair", "gender", run.measures[1])
    topics = words.rows(folder / "run" / "topics.csv")
    of = [row for row in topics if (row["system"], row["dimension"], row["measure"]) == place]
    fair = next(row for row in run.comparisons if (row.system, row.dimension) == ("fair", "gender"))
    assert len(of) == fair.topics
    assert np.mean([float(row["value"]) for row in of]) == pytest.approx(fair.mean, rel=1e-12)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_tables_fit_any_width_and_keep_every_number(run: Results, width: int) -> None:
    long = "an oracle whose name is very long indeed, and says all of its settings"
    renamed = replace(
        run,
        systems=(*run.systems[:-1], long),
        comparisons=tuple(replace(row, system=row.system.replace(ORACLES, long)) for row in run.comparisons),
        outcomes=tuple(replace(one, system=one.system.replace(ORACLES, long)) for one in run.outcomes),
        oracle_systems=(long,),
    )
    for table in (means_table(renamed), *measure_tables(renamed)):
        text = table.text(width)
        cells = [line for line in text.splitlines() if not line.startswith(table.title or "\n")]
        assert max(len(line) for line in cells if " is an oracle" not in line) <= width
        assert set(re.findall(NUMBER, text)) == set(re.findall(NUMBER, table.text()))
    legend = [line for line in results_text(renamed, width).splitlines() if line.endswith(f" is {long}")]
    assert len(legend) == 1


def columns_of(tabular: str) -> int:
    return len(re.sub(r"p\{[^}]*\}", "p", re.search(r"\\begin\{tabular\}\{(.*)\}$", tabular, re.MULTILINE)[1]))  # type: ignore[index]


def check_latex(text: str) -> list[str]:
    """The tabulars of a text, checked: as many cells as columns, booktabs' rules, no wider than an article's text."""
    tabulars = re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL)
    assert len(tabulars) == text.count(r"\begin{tabular}") > 0
    for tabular in tabulars:
        count = columns_of(tabular)
        rows = [line.removesuffix(r" \\") for line in tabular.splitlines() if line.endswith(r" \\")]
        for row in rows:
            spans = [int(span) - 1 for span in re.findall(r"\\multicolumn\{([0-9]+)\}", row)]
            assert len(re.split(r"(?<!\\)&", row)) + sum(spans) == count, row
        assert [tabular.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
        assert tabular.count("{") == tabular.count("}")
        for rule in re.findall(r"\\cmidrule\(lr\)\{([0-9]+)-([0-9]+)\}", tabular):
            assert 2 <= int(rule[0]) <= int(rule[1]) <= count
        signs = tabular.replace(r"\times", "*").replace(r"\dagger", "†").replace(r"\ldots{}", "…")
        heads = [line.removesuffix(r" \\").split(" & ") for line in signs.splitlines() if line.endswith(r" \\")]
        cells = [[re.sub(r"\\textbf|[{}$^\\]", "", cell) for cell in row] for row in heads if len(row) == count]
        widths = [max(len(row[place]) for row in cells) for place in range(count)]
        assert r"\textwidth" in tabular or sum(widths) + 2 * (count - 1) <= LATEX_WIDTH
    return tabulars


def test_latex(run: Results) -> None:
    table = results_latex(run)
    tabulars = check_latex(table)
    assert all(r"oracle, of a kind $^\dagger$ & " in tabular for tabular in tabulars)
    # No system called a model: no column of zeros.
    assert sum(columns_of(tabular) - 1 for tabular in tabulars) == 5
    assert r"\multicolumn{2}{c}{gender}" in table
    # The best that is no oracle, of each of five columns.
    assert table.count(r"\textbf{") >= 5
    assert not re.search(r"oracle.*\\textbf", table)
    assert "% nDCG is nDCG(discount=log2-plus1)@10" in table.splitlines()
    assert r"$^\dagger$: looked at the judgments." in table


def test_the_journal_holds_all_and_results_are_made_from_it_alone(folder: Path, run: Results, tmp_path: Path) -> None:
    for outcome in run.outcomes:
        assert from_value(json.loads(to_line(outcome))) == outcome
    assert any(outcome.steps for outcome in run.outcomes)
    outcome = next(outcome for outcome in run.outcomes if (outcome.topic, outcome.system) == ("T00", "fair"))
    assert outcome.hits[0].title.startswith("judge")
    assert {hit.id for hit in outcome.hits if hit.relevant} == {"d00", "d01", "d03"}
    assert set(outcome.hits[0].groups) == {"gender", "era"}
    gender = outcome.exposures[0]
    assert (gender.dimension, gender.labels) == ("gender", ("female", "male"))
    # Two of the three relevant texts are of men, one of a woman; and half and half in the world.
    assert gender.target == pytest.approx((5 / 12, 7 / 12))
    assert sum(gender.shares) == pytest.approx(1)
    assert set(outcome.values) == {"", "gender", "era"}
    write_results(run, tmp_path)
    for name in ("results.csv", "results.txt", "results.tex", "topics.csv", "timings.csv"):
        assert (tmp_path / name).read_bytes() == (folder / "run" / name).read_bytes()


def test_a_table_of_one_column_or_no_rows_is_one_still() -> None:
    for table in (Table.of(["system"], [("a",)]), Table.of(["system", "mean"], [])):
        assert table.text(80) == table.text()
        assert check_latex(table.latex())
    wide = Table.of(["what", "said"], [("a", "many words " * 30)])
    assert max(map(len, wide.text(60).splitlines())) <= 60
    assert r"\begin{tabular}{lp{" in wide.latex()


def test_what_is_0_for_every_system_is_no_column_of_an_article() -> None:
    columns = ["system", "mean", Column("none"), Column("calls"), Column("some")]
    table = Table.of(columns, [("a", Cell(0.5), None, "0", 0.0), ("b", Cell(0.0), "", 0, 0.1)]).filled()
    assert [column.name for column in table.columns] == ["system", "mean", "some"]
    assert table.rows[1][2] == 0.1
    assert check_latex(Table.of(columns, [("a", 0, None, 0, "")]).filled().latex())


def test_a_page_has_every_column_once_and_no_row_wider_than_it() -> None:
    names = [f"{above} {name}" for above in "abcde" for name in ("first", "second", "third and long")]
    columns = [Column(name, above=name[0], short=name[2:]) for name in names]
    for shown, tables in ((columns[:6], 1), (columns, 2)):
        page = Table.of(["system", *shown], [("A", *range(len(shown)))]).html({})
        assert page.count("<table") == tables
        assert re.findall(r'title="(.*?)"', page) == [one.name for one in shown]
        assert re.findall(r'data-value="(\d+)"', page) == list(map(str, range(len(shown))))
        # Of each of them the first column, by which a row is known; keys are places in a table of its own.
        assert page.count('data-key="0">system') == page.count('<th scope="row">A') == tables


HOSTILE = Table.of(
    [
        Column("system"),
        Column("nDCG@20 & co_1", above="gender #1"),
        Column("AWRF*x", above="gender #1"),
        Column("p^2 {~}\\", above="region%"),
        *(Column(f"measure {number}", above="more ≥ 1") for number in range(9)),
    ],
    [
        ("BM25 + vectors_ü", 0.5, Cell(0.6, "+", True), None, *[-0.25] * 9),
        ("agent † é ł “q” – — … →", 0.5, Cell(0.1, "-"), "[a]", *[Cell("<|>", "", True)] * 9),
    ],
    title="A 100% title",
    notes=["a note % $ _"],
)


def test_letters_that_pdflatex_has_not_are_said() -> None:
    said = "% has letters beyond Latin"
    assert said not in HOSTILE.latex()
    for text in ("系統", "λ"):
        assert Table.of([text, "p"], [(text, 1)]).latex().startswith(said)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex (texlive-latex-recommended)")
def test_pdflatex_sets_it_and_no_line_is_too_wide(tmp_path: Path) -> None:
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
    (tmp_path / "all.tex").write_text(f"{head}\n\\noindent\n{HOSTILE.latex()}\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout, done.stdout
