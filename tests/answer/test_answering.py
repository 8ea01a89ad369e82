"""From a ranking to an answer on scripted parts: what is filtered, read, cited and counted, and what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Engine, Proposals, agent, by_letter, collection, drawing, refinement

from fairagent.answer.answering import Answerer, CitationAttributor, JudgeAttributor
from fairagent.answer.citations import OnText
from fairagent.answer.context import Contexts
from fairagent.answer.filtering import FairFilter
from fairagent.answer.generators import ExtractiveGenerator, LlmGenerator
from fairagent.errors import BudgetExceeded, ReplyInvalid
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.budget import ledger
from fairagent.llm.prompts import Prompts
from fairagent.report.record import answer_record, to_json
from fairagent.report.story import answer_story
from fairagent.report.text import plain
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build_answerer
from fairagent.settings import Settings
from fairagent.settings.tree import CitationSettings
from fairagent.types import Answer, Debiased, Document, Filtered, Group, Query, Removal, Revision, Usage, Verdict

SKEWED = {"q": "m1 m2 m3 f1 f2"}
NOTHING = Usage()


class Library(Engine):
    """An engine that keeps texts: each document says its id."""

    def document(self, id: str) -> Document:
        return Document(id, f"This is {id}.", f"Title of {id}")


class Writer:
    """A generator that cites what it is told to, and remembers what it was given."""

    def __init__(self, *cited: int, usage: Usage = NOTHING) -> None:
        self.cited = cited
        self.usage = usage
        self.given: list[tuple[str | Query, tuple[Document, ...]]] = []

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        self.given.append((query, tuple(documents)))
        if on_text:
            on_text("written")
        return Answer("written", self.cited, (), self.usage, "writer")


class Without:
    """A filter that removes these documents."""

    def __init__(self, *ids: str, usage: Usage = NOTHING) -> None:
        self.ids = ids
        self.usage = usage
        self.given: list[tuple[str, tuple[str, ...]]] = []

    def filter(self, query: str, documents: Sequence[Document]) -> Filtered:
        self.given.append((query, tuple(document.id for document in documents)))
        verdicts = tuple(Verdict(one.id, one.id not in self.ids, one.id not in self.ids, None) for one in documents)
        return Filtered(tuple(one for one in documents if one.id not in self.ids), verdicts, self.usage)


def answering(
    generator: Any, engine: Engine | None = None, refiner: Any = None, n: int = 5, **context: Any
) -> FairAgent:
    """The agent on `engine` (the list SKEWED), that takes no step after the first unless it is given a refiner."""
    made = agent(engine or Library(SKEWED), refiner, n=n)
    answerer = Answerer(generator, Contexts(**context), CitationAttributor())
    return replace(made, answerer=lambda: answerer)


def shares(exposures: Any) -> list[list[float]]:
    return [exposure.shares.round(3).tolist() for exposure in exposures]


def test_an_answer_with_its_context_its_citations_and_its_search() -> None:
    writer = Writer(4, 1)
    result = answering(writer, documents=4).answer("q")
    assert (result.query, result.answer.text) == (Query("q"), "written")
    assert [hit.id for hit in result.context] == ["m1", "m2", "m3", "f1"]
    assert [hit.id for hit in result.cited] == ["f1", "m1"]
    assert result.search.ranking.ids == ("m1", "m2", "m3", "f1", "f2")
    ((asked, documents),) = writer.given
    assert (str(asked), [document.id for document in documents]) == ("q", ["m1", "m2", "m3", "f1"])
    assert (result.filtered, result.removed, result.notes) == (None, (), ())
    assert result.seconds >= result.search.trace.seconds
    assert result.attribution is not None
    assert result.attribution.weights.tolist() == [1, 0, 0, 1]
    assert shares(result.attribution.retrieved) == [[0.25, 0.75]]
    assert shares(result.attribution.exposures) == [[0.5, 0.5]]
    assert result.attribution.exposures[0].target.tolist() == [0.5, 0.5]


def test_a_filter_sees_the_first_documents_and_what_each_group_lost_is_reported() -> None:
    filter, writer = Without("m1", "m3"), Writer(2)
    result = answering(writer, filter=filter, documents=4).answer("q")
    assert filter.given == [("q", ("m1", "m2", "m3", "f1"))]
    assert [document.id for document in writer.given[0][1]] == ["m2", "f1"]
    assert [(hit.rank, hit.id) for hit in result.context] == [(2, "m2"), (4, "f1")]
    assert [hit.id for hit in result.cited] == ["f1"]
    assert {Removal(Group("gender", "female"), 1, 0), Removal(Group("gender", "male"), 3, 2)} <= set(result.removed)
    assert "male (gender) 67% of 3" in plain(answer_story(result))
    # One that takes a whole group is an alarm.
    women = [f"f{i}" for i in range(10)]
    engine = Library({"q": " ".join([*(f"m{i}" for i in range(10)), *women])})
    result = answering(Writer(), engine, filter=Without(*women), n=20, documents=20).answer("q")
    assert any("removed 100% of the documents of female (gender)" in str(alarm) for alarm in result.alarms)


def test_the_generator_hears_the_words_of_the_topic_but_not_those_for_a_group() -> None:
    writer = Writer()
    engine = Library(SKEWED | {"q she": "f1 m1 f2 m2"})
    result = answering(writer, engine, refiner=Proposals("she", "")).answer("q")
    assert result.search.trace.steps[1].accepted
    assert str(writer.given[0][0]) == "q"


def test_usage_is_that_of_all_parts() -> None:
    refiner = Proposals(refinement("", usage=Usage(1, 100, 10, 0.5, 1.0)))
    made = answering(Writer(usage=Usage(1, 5, 6, 0.25, 2.0)), filter=Without(usage=Usage(8, 3, 4)), refiner=refiner)
    assert made.answer("q").usage == Usage(10, 108, 20, 0.75, 3.0)


class Debias:
    """Keeps the last document and puts a context that it makes before it."""

    def apply(self, query: str, documents: Sequence[Document]) -> Debiased:
        made = Document("fair:a", "Made.", "made")
        dropped = tuple(one.id for one in documents[:-1])
        chosen = (made, *documents[-1:])
        return Debiased("gender", ("a",), ("fair:a",), chosen, (1.0, 0.5), dropped, usage=Usage(1, 2, 3))


def test_debiasing_comes_after_the_filter_and_what_it_made_has_no_group() -> None:
    writer = Writer(1, 2)
    result = answering(writer, filter=Without("f1"), debiasing=Debias(), documents=4).answer("q")
    assert [document.id for document in writer.given[0][1]] == ["fair:a", "m3"]
    assert [(hit.rank, hit.id) for hit in result.context] == [(0, "fair:a"), (3, "m3")]
    assert result.debiased is not None
    assert (result.debiased.dropped, result.usage) == (("m1", "m2"), Usage(1, 2, 3))
    result = answering(Writer(1, 2), debiasing=Debias(), documents=4).answer("q")
    assert result.context[0].groups == {"gender": {}}
    assert result.attribution is not None
    (retrieved,) = result.attribution.retrieved
    assert (retrieved.unknown, retrieved.shares.round(3).tolist()) == (0.5, [1, 0])
    assert result.notes == ("[1]: synthesized for fairness, not from the collection; a source of nothing",)
    assert answering(Writer(2), debiasing=Debias()).answer("q").notes == ()
    told = " ".join(plain(answer_story(result)).split())
    assert "1 passage of class gender to avoid; 1 counterfactual made of them, 1 survived the filter" in told
    assert "theta moved by 0.0000, from (0.5000, 0.5000) to (0.5000, 0.5000)" in told


def test_contexts_of_nothing_of_what_a_filter_leaves_and_of_long_documents() -> None:
    writer, filter = Writer(), Without()
    result = answering(writer, filter=filter, engine=Library({"q": ""})).answer("q")
    assert (result.answer, result.context, result.attribution, result.filtered) == (Answer(""), (), None, None)
    assert writer.given == filter.given == []
    assert len(result.notes) == len(result.search.trace.notes) == 1
    writer = Writer()
    everything = Without("m1", "m2", "m3", "f1", "f2")
    result = answering(writer, filter=everything).answer("q")
    assert writer.given[0][1] == ()
    assert result.context == ()
    assert result.notes == ("the filter left none of 5 documents, so there is no context",)
    assert result.attribution is not None
    assert shares(result.attribution.exposures) == shares(result.attribution.retrieved) == [[0.0, 0.0]]

    class Long(Library):
        def document(self, id: str) -> Document:
            return Document(id, f"{id} " * 1000)

    writer = Writer(5)
    result = answering(writer, Long(SKEWED), tokens=100).answer("q")
    assert [len(document.text) for document in writer.given[0][1]] == [80] * 5
    assert result.notes == ("5 of 5 documents were cut to fit 100 tokens",)
    assert [hit.id for hit in result.cited] == ["f2"]


def test_what_was_spent_on_an_answer_that_is_empty_is_in_the_ledger() -> None:
    model = ScriptedModel(["yes"] * 4 + ["[7]"])

    class Asking(Without):
        def filter(self, query: str, documents: Sequence[Document]) -> Filtered:
            for one in documents:
                model.complete(ModelRequest((("user", one.text),)))
            return super().filter(query, documents)

    made = answering(LlmGenerator(model, Prompts()), filter=Asking(), documents=4)
    with ledger() as spent, pytest.raises(ReplyInvalid, match="the answer is empty"):
        made.answer("q")
    assert spent.usage.calls == 5


def test_an_answer_from_a_ranking_that_was_drawn() -> None:
    writer, told = Writer(1), []  # type: ignore[var-annotated]
    made = drawing(answering(writer, documents=4), 0.0)
    results = [made.answer("q", told.append) for _ in range(10)]
    assert told == ["written"] * 10
    assert len({tuple(hit.id for hit in result.context) for result in results}) > 1
    for request, (result, (_, documents)) in enumerate(zip(results, writer.given, strict=True)):
        assert [one.id for one in documents] == list(result.search.ranking.ids[:4])
        assert result.search.trace.draw is not None
        assert result.search.trace.draw.request == request
    # An answer and a search are requests alike.
    again = drawing(answering(Writer(), documents=4), 0.0)
    assert [again.search("q").ranking.ids for _ in range(10)] == [result.search.ranking.ids for result in results]


class OneModel:
    """Opens a model without a word, whatever is asked for."""

    def open(self, settings: Any) -> ScriptedModel:
        return ScriptedModel([])


def site(**settings: Any) -> Site:
    engine, models = Library(SKEWED), OneModel()
    return Site(collection(by_letter(["f1", "m1"])), Settings(**settings), Path("index"), models, engine=engine)  # type: ignore[arg-type]


def test_the_parts_are_those_of_the_settings() -> None:
    made = build_answerer(site())
    assert isinstance(made.generator, ExtractiveGenerator)
    assert (made.contexts, made.attributor) == (Contexts(None, None, 10, 3000), CitationAttributor())

    made = build_answerer(
        site(
            filter={"kind": "fair", "utility": False, "batch": 5, "on_error": "drop"},
            context={"documents": 3, "tokens": 500, "order": "ends"},
            generate={"kind": "llm", "length": 40},
            attribute="judge",
        )
    )
    filter = made.contexts.filter
    assert isinstance(filter, FairFilter)
    assert (filter.batch, filter.utility, filter.on_error) == (5, False, "drop")
    assert isinstance(made.generator, LlmGenerator)
    generator = made.generator
    assert (generator.order, generator.length) == ("ends", 40)
    assert isinstance(made.attributor, JudgeAttributor)
    assert (made.contexts.documents, made.contexts.tokens) == (3, 500)
    assert build_answerer(site(attribute="none")).attributor is None


def aiming(generator: Any, engine: Engine | None = None, n: int = 8, **context: Any) -> FairAgent:
    """The agent whose context and citations aim at half and half."""
    # So many more that the scores of the first are close.
    more = " ".join(f"u{i}" for i in range(40))
    made = agent(engine or Library({"q": f"m1 m2 m3 m4 f1 f2 m5 f3 {more}"}), None, n=n)
    contexts = Contexts(balanced=True, **context)
    answerer = Answerer(generator, contexts, CitationAttributor(), CitationSettings(aim=True, loss=0.5))
    return replace(made, answerer=lambda: answerer)


def test_a_balanced_context_is_numbered_in_its_own_order_by_the_users_shares() -> None:
    writer = Writer(1, 2)
    result = aiming(writer, documents=4).answer("q")
    assert [hit.id for hit in result.context] == ["m1", "f1", "m2", "f2"]
    assert [document.id for document in writer.given[0][1]] == ["m1", "f1", "m2", "f2"]
    assert [hit.id for hit in result.cited] == ["m1", "f1"]
    assert (result.exposures.context_gap, result.exposures.cited_gap) == (pytest.approx(0), pytest.approx(0))
    assert [one.target.tolist() for one in result.exposures.cited] == [[0.5, 0.5]]
    result = aiming(Writer(), documents=6, filter=Without("f1")).answer("q")
    assert [hit.id for hit in result.context] == ["m1", "f2", "m2", "f3", "m3"]
    result = aiming(Writer(1), documents=4).answer("q", shares={"gender": {"female": 0.25, "male": 0.75}})
    assert [hit.id for hit in result.context] == ["m1", "m2", "f1", "m3"]
    for exposures in (result.search.trace.exposures, result.exposures.context, result.exposures.cited):
        assert [one.target.tolist() for one in exposures] == [[0.25, 0.75]]


LISTS = st.lists(st.tuples(st.sampled_from("fmu"), st.booleans()), min_size=1, max_size=9)


@settings(max_examples=60)
@given(LISTS, st.integers(1, 6))
def test_no_plain_answer_is_worth_more_than_the_one_given(kinds: list[tuple[str, bool]], most: int) -> None:
    class Some(Library):
        def document(self, id: str) -> Document:
            return Document(id, "Roses were read." if says[id] else "Nothing.", id)

    says = {f"{kind}{place}": held for place, (kind, held) in enumerate(kinds)}
    results = []
    for aim in (True, False):
        made = agent(Some({"read": " ".join(says)}), None, n=9)
        contexts = Contexts(documents=most, balanced=aim)
        answerer = Answerer(ExtractiveGenerator(3), contexts, None, CitationSettings(aim=aim, loss=0.5))
        results.append(replace(made, answerer=lambda answerer=answerer: answerer).answer("read"))

    def worth(result: Any) -> float:
        ranking = result.search.trace.steps[0].ranking
        low, high = ranking.scores[-1], ranking.scores[0]
        of = {
            id: 1.0 if high == low else (s - low) / (high - low)
            for id, s in zip(ranking.ids, ranking.scores, strict=True)
        }
        mean = np.mean([of[one.id] for one in result.cited]) if result.cited else 0.0
        return float(mean - result.search.trace.fairness * result.exposures.cited_gap)

    given, plain = results
    assert worth(given) >= worth(plain) - 1e-12
    assert given.aimed.objectives[1] == pytest.approx(worth(plain))
    assert given.aimed.objectives[not given.aimed.aimed] == pytest.approx(worth(given))
    if not given.aimed.aimed:
        assert (given.answer, given.context, plain.aimed) == (plain.answer, plain.context, None)


def test_the_better_of_an_aimed_and_a_plain_answer_is_given_and_it_is_said_which() -> None:
    class Aimed(Writer):
        """Cites one man where it aims, and a woman besides where it does not."""

        def aimed(self, query: Any, documents: Any, aim: Any, on_text: Any = None) -> Answer:
            return replace(self.answer(query, documents, on_text), text="aimed", cited=(1,))

    heard: list[str] = []
    writer = Aimed(1, 5, usage=Usage(1, 5, 6))
    result = aiming(writer, documents=5).answer("q", heard.append)
    assert (result.answer.text, result.usage.calls, heard) == ("written", 2, ["written"])
    assert [hit.id for hit in result.context] == ["m1", "m2", "m3", "m4", "f1"]
    assert result.aimed
    assert (result.aimed.aimed, result.aimed.gaps) == (False, (pytest.approx(0.2158, abs=1e-4), pytest.approx(0)))
    told, record = " ".join(plain(answer_story(result)).split()), answer_record(result)["citations"]
    assert "given the plain answer: J" in told
    assert "not cited male (gender) 75% of 4" in told
    assert (record["given"]["aimed"], record["given"]["text"]) == (False, str(result.aimed))
    assert {"dimension": "gender", "label": "male", "seen": 4.0, "share": 0.75} in record["uncited"]
    # Where a filter chose the context, no second one is made.
    filter = Without("m2")
    result = aiming(Aimed(1), documents=5, filter=filter).answer("q")
    assert (len(filter.given), [hit.id for hit in result.context]) == (1, ["m1", "f1", "m3", "f2"])

    class Once(Aimed):
        def answer(self, query: Any, documents: Any, on_text: Any = None) -> Answer:
            if self.given:
                raise BudgetExceeded("no call is left")
            return super().answer(query, documents, on_text)

    result = aiming(Once(1), documents=5).answer("q")
    assert (result.answer.text, result.aimed) == ("aimed", None)
    assert result.answer.notes == ("the plain answer, to compare it with, came to nothing: no call is left",)


def test_what_is_cited_is_heard_while_the_answer_is_written() -> None:
    class Slow(Writer):
        def answer(self, query: Any, documents: Any, on_text: Any = None) -> Answer:
            for piece in ("One [1", "], two [1]", " and [2]", ", none [9], three [3]."):
                if on_text:
                    on_text(piece)
            return Answer("One [1], two [1] and [2], three [3].", (1, 2, 3))

    heard: list[Any] = []
    text: list[str] = []
    result = aiming(Slow(), documents=4).answer("q", text.append, on_cited=heard.append)
    assert "".join(text).startswith("One [1], two")
    assert [one.cited for one in heard] == [(1,), (1, 2), (1, 2, 3)]
    assert [one.gap for one in heard] == pytest.approx([0.2158, 0, heard[-1].gap], abs=1e-4)
    assert heard[-1].gap == pytest.approx(result.exposures.cited_gap)
    assert shares(heard[1].exposures) == [[0.5, 0.5]]


def test_all_without_a_label_are_answered_from_in_rank_order() -> None:
    result = aiming(Writer(1), Library({"q": "u1 u2 u3"}), documents=2).answer("q")
    assert [hit.id for hit in result.context] == ["u1", "u2"]
    assert result.exposures.cited_gap == pytest.approx(np.log(2))
    assert to_json(answer_record(result))


def test_the_story_and_the_record_have_the_citations_and_a_second_pass() -> None:
    revision = Revision(False, "its sources hold it up less", (0.5, 0.1), (1.0, 0.5))

    class Reviser(Writer):
        def answer(self, query: Any, documents: Any, on_text: Any = None) -> Answer:
            return Answer("This is m1 [1].", (1,), revision=revision)

    result = aiming(Reviser(), documents=4).answer("q")
    told = " ".join(plain(answer_story(result)).split())
    assert "not revised: its sources hold it up less" in told
    assert "in the ranking, 0.0000 in the context, 0.2158 in the citations" in told
    record = answer_record(result)["citations"]
    assert record["revision"] == {"kept": False, "why": revision.why, "gap": (0.5, 0.1), "support": (1.0, 0.5)}
    assert (record["revised"], record["support"], result.revised) == (False, 1.0, False)
    assert record["gap"]["cited"] == pytest.approx(0.2158, abs=1e-4)
