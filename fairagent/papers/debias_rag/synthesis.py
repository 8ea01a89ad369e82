"""Counterfactual contexts: a biased passage with its group words swapped, and optionally rewritten by a model.

Source: DebiasRAG (arXiv 2605.16113), its steps of substitution and refinement; the prompt is this project's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid
from fairagent.llm import Model, Reply, ask
from fairagent.llm.exchange import unless_failing
from fairagent.llm.likelihood import Likelihood, perplexity
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.avoid import AvoidPassage
from fairagent.papers.debias_rag.lexicon import Lexicon
from fairagent.types import Document, Usage
from fairagent.types.clean import query_shown, visible

PROMPT = "rewrite_counterfactual"
TEMPERATURE = 0.0
PREFIX = "fair:"
"""What the ids of synthesized contexts begin with; the rest is the id of the passage that one was made from."""
ROOM = 40
"""Characters that a rewrite may have beyond twice those of the sentence, where a server holds bounds."""
TITLE = "Synthesized counterfactual, not from the collection"


class Rewrites(Reply):
    """As many rewrites as were requested, none empty."""

    rewrites: Annotated[list[str], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Rewrites a swapped passage: `count` candidates of `model`, of which the most fluent by `scorer` is taken.

    Fluent is what has the lowest perplexity; without a scorer the model's first candidate is taken. `on_error` says
    what becomes of a passage without a usable rewrite: "keep" it with its words swapped, "drop" it, or "fail".
    """

    model: Model
    prompts: Prompts
    count: int = 3
    scorer: Likelihood | None = None
    on_error: Literal["keep", "drop", "fail"] = "keep"

    def rewrite(self, query: str, text: str) -> tuple[str, Usage]:
        """The best rewrite of `text`, in the light of what `query` is about, and what it took.

        Raises what `ask` raises.
        """

        def accept(reply: Rewrites) -> None:
            if len(reply.rewrites) != self.count or not all(visible(one).strip() for one in reply.rewrites):
                raise ReplyInvalid(f"expected {self.count} rewrites, none of them empty, not {len(reply.rewrites)}")

        variables = {"query": query_shown(query), "text": visible(text), "count": self.count}
        one = {"type": "string", "minLength": 1, "maxLength": 2 * len(text) + ROOM}
        bounds = {"items": one, "minItems": self.count, "maxItems": self.count}
        request = self.prompts.request(PROMPT, variables, TEMPERATURE, accept, {"rewrites": bounds})
        reply, usage = ask(self.model, request, Rewrites)
        candidates = [" ".join(visible(one).split()) for one in reply.rewrites]
        if self.scorer is None:
            return candidates[0], usage
        fluency = [perplexity(scores) for scores in self.scorer.score([("", one) for one in candidates])]
        return candidates[fluency.index(min(fluency))], usage


@dataclass(frozen=True, slots=True)
class Synthesized:
    """The contexts that were made; `notes` say where a rewrite failed, so that the swapped text stands as it is."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...]
    usage: Usage


def synthesize(
    query: str, passages: Sequence[AvoidPassage], lexicon: Lexicon, rewriter: Rewriter | None = None
) -> Synthesized:
    """A counterfactual context of each passage in which the lexicon swaps a word; rewritten, with a `rewriter`.

    A passage that names no group of the lexicon would be a biased context as it is, and none is made of it. Raises
    FatalModelError and BudgetExceeded, and where the rewriter's `on_error` is "fail" every ModelError.
    """
    documents: list[Document] = []
    notes: list[str] = []
    usage = Usage()
    for passage in passages:
        text = lexicon.swap(passage.text)
        if text == passage.text:
            continue
        if rewriter:
            rewritten, took, note = _rewritten(query, passage.id, text, rewriter)
            usage = usage + took
            notes += [note] if note else []
            if rewritten is None:
                continue
            text = rewritten
        documents.append(Document(f"{PREFIX}{passage.id}", text, TITLE))
    return Synthesized(tuple(documents), tuple(notes), usage)


def _rewritten(query: str, id: str, text: str, rewriter: Rewriter) -> tuple[str | None, Usage, str]:
    """The text to take, None for none; what it took; and a note where the model gave no rewrite."""

    def instead(error: ModelError | BudgetExceeded) -> tuple[str | None, Usage, str]:
        stays = rewriter.on_error == "keep"
        becomes = "stands with its words swapped" if stays else "is left out"
        return text if stays else None, error.usage, f"{PREFIX}{id} was not rewritten ({error}), and {becomes}"

    return unless_failing(lambda: (*rewriter.rewrite(query, text), ""), rewriter.on_error, instead)
