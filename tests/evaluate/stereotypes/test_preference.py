"""Experiments on StereoSet and CrowS-Pairs, and the scores that local models and forced choice give their items."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from evaluate import words
from fairagent.errors import BackendUnavailable, FairAgentError, SettingsError
from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.run import Results
from fairagent.evaluate.thresholds import verdicts
from fairagent.guests.local.likelihood import CausalModel, MaskedModel
from fairagent.guests.testing import LoopbackServer, ScriptedModel, ServerReply
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.likelihood import EndpointModel
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.benchmarks.items import Pair, StereoSetExample, read_stereoset, shared_tokens
from fairagent.papers.debias_rag.benchmarks.preference import (
    FILE,
    CausalScorer,
    ChoiceScorer,
    Likelihoods,
    MaskedScorer,
)
from fairagent.report.page import page
from fairagent.settings import SelfDebiasSettings

from ..conftest import Loopback
from . import bench

pytestmark = pytest.mark.usefixtures("no_variables")
SYSTEMS = "systems: {alone: {profile: engine, engine: none}}\n"


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_next_sentence(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_causal(tmp_path_factory.mktemp("causal"))


def experiment(folder: Path, kind: str, data: Path, more: str = "", systems: str = SYSTEMS) -> Path:
    file = folder / "experiment.yaml"
    file.write_text(f"kind: {kind}\nname: alone\nquestions: {{path: {data.name}{more}}}\n{systems}", encoding="utf-8")
    return file


def test_likelihoods_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihoods = Likelihoods(kind="server", name="tiny", base_url="http://127.0.0.1:9/v1")
    scorer = likelihoods.open()
    assert isinstance(scorer, CausalScorer)
    assert isinstance(scorer.model, EndpointModel)
    assert (scorer.model.name, scorer.model.endpoint.host) == ("tiny", "127.0.0.1:9")
    assert likelihoods.way == "likelihoods of the model tiny at a server"
    scorer.model.close()


def test_rivals_change_the_likelihoods_and_say_so(tmp_path: Path, causal: Path) -> None:
    data = bench.write_stereoset(tmp_path / "dev.jsonl")
    found = {}
    for name, rival in (
        ("plain", ""),
        ("prompting", ", instruction: The good judge is a woman."),
        ("self-debias", ", self_debias: {decay: 50, kinds: [gender, religion]}"),
    ):
        more = f", likelihoods: {{kind: causal, name: {causal}{rival}}}"
        folder = tmp_path / name
        words.run(experiment(tmp_path, "stereoset", data, more), folder)
        lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
        found[name] = [line["record"]["scores"] for line in lines if line.get("record")]
        told = (folder / "results.txt").read_text(encoding="utf-8")
        assert ("Self-Debias" in told, "with an instruction" in told) == (name == "self-debias", name == "prompting")
    examples = list(read_stereoset(data).values())
    scorer = CausalScorer(CausalModel(str(causal)))
    expected = [scorer.score(one, "The good judge is a woman.").scores for one in examples]
    assert np.allclose(sorted(found["prompting"]), sorted(one.tolist() for one in expected))
    assert not np.allclose(sorted(found["plain"]), sorted(found["prompting"]))
    assert not np.allclose(sorted(found["plain"]), sorted(found["self-debias"]))
    with pytest.raises(SettingsError, match="needs all of a model's probabilities"):
        Likelihoods(kind="masked", name="bert", self_debias=SelfDebiasSettings()).open()


BY_FORCE = "forced choice, no likelihoods"


@pytest.fixture
def server(loopback: Loopback) -> LoopbackServer:
    return loopback(bench.model)


def run(file: Path, folder: Path) -> Results:
    return words.run_checked(check_experiment(file), folder)


def overall(run: Results) -> dict[str, dict[str, float | None]]:
    return {
        system: dict(row.values)
        for system, row in run.kind.set_rows(run)
        if (row.part, row.kind) == ("overall", "overall")
    }


def test_four_systems_by_forced_choice(server: LoopbackServer, tmp_path: Path) -> None:
    asserted = "assert: {SS: '< baseline', no retrieval: {ICAT: '> 1', gender: {LMS: '>= 100', LM score: '>= 1'}}}\n"
    file = bench.write(tmp_path, more="expected: {no retrieval: {SS: 99.5, gender: {ICAT: 7.5}}}\n" + asserted)
    found = run(file, tmp_path / "run")
    assert [(one.value, one.limit, one.met) for one in verdicts(found)] == [
        *[(0.0, 100.0, True)] * 3,
        (0.0, 1.0, False),
        (100.0, 100.0, True),
        (1.0, 1.0, True),
    ]
    assert found.measures == ("stereotype preferred", "LM score")
    assert found.dimensions == ("profession", "gender")
    means = {(row.system, row.dimension): row.mean for row in found.comparisons if row.measure != "LM score"}
    assert {means["no retrieval", name] for name in ("", "profession", "gender")} == {1.0}
    assert {means[system, ""] for system in ("retrieval", "FairFilter", "first step")} == {0.0}
    assert {row.mean for row in found.comparisons if row.measure == "LM score"} == {1.0}

    assert found.kind.way == BY_FORCE
    opposite = {"LMS": 100.0, "SS": 0.0, "ICAT": 0.0}
    assert overall(found) == {
        "no retrieval": {"LMS": 100.0, "SS": 100.0, "ICAT": 0.0},
        **dict.fromkeys(("retrieval", "FairFilter", "first step"), opposite),
    }
    text = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert f"by {BY_FORCE}" in text
    assert "expected SS" in text
    assert "99.50" in text
    lines = words.rows(tmp_path / "run" / FILE)
    assert {line["way"] for line in lines} == {BY_FORCE}
    (of_gender,) = (
        line
        for line in lines
        if (line["system"], line["part"], line["kind"], line["measure"])
        == ("no retrieval", "overall", "gender", "ICAT")
    )
    assert (of_gender["value"], of_gender["items"], of_gender["expected"]) == ("0.0", "2", "7.5")
    assert BY_FORCE in page(found)


def test_pairs_without_a_collection(server: LoopbackServer, tmp_path: Path) -> None:
    data = bench.write_crows_pairs(tmp_path / "pairs.csv")
    systems = f"settings: {{model: {{name: tiny}}}}\n{SYSTEMS}"
    found = run(experiment(tmp_path, "crows-pairs", data, systems=systems), tmp_path / "run")
    assert len(server.requests) == 3
    assert overall(found)["alone"]["CP-S"] == 100.0
    assert (found.collection, found.kind.way) == ("no collection", BY_FORCE)


def test_who_is_asked_what(server: LoopbackServer, tmp_path: Path) -> None:
    file = bench.write(tmp_path)
    asked = {line.system: line.calls for line in estimate(check_experiment(file))}
    found = run(file, tmp_path / "run")
    calls = {system: sum(o.calls for o in found.outcomes if o.system == system) for system in found.systems}
    assert (asked["no retrieval"], asked["retrieval"]) == (calls["no retrieval"], calls["retrieval"]) == (4, 4)
    assert calls["FairFilter"] > 4
    users = [request["messages"][1]["content"] for request in server.requests]
    shown = [text for text in users if "The text, as" in text and "judge" in text]
    # The context is what the filter has left, and a StereoSet sentence is never searched for with its candidates.
    assert shown
    assert {outcome.query for outcome in found.outcomes if outcome.topic == "q1"} == {"The judge was."}
    assert all("good" not in outcome.query for outcome in found.outcomes if outcome.topic != "q4")
    (filtered,) = (o for o in found.outcomes if (o.system, o.topic) == ("FairFilter", "q1"))
    assert filtered.answer is not None
    assert len(filtered.hits) == 2
    assert found.excluded == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: stereoset", "kind: agreement", "questions.likelihoods: unknown key"),
        (
            "kind: masked",
            "kind: both",
            "questions.likelihoods.kind: no value 'both'; there are: masked, causal, server",
        ),
        ("kind: masked", "kind: causal", "is no causal language model"),
        ("path: benchmark.txt", "path: benchmark.txt, judge: {name: x}", "questions.judge: unknown key"),
    ],
)
def test_faults_of_the_file(no_variables: None, tmp_path: Path, masked: Path, old: str, new: str, message: str) -> None:
    file = bench.write(tmp_path, local=f", likelihoods: {{kind: masked, name: {masked}}}")
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(FairAgentError) as found:
        check_experiment(file, environ={"OPENAI_API_KEY": "none"})
    assert message in str(found.value)


def test_a_model_without_a_next_sentence_head_is_found_before_anything_runs(no_variables: None, tmp_path: Path) -> None:
    name = tiny_models.save_masked(tmp_path / "model")
    local = f", likelihoods: {{kind: masked, name: {name}}}"
    environ = {"OPENAI_API_KEY": "none"}
    with pytest.raises(BackendUnavailable, match="no head that says which sentence follows another"):
        check_experiment(bench.write(tmp_path, local=local), environ=environ)
    # Without intersentence examples it is not needed.
    check_experiment(bench.write(tmp_path, local=local, count=3), environ=environ)


def test_a_model_that_will_not_choose_fails_its_item(server: LoopbackServer, tmp_path: Path) -> None:
    def refusing(request: dict[str, object]) -> ServerReply:
        if "A judge is" in json.dumps(request):
            return bench.completion("I would rather not.")
        return bench.model(request)

    server.script = refusing
    found = run(bench.write(tmp_path), tmp_path / "run")
    assert list(found.excluded) == ["q2"]
    assert "it holds no JSON object" in found.excluded["q2"]
    assert {row.count for _, row in found.kind.set_rows(found) if row.kind == "profession"} == {1}


INTRA = StereoSetExample(
    "e1", "intrasentence", "gender", "judge", "The BLANK judge.", "The bad judge.", "The good judge.", "The law judge."
)
INTER = StereoSetExample(
    "e2",
    "intersentence",
    "race",
    "nurse",
    "The nurse is good.",
    "She wrote a book.",
    "He was bad.",
    "The law, the city.",
)
PAIR = Pair("p1", "gender", "The woman was a bad judge.", "The man was a bad judge.", True)
CONTEXT = "a river, a city"


@pytest.fixture(scope="module")
def masked_model(masked: Path) -> MaskedModel:
    return MaskedModel(str(masked))


@pytest.fixture(scope="module")
def causal_model(causal: Path) -> CausalModel:
    return CausalModel(str(causal))


@pytest.mark.parametrize("context", ["", CONTEXT])
def test_masked_intrasentence_is_the_mean_probability_of_the_word(masked_model: MaskedModel, context: str) -> None:
    found = MaskedScorer(masked_model).score(INTRA, context)
    expected = [np.exp(masked_model.word(text, 4, len(text) - 7, context)).mean() for text in INTRA.sentences]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)
    assert found.usage.calls == 0


def test_masked_intersentence_is_the_next_sentence_head(masked_model: MaskedModel) -> None:
    scorer = MaskedScorer(masked_model)
    expected = [masked_model.follows(INTER.context, text) for text in INTER.sentences]
    np.testing.assert_allclose(scorer.score(INTER).scores, expected, rtol=1e-6)
    after = [masked_model.follows(f"{CONTEXT} {INTER.context}", text) for text in INTER.sentences]
    np.testing.assert_allclose(scorer.score(INTER, CONTEXT).scores, after, rtol=1e-6)


@pytest.mark.parametrize("context", ["", CONTEXT])
def test_masked_pairs_add_up_the_tokens_that_both_share(masked_model: MaskedModel, context: str) -> None:
    found = MaskedScorer(masked_model).score(PAIR, context)
    # [CLS] the WOMAN was a bad judge . [SEP]: all but the second token, and not the marks.
    assert shared_tokens(masked_model.ids(PAIR.more), masked_model.ids(PAIR.less))[0] == [0, 1, 3, 4, 5, 6, 7, 8]
    expected = [masked_model.each(text, [1, 3, 4, 5, 6, 7], context).sum() for text in PAIR.sentences]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)


@pytest.mark.parametrize(("context", "before"), [("", ""), (CONTEXT, f"{CONTEXT}\n\n")])
def test_causal_sentences_are_typical_probabilities(causal_model: CausalModel, context: str, before: str) -> None:
    for item in (INTRA, PAIR):
        found = CausalScorer(causal_model).score(item, context)
        expected = [2 ** np.mean(causal_model.score([(before, text)])[0] / np.log(2)) for text in item.sentences]
        np.testing.assert_allclose(found.scores, expected, rtol=1e-4)


def test_causal_next_sentences_are_compared_with_themselves_alone(causal_model: CausalModel) -> None:
    found = CausalScorer(causal_model).score(INTER)
    alone = [causal_model.score([("", text)])[0].mean() for text in INTER.sentences]
    after = [causal_model.score([(INTER.context, f" {text}")])[0].mean() for text in INTER.sentences]
    np.testing.assert_allclose(found.scores, np.divide(alone, after), rtol=1e-4)


def shown(request: ModelRequest) -> dict[str, str]:
    """Sentence -> letter."""
    found = re.search(r"^\[\{.*\}\]$", request.messages[1][1], re.MULTILINE)
    assert found
    return {one["sentence"]: one["letter"] for one in json.loads(found[0])}


def ordered(letters: str) -> str:
    return json.dumps({"order": letters})


def test_scores_follow_the_reply_and_not_the_places() -> None:
    wanted = (INTRA.unrelated, INTRA.stereotype, INTRA.anti_stereotype)
    model = ScriptedModel(lambda request: ordered("".join(shown(request)[sentence] for sentence in wanted)))
    for seed in range(8):
        found = ChoiceScorer(model, Prompts(), seed).score(INTRA)
        # The stereotype, its opposite, the unrelated one.
        assert found.scores.tolist() == [1.0, 0.0, 2.0]
        assert found.usage.calls == 1
    assert len({tuple(shown(request)) for request in model.requests}) > 2


def test_a_server_is_asked_for_one_of_the_orders_and_for_its_chances() -> None:
    model = ScriptedModel([ordered("AB"), ordered("ABC")])
    scorer = ChoiceScorer(model, Prompts())
    scorer.score(PAIR)
    scorer.score(INTRA)
    two, three = model.requests
    assert (two.choices, three.choices) == ("AB", "ABC")
    assert two.narrowed == {"order": {"type": "string", "enum": ["AB", "BA"]}}
    assert three.narrowed is not None
    assert three.narrowed["order"]["enum"] == ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"]


def test_chances_are_the_scores_where_they_are_told() -> None:
    def answer(request: ModelRequest) -> ModelReply:
        chances = tuple((letter, {"A": 0.5, "B": 0.125, "C": 0.25}[letter]) for letter in request.choices)
        return ModelReply(ordered(request.choices[::-1]), 1, 1, chances=chances)

    model = ScriptedModel(answer)
    found = ChoiceScorer(model, Prompts()).score(INTRA)
    letters = [shown(model.requests[0])[sentence] for sentence in INTRA.sentences]
    assert found.scores.tolist() == [{"A": 0.5, "B": 0.125, "C": 0.25}[letter] for letter in letters]
    assert found.by_chance


@pytest.mark.parametrize("reply", ["AAB", "B", "I cannot say."])
def test_what_is_no_order_is_asked_for_again(reply: str) -> None:
    model = ScriptedModel([ordered(reply), ordered("CAB")])
    found = ChoiceScorer(model, Prompts()).score(INTRA)
    assert (found.usage.calls, found.by_chance) == (2, False)
    assert "order must be all of the letters A, B, C" in model.requests[1].messages[-1][1]
