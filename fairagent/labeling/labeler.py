"""Making labels: from examples and evidence to chances, how far these are right, and the file that holds them.

Whatever the evidence, a document comes as a row of numbers, of which a logistic regression (scikit-learn) makes chances
of groups. How strongly it is held back is chosen by cross-validation among REGULARIZATION; a temperature, by which the
log-odds are divided, is fitted to the chances of examples that were held out (Guo et al., ICML 2017). People are asked
for the labels of documents that it is unsure of and that readers see. `section_of` is what a collection's file says to
use the labels, and `with_section` the file with it (`label --write`).
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from fairagent.collection import Collection, GroupTable
from fairagent.collection.config import CollectionFile
from fairagent.collection.known import KnownIds
from fairagent.collection.labels import LabelErrors
from fairagent.collection.records import shown
from fairagent.collection.table import Labels, TableBuffer, tables_of
from fairagent.collection.targets import judged_by
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.judging import Judge, judged_topics, standard_measures
from fairagent.evaluate.outcome import GroupShares
from fairagent.labeling.examples import FEWEST, Examples, examples_of
from fairagent.measures import LOG2_MAX2, Interval, calibration_error, reliability
from fairagent.measures.unawareness import Bin, mean_under_error
from fairagent.retrieve.base import full_text
from fairagent.retrieve.bm25.analysis import plain_words
from fairagent.retrieve.manifest import indexed_documents
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import open_vectors
from fairagent.search.pipeline import engine_alone
from fairagent.settings import read_yaml, validate
from fairagent.storage.files import LineFile, file_name, whole_file
from fairagent.storage.packages import expect_installed
from fairagent.storage.readers import LARGEST_YAML, Malformed, compose_yaml, file_text, parse_yaml
from fairagent.storage.threads import one_blas_thread
from fairagent.types import Document, FloatArray, Ranking
from fairagent.types.clean import in_line
from fairagent.types.common import counted

FOLDS = 5
REGULARIZATION = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""The inverse strengths that are tried, up to the first that is no better than the one before."""
LEAST = 1e-6
"""A chance that is smaller counts as this: nothing that was learned from examples is impossible."""
BATCH = 4096
GIVEN = "given"
LONGEST = 100
"""Characters of a label that is given by hand."""
DEPTH = 100
"""Of the engine's list for each topic: what a re-ranker may bring up."""


class Evidence(Protocol):
    """Numbers about documents; any object like this will do. The labels' file calls it by its `source`."""

    source: str

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Numbers (n, k) about these documents, and of which (n,) they say anything."""


class Embedded:
    """The embeddings of the documents, as they are in the index: the settings' `encoder`, by default light ones."""

    def __init__(self, site: Site) -> None:
        self.source = f"classifier ({site.settings.encoder})"
        self._engine = open_vectors(site, site.settings.encoder)

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """See `Evidence.rows`; a document without any known word has zeros, and says nothing."""
        blocks = [self._engine.vectors(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH)]
        rows = np.concatenate(blocks).astype(np.float64) if blocks else np.zeros((0, 1))
        return rows, np.abs(rows).sum(axis=1) > 0


class WordLists:
    """How often the words of each label occur in a document: ln(1 + count), a number a label.

    A term may be several words. A term of several labels counts for each by its part, 1 / labels, so that what tells
    nothing apart weighs little (after the term groups of TExFAIR, arXiv 2403.05975).
    """

    source = "words"

    def __init__(self, lists: Mapping[str, Sequence[str]], texts: Mapping[str, Document]) -> None:
        terms = [{tuple(plain_words(term)) for term in some} - {()} for some in lists.values()]
        labels_of = Counter(term for some in terms for term in some)
        self.labels = tuple(lists)
        self._weights = {
            term: np.array([(term in some) / labels for some in terms]) for term, labels in labels_of.items()
        }
        self._texts = texts

    def counts(self, text: str) -> FloatArray:
        """The weighted occurrences of each label's words, (g,)."""
        words, weights = plain_words(text), np.zeros(len(self.labels))
        for length in sorted({len(term) for term in self._weights}):
            for start in range(len(words) - length + 1):
                weights += self._weights.get(tuple(words[start : start + length]), 0.0)
        return weights

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """See `Evidence.rows`; a document without any of the words says nothing."""
        counts = np.array([self.counts(full_text(self._texts[id])) for id in ids]).reshape(len(ids), len(self.labels))
        return np.log1p(counts), counts.sum(axis=1) > 0


def read_word_lists(path: Path) -> dict[str, list[str]]:
    """Label -> terms, of a YAML file; DataError where there are fewer than two labels, or one has no list of terms."""
    lists: dict[str, list[str]] = {}
    for label, terms in read_yaml(path).items():
        if not isinstance(terms, list) or not terms or not all(isinstance(term, str) for term in terms):
            raise DataError(f"{path}: {shown(label)} has {shown(terms)}, expected a list of words")
        lists[str(label)] = terms
    if len(lists) < 2:
        raise DataError(f"{path}: {counted(len(lists), 'label')} with words, and two or more are needed")
    return lists


@dataclass(frozen=True, slots=True, eq=False)
class MadeLabels:
    """The labels of one dimension: `chances` (m, g) over the examples' labels for the documents `ids`, which have none.

    `labeled` (m,) is False where the labeler abstains. `source` says what made them, `bins` how far chances were right.
    """

    examples: Examples
    source: str
    ids: tuple[str, ...]
    chances: FloatArray
    labeled: NDArray[np.bool_]
    errors: LabelErrors
    bins: tuple[Bin, ...]


def make_labels(
    examples: Examples, evidence: Evidence, ids: Sequence[str], confidence: float = 0.0, seed: int = 0
) -> MadeLabels:
    """Labels of the documents `ids` by the evidence, learned from the examples.

    It abstains where the evidence says nothing, and where the likeliest label has a chance below `confidence`. Raises
    DataError where the evidence says nothing of most examples, BackendUnavailable without scikit-learn, and what the
    evidence raises.
    """
    rows, usable = evidence.rows(examples.ids)
    groups, labels = examples.groups, examples.labels
    if usable.sum() < FEWEST or len(set(groups[usable].tolist())) < len(labels):
        raise DataError(
            f"{evidence.source} says something of {counted(int(usable.sum()), 'example')} of {len(usable):,}, too few "
            "to learn from; every group needs some, and all together ten"
        )
    # Those that it says nothing of are learned from as well: nothing is evidence, too.
    model, temperature, held_out = _fit(rows, groups, seed)
    right, places = held_out.argmax(axis=1) == groups, groups.tolist()
    errors = LabelErrors(
        dimension=examples.dimension,
        source=evidence.source,
        labels=labels,
        examples=examples.counts,
        right=tuple(float(right[groups == number].mean()) for number in range(len(labels))),
        accuracy=float(right.mean()),
        calibration=calibration_error(held_out, places),
    )
    new, says = evidence.rows(ids)
    chances = np.zeros((0, len(labels)))
    if len(ids):
        with one_blas_thread():
            chances = tempered(model.predict_proba(np.asarray(new, np.float64)), temperature)
    labeled = says & (chances.max(axis=1, initial=0.0) >= confidence)
    bins = tuple(reliability(held_out, places))
    return MadeLabels(examples, evidence.source, tuple(ids), chances, labeled, errors, bins)


def _fit(rows: FloatArray, groups: NDArray[np.intp], seed: int) -> tuple[Any, float, FloatArray]:
    """The regression, its temperature, and the chances (n, g) of its examples, each by those of the other folds."""
    expect_installed("scikit-learn", "making labels", "labels")
    # Imported here: it takes a second to load.
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    rows = np.asarray(rows, np.float64)
    folds = StratifiedKFold(min(FOLDS, int(np.bincount(groups).min())), shuffle=True, random_state=seed)
    best: tuple[float, float, FloatArray] | None = None
    with one_blas_thread():
        for strength in REGULARIZATION:
            model = LogisticRegression(C=strength, max_iter=2000)
            held_out = cross_val_predict(model, rows, groups, cv=folds, method="predict_proba")
            loss = log_loss(held_out, groups)
            if best is not None and loss >= best[0] - 1e-9:
                break  # weaker ones overfit more, and take the longest
            best = loss, strength, held_out
        assert best
        model = LogisticRegression(C=best[1], max_iter=2000).fit(rows, groups)
    low, high = np.log([0.25, 8.0])
    fitted = minimize_scalar(
        lambda x: log_loss(tempered(best[2], float(np.exp(x))), groups), bounds=(low, high), method="bounded"
    )
    temperature = float(np.exp(fitted.x))
    return model, temperature, tempered(best[2], temperature)


def log_loss(chances: FloatArray, groups: NDArray[np.intp]) -> float:
    """The mean of -ln of the true group's chance."""
    return -float(np.log(np.maximum(chances[np.arange(len(groups)), groups], LEAST)).mean())


def tempered(chances: FloatArray, temperature: float) -> FloatArray:
    """Chances (n, g) whose log-odds are divided by a temperature: above 1 they are less sure."""
    powered = np.maximum(chances, LEAST) ** (1.0 / temperature)
    spread: FloatArray = powered / powered.sum(axis=1, keepdims=True)
    return spread


def rows_of(collection: Collection, made: MadeLabels) -> Iterator[tuple[str, Labels, str]]:
    """Each document of the dimension with its labels and their source: the given ones as they are, then the made ones.

    A document that the labeler abstains from is there without a label.
    """
    examples, groups = made.examples, collection.groups
    dimension = examples.dimension
    if dimension in groups.dimensions:
        labels = groups.labels(dimension)
        table = next(one for one in tables_of(groups) if dimension in one.dimensions)
        for _, ids in table.batches():
            for id, row in zip(ids, table.memberships(dimension, ids), strict=True):
                if id in examples.given and id not in examples.of_file:
                    shares = {label: float(share) for label, share in zip(labels, row[1:], strict=True) if share > 0}
                    total = sum(shares.values())
                    whole = len(shares) == 1 and 1.0 - total < 1e-6
                    rounded = {label: round(share / total, 6) for label, share in shares.items()}
                    yield id, next(iter(shares)) if whole else rounded, GIVEN
    for id, label in examples.of_file.items():
        yield id, label, GIVEN
    for id, row, labeled in zip(made.ids, np.round(made.chances, 4), made.labeled.tolist(), strict=True):
        if not labeled:
            yield id, None, f"{made.source}: abstained"
            continue
        row[row.argmax()] += 1.0 - row.sum()
        pairs = zip(examples.labels, row.tolist(), strict=True)
        yield id, {label: round(chance, 4) for label, chance in pairs if chance > 0}, made.source


def write_labels(path: Path, collection: Collection, made: MadeLabels) -> None:
    """Write the labels as JSON lines, which `groups` of a collection file can name."""
    with whole_file(path) as stream:
        for id, labels, source in rows_of(collection, made):
            record = {"id": id, made.examples.dimension: labels, "source": source}
            stream.write((json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))


def with_labels(collection: Collection, made: MadeLabels) -> Collection:
    """The collection with the given and the made labels of this dimension alone, as if its file named them."""
    dimension, groups = made.examples.dimension, collection.groups
    known = groups.labels(dimension) if dimension in groups.dimensions else ()
    rows = [(id, labels) for id, labels, _ in rows_of(collection, made)]
    of_type = groups.of_type(dimension, [id for id, _ in rows]) if dimension in groups.dimensions else None
    labels = tuple(dict.fromkeys((*known, *made.examples.labels)))
    buffer = TableBuffer({dimension: labels}, predicted=[dimension], typed=[] if of_type is None else [dimension])
    for number, (id, label) in enumerate(rows, start=1):
        buffer.add(id, {dimension: label}, number, [dimension] if of_type is not None and of_type[number - 1] else [])
    label_errors = {**collection.label_errors, dimension: made.errors}
    return replace(collection, groups=GroupTable(*buffer.finish()), label_errors=label_errors)


def known_documents_of(site: Site) -> KnownIds:
    """The documents that labels can be made of; UsageError where there are none."""
    if (known := indexed_documents(site.collection, site.index)) is None:
        raise UsageError(f"collection {site.collection.name!r} has no documents to label")
    return known


def labels_file(site: Site, dimension: str, what: str = "labels") -> Path:
    """Where labels, or examples, are written unless the call says so: beside the collection's file."""
    name = file_name(f"{site.collection.name}.{dimension}.{what}.jsonl")
    origin = site.collection.origin
    return origin.file.with_name(name) if origin else Path(name)


def unlabeled_ids(collection: Collection, dimension: str, given: frozenset[str]) -> list[str]:
    """The documents without a label, in their order; those that are not of the dimension's type are left out."""
    ids = [document.id for document in collection.source if document.id not in given]
    if dimension in collection.groups.dimensions:
        of_type = collection.groups.of_type(dimension, ids)
        if of_type is not None:
            return [id for id, is_of_type in zip(ids, of_type.tolist(), strict=True) if is_of_type]
    return ids


def awrf_of_lists(
    collection: Collection, made: MadeLabels, lists: Mapping[str, Ranking], n: int
) -> tuple[list[float], Interval, str] | None:
    """AWRF@n of `lists` (topic -> ranking): by topic, were chances exact; the mean under error; the target's name."""
    labeled, dimension = with_labels(collection, made), made.examples.dimension
    topics = tuple(topic for topic in judged_topics(labeled, dimension).counted if len(lists.get(topic, ())))
    measures = {str(one): one for one in standard_measures(n)[1:2]}
    judge = Judge(labeled, measures, {dimension: frozenset(topics)}, None, False, n)
    certain, likely = list[float](), []
    for topic in topics:
        (exposure,) = map(GroupShares.of, judge.exposures(topic, lists[topic]))
        values = judge.values(topic, lists[topic])
        if exposure.likely is not None and dimension in values:
            certain += values[dimension].values()
            likely.append(exposure.likely)
    target = judged_by(dimension, labeled).name
    return (certain, mean_under_error(np.array(likely)), target) if likely else None


def engine_lists(site: Site, n: int) -> dict[str, Ranking]:
    """The engine's own list of each topic, best `n` documents."""
    agent = engine_alone(site)
    return {topic.id: agent.search(topic).ranking.top(n) for topic in site.collection.topics.values()}


@dataclass(frozen=True, slots=True)
class Helpful:
    """A document to be asked about, and why.

    `uncertainty` is 0 where its group is certain, 1 where all are as likely; `lists` are the topics in whose list it
    is, `weight` what it counts for: its attention there, or how much it is like the others.
    """

    id: str
    uncertainty: float
    weight: float
    lists: int

    @property
    def why(self) -> str:
        seen = f"in the lists of {counted(self.lists, 'topic')}" if self.lists else "like many others"
        return f"uncertainty {self.uncertainty:.2f}, {seen}"


def uncertainty(chances: FloatArray) -> FloatArray:
    """The entropy of the groups' chances (n, g), as a share of the largest, (n,)."""
    terms = np.where(chances > 0, -chances * np.log(np.where(chances > 0, chances, 1.0)), 0.0)
    share: FloatArray = np.abs(terms.sum(axis=1)) / np.log(chances.shape[1])
    return share


def most_helpful(
    ids: Sequence[str],
    chances: FloatArray | None,
    lists: Mapping[str, Ranking],
    vectors: FloatArray | None = None,
    count: int = 20,
) -> list[Helpful]:
    """The `count` of the documents `ids` with the largest product of uncertainty and weight, the largest first.

    `chances` (n, g) are what is made of them so far; None: nothing is, and all are as uncertain. The weight is the
    attention that the engine's `lists` (topic -> ranking) give a document; where there are none, the mean product of
    its vector (n, d) with all. Documents that neither tells of are last, in their order.
    """
    place = {id: number for number, id in enumerate(ids)}
    weight, seen = np.zeros(len(ids)), np.zeros(len(ids), np.intp)
    for ranking in lists.values():
        for id, attention in zip(ranking.ids, LOG2_MAX2(len(ranking)).tolist(), strict=True):
            if id in place:
                weight[place[id]] += attention
                seen[place[id]] += 1
    if not lists and vectors is not None and len(ids):
        weight = np.maximum(vectors @ vectors.mean(axis=0), 0.0)
    unsure = np.ones(len(ids)) if chances is None else uncertainty(chances)
    order = np.argsort(-(unsure * weight), kind="stable")[:count]
    return [Helpful(ids[at], float(unsure[at]), float(weight[at]), int(seen[at])) for at in order.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class LabelAsking:
    """Asks for labels of `dimension`, and adds each answer to `file` (JSON lines) as it is given, beside the text.

    Raises UsageError for a file of another form, and what `examples_of` does.
    """

    site: Site
    dimension: str
    file: Path

    def __post_init__(self) -> None:
        if self.file.suffix != ".jsonl":
            raise UsageError(f"{self.file}: answers are added as JSON lines; name a file that ends with .jsonl")

    def examples(self) -> Examples:
        """What is known now: the collection's labels, and the answers so far."""
        file = self.file if self.file.exists() else None
        return examples_of(self.site.collection, self.dimension, known_documents_of(self.site), file, few=True)

    def questions(self, count: int) -> tuple[list[str], list[tuple[Document, Helpful]]]:
        """The labels of the documents, of a target by the world's shares and of the answers; then `count` documents.

        These are the ones whose labels would help most: a classifier is made from what is known so far, where that is
        enough; else what readers see counts alone.
        """
        site, collection, examples = self.site, self.site.collection, self.examples()
        ids = unlabeled_ids(collection, self.dimension, examples.given)
        chances, lists, vectors = None, dict[str, Ranking](), None
        if ids:
            chances = make_labels(examples, Embedded(site), ids).chances if examples.enough else None
            if collection.topics:
                lists = site.memo.get(("engine lists", DEPTH), lambda: engine_lists(site, DEPTH))
            vectors = None if lists else np.asarray(Embedded(site).rows(ids)[0])
        wanted = most_helpful(ids, chances, lists, vectors, count)
        wanted_ids = {one.id for one in wanted}
        texts = {document.id: document for document in collection.source if document.id in wanted_ids}
        labels = collection.groups.labels(self.dimension) if self.dimension in collection.groups.dimensions else ()
        world = collection.population.get(self.dimension, {})
        known = list(dict.fromkeys((*labels, *world, *examples.labels, *examples.of_file.values())))
        return known, [(texts[one.id], one) for one in wanted]

    def answer(self, document: Document, label: str) -> None:
        """Add a label; UsageError for a document that has one already, and for one that is empty or no plain line."""
        if not label or len(label) > LONGEST or in_line(label) != label:
            raise UsageError(f"a label is one line of 1 to {LONGEST} characters")
        if document.id in self.examples().given:
            raise UsageError(f"{in_line(document.id)} has a label of {self.dimension!r} already, which stays as it is")
        line = {"id": document.id, "title": document.title, "text": document.text, self.dimension: label}
        with LineFile(self.file) as lines:
            lines.write(json.dumps(line, ensure_ascii=False))


def section_of(site: Site, path: Path, errors: Path, dimension: str, typed: bool) -> dict[str, Any]:
    """The block of `groups` that names the labels; `typed`: none but documents of the type are in theirs."""
    root = Path()
    if origin := site.collection.origin:
        # Paths in the collection's file are relative to this.
        root = origin.file.parent / (validate(CollectionFile, read_yaml(origin.file), str(origin.file)).root or "")
    labels, error_file = (os.path.relpath(one, root) for one in (path, errors))
    column = {"predicted": True, "errors": error_file, **({"applies_to": "all"} if typed else {})}
    return {"path": labels, "id": "id", "dimensions": {dimension: column}}


def dumped(value: object) -> str:
    """YAML as the lines of a file."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)


def with_section(site: Site, section: dict[str, Any]) -> tuple[Path, str]:
    """The collection's file, and its text with this block of groups in the place of its dimension's column.

    Other lines stay as they are. The `groups` of before become comments above the new ones, which have the other
    columns too. UsageError without a file, where it names other made labels of the dimension or none of its columns is
    the dimension's (a saved table's), and where lines cannot be taken out of the text.
    """
    if (origin := site.collection.origin) is None:
        raise UsageError("--write needs a collection that was read from a file")
    file = origin.file
    text = file_text(file, LARGEST_YAML)
    text += "\n" * (not text.endswith("\n"))
    there = validate(CollectionFile, before := parse_yaml(text), str(file))
    (dimension,) = section["dimensions"]
    groups = before.get("groups") or []
    blocks, rest = groups if isinstance(groups, list) else [groups], []
    for block, read in zip(blocks, there.groups, strict=True):
        column = read.dimensions.get(dimension)
        if column and column.predicted and block["path"] != section["path"]:
            raise UsageError(f"{file}: {dimension!r} has made labels already, of {block['path']}; take them out first")
        others = {name: one for name, one in (block.get("dimensions") or {}).items() if name != dimension}
        if others or not column:
            rest.append({**block, "dimensions": others} if column else block)
    after = {**before, "groups": [*rest, section] if rest else section}
    if rest == blocks and dimension in site.collection.groups.dimensions:
        raise UsageError(
            f"{file}: {dimension!r} is no column of its groups, but of a saved table: make that without it"
        )
    lines, added = text.splitlines(keepends=True), dumped({"groups": after["groups"]})
    start = end = len(lines)
    for name, value in compose_yaml(text).value:
        if name.value == "groups":
            start, end = name.start_mark.line, value.end_mark.line + (value.end_mark.column > 0)
            # What a block ends with are the remarks on what comes next.
            while not lines[end - 1].strip() or lines[end - 1].startswith("#"):
                end -= 1
    was = [f"# {line}" for line in lines[start:end]]
    remark = (
        [f"# fairagent label --write put made labels of {dimension!r} into the groups, which were:\n"] if was else []
    )
    new = "".join([*lines[:start], *remark, *was, added, *lines[end:]])
    try:
        same = parse_yaml(new) == after
    except Malformed:
        same = False
    if not same:
        raise UsageError(f"{file}: its lines cannot be changed one by one; put these there by hand:\n{added}")
    validate(CollectionFile, after, str(file))
    return file, new
