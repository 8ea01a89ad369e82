"""Every script of benchmarks/ and evaluations/ runs once, on tiny data, or is run by a test that it names here."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from running import python

from fairagent import build_index, load_collection, write_demo
from fairagent.guests.testing import LoopbackServer

ROOT = Path(__file__).resolve().parents[1]
RUNS = {
    "benchmarks/analysis.py": "speed",
    "benchmarks/dense.py": "--documents 500 --depth 10",
    "benchmarks/encoding.py": "--texts 2 --processes 1",
    "benchmarks/frontier.py": "--pools 2 --timed 1",
    "benchmarks/graph.py": "--documents 300",
    "benchmarks/group_table.py": "--documents 300 --rows 300",
    "benchmarks/indexing.py": "--documents 200 --workers 1 --rounds 1",
    "benchmarks/loop.py": "--people 60 --bm25",
    "benchmarks/made_up_track.py": "track --documents 100 --topics 2",
    "benchmarks/model_door.py": "2",
    "benchmarks/neighbor.py": "--documents 100 --requests 2 --timeout 1 --wait 1",
    "benchmarks/sampling.py": "--seconds 0 --sizes 1",
    "benchmarks/scale.py": "--documents 100 --bm25",
    "benchmarks/serving.py": "--documents 300 --requests 8 --clients 1",
    "benchmarks/searching.py": "--people 60 --hits 10",
    "benchmarks/starting.py": "--documents 100 --engines bm25 --runs 1",
    "benchmarks/track_indexing.py": "--documents 100",
    "benchmarks/workers.py": "--documents 200 --topics 2 --rounds 1",
    "evaluations/fair_answers/run.py": "demo --topics 2 --figure figure.svg",
    "evaluations/labels/run.py": (
        "trec22_biographies.gender --sizes 200 --seeds 1 --by words --topics 2 --workers 1 --file measured.jsonl"
    ),
    "evaluations/light/together.py": "{run}",
    "evaluations/open_questions/draws.py": "",
    "evaluations/over_time/run.py": "trec22_biographies --requests 10 --file debts.json",
    "evaluations/prompts/filters.py": "{collection} --model m --documents 1",
    "evaluations/tables.py": "readme.md {run}",
    "evaluations/prompts/replies.py": "--model m --out replies.jsonl --calls 1 --minutes 0.1 --only refine_query",
}
"""Script -> its arguments."""
ELSEWHERE = {
    "evaluations/papers/run.py": "real/test_small_tables.py",
    "evaluations/papers/lamp.py": "real/test_small_tables.py",
    "evaluations/debias/split.py": "debias/test_docs.py",
    "evaluations/controller/constants.py": "evaluate/test_scripts.py",
    "evaluations/controller/rivals.py": "evaluate/test_scripts.py",
    "evaluations/data/build.py": "evaluate/test_data_originals.py",
    "evaluations/debias/search_prompts.py": "debias/test_debias_scripts.py",
    "evaluations/debias/sentence_debias.py": "debias/test_debias_scripts.py",
    "evaluations/stereotypes/convert.py": "evaluate/stereotypes/test_items.py",
    "evaluations/debias/serve_transformers.py": "debias/test_debias_scripts.py",
    "evaluations/gguf_to_folder.py": "real/conftest.py",
    "evaluations/model/run.py": "evaluate/test_scripts.py",
    "evaluations/papers/generate.py": "evaluate/test_papers.py",
    "evaluations/trec_fair/draw.py": "evaluate/test_track_walk.py",
    "evaluations/trec_fair/walk.py": "evaluate/test_track_walk.py",
    "evaluations/unlabeled/deleted_labels.py": "evaluate/test_scripts.py",
}
"""Script -> the test that runs it."""
BY_HAND = {
    "evaluations/papers/fair_rag/curve.py": "draws runs of a hundred questions",
    "evaluations/answers/pareto.py": "takes two runs in which a language model answered",
    "evaluations/debias/rankings.py": "embeds the whole of StereoSet",
    "evaluations/debias/theta.py": "asks a language model's likelihoods for an hour",
    "benchmarks/install.py": "makes virtual environments: minutes, and packages from the network",
    "benchmarks/slider.py": "drives a browser for a minute; tests/studio opens the same page",
    "evaluations/retrieval/weights.py": "searches the real collections by both engines",
    "evaluations/widening/run.py": "searches the real collections at seven depths for minutes",
    "benchmarks/word_table.py": "makes the shipped table from a model that is not here",
    "evaluations/fairft/small.py": "trains models for minutes; tests/fairft trains smaller ones",
    "evaluations/fairft/pairs.py": "trains on a language model's likelihoods for minutes",
    "evaluations/labels/ask.py": "embeds a whole collection",
    "evaluations/open_questions/attention.py": "needs the weights of a language model",
}
"""Script -> why no test runs it."""
EXPERIMENT = """\
name: tiny
collection: {collection}
settings: {{index: {index}, engine: bm25}}
topics: 2
systems: {{fused: {{profile: engine}}, feedback: {{}}, agent: {{}}}}
"""


def test_every_script_is_named_here() -> None:
    scripts = {
        str(path.relative_to(ROOT))
        for folder in ("benchmarks", "evaluations")
        for path in (ROOT / folder).rglob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    assert scripts == {*RUNS, *ELSEWHERE, *BY_HAND}
    for script, test in ELSEWHERE.items():
        assert Path(script).stem in (ROOT / "tests" / test).read_text(encoding="utf-8"), script


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The demo with its index, an experiment that has been run, and the folder of real collections."""
    folder = tmp_path_factory.mktemp("scripts")
    file = write_demo(folder / "demo")
    build_index(load_collection(file), folder / "indexes" / "demo", engine="bm25")
    (folder / "tiny.yaml").write_text(EXPERIMENT.format(collection=file, index=folder / "indexes" / "demo"))
    (folder / "readme.md").write_text("### tiny\n\n    measures\n    system  AP\n    fused  0.5\n")
    python("-m", "fairagent", "evaluate", "tiny.yaml", "--run", "run", folder=folder)
    return {"collection": file, "run": folder / "run", "shared": ROOT.parent / "shared", "folder": folder}


@pytest.mark.slow
@pytest.mark.parametrize("script", RUNS)
def test_it_runs(script: str, places: dict[str, Path]) -> None:
    text = (ROOT / script).read_text(encoding="utf-8")
    if ("shared" in text or "{shared}" in RUNS[script]) and not places["shared"].is_dir():
        pytest.skip(f"the data are not at {places['shared']}")
    more = {"SAMPLE": "300", "OPENAI_API_KEY": "none", "XDG_CACHE_HOME": str(places["folder"])}
    with LoopbackServer(lambda request: "{}") as server:
        words = shlex.split(RUNS[script].format(**places))
        python(str(ROOT / script), *words, folder=places["folder"], OPENAI_BASE_URL=server.url, **more)
