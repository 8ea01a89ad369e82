"""What a model is asked about the groups, and what becomes of its reply."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from loop_engine import LAWYERS, TWO_KINDS, Dense, Words, agent

from fairagent.errors import BudgetExceeded, ReplyRefused, TransientModelError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.search.loop.actions import RefineAction
from fairagent.search.loop.base import Lack, lacking
from fairagent.search.loop.candidates import Mixer
from fairagent.search.loop.controller import Controller
from fairagent.search.loop.sources import PASSAGE, EvidenceType, ModelEvidence, Sources
from fairagent.types import Exposure, Group, Proposals

FEMALE = Lack(Group("gender", "female"), 0, 0.1, 0.5, 0.4)
AFRICA = Lack(Group("region", "Africa"), 3, 0.0, 0.2, 0.2)
KEYWORDS = '{"groups": [{"number": 2, "keywords": ["Nile", "see x.org"]}, {"number": 1, "keywords": ["she", "woman"]}]}'
PASSAGES = '{"passages": [{"number": 1, "passage": "A  woman at\\nlaw."}, {"number": 9, "passage": "Nobody."}]}'


def asked_for(
    model: ScriptedModel, *kinds: EvidenceType, shown: dict[int, list[str]] | None = None, passages: int = 1
) -> ModelEvidence:
    sources = Sources(kinds, model, Prompts(), passages=passages)
    return sources.ask("law", [FEMALE, AFRICA], {kind: shown or {} for kind in kinds}, 4)


def test_all_groups_that_lack_exposure_are_asked_about_in_one_call() -> None:
    model = ScriptedModel([KEYWORDS])
    (texts,) = asked_for(model, "llm").texts
    assert len(model.requests) == 1
    assert [one.text for one in texts] == ["law she, woman", "", "", "law Nile"]
    assert [(term.text, term.weight) for term in texts[0].terms] == [("she", 0.5), ("woman", 0.5)]
    user = model.requests[0].messages[-1][1]
    assert '"number": 2, "dimension": "region", "group": "Africa"' in user


def test_what_is_no_keyword_is_refused_and_said() -> None:
    found = asked_for(ScriptedModel([KEYWORDS]), "llm")
    assert found.refused == ("see x.org: an address",)
    assert found.notes == ("Africa (region): law Nile", "female (gender): law she, woman")


def test_a_passage_is_one_line_of_words_with_weights() -> None:
    (texts,) = asked_for(ScriptedModel([PASSAGES]), "passage").texts
    assert texts[0].text == "A woman at law."
    assert {term.text: term.weight for term in texts[0].terms} == {"a": 0.25, "woman": 0.25, "at": 0.25, "law": 0.25}
    assert not any(texts[1:])


def test_grounded_shows_each_groups_words() -> None:
    model = ScriptedModel([KEYWORDS])
    asked_for(model, "grounded", shown={0: ["barrister"], 3: []})
    system, user = (text for _, text in model.requests[0].messages)
    assert '"words_of_its_documents": ["barrister"]' in user
    assert "words that its own documents have in common" in system


@pytest.mark.parametrize("error", [TransientModelError("overloaded"), ReplyRefused("no"), BudgetExceeded("10 calls")])
def test_where_the_model_fails_the_groups_keep_their_documents(error: Exception) -> None:
    def fails(request: ModelRequest) -> str:
        raise error

    found = asked_for(ScriptedModel(fails), "llm")
    assert not any(found.texts[0])
    assert found.notes == (f"llm: the model gives no evidence, the groups' documents alone count: {error}",)


@pytest.mark.parametrize("passage", ["Law, law!", "..."])
def test_an_echo_of_the_query_is_no_passage(passage: str) -> None:
    lacks = [Lack(Group("gender", label), place, 0.0, 0.5, 0.5) for place, label in enumerate(("female", "male"))]
    said = json.dumps({"passages": [{"number": 1, "passage": passage}, {"number": 2, "passage": "He was a judge."}]})
    model = ScriptedModel([said])
    (texts,) = Sources(("passage",), model, Prompts()).ask("law", lacks, {}, 2).texts
    assert [one.text for one in texts] == ["", "He was a judge."]
    assert model.requests[0].narrowed is not None
    each = model.requests[0].narrowed["passages"]["prefixItems"]
    assert [one["properties"]["number"] for one in each] == [{"type": "integer", "enum": [n]} for n in (1, 2)]


def test_who_lacks_most_comes_first_by_importance() -> None:
    gender = Exposure("gender", ("f", "m"), np.array([0.3, 0.7]), np.array([0.5, 0.5]), 0.0, 0.1)
    region = Exposure("region", ("a", "b"), np.array([0.1, 0.9]), np.array([0.5, 0.5]), 0.0, 0.1, importance=0.4)
    assert [(lack.group.label, lack.place) for lack in lacking([gender, region])] == [("f", 0), ("a", 2)]


def run(
    model: ScriptedModel, *kinds: EvidenceType, feedback: bool = False, beta: float = 0.5, engine: object | None = None
):
    engine = engine or Dense(LAWYERS)
    source = engine if isinstance(engine, Words) else Words(LAWYERS)
    sources = Sources(kinds, model, Prompts())
    loop = Controller((RefineAction(3, 0.5),), mixer=Mixer(beta, source, feedback), drift=0.9, sources=sources)
    return agent(engine, loop).search("law").trace


# --- what is refused and counted ---


def test_words_of_the_prompts_keys_and_of_the_query_are_refused_and_counted() -> None:
    # "group", "its" and "documents" stand in the keys, "gender" is the dimension's name, "Law" the query.
    said = ["number", "Group", "gender", "its documents", "Law", "barrister", "see x.org"]
    model = ScriptedModel([json.dumps({"groups": [{"number": 1, "keywords": said}]})])
    found = asked_for(model, "grounded", shown={0: ["barrister"]})
    assert found.texts[0][0].text == "law barrister"
    assert found.proposals == Proposals(7, 1)
    of_prompt = [f"{word}: a word of the prompt itself" for word in ("number", "Group", "gender", "its documents")]
    assert found.refused == (*of_prompt, "see x.org: an address", "Law: the query's own words")


@pytest.mark.parametrize("passage", ["Female (gender)", "its first two sentences"])
def test_an_echo_of_the_group_or_the_prompt_is_noted_and_not_used(passage: str) -> None:
    said = json.dumps({"passages": [{"number": 1, "passage": passage}, {"number": 2, "passage": "Courts in Lagos."}]})
    found = asked_for(ScriptedModel([said]), "passage")
    assert [one.text for one in found.texts[0]] == ["", "", "", "Courts in Lagos."]
    assert found.refused == (f"{passage}: an echo of the prompt",)
    assert found.proposals == Proposals(2, 1)


# --- sentences of the groups' own documents ---

SHOWN = {0: ["She was a judge.", "Her court stood.", "She retired."], 3: ["A court in Lagos."]}


def chosen_of(*groups: tuple[int, list[int]]) -> str:
    return json.dumps({"groups": [{"number": number, "sentences": some} for number, some in groups]})


def test_the_sentences_that_are_chosen_are_the_evidence() -> None:
    model = ScriptedModel([chosen_of((1, [3, 1]), (2, [1]))])
    found = asked_for(model, "sentences", shown=SHOWN)
    assert [one.text for one in found.texts[0]] == ["She retired. She was a judge.", "", "", "A court in Lagos."]
    assert found.proposals == Proposals(3, 3)
    user = model.requests[0].messages[-1][1]
    assert '"sentences": [{"sentence": 1, "text": "She was a judge."}, {"sentence": 2, "text": "Her court' in user
    assert model.requests[0].narrowed is not None
    first, _ = model.requests[0].narrowed["groups"]["prefixItems"]
    assert first["properties"]["sentences"] == {
        "type": "array",
        "items": {"type": "integer", "enum": [1, 2, 3]},
        "maxItems": 3,
    }


def test_a_sentence_that_was_not_shown_is_refused_and_counted() -> None:
    found = asked_for(ScriptedModel([chosen_of((1, [4, 0, 2, 2]), (2, []))]), "sentences", shown=SHOWN)
    assert [one.text for one in found.texts[0]] == ["Her court stood.", "", "", ""]
    assert found.refused == ("4: no sentence that was shown", "0: no sentence that was shown")
    assert found.proposals == Proposals(4, 1)


def test_a_search_shows_the_first_sentences_of_each_document_before_the_second_ones() -> None:
    engine = Dense(LAWYERS)
    texts = {"f1": "law woman woman. Law ship.", "f2": "law woman woman court. Law sea."}
    document = engine.document
    engine.document = lambda id: replace(document(id), text=texts.get(id, document(id).text))  # type: ignore[method-assign]
    model = ScriptedModel([chosen_of((1, [1, 2]))])
    trace = run(model, "sentences", engine=engine)
    user = model.requests[0].messages[-1][1]
    places = [user.index(one) for one in ("law woman woman.", "law woman woman court.", "Law ship.", "Law sea.")]
    assert places == sorted(places)
    assert "female (gender): law woman woman. law woman woman court." in trace.steps[1].notes
    assert trace.steps[1].proposals == Proposals(2, 2)


# --- several passages, and what they count ---


def passages(*texts: str) -> list[str]:
    return [json.dumps({"passages": [{"number": 1, "passage": text}]}) for text in texts]


def test_each_passage_is_a_call_with_a_seed_of_its_own() -> None:
    model = ScriptedModel(passages("A barrister.", "A judge.", "A court."))
    found = asked_for(model, "passage", passages=3)
    assert [one[0].text for one in found.texts] == ["A barrister.", "A judge.", "A court."]
    assert [(one.seed, one.temperature) for one in model.requests] == [(None, None), (1, 0.8), (2, 0.8)]
    assert found.proposals == Proposals(3, 3)


def test_a_passage_weighs_as_much_as_the_documents_near_it_are_relevant() -> None:
    engine = Dense(LAWYERS)
    model = ScriptedModel(passages("man court", "ship"))
    sources = Sources(("passage",), model, Prompts(), passages=2, weighting="relevance")
    loop = Controller((RefineAction(1, 0.5),), mixer=Mixer(0.5), drift=0.9, sources=sources)
    notes = agent(engine, loop).search("law").trace.steps[1].notes
    # The ten nearest are all ten, men before women as in the query's list: no order is better. "ship" is in none.
    assert "female (gender): man court counts 1.00, by the documents nearest to it" in notes
    assert "female (gender): ship counts 0.00, by the documents nearest to it" in notes


WOMAN = json.dumps({"groups": [{"number": 1, "keywords": ["woman"]}]})


@pytest.mark.parametrize("engine", [Dense(LAWYERS), Words(LAWYERS)])
def test_the_models_words_refine_the_search_at_the_price_of_one_call(engine: object) -> None:
    model = ScriptedModel([WOMAN])
    trace = run(model, "llm", engine=engine)
    assert len(model.requests) == 1
    assert trace.usage.calls == 1
    assert [step.usage.calls for step in trace.steps[1:]] == [1] + [0] * (len(trace.steps) - 2)
    assert "female (gender): law woman" in trace.steps[1].notes


def test_the_models_words_stand_for_the_group_instead_of_its_documents() -> None:
    feedback = (
        agent(Dense(TWO_KINDS), Controller((RefineAction(3, 0.5),), mixer=Mixer(0.9), drift=0.9)).search("law").trace
    )
    astray = run(ScriptedModel([WOMAN.replace("woman", "man")]), "llm", beta=0.9, engine=Dense(TWO_KINDS))
    assert any(id.startswith("f") for id in feedback.steps[1].ranking.ids)
    assert not any(id.startswith("f") for id in astray.steps[1].ranking.ids)


@pytest.mark.parametrize("text", ["A river of 1990, it says.", "नमस्ते", "x" * 300])
def test_a_passage_of_any_script_is_within_the_bounds(text: str) -> None:
    assert re.fullmatch(PASSAGE[1:-1], text)


@pytest.mark.parametrize("text", ["1.1.1.1", 'a"b', "a\nb", "x" * 301])
def test_a_passage_begins_with_a_letter(text: str) -> None:
    assert not re.fullmatch(PASSAGE[1:-1], text)
