"""The settings file of a collection: where its documents, topics, judgments and groups are, in which form.

docs/your_data.md shows one. Paths are relative to `root`, which is relative to the settings file. Long documents can be
cut into passages that fit a model's or an encoder's input.
"""

import string
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fairagent.settings import Label, Section, Target
from fairagent.storage.packages import expect_installed
from fairagent.storage.readers import plain_name
from fairagent.types import UNKNOWN, Document

ROW = "@row"
"""The `id` of rows that go by their numbers, from 1."""
CONTENT = "@content"
"""The `id` of rows that go by a digest of what they hold."""
START = "@start"
"""The field in a passage's `extra` that says at which character of its document's text it starts."""


class Chunks(Section):
    """How documents are cut: at the ends of sentences where possible, by LlamaIndex's SentenceSplitter.

    Tokens are counted by LlamaIndex's tokenizer: that of GPT-3.5, which comes with it, unless a program sets another
    (`llama_index.core.Settings.tokenizer`).
    """

    tokens: int = Field(512, ge=16)
    """The most that a passage holds."""
    overlap: int = Field(128, ge=0)
    """The most that a passage repeats of the one before it."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.overlap >= self.tokens:
            raise ValueError(f"`overlap` ({self.overlap}) must be smaller than `tokens` ({self.tokens})")
        return self


def passage_id(document: str, number: int) -> str:
    """The id of a document's passage; numbers start with 1.

    >>> passage_id("d7", 1), passage_document("d7#1"), passage_document("a#b#12")
    ('d7#1', 'd7', 'a#b')
    """
    return f"{document}#{number}"


def passage_document(passage: str) -> str:
    """The id of the document that a passage belongs to."""
    return passage.rpartition("#")[0]


def passages(documents: Iterable[Document], chunks: Chunks) -> Iterator[Document]:
    """Every passage of every document, in order, with the title and the other fields of its document.

    A document that is short enough, or empty, is one passage.
    """
    check_splitter()
    # Imported here: it takes a second to load.
    from llama_index.core.node_parser import SentenceSplitter

    splitter = SentenceSplitter(chunk_size=chunks.tokens, chunk_overlap=chunks.overlap)
    for document in documents:
        text, start = document.text, -1
        # No token is shorter than a byte.
        short = len(text) <= chunks.tokens and len(text.encode("utf-8", "surrogatepass")) <= chunks.tokens
        for number, part in enumerate([text] if short else splitter.split_text(text) or [""], start=1):
            start = max(text.find(part, start + 1), 0)
            yield Document(passage_id(document.id, number), part, document.title, {**document.extra, START: start})


def joined(parts: Iterable[Document]) -> str:
    """The text that the passages, in order, were cut from.

    White space between passages may differ, and of a text that repeats itself word for word for longer than a passage
    some repetitions may be missing: the splitter does not say where its passages stand.
    """
    text = ""
    for part in parts:
        start = part.extra[START]
        assert isinstance(start, int)
        text = text[:start].ljust(start) + part.text
    return text


def check_splitter() -> None:
    """Raise BackendUnavailable where LlamaIndex, which cuts documents, is not installed."""
    expect_installed("llama-index-core", "cutting documents into passages (chunks)")


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def template_fields(field: str) -> tuple[str, ...]:
    """The field names within braces; none where `field` is itself a name; ValueError for anything else."""
    if "{" not in field and "}" not in field:
        return ()
    names = []
    for _, name, specification, conversion in string.Formatter().parse(field):
        if name is not None:
            if not name or specification or conversion or any(mark in name for mark in ".[]"):
                raise ValueError(f"{field!r} is no template of plain {{field}} names")
            names.append(name)
    return tuple(names)


def _field(value: str) -> str:
    template_fields(value)
    return value


def _encodings(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        try:
            "".encode(name)
        except (LookupError, ValueError):
            raise ValueError(f"{name!r} is no encoding that Python knows; e.g. utf-8, utf-16, cp1252") from None
    return names


FieldName = Annotated[str, Field(min_length=1), AfterValidator(_field)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]


class RecordsFile(Section):
    """Records in one of several forms, each with an id."""

    format: Literal["jsonl", "tsv", "csv", "parquet", "dataset"] | None = None
    """JSON lines, tab-separated, CSV, Parquet, or a folder that Hugging Face's `save_to_disk` wrote; not set: by the
    file's name."""
    columns: tuple[str, ...] = ()
    """Names of the columns of a tsv or csv file without a header line, such as MS MARCO's `collection.tsv`: [id, text].
    """
    encoding: Annotated[tuple[str, ...], BeforeValidator(_as_list), AfterValidator(_encodings)] = ()
    """Of a text file that is not in UTF-8; of several, each line is in the first that it fits, e.g. [utf-8, cp1252]."""
    id: FieldName = "id"
    """The field with the id, or a template such as "{q_id}-{d_id}". "@content": a digest of all that the row holds,
    which lasts as long as no cell of the row changes; "@row": the number of the row in its file, from 1, which another
    document has as soon as a row before it is deleted."""
    ids: Literal["mend"] | None = None
    """`mend`: rows whose id is missing, that of a row before, or has white space, get one made of the row's content,
    and are named when the collection is indexed; not set: they are errors."""

    @model_validator(mode="after")
    def _one_column(self) -> Self:
        if self.ids and (self.id in (ROW, CONTENT) or template_fields(self.id)):
            raise ValueError(f"`ids: mend` mends the ids of one column, and `id` is {self.id!r}")
        return self


class Seen(Section):
    """What `fairagent init` saw of a file, for errors that say what has become of it."""

    rows: int
    """How many there were; of a long file the first that were looked at."""
    columns: tuple[str, ...] = ()
    """Their names."""
    sha256: str = ""
    """Of the file's bytes."""


class DocumentsFile(RecordsFile):
    """The texts to search, one document a record."""

    path: Names
    """A file, a pattern such as `docs/*.jsonl.gz`, or a list of them (read in this order)."""
    title: str | None = None
    """The field with the title; a document may lack it, but not all of them."""
    text: Names = ("text",)
    """The field with the text, or several, joined by a space; every document has them."""
    seen: Seen | None = None
    """What the file was when `fairagent init` proposed this; documents may come and go."""


class TopicsFile(RecordsFile):
    """The information needs."""

    path: str
    """The file, with one topic in each record; or TREC's topics (<top>, XML) or SMART's (.I/.W), with the fields id,
    query (the title or .W), description and narrative."""
    query: str = "query"
    """The field that is searched; the others stay with the topic as `extra`."""
    dimensions: str | None = None
    """`jsonl` only: the field that lists the dimensions a topic is to be judged in; not set: all of them."""
    group: str | None = Field(default=None, min_length=1)
    """The field with a group of topics, e.g. by subject, for tables by group of the query; a topic may lack it."""


def _labels(labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if labels is not None and (UNKNOWN in labels or len(set(labels)) < len(labels)):
        raise ValueError(f"labels must be distinct and leave out {UNKNOWN}")
    return labels


class TypeColumn(Section):
    """The column that says which documents are of a dimension's type: which pages are about people, of all pages."""

    column: str
    """The column or JSON field."""
    values: Annotated[tuple[Label, ...], BeforeValidator(_as_list), Field(min_length=1)] | None = None
    """The values that say so; not set: every value but an empty one (or false)."""


def _rule(value: Any) -> Any:
    """A column's name stands for the rule that any of its values says so."""
    return {"column": value} if isinstance(value, str) and value != "all" else value


class DimensionColumn(Section):
    """How one dimension (gender, region ...) is read from a column or JSON field.

    An empty value means unknown. A JSON value may be a label, a list of labels (equal shares) or a
    mapping from labels to weights.
    """

    column: str | None = None
    """Not set: the column is named like the dimension."""
    separator: str | None = Field(default=None, min_length=1)
    """What stands between several labels in one text value; not set: there is only one."""
    labels: Annotated[tuple[Label, ...] | None, AfterValidator(_labels)] = None
    """All labels in their order, any other value being a fault; not set: those that occur, sorted."""
    rest: str | None = Field(default=None, min_length=1)
    """The label of whatever is none of the `labels`, e.g. other."""
    map: dict[Label, Annotated[tuple[Label, ...], BeforeValidator(_as_list)]] = Field(default={})
    """Values to replace, by one label or by a list (an empty list: unknown)."""
    normalize: bool = True
    """Divide the weights of a document by their sum; false keeps them as given."""
    applies_to: Annotated[TypeColumn | Literal["all"] | None, BeforeValidator(_rule)] = None
    """Which documents can have a group at all, known or not: a column's name, {column, values}, or all. Not set: what
    `fairagent index` says of them, where near documents have a label, or none, together; else that is not known."""
    predicted: bool = False
    """The weights are a classifier's probabilities; those of a document add up to 1 (within .001)."""
    errors: str | None = None
    """The file that says how far predicted labels are right, as `fairagent label` writes it: AWRF gets an interval."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.predicted and not self.normalize:
            raise ValueError("`predicted` weights are probabilities, which add up to 1: leave out `normalize`")
        if self.errors is not None and not self.predicted:
            raise ValueError("`errors` are of labels that are `predicted: true`")
        if self.rest is not None and (not self.labels or self.rest == UNKNOWN):
            raise ValueError("`rest` is a label of its own, for what is none of the `labels`, which it needs")
        return self

    @property
    def all_labels(self) -> tuple[str, ...] | None:
        """The labels with that of the rest."""
        return self.labels and tuple(dict.fromkeys((*self.labels, *([self.rest] if self.rest else []))))


Dimensions = dict[Annotated[str, Field(min_length=1)], DimensionColumn]


class QrelsFile(Section):
    """The judgments."""

    path: str
    """The file."""
    format: Literal["trec", "jsonl"] = "trec"
    """`trec`: topic, iteration, document, grade, or topic, document, grade (BEIR), with or without a header that names
    them; `jsonl`: one judgment a line."""
    header: bool = False
    """`trec` only: the first line names the columns (separated by tabs); there may be more than four."""
    digits: int | None = Field(default=None, ge=0, le=64)
    """Ids of documents that are whole numbers get zeros before them to so many digits, as the documents' own have, and
    lose `.0` at their end; 0: they lose all zeros. Not set: as they are."""
    relevant: int = Field(default=1, ge=1)
    """The smallest grade that counts as relevant; smaller ones count as 0."""
    topic: FieldName = "topic"
    """Field of `jsonl` with the topic."""
    document: FieldName = "document"
    """Field of `jsonl` with the document."""
    relevance: str = "relevance"
    """Field of `jsonl` with the grade."""
    dimensions: Dimensions = Field(default={})
    """Groups that depend on the topic, e.g. the stance of a document towards it, read beside the grade."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.header and self.format != "trec":
            raise ValueError("`header` belongs to `format: trec`")
        if self.dimensions and not (self.header or self.format == "jsonl"):
            raise ValueError("`dimensions` need named columns: `header: true` or `format: jsonl`")
        return self


class GroupsFile(RecordsFile):
    """Which groups the documents belong to."""

    path: str
    """A file, which may be that of the documents."""
    dimensions: Dimensions = Field(min_length=1)


class TrackSection(Section):
    """The real TREC Fair Ranking track, instead of documents, topics, qrels and groups."""

    year: Literal[2021, 2022] = 2022
    """The track's edition."""
    split: Literal["train", "eval"] = "eval"
    """Which of its topics: those for training or those for evaluation."""
    folder: str
    """The folder with the track's official files."""
    dimensions: Names | None = None
    """The track's names; not set: sub-geo and gender (2021: geo and gender)."""
    query: Literal["title", "keywords"] = "title"
    """What of a topic is searched."""
    keywords: str | None = None
    """A file with the topics' keywords, where the topics have none."""


class CollectionFile(Section):
    """The whole settings file."""

    name: Annotated[str, AfterValidator(plain_name)] = Field(min_length=1)
    """What the collection is called; the default index folder is indexes/NAME, so it has to be a plain name."""
    root: str | None = None
    """The folder that all paths are relative to; not set: the settings file's own."""
    documents: DocumentsFile | None = None
    """The texts; not set: there is nothing to index, and an engine searches an index of its own (`opensearch`,
    `lucene`)."""
    chunks: Chunks | None = None
    """Search passages of the documents, not whole ones; `{}` for 512 tokens with an overlap of 128."""
    share: float = Field(1.0, gt=0, le=1)
    """The share of the documents that is used, by a hash of their ids: .05 is a twentieth, always the same."""
    track: TrackSection | None = None
    """The real track; it stands instead of all that follows but `target` and `intersections`."""
    topics: TopicsFile | None = None
    qrels: Annotated[QrelsFile | None, BeforeValidator(lambda value: None if value == {} else value)] = None
    """The judgments; not set, or `{}`: there are none, so that exposure can be measured, and relevance cannot."""
    groups: Annotated[tuple[GroupsFile, ...], BeforeValidator(_as_list)] = Field(default=())
    """One block, or a list of blocks with different dimensions."""
    population: str | dict[str, Any] = Field(default={})
    """World shares: dimension -> label -> share (adding up to 1), here or in a JSON or YAML file."""
    target: Target = Field(None, json_schema_extra={"slot": "target"})
    """The share of exposure that each group should get, where a search says nothing else: uniform, corpus, population,
    estimated, trec-estimated, qrels, trec; or for each dimension one of these or your own shares, e.g.
    {gender: {female: 0.5, male: 0.5}}. Not set: trec-estimated where there is a population, else a search asks."""
    intersections: dict[Annotated[str, Field(min_length=1)], tuple[str, ...]] = Field(default={})
    """Further dimensions: name -> two or more dimensions, the combinations of whose groups are its groups."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.track and (
            too := sorted(self.model_fields_set - {"name", "root", "chunks", "track", "target", "intersections"})
        ):
            raise ValueError(f"`track` brings everything: leave out {', '.join(too)}")
        if self.chunks and not self.documents and not self.track:
            raise ValueError("`chunks` are parts of `documents`, which are missing")
        if self.qrels and not self.topics:
            raise ValueError("`qrels` need `topics`")
        names = [name for block in self.blocks for name in block.dimensions]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"dimension defined twice: {', '.join(twice)}")
        return self

    @property
    def blocks(self) -> list[GroupsFile | QrelsFile]:
        """What dimensions are read from."""
        return [*self.groups, *([self.qrels] if self.qrels else [])]
