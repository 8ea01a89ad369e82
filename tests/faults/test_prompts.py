"""Cases 25 to 27: a template that is wrong, hostile or changed is refused with its file, before anything is paid."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from work import at_most

from fairagent.errors import DataError, PromptError, UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Run
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer
from fairagent.llm.prompts import Prompts

from . import life

EXPERIMENT = """\
name: prompts
collection: collection.yaml
topics: 2
settings: {{index: '{index}', engine: bm25, target: uniform, model: {{name: tiny}}}}
systems:
  default: {{loop: fair-qr, refine: llm, iterations: 2}}
  mine: {{loop: fair-qr, refine: llm, iterations: 2, prompts: mine}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a collection and its index."""
    return life.write(tmp_path_factory.mktemp("prompts")).parent


@pytest.fixture
def server(no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(['{"keywords": ["she"]}']) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def file(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment whose second system has templates of its own, in a folder beside it."""
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    file = tmp_path / "compare.yaml"
    file.write_text(EXPERIMENT.format(index=made / "index"), encoding="utf-8")
    (tmp_path / "mine").mkdir()
    # Not where the program is called, but beside the file.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return file


def template(id: str = "refine_query") -> str:
    return Prompts()[id].path.read_text(encoding="utf-8")


def write(file: Path, text: str, id: str = "refine_query") -> Path:
    path = file.parent / "mine" / f"{id}.j2"
    path.write_text(text, encoding="utf-8")
    return path


def run(file: Path, folder: Path, *, new: bool = False) -> Run:
    with threads(1) as workers:
        return run_experiment(check_experiment(file), folder, workers, new)


# --- 25: faults ------------------------------------------------------------------------------------------------


def test_25_all_faults_of_all_templates_come_with_file_and_line_before_anything_is_paid(
    file: Path, server: LoopbackServer
) -> None:
    shipped = template()
    last = shipped.count("\n")
    refine = write(file, f"{shipped}{{{{ qeury }}}}\n{{% if query %}}\n")
    unclosed = write(file, template("answer") + "{{ query }\n", "answer")
    headless = write(file, "Find keywords.", "utility_filter")
    unused = write(file, template("attribute").replace("{{ answer|tojson }}", ""), "attribute")
    misspelt = write(file, template("fairness_filter"), "fairnes_filter")
    with pytest.raises(PromptError) as caught:
        check_experiment(file)
    found = str(caught.value)
    for words in (
        f"{refine}:{last + 2}: Unexpected end of template",
        f"{unclosed}:{template('answer').count(chr(10)) + 1}: unexpected '}}'",
        f"{headless}:1: no head",
        f"{unused}:5: required variable 'answer' is never used",
        f"{misspelt}: no shipped template 'fairnes_filter'; did you mean 'fairness_filter'?",
    ):
        assert words in found
    assert caught.value.exit_code == 4
    assert server.requests == []


# --- 26: hostile templates -------------------------------------------------------------------------------------

HOSTILE = [
    "{{ ''.__class__ }}",
    "{{ 'x' * 10**9 }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.system('true') }}",
    "{{ lipsum.__globals__ }}",
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% for a in query %}" * 15 + "{{ query }}" + "{% endfor %}" * 15,
    "{{ query" + "|tojson" * 200 + " }}",
    "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "x" * 40_000,
    # Each section by itself is within the limits.
    ("{% for a in query %}" * 4 + "x" + "{% endfor %}" * 4 + "\n[assistant]\nx\n[user]\n") * 200 + "x",
    ("{% for a in query %}{{ query }}{{ query }}{{ query }}{% endfor %}\n[assistant]\nx\n[user]\n") * 90 + "x",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_26_a_hostile_template_is_refused_with_little_work_and_50_mb(tmp_path: Path, text: str) -> None:
    path = tmp_path / "refine_query.j2"
    path.write_text(f"{template()}\n{text}\n", encoding="utf-8")
    Prompts()
    with at_most(4_000_000), pytest.raises(PromptError) as caught:
        Prompts(tmp_path)
    assert all(fault.path == path for fault in caught.value.faults)
    tracemalloc.start()
    try:
        with pytest.raises(PromptError):
            Prompts(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_26_a_prompt_has_at_most_64_kb(tmp_path: Path) -> None:
    (tmp_path / "refine_query.j2").write_text(template(), encoding="utf-8")
    values = {"dimension": "gender", "group": "female", "share": "1%", "target": "2%"}
    with pytest.raises(PromptError, match=r"longer than 6(4 kB|5536 characters)"):
        Prompts(tmp_path).render("refine_query", query="x" * 70_000, **values)


# --- 218: what a template prints -----------------------------------------------------------------------------


PRINTED = [
    ("{{ query.format }}", "'str object' has no attribute 'format'"),
    ("{{ query.format|default(query.encode) }}", "'str object' has no attribute 'encode'"),
    ("{{ tried.append }}", "'list object' has no attribute 'append'"),
    ("{% for one in tried %}{{ loop.cycle }}{% endfor %}", "no attribute 'cycle'"),
    ("{% for one in tried %}{{ loop }}{% endfor %}", "LoopContext is nothing to print"),
]


def test_218_a_template_that_prints_what_is_no_value_is_refused_with_its_line(
    file: Path, server: LoopbackServer
) -> None:
    for shown, words in PRINTED:
        path = write(file, f"{template()}\n{shown}\n")
        with pytest.raises(PromptError) as caught:
            check_experiment(file)
        assert f"{path}:{template().count(chr(10)) + 2}: [user] cannot be rendered: " in str(caught.value)
        assert words in str(caught.value)
    assert server.requests == []


# --- 27: edited between two runs -------------------------------------------------------------------------------


def test_27_an_edited_template_refuses_to_go_on_and_names_its_file(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    write(file, template().replace("Answer with one", "Reply with one"))
    folder = tmp_path / "run"
    run(file, folder)
    asked = len(server.requests)
    prompts = {request["messages"][1]["content"].count("Reply with one") for request in server.requests}
    assert prompts == {0, 1}

    write(file, template().replace("Answer with one", "Please reply with one"))
    with pytest.raises((DataError, UsageError)) as caught:
        run(file, folder)
    assert "systems.mine.prompts.refine_query.j2" in str(caught.value)
    assert "systems.default" not in str(caught.value)
    assert "--new" in str(caught.value)
    assert len(server.requests) == asked

    run(file, folder, new=True)
    assert any("Please reply" in request["messages"][1]["content"] for request in server.requests[asked:])
