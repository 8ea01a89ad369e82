"""From settings to a pipeline, on a small collection and the real engine: what is compared can be served."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import words

from fairagent import load_collection, open_agent
from fairagent.collection import Collection
from fairagent.errors import BackendUnavailable, DataError, SettingsError
from fairagent.guests.dense import cross_encoder
from fairagent.guests.testing import ScriptedModel
from fairagent.measures import UNIFORM
from fairagent.retrieve import vectors
from fairagent.retrieve.bm25.part import close_all, prepare_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.encoders import BUNDLED, Embeddings
from fairagent.retrieve.site import Site
from fairagent.search.loop.fair_qr import FairQR
from fairagent.search.loop.widen import Widen
from fairagent.search.pipeline import build, build_answerer, engine_alone, open_site, parts_of, with_settings
from fairagent.search.refine import FeedbackRefiner
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker, FusedReranker, OriginalReranker
from fairagent.search.rerank.similarity import GraphReranker
from fairagent.settings import Settings
from fairagent.settings.parts import read_part, shipped
from fairagent.types import Dial, FloatArray, Query, Ranking, Topic

pytestmark = pytest.mark.usefixtures("no_variables")

QUERY = "judge singer"
NO_GROUPS = """\
name: words
documents: {path: docs.jsonl, title: title}
topics: {path: topics.jsonl, query: title}
qrels: {path: qrels.tsv}
"""
RERANKERS: dict[str, dict[str, Any]] = {
    "original": {},
    "fused": {"refined": 0.3},
    "exposure": {"fairness": 1},
    "graph": {"k": 3},
    "mmr": {"by": "embeddings"},
    "fa-star-ir": {"group": {"gender": "female"}},
    "deltr": {"iterations": 5},
    "dlf": {"alpha": 0.7},
    "cross-encoder": {"scorer": "shortest"},
    "plackett-luce": {"alpha": 2},
    "amortized": {"tolerance": 0},
    "chain": {"parts": [{"kind": "cross-encoder", "scorer": "shortest"}, "exposure"]},
    "none": {},
}
"""Every kind of re-ranker, with something that it is told."""
ELSEWHERE = {"adaptive", "listwise", "representative"}
"""Those that need more than this collection has, and are served in tests of their own."""
BLIND = ("original", "fused", "graph", "cross-encoder", "plackett-luce", "none")
"""Those that look at no groups, whatever they are told."""


class Letters:
    """How often each letter occurs: embeddings, and scores of pairs, without a model."""

    name = "letters"

    def documents(self, texts: Sequence[str]) -> Embeddings:
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.count(letter) for letter in letters] for text in texts], np.float32)

    queries = documents

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """As a scorer of pairs: the shorter a text, the better."""
        return np.array([-float(len(text)) for text in texts])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The collection, with its index and its embeddings, and one of the same texts without groups."""
    folder = tmp_path_factory.mktemp("pipeline")
    words.write(folder)
    (folder / "bare.yaml").write_text(NO_GROUPS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "open_encoder", lambda model, device, served: Letters())
        patch.setattr(cross_encoder, "CrossEncoderScorer", lambda scorer: Letters())
        site = open_site(folder / "collection.yaml", folder / "index", Settings(engine="dense", encoder=BUNDLED))
        done = set[tuple[str, int]]()
        site.settings.engine.prepare(site, lambda *progress: done.add(progress))
        assert {("indexing words", 40), ("embedding words", 40)} <= done
        prepare_index(open_site(folder / "bare.yaml", folder / "bare", Settings(engine="bm25")), lambda *progress: None)
        yield folder


@pytest.fixture(scope="module")
def collection(made: Path) -> Collection:
    return load_collection(made / "collection.yaml")


@pytest.fixture
def opened(made: Path, collection: Collection) -> Callable[..., Any]:
    return partial(open_agent, collection, made / "index", Settings(encoder=BUNDLED, n=6, depth=20))


@pytest.fixture
def bare(made: Path) -> Callable[..., Any]:
    return partial(open_agent, made / "bare.yaml", made / "bare", Settings(n=6, depth=20))


def test_every_kind_of_reranker_is_tried() -> None:
    assert shipped("rerank").keys() - ELSEWHERE == RERANKERS.keys()


@pytest.mark.parametrize("kind", RERANKERS)
@pytest.mark.parametrize("settings", [{}, {"profile": "engine", "engine": "dense"}])
def test_every_reranker_is_served_with_and_without_a_loop(
    opened: Callable[..., Any], kind: str, settings: dict[str, Any]
) -> None:
    agent = opened(rerank={"kind": kind, **RERANKERS[kind]}, **settings)
    topic = next(iter(agent.collection.topics.values()))
    for query in (topic, QUERY):
        result = agent.search(query)
        assert len(result.ranking) == len(set(result.ranking.ids)) == 6
        assert result.trace.reranker == ("cross-encoder, exposure" if kind == "chain" else kind)
        assert result.trace.profile == settings.get("profile", "")
        assert bool(result.trace.stopped) == (not settings)
        assert all(hit.title for hit in result.hits)
    assert agent.search(topic).ranking.ids == agent.search(topic).ranking.ids
    answered = agent.answer(topic)
    assert answered.answer.text
    assert len(answered.context) == 6


@pytest.mark.parametrize(
    ("engine", "finds"),
    [
        ("bm25", 6),
        ({"kind": "bm25", "k1": 2, "b": 1}, 6),
        ({"kind": "rm3", "documents": 3, "terms": 5}, 6),
        ("dense", 6),
        ({"kind": "oracle", "reading": "sorted"}, 3),
        ("oracle", 3),
        ({"kind": "adversarial", "reading": "sorted"}, 3),
        ("none", 0),
    ],
)
def test_every_engine_is_served(opened: Callable[..., Any], engine: Any, finds: int) -> None:
    agent = opened(profile="engine", engine=engine)
    result = agent.search(agent.collection.topics["T00"])
    assert len(result.ranking) == finds
    assert not result.trace.stopped


def test_run_files_are_served_with_and_without_scores(opened: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("T00 Q0 d03 1 2.5 mine\nT00 Q0 d00 2 1.5 mine\n", encoding="utf-8")
    (tmp_path / "run.tsv").write_text("T00\td03\nT00\td00\n", encoding="utf-8")
    for name, scores in (("run.txt", [2.5, 1.5]), ("run.tsv", [1.0, 0.5])):
        file = {"kind": "run-file", "path": str(tmp_path / name)}
        agent = opened(profile="engine", engine=file)
        ranking = agent.search(agent.collection.topics["T00"]).ranking
        assert (ranking.ids, ranking.scores.tolist()) == (("d03", "d00"), scores)
    for others, what in (
        ({"rerank": "mmr"}, "rerank: mmr"),
        ({"loop": "widen"}, "loop: widen"),
        ({"sampling": {"alpha": 2}}, "sampling.alpha"),
    ):
        with pytest.raises(DataError, match=rf"run\.tsv:1: there are no scores, and `{what}` needs them"):
            opened(profile="engine", engine=file, **others)


def test_parts_are_made_as_the_settings_say(made: Path, collection: Collection) -> None:
    def site(**settings: Any) -> Site:
        return open_site(collection, made / "index", Settings(encoder=BUNDLED, **settings))

    agent = build(site())
    engine = agent.retriever
    # The default engine in tests: it has no vectors to smooth scores over.
    assert isinstance(engine, BM25Retriever)
    assert isinstance(agent.loop, Widen)
    assert agent.reranker == ChainReranker((GraphReranker(None), ExposureReranker()))
    refine = {"documents": 1, "terms": 2, "weight": 3}
    agent = build(site(loop="fair-qr", refine=refine, rerank={"fairness": 2}, discount="uniform", iterations=2))
    assert agent.loop == FairQR(FeedbackRefiner(agent.retriever, 1, 2, 3.0), 2)  # type: ignore[arg-type]
    assert agent.reranker.rerankers[-1] == ExposureReranker(Dial(fairness=2), discount=UNIFORM)  # type: ignore[union-attr]
    agent = build(site(loop={"kind": "fair-qr", "rerank_depth": 20}, threshold=0.1, candidates="union"))
    assert agent.loop == FairQR(FeedbackRefiner(agent.retriever), 5, 0.1, "union", 20)  # type: ignore[arg-type]
    for off in ({"loop": "none"}, {"loop": "fair-qr", "refine": "none"}, {"loop": "fair-qr", "iterations": 0}):
        assert build(site(**off)).loop is None
    assert isinstance(build(site(refine="none", iterations=0)).loop, Widen)
    vectors = build(site(engine="dense"))
    assert vectors.reranker.rerankers[0] == GraphReranker(vectors.retriever)  # type: ignore[union-attr, arg-type]
    assert build(site(rerank="none")).reranker is None
    agent = build(site(rerank=["original", {"kind": "fused", "refined": 0.2}]))
    assert agent.reranker == ChainReranker((OriginalReranker(agent.retriever), FusedReranker(agent.retriever, 0.2)))


def test_an_index_is_opened_once_and_gives_words_where_the_engine_has_none(made: Path, collection: Collection) -> None:
    site = open_site(collection, made / "index", Settings(loop="fair-qr", rerank={"kind": "mmr", "relevance": 0.2}))
    agent: Any = build(site)
    assert agent.loop.refiner.source is agent.retriever
    assert (agent.reranker.similarity.args, agent.reranker.relevance) == ((agent.retriever,), 0.2)
    assert build(with_settings(site, Settings(rerank="fused"))).retriever is agent.retriever
    assert build(with_settings(site, Settings(engine={"kind": "bm25", "k1": 2}))).retriever is not agent.retriever
    close_all(site.memo)
    chosen = Settings(engine="dense", encoder=BUNDLED, loop="fair-qr", rerank="mmr")
    agent = build(open_site(collection, made / "index", chosen))
    assert isinstance(agent.loop.refiner.source, BM25Retriever)
    assert agent.search(QUERY).trace.stopped


def test_the_answerer_is_opened_when_it_is_asked_for_and_once(opened: Callable[..., Any]) -> None:
    # Without a key or a name: what does not answer needs neither.
    agent = opened(generate="llm")
    assert len(agent.search(QUERY).ranking) == 6
    with pytest.raises(BackendUnavailable, match="OPENAI_API_KEY"):
        agent.answer(QUERY)
    offline = opened()
    assert offline.open_answerer() is offline.open_answerer()


def test_the_parts_in_the_order_of_asking() -> None:
    chosen = Settings(loop="fair-qr", refine="llm", filter="fair", generate="llm", attribute="judge", rerank=["mmr"])
    # A refiner that the loop does not ask is none of the parts.
    for settings, kinds in (
        (chosen, "auto fair-qr llm chain fair none llm judge"),
        (chosen.model_copy(update={"iterations": 0}), "auto chain fair none llm judge"),
        (Settings(refine="llm"), "auto widen chain none none extractive citations"),
        (Settings(loop="none"), "auto chain none none extractive citations"),
    ):
        assert [part.kind for part in parts_of(settings)] == kinds.split()
    asked = [id for part in parts_of(chosen) for id in part.templates]
    assert asked == ["refine_query", "fairness_filter", "utility_filter", "answer", "attribute"]


def test_one_model_is_asked_for_all_parts(made: Path, collection: Collection) -> None:
    model = ScriptedModel([])

    class OneModel:
        opened = 0

        def open(self, settings: Any) -> ScriptedModel:
            self.opened += 1
            return model

    chosen = Settings(loop="fair-qr", refine="llm", filter="fair", generate="llm", attribute="judge")
    models: Any = OneModel()
    site = Site(collection, chosen, made / "index", models)
    agent = build(site)
    answerer = build_answerer(site)
    looping: Any = agent.loop
    parts: list[Any] = [looping.refiner, answerer.generator, answerer.contexts.filter, answerer.attributor]
    assert all(part.model is model for part in parts)
    assert len({id(part.prompts) for part in parts}) == 1


def test_the_engine_alone_is_the_engine_of_these_settings(made: Path, collection: Collection) -> None:
    chosen = Settings(n=6, engine={"kind": "bm25", "k1": 1.5}, rerank="mmr", sampling={"alpha": 1}, filter="fair")
    site = open_site(collection, made / "index", chosen)
    alone, agent = engine_alone(site), build(site)
    assert (alone.settings.n, alone.settings.profile, alone.settings.engine) == (6, "engine", chosen.engine)
    assert (alone.loop, alone.reranker, alone.settings.filter.kind) == (None, None, "none")
    assert (alone.draws, agent.draws) == (False, True)
    # The index is opened once for both.
    assert alone.retriever is agent.retriever
    assert alone.search(QUERY).ranking.ids == agent.retriever.search(Query(QUERY), 6).ids
    assert alone.answer(QUERY).answer.text


def test_the_engine_alone_of_a_guest_is_the_guest(collection: Collection, tmp_path: Path) -> None:
    class Guest:
        def search(self, query: Query, n: int) -> Ranking:
            return Ranking(("d00", "d03"), np.array([2.0, 1.0])).top(n)

        def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
            return np.zeros(len(ids))

    guest, terms = Guest(), object()
    settings = Settings(loop="none", rerank="original")
    site = Site(collection, settings, tmp_path, None, engine=guest, words=terms)  # type: ignore[arg-type]
    assert build(site).retriever is engine_alone(site).retriever is guest
    assert with_settings(site, Settings(n=3)).engine is guest
    assert engine_alone(site).search("q").ranking.ids == ("d00", "d03")


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({}, "the loop looks at groups"),
        ({"loop": "fair-qr"}, "the loop looks at groups"),
        ({"loop": "none"}, "rerank: graph, exposure looks at groups"),
        ({"loop": "fair-qr", "refine": "none"}, "rerank: graph, exposure looks at groups"),
        ({"loop": "none", "rerank": {"kind": "mmr", "by": "groups"}}, "rerank: mmr looks at groups"),
        ({"loop": "none", "rerank": "fa-star-ir"}, "rerank: fa-star-ir looks at groups"),
        ({"loop": "none", "rerank": ["original", "exposure"]}, "rerank: original, exposure looks at groups"),
        ({"profile": "engine", "rerank": "deltr"}, "rerank: deltr looks at groups"),
    ],
)
def test_what_looks_at_groups_is_refused_where_there_are_none(
    bare: Callable[..., Any], settings: dict[str, Any], needs: str
) -> None:
    with pytest.raises(SettingsError, match=f"^{needs}, and collection 'words' has none.*`profile: engine`"):
        bare(**settings)


@pytest.mark.parametrize("kind", BLIND)
def test_what_looks_at_no_groups_is_served_where_there_are_none(bare: Callable[..., Any], kind: str) -> None:
    agent = bare(profile="engine", rerank={"kind": kind, **RERANKERS[kind]})
    answered = agent.answer(Topic("T00", QUERY))
    result = answered.search
    assert len(result.ranking) == 6
    assert (result.trace.exposures, result.trace.gap, result.trace.targets, result.trace.oracle) == ((), 0, (), False)
    assert all(hit.groups == {} for hit in result.hits)
    assert answered.answer.text
    assert answered.attribution is not None
    assert (answered.attribution.exposures, answered.removed) == ((), ())


@pytest.mark.parametrize("kind", ["feedback", "grounded"])
def test_who_reads_the_groups_documents_has_an_index_made_whatever_the_engine(
    made: Path, collection: Collection, tmp_path: Path, kind: str
) -> None:
    run = {"kind": "run-file", "path": str(tmp_path / "run.txt")}
    site = open_site(collection, tmp_path / "index", Settings(engine=run, refine=kind))
    done = list[tuple[str, int]]()
    for part in parts_of(site.settings):
        part.prepare(site, lambda *progress: done.append(progress))
    assert done[-1] == ("indexing words", 40)
    read_part("refine", kind).prepare(site, lambda *progress: pytest.fail("it is there already"))
    guest = Site(collection, site.settings, tmp_path / "none", site.models, engine=object(), words=object())
    read_part("refine", kind).prepare(guest, lambda *progress: pytest.fail("a guest has words of its own"))
