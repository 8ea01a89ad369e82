"""Runs made up for the page: nobody searched for anything, and values, groups and steps are drawn at random."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
from evaluate.made_runs import run_of

from benchmarks.made_up_people import POPULATION
from benchmarks.made_up_people.people import OCCUPATIONS
from fairagent.evaluate.judging import standard_measures
from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome, StepRecord
from fairagent.evaluate.run import Results

N = 20
SYSTEMS = ("BM25", "BM25+RM3", "agent, original", "agent, exposure", "agent, exposure, qrels")
ORACLE = SYSTEMS[4]
# How much a system likes documents of the groups that are shown too often anyway, and how well it finds what is asked.
BIAS = dict(zip(SYSTEMS, (0.55, 0.5, 0.42, 0.1, 0.02), strict=True))
SKILL = dict(zip(SYSTEMS, (0.12, 0.2, 0.17, 0.3, 0.36), strict=True))
FAVORED = {"male", "Europe", "Northern America"}
STOPPED = "the gap did not fall"
DIMENSIONS = {name: tuple(population) for name, population in POPULATION.items()}
MEASURES = standard_measures(N)


@cache
def made_run(topics: int = 12, *, name: str = "made-demo", seed: int = 7) -> Results:
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
    made = run_of(outcomes, seed, excluded, measures=list(map(str, MEASURES)))
    about = {"name": name, "collection": "demo", "provenance": provenance, "expected": expected}
    return replace(made, **about, oracle_systems=(ORACLE,))


def failed(outcome: Outcome, message: str) -> Outcome:
    return Outcome(outcome.topic, outcome.query, outcome.system, {}, (), (), (), "", 0, 0, 0, 0.0, False, 0.1, message)


def _outcome(topic: str, occupation: int, system: str, random: Random) -> Outcome:
    own = OCCUPATIONS[occupation]
    relevance = 2 * SKILL[system] + random.uniform(-0.1, 0.1)
    values: dict[str, dict[str, float]] = {"": {str(MEASURES[0]): relevance}}
    for dimension in DIMENSIONS:
        fairness = 1 - BIAS[system] / 4 + random.uniform(-0.02, 0)
        values[dimension] = {str(MEASURES[1]): fairness, str(MEASURES[2]): relevance * fairness}
    steps = _steps(system, occupation, random)
    calls = 0 if system in SYSTEMS[:2] else len(steps)
    people = random.sample(range(28), N)
    hits = tuple(_hit(rank, number, own.one, random.random() < 0.4) for rank, number in enumerate(people))
    return Outcome(
        *(topic, own.title, system, values, hits),
        *(steps[-1].exposures, steps, "" if len(steps) < 3 else STOPPED),
        *(calls, 640 * calls, 48 * calls, 0.00021 * calls, system == ORACLE, 0.2, None),
    )


def _hit(rank: int, number: int, occupation: str, relevant: bool) -> HitRecord:
    """A person; some have no gender, some two regions."""
    person, labels = Random(number), {name: list(labels) for name, labels in DIMENSIONS.items()}
    gender = person.choice([*labels["gender"], ""])
    regions = person.sample(labels["region"], person.choice([0, 1, 1, 2]))
    groups = {"gender": {gender: 1.0} if gender else {}, "region": {region: 1 / len(regions) for region in regions}}
    title = f"Person {number}" if regions else f"Person {number}, {occupation}"
    text = f"Person {number} was a {occupation}, or not."
    return HitRecord(f"p{number}", title, 30 - 0.7 * rank, relevant, groups, text)


def _steps(system: str, occupation: int, random: Random) -> tuple[StepRecord, ...]:
    """The user's words, topic words, then up to three groups, the last in vain; each shows less bias than before."""
    own = OCCUPATIONS[occupation]
    words = [word for phrase in own.did for word in phrase.split() if len(word) > 4]
    count = 1 if system == "BM25" else 2 if system == "BM25+RM3" else 2 + random.randint(1, 3)
    steps: list[StepRecord] = []
    for place in range(count):
        bias = 0.6 - (0.6 - BIAS[system]) * place / max(1, count - 1) + random.uniform(-0.05, 0.05)
        gap = max(0.001, bias**2 + random.uniform(-0.05, 0.05))
        aim = None if place < 2 else ("female (gender)", "Africa (region)", "Asia (region)")[place - 2]
        terms = [] if place == 0 else random.sample(words, 12) if place == 1 else [own.one, *random.sample(words, 3)]
        weighted = tuple((word, round(0.5 / (rank + 1), 4)) for rank, word in enumerate(terms))
        source = "query" if place == 0 else "topic words" if place == 1 else "feedback"
        accepted = place < 2 or gap < steps[-1].gap
        shares = tuple(_shares(dimension, bias, random) for dimension in DIMENSIONS)
        dropped = ("zyzzyva",) if place == 2 else ()
        steps.append(StepRecord(source, own.title, weighted, dropped, aim, gap, accepted, shares))
        if not accepted:
            break
    return tuple(steps)


def _shares(dimension: str, bias: float, random: Random) -> GroupShares:
    """The world's shares as target; the favored groups get more of it."""
    world = np.array(list(POPULATION[dimension].values()))
    favored = np.array([label in FAVORED for label in DIMENSIONS[dimension]])
    shares = world * np.where(favored, 1 + max(bias, 0), 1)
    target, shares = (tuple((of / of.sum()).tolist()) for of in (world, shares))
    return GroupShares(dimension, DIMENSIONS[dimension], shares, target, random.uniform(0, 0.2))


def tiny_run(**changes: object) -> Results:
    """Two systems, two topics, one dimension, numbers for hands; `changes` replace fields of the run."""
    fairness, product = str(MEASURES[1]), str(MEASURES[2])

    def outcome(topic: str, system: str, relevance: float, awrf: float, female: float) -> Outcome:
        gender = GroupShares("gender", ("female", "male"), (female, 1 - female), (0.5, 0.5), 0.0)
        first = StepRecord("query", "lawyers", (), (), None, 0.4, True, (gender,))
        words = replace(first, source="topic words", terms=(("court", 0.5),), gap=0.3)
        aimed = {"source": "feedback", "aim": "female (gender)", "terms": (("judg", 0.2),)}
        tried = replace(words, **aimed, gap=0.35, accepted=False)
        women = {"gender": {"female": 1.0}}
        judges = HitRecord("d1", "Judges of the courts", 2.0, True, women, "They <b>sat</b> in court.")
        hits = (judges, HitRecord("d2", "", 1.0, False, {"gender": {}}))
        values = {"": {str(MEASURES[0]): relevance}, "gender": {fairness: awrf, product: relevance * awrf}}
        alone = system == "A"
        shown = (hits, (gender,), (first,), "") if alone else (hits[::-1], (gender,), (first, words, tried), STOPPED)
        return Outcome(topic, f"query of {topic}", system, values, *shown, *(0, 0, 0, 0.0, False, 0.1, None))

    numbers = (
        ("t1", "A", 0.5, 0.8, 0.2),
        ("t1", "B", 0.6, 0.9, 0.4),
        ("t2", "A", 0.7, 1.0, 0.4),
        ("t2", "B", 0.5, 0.8, 0.5),
    )
    outcomes = tuple(outcome(*one) for one in numbers)
    made = run_of(outcomes, 1, measures=list(map(str, MEASURES)))
    about = {"name": "tiny", "collection": "two topics", "n": 2, "provenance": {"about": ""}}
    return replace(made, **about, **changes)


def _snippet(topic: int, id: str) -> str:
    return f"document {id} of topic {topic} ".ljust(200, "x")


def wide_run(topics: int, systems: int) -> Results:
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
    made = run_of(outcomes, 7, measures=list(map(str, MEASURES)))
    return replace(made, name=run.name, collection=run.collection, provenance=run.provenance)
