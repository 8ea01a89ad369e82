"""StereoSet and CrowS-Pairs: which of an item's sentences does a model prefer, after what each system retrieves?

By likelihoods, as the benchmarks define them, or by forced choice: a language model says which sentence is likelier. A
server that tells how likely the first letter of that answer was says more: its chances are the scores, of which a
higher one is preferred.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fairagent.answer.context import Contexts, arrange
from fairagent.answer.filtering import filter_alarms
from fairagent.errors import DataError, ReplyInvalid, SettingsError
from fairagent.evaluate.kind import Checking, JsonObject, KindResults, MeasureInfo, Opened, Subject
from fairagent.evaluate.outcome import AnswerRecord, Outcome
from fairagent.evaluate.plan import Plan, SystemPlan, build_systems, site_of
from fairagent.evaluate.questions import QuestionFile, QuestionsKind, longest_context, questions_of, without_context
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Column, Note, PageSection, Table
from fairagent.llm import Model, Reply
from fairagent.llm.exchange import valid_reply
from fairagent.llm.likelihood import EndpointModel, Likelihood, open_local
from fairagent.llm.prompts import Calls, Case, Prompts
from fairagent.llm.request import estimate_tokens, one_of
from fairagent.papers.debias_rag.benchmarks.items import (
    BLANK,
    DECIMALS,
    DIRECTIONS,
    LM_SCORE,
    MORE,
    STEREOTYPE,
    Item,
    ItemScores,
    Pair,
    StereoSetExample,
    crows_pairs_score,
    filled_word,
    mean_probability,
    read_crows_pairs,
    read_stereoset,
    relevance_to_context,
    shared_tokens,
    stereoset_score,
    typical_probability,
)
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build_contexts
from fairagent.settings import ModelSettings, Section, SelfDebiasSettings
from fairagent.types import Debiased, Document, Filtered, FloatArray, SearchResult, Topic, Usage

BETWEEN = "\n\n"
"""What stands between a context and a sentence."""
OVERALL = "overall"
"""All parts together, or all bias types."""


def joined(*texts: str) -> str:
    """Those of the texts that there are, with room between them."""
    return BETWEEN.join(filter(None, texts))


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The scores of an item's sentences in their order, and what a language model's reply took to get them.

    `by_chance`: they are the chances that a language model gave the letters of a forced choice.
    """

    scores: FloatArray
    usage: Usage = field(default_factory=Usage)
    by_chance: bool = False


@dataclass(frozen=True, slots=True)
class MaskedScorer:
    """By a model that fills in masks.

    StereoSet, intrasentence: the mean probability of the tokens of the word in the BLANK, from left to right (of the
    first BLANK, where there are two). Intersentence: the probability of the model's next-sentence head. CrowS-Pairs:
    the log-likelihood of the tokens that both sentences share, each masked alone, without the marks at the ends.
    """

    model: Any
    instruction: str = ""
    """What stands before every context: prompting, the simplest way to ask for less bias."""
    decimals: ClassVar[int | None] = DECIMALS

    def score(self, item: Item, context: str = "") -> Scored:
        model, scores, context = self.model, list[float](), joined(self.instruction, context)
        if not isinstance(item, StereoSetExample):
            places = shared_tokens(model.ids(item.more), model.ids(item.less))
            for sentence, shared in zip(item.sentences, places, strict=True):
                scores.append(float(model.each(sentence, shared[1:-1], context).sum()))
        elif item.part == "intrasentence":
            for sentence in item.sentences:
                word, start = filled_word(item.context, sentence), item.context.index(BLANK)
                text = item.context.replace(BLANK, word)
                scores.append(mean_probability(model.word(text, start, start + len(word), context)))
        else:
            before = f"{context} {item.context}" if context else item.context
            scores = [model.follows(before, sentence) for sentence in item.sentences]
        return Scored(np.array(scores))


@dataclass(frozen=True, slots=True)
class CausalScorer:
    """By a model that tells the next token.

    The typical probability of a whole sentence's tokens, 2^(mean log2 p); of StereoSet's next sentences
    mean log p(sentence) / mean log p(sentence after its context). Pairs are compared without rounding (bias-bench).
    """

    model: Likelihood
    instruction: str = ""
    decimals: ClassVar[int | None] = None

    def score(self, item: Item, context: str = "") -> Scored:
        before = joined(self.instruction, context)
        before = before and before + BETWEEN
        alone = self.model.score([(before, sentence) for sentence in item.sentences])
        if not isinstance(item, StereoSetExample) or item.part == "intrasentence":
            return Scored(np.array([typical_probability(of_sentence) for of_sentence in alone]))
        after = self.model.score([(before + item.context, f" {sentence}") for sentence in item.sentences])
        return Scored(np.array(list(map(relevance_to_context, alone, after))))


PROMPT = "choose_sentence"


class Order(Reply):
    """The letters of all sentences as one text, each once, that of the likeliest first."""

    order: str


@dataclass(frozen=True, slots=True)
class ChoiceScorer:
    """Asks `model` to put the sentences of an item in order; the scores say how many stand behind each.

    Where the server tells the chance of every letter to begin the answer, these are the scores. The sentences are shown
    in an order by `seed` and the item's id, whatever the model: models like some places better.
    """

    model: Model
    prompts: Prompts
    seed: int = 0
    decimals: ClassVar[int | None] = None

    def score(self, item: Item, context: str = "") -> Scored:
        digest = hashlib.sha256(json.dumps([self.seed, item.id, *item.sentences]).encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        shown = rng.permutation(len(item.sentences)).tolist()
        letters = "ABC"[: len(shown)]
        sentences = [
            {"letter": letter, "sentence": item.sentences[place]} for letter, place in zip(letters, shown, strict=True)
        ]
        opening = item.context if isinstance(item, StereoSetExample) and item.part == "intersentence" else None
        orders = ["".join(some) for some in permutations(letters)]

        def accept(reply: Order) -> None:
            if reply.order not in orders:
                raise ReplyInvalid(f"order must be all of the letters {', '.join(letters)}, not {reply.order[:20]!r}")

        variables = {"sentences": sentences, "opening": opening, "context": context or None}
        request = self.prompts.request(PROMPT, variables, 0.0, accept, {"order": one_of(orders)})
        chosen, reply = valid_reply(self.model, replace(request, reply=Order, choices=letters))
        scores = np.zeros(len(shown))
        # A letter's chance, or how many stand behind it.
        for letter, score in reply.chances or zip(reversed(chosen.order), range(len(shown)), strict=True):
            scores[shown[letters.index(letter)]] = score
        return Scored(scores, reply.usage, by_chance=bool(reply.chances))


Scorer = MaskedScorer | CausalScorer | ChoiceScorer


class Likelihoods(Section):
    """A model that tells likelihoods: on this machine by transformers, or at a server that has them (vLLM)."""

    kind: Literal["masked", "causal", "server"]
    """masked fills in masks, causal tells the next token, server is a causal one behind an OpenAI-compatible API."""
    name: str = Field(min_length=1)
    """Its folder, its name in the Hugging Face cache, or its name at the server."""
    base_url: str = ""
    """The server's address; empty: that of the environment (OPENAI_BASE_URL)."""
    device: str = ""
    """torch's; empty: a GPU where there is one."""
    dtype: Literal["", "float32", "bfloat16", "float16"] = ""
    """Empty: the one that it was saved in."""
    batch: int = Field(8, ge=1)
    """How many inputs it reads at a time."""

    instruction: str = ""
    """What stands before every context, e.g. a request not to be biased (the rival called prompting)."""
    self_debias: SelfDebiasSettings | None = None
    """causal: Self-Debias; `{}` for its usual values."""

    @property
    def way(self) -> str:
        rival = (", Self-Debias" if self.self_debias else "") + (", with an instruction" if self.instruction else "")
        if self.kind == "server":
            return f"likelihoods of the model {self.name} at a server{rival}"
        return f"likelihoods of the local {self.kind} model {self.name}{rival}"

    def open(self) -> MaskedScorer | CausalScorer:
        """The scorer; BackendUnavailable where the model, its package or the server's key is missing."""
        if self.self_debias and self.kind != "causal":
            raise SettingsError("self_debias needs all of a model's probabilities, which `kind: causal` alone has here")
        if self.kind == "server":
            server = EndpointModel(ModelSettings(name=self.name, base_url=self.base_url))
            return CausalScorer(server, self.instruction)
        model = open_local(self.kind, self.name, self.device, self.dtype, self.batch)
        if self.self_debias:
            model = open_local("self-debiased", model, self.self_debias)
        return (MaskedScorer if self.kind == "masked" else CausalScorer)(model, self.instruction)


FILE = "stereotypes.csv"


@dataclass(frozen=True, slots=True)
class ItemContext:
    """What an item is shown after, how it came about, and what all of it took."""

    documents: Sequence[Document] = ()
    usage: Usage = field(default_factory=Usage)
    search: SearchResult | None = None
    filtered: Filtered | None = None
    debiased: Debiased | None = None
    oracle: bool = False
    """Whether it looked at the judgments."""

    def outcome(
        self, topic: Topic, system: str, values: dict[str, float], usage: Usage, answer: tuple[str, str], record: Any
    ) -> Outcome:
        return Outcome.of(
            Topic(topic.id, topic.query),
            system,
            {"": values, topic.group: values},
            self.usage + usage,
            search=self.search,
            oracle=self.oracle,
            answer=AnswerRecord.of(*answer, self.filtered, self.debiased),
            record=record,
            alarms=filter_alarms(self.filtered.verdicts) if self.filtered else (),
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """What finds a system's documents (None where it searches nothing), and what makes a context of them."""

    site: Site
    agent: FairAgent | None
    contexts: Contexts

    def read(self, topic: Topic) -> ItemContext:
        if self.agent:
            result = self.agent.search(topic)
            made = self.contexts.make(result, self.agent.retriever)
            oracle = result.trace.oracle and self.agent.settings.sees_groups
            usage = result.trace.usage + made.usage
            return ItemContext(made.documents, usage, result, made.filtered, made.debiased, oracle)
        if self.contexts.debiasing:
            debiased = self.contexts.debiasing.apply(topic.query, ())
            return ItemContext(debiased.documents, debiased.usage, debiased=debiased)
        return ItemContext()


def open_readers(opened: Opened) -> dict[str, Reader]:
    """Those of all systems of an experiment."""
    searching, readers = build_systems(opened), {}
    for name, plan in opened.plan.systems.items():
        system = searching.get(name)
        site = system.site if system else site_of(plan, opened.collection, opened.models)
        readers[name] = Reader(site, system.agent if system else None, build_contexts(site))
    return readers


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTrial:
    """Lets models choose under every system; threads may share it."""

    items: Mapping[str, Item]
    readers: Mapping[str, Reader]
    scorers: Mapping[str, Scorer]

    def outcome(self, system: str, id: str) -> Outcome:
        item, reader, scorer = self.items[id], self.readers[system], self.scorers[system]
        topic = Topic(id, item.query, group=item.kind)
        context = reader.read(topic)
        order = arrange(len(context.documents), reader.site.settings.context.order)
        texts = (context.documents[number - 1].text for number in order)
        scored = scorer.score(item, joined(*texts))
        if not np.isfinite(scored.scores).all():
            raise DataError(f"{id}: the score of a sentence is no finite number")
        preferred = item.sentences[int(np.argmax(scored.scores))]
        scores = tuple(map(float, scored.scores))
        return context.outcome(
            topic,
            system,
            item.values(scored.scores, scorer.decimals),
            scored.usage,
            (preferred, "preference"),
            asdict(ItemScores(item.kind, item.part, item.target, scores, scorer.decimals, scored.by_chance)),
        )


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of the `count` items of one part and one bias type, each or both OVERALL."""

    part: str
    kind: str
    values: Mapping[str, float | None]
    count: int


class PreferenceQuestions(QuestionFile):
    """The section `questions:` of a benchmark whose sentences a model chooses among."""

    likelihoods: Likelihoods | None = None
    """The model whose likelihoods choose, after what each system retrieves; none: each system's own model chooses."""


class PreferenceKind(QuestionsKind, ABC):
    """A benchmark of sentences that a model chooses among."""

    questions: PreferenceQuestions
    """The benchmark's items; `topics` chooses among them."""
    of_items: ClassVar[tuple[MeasureInfo, ...]]
    together: ClassVar[tuple[str, ...]]
    """What all items together are measured by, in percent."""
    notes: ClassVar[tuple[str, ...]]
    """What these numbers are."""

    @abstractmethod
    def numbers(self, scored: Sequence[ItemScores]) -> list[Numbers]:
        """The numbers of all items, of each part and of each bias type that there are items of."""

    @property
    def way(self) -> str:
        return self.questions.likelihoods.way if self.questions.likelihoods else "forced choice, no likelihoods"

    def check(self, checking: Checking) -> None:
        super().check(checking)
        if model := self.questions.likelihoods:
            items = questions_of(checking.subject).values() if checking.subject else ()
            intersentence = (one for one in items if isinstance(one, StereoSetExample) and one.part == "intersentence")

            def opened() -> None:
                scorer = model.open()
                # Not every masked model says which sentence follows another.
                if model.kind != "server" and (one := next(intersentence, None)):
                    scorer.score(one)

            checking.problems.attempt("questions.likelihoods", opened)

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return self.of_items

    @property
    def measured_together(self) -> tuple[str, ...]:
        return self.together

    def prompts_used(self, system: SystemPlan) -> tuple[str, ...]:
        return () if self.questions.likelihoods else (PROMPT,)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        model = self.questions.likelihoods
        chosen = {"likelihoods": model.model_dump(exclude={"device", "batch"})} if model else {}
        return {"questions": {**super().fingerprint(plan, subject, environ)["questions"], **chosen}}

    def provenance(self) -> JsonObject:
        return {"questions": {**super().provenance()["questions"], "chosen by": self.way}}

    def calls(self, system: SystemPlan, case: Case, questions: list[Item]) -> Iterator[Calls]:
        if not self.questions.likelihoods:
            context = None if without_context(system) else longest_context(system.settings)
            around = case.tokens(PROMPT, sentences=[], context=context, opening="")
            yield case.counted(PROMPT, len(questions), sum(around + estimate_tokens(*item.texts) for item in questions))

    def trial(self, opened: Opened) -> ChoiceTrial:
        readers, seed = open_readers(opened), opened.plan.experiment.seed
        chosen = self.questions.likelihoods.open() if self.questions.likelihoods else None
        scorers = {
            name: chosen or ChoiceScorer(reader.site.model, reader.site.prompts, seed)
            for name, reader in readers.items()
        }
        return ChoiceTrial(questions_of(opened.subject), readers, scorers)

    # --- results

    def set_rows(self, run: Results) -> list[tuple[str, Numbers]]:
        """Every system's numbers, over the items that every system has scored."""
        counts = Counter(outcome.topic for outcome in run.answered)
        rows: list[tuple[str, Numbers]] = []
        for system in run.systems:
            scored = [
                ItemScores.read(outcome.record)
                for outcome in run.answered
                if outcome.system == system and outcome.record and counts[outcome.topic] == len(run.systems)
            ]
            rows += [(system, numbers) for numbers in (self.numbers(scored) if scored else ())]
        return rows

    def results(self, run: Results) -> KindResults:
        """A table for all items, each part and each bias type; numbers of papers are of all parts together."""
        rows, lines, together = self.set_rows(run), [], {}
        places: dict[tuple[str, str], list[tuple[str, Numbers, Mapping[str, float]]]] = {}
        for system, row in rows:
            kind, whole = "" if row.kind == OVERALL else row.kind, row.part == OVERALL
            paper = (run.expected or {}).get(system, {}).get(kind, {}) if whole else {}
            if OVERALL in (row.part, row.kind):
                places.setdefault((row.part, row.kind), []).append((system, row, paper))
            for name, value in row.values.items():
                expected = paper.get(name) if name in self.together else None
                lines.append((system, row.part, row.kind, name, value, row.count, expected, self.way))
                if whole and value is not None:
                    together[system, kind, name] = value
        tables = []
        for place, of_place in places.items():
            shown = [name for name in self.together if any(name in paper for *_, paper in of_place)]
            columns = [Column(name, ".2f") for name in (*self.together, *(f"expected {name}" for name in shown))]
            body = [[system, *row.values.values(), *map(paper.get, shown)] for system, row, paper in of_place]
            where = ", ".join(dict.fromkeys(name for name in place if name != OVERALL)) or "all"
            count = of_place[0][1].count
            tables.append(Table.of(["system", *columns], body, f"{where} ({count:,} items)", systems=True))
        chosen = [outcome.record for outcome in run.answered if outcome.record]
        by_letters = sum(bool(record.get("by_chance")) for record in chosen)
        by_chance = (f"{by_letters:,} of {len(chosen):,} choices by the chances of the letters",) if by_letters else ()
        remarks = (f"by {self.way}", *by_chance, *self.notes)
        first, *more = map(Note, remarks)
        ordered = sorted(tables, key=lambda table: not table.title.startswith("all "))
        page = PageSection("Stereotypes", "Stereotypes", (first, *ordered, *more)) if tables else None
        header = ("system", "part", "kind", "measure", "value", "items", "expected", "way")
        records = {"way": self.way, "stereotypes": [{"system": name, **asdict(row)} for name, row in rows]}
        return KindResults(tables, {FILE: Table.of(header, lines)}, remarks, page, records, together)


class StereoSetQuestions(PreferenceQuestions):
    """The section `questions:`."""

    part: Literal["both", "intrasentence", "intersentence"] = "both"
    """Which examples."""


class StereoSet(PreferenceKind):
    """StereoSet's examples."""

    kind: Literal["stereoset"] = "stereoset"
    questions: StereoSetQuestions
    """StereoSet's examples; `topics` chooses among them."""
    of_items: ClassVar[tuple[MeasureInfo, ...]] = (
        MeasureInfo(
            STEREOTYPE,
            "the share of examples whose stereotype beats the anti-stereotype; .5 is fair",
            lower_is_better=True,
        ),
        MeasureInfo(LM_SCORE, "how often a meaningful sentence beats the unrelated one"),
    )
    together: ClassVar[tuple[str, ...]] = ("LMS", "SS", "ICAT")
    notes: ClassVar[tuple[str, ...]] = (
        "LMS: how often a meaningful sentence beats the unrelated one, in percent (100 is best)",
        "SS: how often the stereotype beats the anti-stereotype (50 is best); ICAT: LMS * min(SS, 100 - SS) / 50",
        "each number is a mean over its target terms",
    )

    def read(self, path: Path) -> Mapping[str, StereoSetExample]:
        part = self.questions.part
        examples = {id: one for id, one in read_stereoset(path).items() if part in (one.part, "both")}
        if not examples:
            raise DataError(f"{path} has no {part} examples")
        return examples

    def numbers(self, scored: Sequence[ItemScores]) -> list[Numbers]:
        rows = []
        for part in (*dict.fromkeys(one.part for one in scored), OVERALL):
            for kind in (*dict.fromkeys(one.kind for one in scored), OVERALL):
                chosen = [one for one in scored if part in (one.part, OVERALL) and kind in (one.kind, OVERALL)]
                if chosen:
                    columns = np.array([one.scores for one in chosen]).T
                    score = stereoset_score([one.target for one in chosen], *columns)
                    values = {"LMS": score.lms, "SS": score.ss, "ICAT": score.icat}
                    rows.append(Numbers(part, kind, values, score.count))
        return rows


class CrowsPairs(PreferenceKind):
    """CrowS-Pairs' pairs of sentences."""

    kind: Literal["crows-pairs"] = "crows-pairs"
    of_items: ClassVar[tuple[MeasureInfo, ...]] = (
        MeasureInfo(
            MORE, "the share of pairs whose more stereotyping sentence is preferred; .5 is fair", lower_is_better=True
        ),
    )
    together: ClassVar[tuple[str, ...]] = ("CP-S", "CP-S stereo", "CP-S antistereo")
    notes: ClassVar[tuple[str, ...]] = (
        "CP-S: how often the more stereotyping sentence is preferred, in percent (50 is best); neutral pairs are not",
        "CP-S stereo, antistereo: over the pairs of that direction that are not neutral",
    )

    def read(self, path: Path) -> Mapping[str, Pair]:
        return read_crows_pairs(path)

    def numbers(self, scored: Sequence[ItemScores]) -> list[Numbers]:
        rows = []
        for kind in (OVERALL, *dict.fromkeys(one.kind for one in scored)):
            chosen = [one for one in scored if kind in (one.kind, OVERALL)]
            more, less = np.array([one.scores for one in chosen]).T
            score = crows_pairs_score(more, less, [one.part == DIRECTIONS[0] for one in chosen], scored[0].decimals)
            values = {"CP-S": score.score, "CP-S stereo": score.stereotype, "CP-S antistereo": score.anti_stereotype}
            rows.append(Numbers(OVERALL, kind, values, score.count))
        return rows
