"""Cases 215, 216 and 220: parts of other packages that give no result of their kind, raise, or change what they got."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fairagent import Collection, open_in_memory
from fairagent.answer.answering import attribute_with
from fairagent.answer.context import debias_with
from fairagent.answer.filtering import filter_with
from fairagent.answer.generators import answer_with
from fairagent.collection.targets import Target, TargetKind, make_target
from fairagent.errors import BudgetExceeded, PartError
from fairagent.evaluate.judging import judged_value
from fairagent.measures import JudgedRanking, Measure
from fairagent.retrieve.base import scored, shown
from fairagent.retrieve.base import searched as searched_by
from fairagent.retrieve.fused import FusedRetriever
from fairagent.search.loop.base import LoopResult, Search, run_with
from fairagent.search.refine import RefineState, refined
from fairagent.search.rerank.base import pair_scores
from fairagent.settings.plugins import all_entry_points
from fairagent.types import (
    Answer,
    Attribution,
    Debiased,
    Document,
    Filtered,
    Group,
    Query,
    Ranking,
    Refinement,
    Step,
    Term,
    Verdict,
)

HOSTILE = "it says \x1b[31mred\x1b[0m\x07 and\nanother line\u202e"
PLUGIN = """\
from typing import Any

import numpy as np

from fairagent.extend import BudgetExceeded, Part, Pool, Ranking, Site


class Odd(Part):
    kind: str = "odd"

    def build(self, site: Site) -> Any:
        return self

    def rerank(self, pool: Pool) -> Any:
        ids, scores = pool.ranking.ids[: pool.n], pool.ranking.scores[: pool.n]
        {body}
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs a package `odd-parts` with the re-ranker `odd`, which does as its `body` says."""

    def install(body: str) -> None:
        about = tmp_path / "odd_parts-1.0.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-parts\nVersion: 1.0\n", encoding="utf-8")
        (about / "entry_points.txt").write_text("[fairagent.rerankers]\nodd = odd_parts:Odd\n", encoding="utf-8")
        (tmp_path / "odd_parts.py").write_text(PLUGIN.replace("{body}", body.replace("\n", "\n        ")), "utf-8")
        sys.modules.pop("odd_parts", None)
        all_entry_points.cache_clear()

    # One file after another within a second: what was compiled of the last one is not to be taken for the next.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    sys.modules.pop("odd_parts", None)
    all_entry_points.cache_clear()


@pytest.fixture(scope="module")
def collection() -> Collection:
    rows = [
        {"id": f"d{n}", "text": f"a lawyer {'word ' * n}", "gender": "female" if n % 3 else "male"} for n in range(12)
    ]
    return Collection.from_records(rows, groups="gender", population={"gender": {"female": 0.5, "male": 0.5}})


def searched(collection: Collection, **settings: Any) -> Any:
    given = {"engine": "bm25", "loop": "none", "n": 5, "rerank": "odd", **settings}
    return open_in_memory(collection, **given).search(Query("lawyer", "T7"))


NAMED = r"re-ranker 'odd' of odd-parts \(odd_parts:Odd\) (gave|failed) for 'lawyer' \(topic T7\)"
ODD = [
    ("return None", "None, expected Ranking"),
    ("return list(ids)", "a value of type list"),
    ("return Ranking(list(ids), scores)", "ids that are no tuple of texts"),
    ("return Ranking(ids, np.append(scores[1:], np.nan))", "nan of document 'd"),
    ("return Ranking(ids, np.arange(len(ids), dtype=float))", "scores that rise, from 0 to 1"),
    ("return Ranking(ids, list(scores))", "a value of type list"),
    ("return Ranking((ids[0],) * 5, scores)", "a document twice"),
    ("return Ranking(('no such\\x1b', *ids[1:]), scores)", "no candidates, 'no such\ufffd' first"),
    ("return Ranking((), np.zeros(0))", "an empty ranking"),
    ("return Ranking(ids[:3], scores[:3])", "3 documents, expected 5"),
    ("raise ZeroDivisionError('by nothing')", "ZeroDivisionError: by nothing"),
    (f"raise KeyError({HOSTILE!r})", "KeyError: 'it says"),
    (
        f"raise type({HOSTILE!r}, (Exception,), {{}})({HOSTILE!r})",
        "it says \ufffd[31mred\ufffd[0m\ufffd and another line",
    ),
    ("class E(Exception):\n    def __str__(self): raise E\nraise E", "E: "),
    *(
        (f"{change}\nreturn Ranking(ids, scores)", "ValueError")
        for change in ("scores[0] = 7", "pool.targets[0][0] = 1")
    ),
    ("scores.flags.writeable = True\nreturn Ranking(ids, scores)", "ValueError"),
    ("pool.ranking.ids = ()\nreturn Ranking(ids, scores)", "FrozenInstanceError"),
]


def test_215_and_216_and_220_what_is_no_ranking_raises_or_changes_what_it_got(
    install: Callable[..., None], collection: Collection
) -> None:
    """One printable line that names package, part, query and what is wrong."""
    for body, words in ODD:
        install(body)
        with pytest.raises(PartError) as caught:
            searched(collection)
        message = str(caught.value)
        assert re.match(NAMED, message), body
        assert words in message
        assert not {"\x1b", "\x07", "\n", "\u202e"} & set(message)
        assert caught.value.exit_code == 4
    install("return Ranking(ids, np.full(len(ids), np.nan))")
    for settings in (
        {"rerank": ["original", "odd"]},
        {"rerank": ["odd", "original"]},
        {"loop": "widen"},
        {"loop": "fair-qr", "refine": "feedback"},
    ):
        with pytest.raises(PartError, match=NAMED):
            searched(collection, **settings)


def test_215_and_216_and_220_what_passes(install: Callable[..., None], collection: Collection) -> None:
    """Noise of rounding, which is made level, Ctrl-C and what is ours; what is changed afterwards stays."""
    install("return Ranking(ids, 100 + 1e-8 * np.arange(len(ids)))")
    assert searched(collection).ranking.scores.tolist() == [100.0] * 5
    for body, error in (("raise KeyboardInterrupt", KeyboardInterrupt), ("raise BudgetExceeded('x')", BudgetExceeded)):
        install(body)
        with pytest.raises(error):
            searched(collection)
    install("mine = self.__dict__.setdefault('mine', np.zeros(5))\nmine[:] += scores\nreturn Ranking(ids, mine)")
    agent = open_in_memory(collection, engine="bm25", loop="none", n=5, rerank="odd")
    first = agent.search("lawyer").ranking.scores
    before = first.tolist()
    agent.search("lawyer")
    assert first.tolist() == before


class Does:
    """A part with any method, which returns, or raises, what it is given."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def __call__(self, *values: Any) -> Any:
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found(*values) if callable(self.found) else self.found

    search = score = document = refine = run = filter = apply = answer = attribute = __call__


QUERY = Query("law", "T7")
DOCUMENTS = (Document("d1", "one"), Document("d2", "two"))
RANKING = Ranking(("d1", "d2"), np.array([2.0, 1.0]))
KEPT = (Verdict("d1", True, True, True), Verdict("d2", False, False, True))
STATE = RefineState(QUERY, QUERY, RANKING, {"gender": np.eye(2)}, (), Group("gender", "female"), frozenset())
SEARCH: Any = Search(
    QUERY, (Step("query", QUERY, RANKING, (), 0.0),), None, None, 2, RANKING, lambda query: RANKING, None, None
)  # type: ignore[arg-type]
CALLS: dict[str, Callable[[Any], object]] = {
    "engine": lambda made: searched_by(made, QUERY, 2),
    "scores": lambda made: scored(made, QUERY, ["d1", "d2"]),
    "text": lambda made: shown(["d1"], made, QUERY),
    "refiner": lambda made: refined(made, STATE),
    "loop": lambda made: run_with(made, SEARCH),
    "filter": lambda made: filter_with(made, QUERY, DOCUMENTS),
    "debiasing": lambda made: debias_with(made, QUERY, DOCUMENTS),
    "generator": lambda made: answer_with(made, QUERY, DOCUMENTS),
    "attributor": lambda made: attribute_with(made, QUERY, Answer("one [1]", (1,)), DOCUMENTS),
    "scorer": lambda made: pair_scores(made, QUERY, ["one", "two"], ["d1", "d2"]),
}
RESULTS = [
    ("engine", replace(RANKING, ids=("d1", "d2", "d3"), scores=np.ones(3)), "3 documents, where 2 were asked for"),
    ("scores", np.array([1.0, np.nan]), "nan of document 'd2'"),
    ("scores", [1.0, 2.0], "a value of type list in the place of an array of 2 numbers"),
    ("text", Document("d9", "nine"), "another document than 'd1'"),
    ("refiner", Refinement((Term("she", math.nan),), "x"), "a weight that is no number above 0"),
    ("refiner", Refinement((Term(" "),), "x"), "a keyword without a text"),
    ("refiner", Refinement(("she",), "x"), "a value of type str, expected Term"),  # type: ignore[arg-type]
    ("loop", RANKING, "a value of type Ranking, expected LoopResult"),
    ("loop", LoopResult(RANKING.top(0), (), "", None), "no candidates"),  # type: ignore[arg-type]
    ("loop", LoopResult(replace(RANKING, scores=np.array([1.0, 2.0])), (), "", None), "scores that rise"),  # type: ignore[arg-type]
    ("filter", DOCUMENTS, "a value of type tuple, expected Filtered"),
    ("filter", Filtered((DOCUMENTS[1],), KEPT), "another document than 'd1'"),
    ("filter", Filtered((DOCUMENTS[0],), KEPT[:1]), "1 verdicts, expected one for each of 2 documents"),
    ("debiasing", Debiased("", (), (), DOCUMENTS, (1.0, math.inf)), "a score that is no finite number"),
    ("generator", Answer(b"one"), "a value of type bytes, expected str"),  # type: ignore[arg-type]
    ("generator", Answer("one [3]", (3,)), "an answer that cites [3] of 2 documents"),
    ("attributor", Attribution("x", np.array([0.5, 1.5])), "weights from 0.5 to 1.5, expected 0 to 1"),
    ("scorer", np.array([1.0, -np.inf]), "-inf of document 'd2'"),
]


def test_215_and_216_whatever_the_part_is() -> None:
    for what, found, said in RESULTS:
        with pytest.raises(PartError, match=rf"test_parts\.Does gave for 'law' \(topic T7\) .*{re.escape(said)}"):
            CALLS[what](Does(found))
    for call in CALLS.values():
        with pytest.raises(PartError, match=r"test_parts\.Does failed for 'law' \(topic T7\): KeyError: 'it says"):
            call(Does(KeyError(HOSTILE)))


def test_216_what_a_callback_raises_ends_the_work() -> None:
    """Also where the part goes on after it."""

    class Gone(Exception):
        pass

    def left(*values: object) -> None:
        raise Gone

    def goes_on(query: object, documents: object, on_text: Callable[[str], None]) -> Answer:
        with contextlib.suppress(Exception):
            on_text("one")
        return Answer("one")

    with pytest.raises(Gone):
        answer_with(Does(goes_on), QUERY, DOCUMENTS, left)


class OddTarget(TargetKind):
    kind: str = "odd"
    made: ClassVar[Any] = None

    def make(self, dimension: str, collection: Collection, topic: str, ranking: Ranking | None = None) -> Target:
        target = make_target("uniform", dimension, collection, topic)
        return Does(type(self).made)(target)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (None, "gave for 'T7' None, expected Target"),
        (lambda target: replace(target, shares=np.array([0.5, np.nan])), "nan"),
        (lambda target: replace(target, shares=np.array([1.5, -0.5])), "shares from -0.5"),
        (lambda target: replace(target, shares=np.array([0.5, 0.4])), "add up to 0.9"),
        (lambda target: replace(target, labels=("male", "female")), "of other groups"),
        (ZeroDivisionError("x"), "failed for 'T7': ZeroDivisionError: x"),
    ],
)
def test_215_and_216_a_target(collection: Collection, monkeypatch: pytest.MonkeyPatch, made: Any, words: str) -> None:
    monkeypatch.setattr(OddTarget, "made", staticmethod(made) if callable(made) else made)
    with pytest.raises(PartError, match=re.escape(words)):
        make_target(OddTarget(), "gender", collection, "T7")


@dataclass(frozen=True)
class OddMeasure(Measure):
    found: Any
    n: int = 5
    name: ClassVar[str] = "odd"

    def __call__(self, judged: JudgedRanking) -> float:
        return Does(self.found)(judged)  # type: ignore[no-any-return]


def test_215_and_216_a_measure_and_an_engine_beside_others(collection: Collection) -> None:
    judged = replace(collection, qrels={"T7": {"d1": 1}})
    for value in (math.nan, None, "1", ZeroDivisionError("x")):
        with pytest.raises(PartError, match="for 'T7'"):
            judged_value(OddMeasure(value), judged, "T7", ["d1"])
    assert judged_value(OddMeasure(np.float64(0.5)), judged, "T7", ["d1"]) == 0.5
    for value in (Ranking(("d1",), np.array([np.nan])), ZeroDivisionError("x")):
        engine = FusedRetriever((Does(value), Does(RANKING)), ("odd", "good"))
        assert engine.search(QUERY, 2).ids == ("d1", "d2")
        assert "test_parts.Does" in engine.failures(QUERY)["odd"]
