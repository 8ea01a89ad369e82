"""An answer: its context, what a filter and debiasing did to that, its text, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairagent.types.common import Alarm, Recorded, Summarized, Usage, counted, quoted
from fairagent.types.search import Document, Exposure, Group, Hit, Query, SearchResult

if TYPE_CHECKING:
    from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True)
class Verdict:
    """A filter's verdict on one document.

    `fair`: the document brings no bias into an answer; `useful`: an answer needs it. None: no verdict, as `note`
    explains, with the model's reasons and whether the text was cut.
    """

    id: str
    kept: bool
    fair: bool | None
    useful: bool | None
    note: str = ""

    @property
    def complete(self) -> bool:
        """Whether there is one: a document that stays has passed a step."""
        return self.fair is not None and (not self.kept or self.fair or bool(self.useful))


@dataclass(frozen=True, slots=True, repr=False)
class Filtered(Summarized):
    """The `documents` that a filter leaves, in their order, and its verdict on every one it saw."""

    documents: tuple[Document, ...]
    verdicts: tuple[Verdict, ...]
    usage: Usage = Usage()

    @property
    def _summary(self) -> str:
        return f"kept {len(self.documents)} of {counted(len(self.verdicts), 'document')}"


@dataclass(frozen=True, slots=True, repr=False)
class Debiased(Summarized):
    """The contexts that DebiasRAG chose, the best first with falling `scores`, and how it chose them.

    `bias_class` is that of the query ("" is none), `avoided` are the ids of the avoided passages, `made` those of
    the counterfactual contexts made from them (at most one each), `dropped` those of candidates that are too similar to
    what is avoided. `theta` are the weights of relevance and of distance from what is avoided.
    """

    bias_class: str
    avoided: tuple[str, ...]
    made: tuple[str, ...]
    documents: tuple[Document, ...] = ()
    scores: tuple[float, ...] = ()
    dropped: tuple[str, ...] = ()
    theta_before: tuple[float, float] = (0.5, 0.5)
    theta_after: tuple[float, float] = (0.5, 0.5)
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()

    @property
    def survived(self) -> tuple[str, ...]:
        """The ids of the counterfactual contexts that were not dropped."""
        return tuple(id for id in self.made if id not in self.dropped)

    @property
    def placed(self) -> tuple[str, ...]:
        """The ids of the counterfactual contexts among the chosen."""
        return tuple(one.id for one in self.documents if one.id in self.made)

    @property
    def _summary(self) -> str:
        chosen, made = counted(len(self.documents), "context"), len(self.made)
        return f"of class {self.bias_class or 'none'!r}: {chosen} chosen, {made} made, {len(self.dropped)} dropped"


@dataclass(frozen=True, slots=True)
class Removal:
    """How many documents of a group were seen, and how many of them a filter removed or an answer does not cite.

    They are sums of memberships (half a member counts half).
    """

    group: Group
    seen: float
    removed: float

    @property
    def share(self) -> float:
        """The share removed, in [0, 1]; 0 where none was seen."""
        return self.removed / self.seen if self.seen else 0.0


@dataclass(frozen=True, slots=True)
class Revision:
    """The second pass of an answer whose citations missed the target: whether it was `kept`, and `why` (not).

    `gap` and `support` are those of the first answer and of the second; None: it was not written.
    """

    kept: bool
    why: str
    gap: tuple[float, float | None]
    support: tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class AimedOrPlain:
    """Which answer is given where citations aim: the `aimed` one, or the plain one, whose J is larger.

    `objectives` are J of what they cite (`fairagent.measures.objective`, documents alike), `gaps` its gaps; the aimed
    one's are first.
    """

    aimed: bool
    objectives: tuple[float, float]
    gaps: tuple[float, float]

    def __str__(self) -> str:
        given, other = ("aimed", "plain") if self.aimed else ("plain", "aimed")
        (j, j_then), (gap, gap_then) = (pair if self.aimed else pair[::-1] for pair in (self.objectives, self.gaps))
        return f"the {given} answer: J {j:.4f}, gap {gap:.4f}; the {other} one's {j_then:.4f}, {gap_then:.4f}"


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Summarized):
    """A text that answers a query from a context of documents.

    `cited` are the numbers (from 1, in rank order) that it cites, in the order of their first mention; `source` is who
    wrote it. `truncated`: it is the beginning of an answer that was cut off; `abstains`: it says that the documents do
    not hold one. `revision` is what came of a second pass, None where nothing asked for one.
    """

    text: str
    cited: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    source: str = ""
    truncated: bool = False
    revision: Revision | None = None
    abstains: bool = False

    @property
    def _summary(self) -> str:
        cut = ", cut off" if self.truncated else ""
        length = f"{counted(len(self.text), 'character')}, {len(self.cited)} cited{cut}"
        return f"by {self.source or 'nobody'}: {length}: {quoted(self.text)}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Attribution(Summarized):
    """How far an answer rests on each document of its context, and what that gives the groups.

    `kind` is the attributor's, `called` what it calls the documents that the answer rests on ("cited", "entailing").
    `weights` (k,) are in [0, 1], in rank order.
    `exposures` are those of the attributed documents, `retrieved` those of the whole context, one a dimension; both
    are empty until they are measured.
    """

    kind: str
    weights: FloatArray
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    exposures: tuple[Exposure, ...] = ()
    retrieved: tuple[Exposure, ...] = ()
    called: str = "attributed"

    @property
    def _summary(self) -> str:
        resting = int((self.weights > 0).sum())
        return f"by {self.kind}: on {resting} of {counted(len(self.weights), 'document')}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ContextExposures(Summarized):
    """What the documents of a context give the groups, and those of them that the answer cites, one a dimension.

    All documents count alike. The targets are those of the ranking. Both are empty where there are no groups, or no
    documents. `least_gap` is that of the fairest list of as many candidates as the context has; None: no frontier.
    """

    context: tuple[Exposure, ...] = ()
    cited: tuple[Exposure, ...] = ()
    least_gap: float | None = None

    @property
    def context_gap(self) -> float:
        """How far the context is from the target; infinite where nothing in it has a label."""
        return _gap(self.context)

    @property
    def cited_gap(self) -> float:
        """How far the citations are from the target; infinite where nothing labeled is cited."""
        return _gap(self.cited)

    @property
    def _summary(self) -> str:
        return f"gap of the context {self.context_gap:.4f}, of the citations {self.cited_gap:.4f}"


def _gap(exposures: tuple[Exposure, ...]) -> float:
    return sum(one.importance * one.divergence for one in exposures if one.importance)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class AnswerResult(Recorded):
    """An answer to a query, and everything it came from.

    `context` are the documents it was written from: citation [k] is the k-th of them. `removed` is what each group lost
    to the filter, `uncited` what each has of the context and of what the answer does not cite. `aimed` is which of two
    answers this is. `exposures` are those of the context and the citations, with their target and gap. `support` is the
    share of the answer's words that the documents hold which it cites for them, sentence by sentence, in [0, 1].
    `seconds` is the whole time, the search's included; so are `alarms` the search's.
    """

    query: Query
    answer: Answer
    context: tuple[Hit, ...]
    search: SearchResult
    notes: tuple[str, ...] = ()
    filtered: Filtered | None = None
    removed: tuple[Removal, ...] = ()
    attribution: Attribution | None = None
    seconds: float = 0.0
    debiased: Debiased | None = None
    alarms: tuple[Alarm, ...] = ()
    exposures: ContextExposures = ContextExposures()
    support: float = 0.0
    uncited: tuple[Removal, ...] = ()
    aimed: AimedOrPlain | None = None

    @property
    def revised(self) -> bool:
        """Whether the answer is that of a second pass, whose citations are nearer to the target."""
        return self.answer.revision is not None and self.answer.revision.kept

    @property
    def cited(self) -> tuple[Hit, ...]:
        """The documents that the answer cites, in the order of their first mention."""
        return tuple(self.context[number - 1] for number in self.answer.cited)

    @property
    def usage(self) -> Usage:
        """What all model calls took: of search, filter, debiasing, generator and attribution."""
        parts = (self.search.trace, self.answer, self.filtered, self.debiased, self.attribution)
        return sum((part.usage for part in parts if part), Usage())

    @property
    def _summary(self) -> str:
        cited = f"{len(self.answer.cited)} of {counted(len(self.context), 'document')} cited"
        return f"to {quoted(self.query.text)}: {quoted(self.answer.text)}; {cited}"
