"""Rankings of a collection without groups: judged by relevance alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairagent.errors import FairAgentError
from fairagent.report.page import page

from . import words

EXPERIMENT = """\
name: relevance alone
collection: collection.yaml
seed: 7
measures: [nDCG@5, P@5]
systems:
  plain: {profile: engine, engine: words}
  random: {profile: engine, engine: {kind: words, order: random}}
"""


def write(folder: Path, experiment: str = EXPERIMENT) -> Path:
    """The words' collection without groups and population."""
    file = words.write(folder, experiment)
    plain = re.sub(r"^groups:\n(  .*\n)+population: .*\ntarget: .*\n", "", words.COLLECTION, flags=re.MULTILINE)
    assert "gender" not in plain
    (folder / "collection.yaml").write_text(plain, encoding="utf-8")
    return file


@pytest.mark.usefixtures("no_variables")
def test_it_needs_no_groups_where_no_measure_looks_at_them(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    run = words.run(write(tmp_path), tmp_path / "run")
    (first,) = (one for one in run.outcomes if (one.system, one.topic) == ("plain", "T00"))
    assert [hit.id for hit in first.hits][:4] == ["d00", "d01", "d02", "d03"]
    # Of the four texts about judges three are relevant.
    assert first.values[""]["P@5"] == pytest.approx(0.6)
    assert {row.dimension for row in run.comparisons} == {""}
    assert run.dimensions == ()
    assert "plain" in page(run)


@pytest.mark.usefixtures("no_variables")
@pytest.mark.parametrize("measures", ["measures: [nDCG@5, AWRF@5]\n", ""])
def test_it_is_refused_where_one_does(tmp_path: Path, measures: str) -> None:
    text = EXPERIMENT.replace("measures: [nDCG@5, P@5]\n", measures)
    with pytest.raises(FairAgentError, match="collection 'words' has no groups, so there is nothing to be fair to"):
        words.run(write(tmp_path, text), tmp_path / "run")
