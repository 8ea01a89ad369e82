"""Runs made up for the page: the demo's people, ranked by systems that never searched, and judged for real."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np

from benchmarks.made_up_people import POPULATION, Entry, make_entries
from benchmarks.made_up_people.people import OCCUPATIONS
from fairagent.evaluate.comparison import compare
from fairagent.evaluate.judging import standard_measures
from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome, StepRecord
from fairagent.evaluate.ranking.kind import RankingKind
from fairagent.evaluate.run import Run
from fairagent.measures import LOG2_MAX2, JudgedRanking, kl

N = 20
SYSTEMS = ("BM25", "BM25+RM3", "agent, original", "agent, exposure", "agent, exposure, qrels")
ORACLE = SYSTEMS[4]
# How much a system likes documents of the groups that are shown too often anyway, and how well it finds what is asked.
BIAS = dict(zip(SYSTEMS, (0.55, 0.5, 0.42, 0.1, 0.02), strict=True))
SKILL = dict(zip(SYSTEMS, (0.12, 0.2, 0.17, 0.3, 0.36), strict=True))
FAVORED = {"male", "Europe", "Northern America"}
DIMENSIONS = {name: tuple(population) for name, population in POPULATION.items()}
MEASURES = standard_measures(N)
KIND = RankingKind(name="made", systems={"-": {}}, measures=tuple(map(str, MEASURES)))
COLUMNS = [("", str(MEASURES[0])), *((dimension, str(m)) for dimension in DIMENSIONS for m in MEASURES[1:])]


@cache
def entries() -> tuple[Entry, ...]:
    return tuple(make_entries(300, 20221))


@cache
def made_run(topics: int = 12, *, name: str = "made-demo", seed: int = 7) -> Run:
    """A run of five systems with two dimensions, a failed topic and two excluded ones where there are 10 or more."""
    excluded = {"T98": "no relevant document"}
    outcomes = []
    for number in range(topics):
        occupation = number % len(OCCUPATIONS)
        topic = f"T{number + 1:02d}"
        of_topic = [_outcome(topic, occupation, system, Random(f"{seed} {number} {system}")) for system in SYSTEMS]
        if number == 8:
            of_topic[3] = failed(of_topic[3], "the model refused three times (429: too many requests)")
            excluded[topic] = f"{SYSTEMS[3]} failed: {of_topic[3].failed}"
        outcomes += of_topic
    answers = {(outcome.topic, outcome.system): outcome for outcome in outcomes}
    counted = [topic for topic in dict.fromkeys(outcome.topic for outcome in outcomes) if topic not in excluded]
    provenance = {
        "about": "How the page looks. Nobody searched for anything here.",
        "fairagent": "0.1.0",
        "python": "3.12.4",
        "seed": 20221,
        "index": {"id": "3f9c1a77", "documents": 520, "analyzer": "english"},
        "prompts": {"refine_query": "sha256:5f2b0c"},
        "model": None,
        "packages": ["numpy 2.3", "pyserini 1.6.0"],
    }
    expected = {"BM25": {"": {str(MEASURES[0]): 0.664}, "gender": {str(MEASURES[1]): 0.8857}}}
    return Run(
        name,
        "demo",
        N,
        SYSTEMS,
        SYSTEMS[0],
        tuple(DIMENSIONS),
        tuple(map(str, MEASURES)),
        compare(answers, counted, SYSTEMS, COLUMNS, seed),
        tuple(outcomes),
        excluded,
        provenance,
        False,
        (ORACLE,),
        expected,
        KIND,
        {},
    )


def failed(outcome: Outcome, message: str) -> Outcome:
    return Outcome(outcome.topic, outcome.query, outcome.system, {}, (), (), (), "", 0, 0, 0, 0.0, False, 0.1, message)


def _outcome(topic: str, occupation: int, system: str, random: Random) -> Outcome:
    people = entries()
    skill, bias = SKILL[system] + random.uniform(-0.1, 0.1), BIAS[system]
    # What every system sees alike: the text's own luck.
    luck = Random(f"{topic} luck")
    alike = [luck.random() for _ in people]
    steps = _steps(system, occupation, bias, alike, skill, random)
    ranked = _ranked(occupation, steps[-1][1] if steps else bias, alike, skill, random)
    hits = tuple(
        HitRecord(
            entry.id,
            entry.title if entry.regions else f"{entry.title}, {OCCUPATIONS[occupation].one}",
            round(30 - rank * 0.7 - random.random() * 0.5, 4),
            occupation in entry.occupations,
            _groups(entry),
            f"{entry.title} was a {OCCUPATIONS[occupation].one}, or not.",
        )
        for rank, entry in enumerate(ranked)
    )
    exposures = tuple(_shares(dimension, ranked, occupation) for dimension in DIMENSIONS)
    calls = 0 if system in SYSTEMS[:2] else len(steps)
    return Outcome(
        topic,
        OCCUPATIONS[occupation].title,
        system,
        _values(ranked, occupation),
        hits,
        exposures,
        tuple(step for step, _ in steps),
        "" if len(steps) < 3 else "the gap did not fall",
        calls,
        640 * calls,
        48 * calls,
        0.00021 * calls,
        system == ORACLE,
        0.2,
        None,
    )


def _steps(
    system: str, occupation: int, bias: float, alike: Sequence[float], skill: float, random: Random
) -> list[tuple[StepRecord, float]]:
    """The steps with the bias that each list has: the user's words, topic words, then two groups, the last in vain."""
    own = OCCUPATIONS[occupation]
    words = [word for phrase in own.did for word in phrase.split() if len(word) > 4]
    kinds = 1 if system == "BM25" else 2 if system == "BM25+RM3" else 2 + random.randint(1, 3)
    steps: list[tuple[StepRecord, float]] = []
    for place in range(kinds):
        slant = 0.6 - (0.6 - bias) * place / max(1, kinds - 1)
        listed = _ranked(occupation, slant, alike, skill, random)
        shares = [_shares(dimension, listed, occupation) for dimension in DIMENSIONS]
        gap = sum(kl(np.array(s.shares), np.array(s.target), 1e-6) for s in shares)
        last = steps[-1][0].gap if steps else math.inf
        aim = None if place < 2 else ("female (gender)", "Africa (region)", "Asia (region)")[place - 2]
        terms = [] if place == 0 else random.sample(words, 12) if place == 1 else [own.one, *random.sample(words, 3)]
        weighted = tuple((word, round(0.5 / (rank + 1), 4)) for rank, word in enumerate(terms))
        source = "query" if place == 0 else "topic words" if place == 1 else "feedback"
        dropped = ("zyzzyva",) if place == 2 else ()
        step = StepRecord(source, own.title, weighted, dropped, aim, float(gap), place < 2 or gap < last, tuple(shares))
        steps.append((step, slant))
        if not step.accepted:
            break
    return steps


def _ranked(occupation: int, bias: float, alike: Sequence[float], skill: float, random: Random) -> list[Entry]:
    relevant, favored = _traits(occupation)
    noise = np.array([random.random() for _ in alike])
    scores = skill * relevant + 0.25 * bias * favored + 0.6 * np.array(alike) + 0.2 * noise
    return [entries()[place] for place in np.argsort(-scores, kind="stable")[:N]]


@cache
def _traits(occupation: int) -> tuple[np.ndarray, np.ndarray]:
    """Who is relevant, and in how many ways each person is of a group that is shown too often."""
    relevant = np.array([occupation in entry.occupations for entry in entries()], dtype=float)
    return relevant, np.array([len(FAVORED & {entry.gender, *entry.regions}) for entry in entries()], dtype=float)


def _groups(entry: Entry) -> dict[str, dict[str, float]]:
    return {
        "gender": {entry.gender: 1.0} if entry.gender else {},
        "region": {region: 1 / len(entry.regions) for region in entry.regions},
    }


def _memberships(dimension: str, ranked: Sequence[Entry]) -> np.ndarray:
    labels = DIMENSIONS[dimension]
    rows = np.zeros((len(ranked), 1 + len(labels)))
    for row, entry in zip(rows, ranked, strict=True):
        shares = _groups(entry)[dimension]
        row[0] = 0 if shares else 1
        for label, share in shares.items():
            row[1 + labels.index(label)] = share
    return rows


@cache
def _target(dimension: str, occupation: int) -> np.ndarray:
    relevant = _memberships(dimension, [entry for entry in entries() if occupation in entry.occupations])[:, 1:]
    world = np.array(list(POPULATION[dimension].values()))
    return (relevant.sum(axis=0) / relevant.sum() + world / world.sum()) / 2


def _shares(dimension: str, ranked: Sequence[Entry], occupation: int) -> GroupShares:
    weights = LOG2_MAX2(len(ranked))
    exposure = weights @ _memberships(dimension, ranked)
    shares = exposure[1:] / exposure[1:].sum()
    target = _target(dimension, occupation)
    unknown = exposure[0] / exposure.sum()
    return GroupShares(dimension, DIMENSIONS[dimension], tuple(shares.tolist()), tuple(target.tolist()), float(unknown))


def _values(ranked: Sequence[Entry], occupation: int) -> dict[str, dict[str, float]]:
    relevant = np.array([occupation in entry.occupations for entry in ranked])
    n_relevant = sum(occupation in entry.occupations for entry in entries())
    relevance, *fairness = MEASURES
    values = {"": {str(relevance): relevance(JudgedRanking(relevant, n_relevant))}}
    for dimension in DIMENSIONS:
        target = np.concatenate(([0.0], _target(dimension, occupation)))
        judged = JudgedRanking(relevant, n_relevant, _memberships(dimension, ranked), target)
        values[dimension] = {str(measure): measure(judged) for measure in fairness}
    return values


def tiny_run(**changes: object) -> Run:
    """Two systems, two topics, one dimension, numbers for hands; `changes` replace fields of the run."""
    fairness, product = str(MEASURES[1]), str(MEASURES[2])

    def outcome(topic: str, system: str, relevance: float, awrf: float, female: float) -> Outcome:
        gender = GroupShares("gender", ("female", "male"), (female, 1 - female), (0.5, 0.5), 0.0)
        first = StepRecord("query", "lawyers", (), (), None, 0.4, True, (gender,))
        words = replace(first, source="topic words", terms=(("court", 0.5),), gap=0.3)
        tried = replace(
            words, source="feedback", terms=(("judg", 0.2),), aim="female (gender)", gap=0.35, accepted=False
        )
        hits = (
            HitRecord(
                "d1", "Judges of the courts", 2.0, True, {"gender": {"female": 1.0}}, "They <b>sat</b> in court."
            ),
            HitRecord("d2", "", 1.0, False, {"gender": {}}),
        )
        return Outcome(
            topic,
            f"query of {topic}",
            system,
            {"": {str(MEASURES[0]): relevance}, "gender": {fairness: awrf, product: relevance * awrf}},
            hits if system == "A" else hits[::-1],
            (gender,),
            (first,) if system == "A" else (first, words, tried),
            "" if system == "A" else "the gap did not fall",
            *(0, 0, 0, 0.0, False, 0.1, None),
        )

    outcomes = (
        outcome("t1", "A", 0.5, 0.8, 0.2),
        outcome("t1", "B", 0.6, 0.9, 0.4),
        outcome("t2", "A", 0.7, 1.0, 0.4),
        outcome("t2", "B", 0.5, 0.8, 0.5),
    )
    answers = {(outcome.topic, outcome.system): outcome for outcome in outcomes}
    run = Run(
        *("tiny", "two topics", 2, ("A", "B"), "A", ("gender",), tuple(map(str, MEASURES))),
        compare(answers, ["t1", "t2"], ("A", "B"), COLUMNS[:3], 1),
        *(outcomes, {}, {"about": ""}, False, (), None, KIND, {}),
    )
    return replace(run, **changes)


def _snippet(topic: int, id: str) -> str:
    return f"document {id} of topic {topic} ".ljust(200, "x")


def wide_run(topics: int, systems: int) -> Run:
    """A run of many topics, each with documents of its own, and of many systems: `made_run` under other names."""
    run = made_run(13)
    names = (run.baseline, *(f"system {number}" for number in range(1, systems)))
    of_topic: dict[str, list[Outcome]] = {}
    for outcome in run.outcomes:
        of_topic.setdefault(outcome.topic, []).append(outcome)
    whole = [of for topic, of in of_topic.items() if topic not in run.excluded]
    outcomes = []
    for number in range(topics):
        like = whole[number % len(whole)]
        for place, name in enumerate(names):
            own = like[1 + (place - 1) % (len(SYSTEMS) - 1) if place else 0]
            hits = tuple(replace(hit, id=f"{hit.id}-{number}", snippet=_snippet(number, hit.id)) for hit in own.hits)
            topic = f"Q{number:04d}"
            outcomes.append(replace(own, topic=topic, query=f"{own.query} {number}", system=name, hits=hits))
    answers = {(outcome.topic, outcome.system): outcome for outcome in outcomes}
    rows = compare(answers, list(dict.fromkeys(o.topic for o in outcomes)), names, COLUMNS, 7)
    changed = {"systems": names, "outcomes": tuple(outcomes), "comparisons": rows, "excluded": {}}
    return replace(run, **changed, oracle_systems=(), expected=None)
