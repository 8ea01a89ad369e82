"""The judge of a loop, as settings describe it."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from fairagent.filter.pages import longest_calls
from fairagent.loop.actions.judge import JudgeAction
from fairagent.loop.judges import RELEVANCE, Judge, ModelJudge, ScorerJudge
from fairagent.prompts.calls import Calls, Case
from fairagent.rerank.pair_scorer import pair_scorer
from fairagent.settings.section import Section
from fairagent.site import Site


class JudgeSettings(Section):
    """Who reads the documents that the groups' evidence is learned from, and how many."""

    by: Literal["model", "cross-encoder"] = "model"
    """model: the language model says yes or no. cross-encoder: a local model scores query and document together."""
    scorer: str = ""
    """The model of `by: cross-encoder`: a folder, or a name in the Hugging Face cache; `monot5:NAME` for a MonoT5."""
    documents: int = Field(10, ge=1)
    """How many documents of each group are judged, the best first. More cost more calls, or time."""
    groups: int = Field(3, ge=1)
    """How many groups are judged, those that lack most exposure first. More cost more calls, or time."""
    batch: int = Field(5, ge=1)
    """How many documents the language model judges in one call. More need fewer calls; where a call fails, none of its
    documents is judged."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.by == "cross-encoder") != bool(self.scorer):
            raise ValueError("`scorer` names the model of `by: cross-encoder`, and is nothing without")
        return self

    @property
    def templates(self) -> tuple[str, ...]:
        """That of the language model's yes or no."""
        return (RELEVANCE,) if self.by == "model" else ()

    def worst_case(self, case: Case) -> Iterator[Calls]:
        """Every document as long as a model is ever shown one."""
        for template in self.templates:
            yield from longest_calls(case, template, self.documents * self.groups, self.batch)

    def build(self, site: Site, on_error: Literal["fallback", "fail"]) -> JudgeAction:
        """The action."""
        judge: Judge
        if self.by == "model":
            judge = ModelJudge(site.model, site.prompts, self.batch, on_error=on_error)
        else:
            judge = ScorerJudge(pair_scorer(site, self.scorer))
        return JudgeAction(judge, self.documents, self.groups)

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the scorer is not on this machine."""
        if self.by == "cross-encoder":
            pair_scorer(site, self.scorer)
