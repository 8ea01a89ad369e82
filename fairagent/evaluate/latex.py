"""The results of a run for LaTeX (booktabs): the means in one table, and every measure in full."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairagent.evaluate.cost import Cost, costs
from fairagent.evaluate.labels import measure_labels
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import ORACLE, SIGNIFICANT, columns, mark
from fairagent.evaluate.text_table import COST, cost_table, measure_heading, measure_table


def results_latex(run: Run) -> str:
    """A `tabular` of the means for booktabs; +/- as `mark`, a dagger for oracles, definitions in comments."""
    labels = measure_labels(run.measures)
    pairs = columns(run)
    means = {(row.system, row.dimension, row.measure): row for row in run.comparisons}
    headings = [_tex(f"{dimension} {labels[name]}".strip()).replace("*", r"$\times$") for dimension, name in pairs]
    lines = [
        *(f"% {labels[measure]} is {measure}" for measure in run.measures),
        f"% +/-: better/worse than {run.baseline}, paired randomization test, p < {SIGNIFICANT} after Holm",
        rf"\begin{{tabular}}{{l{'r' * (len(pairs) + 1)}}}",
        r"\toprule",
        " & ".join(["System", *headings, "Calls"]) + r" \\",
        r"\midrule",
    ]
    spent: dict[str, Cost] = costs(run)
    for system in run.systems:
        cells = [_tex(system) + (_tex(ORACLE) if system in run.oracle_systems else "")]
        for pair in pairs:
            row = means[system, *pair]
            raised = mark(row)
            cells.append(f"{row.mean:.4f}" + (f"$^{{{raised}}}$" if raised else ""))
        lines.append(" & ".join([*cells, f"{spent[system].calls}"]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def details_latex(run: Run) -> str:
    """A `tabular` for each measure with intervals, tests, wins, ties and losses, and one of what models were asked."""
    tables = [(measure_heading(run, *pair), measure_table(run, *pair)) for pair in columns(run)]
    if cost := cost_table(run):
        tables.append((COST, cost))
    return "\n".join(f"% {heading}\n{_tabular(table)}" for heading, table in tables)


def _tabular(table: Sequence[Sequence[str]]) -> str:
    head, *rows = [" & ".join(_MINUS.sub("$-$", _tex(cell)) for cell in row) + r" \\" for row in table]
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(table[0]) - 1)}}}", r"\toprule", head, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "<": "$<$",
        ">": "$>$",
        # At the beginning of a row it would be an option of the line break before it.
        "[": "{[}",
        ORACLE: r"$^\dagger$",
    }
)
_MINUS = re.compile(r"^-(?=\d)")


def _tex(text: str) -> str:
    return text.translate(_TEX)
