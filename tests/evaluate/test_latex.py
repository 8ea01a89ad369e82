"""Tables of LaTeX are set by LaTeX, whatever their names hold, and no line is wider than a text."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fairagent.evaluate.tables import Cell, Column, Table

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
    assert Table.of(["系統", "p"], [("a", 1)]).latex().startswith(said)
    assert Table.of(["system", "p"], [("λ", 1)]).latex().startswith(said)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex (texlive-latex-recommended)")
def test_pdflatex_sets_it_and_no_line_is_too_wide(tmp_path: Path) -> None:
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
    (tmp_path / "all.tex").write_text(f"{head}\n\\noindent\n{HOSTILE.latex()}\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout, done.stdout
