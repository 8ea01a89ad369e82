"""The section that names a model whose likelihoods choose between sentences, and opening it as a scorer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fairagent.errors import SettingsError
from fairagent.evaluate.kinds.stereotypes.scorers import CausalScorer, Instructed, MaskedScorer, Scorer
from fairagent.settings import ModelSettings, Section, SelfDebiasSettings


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
        """How it chooses, for tables."""
        rival = (", Self-Debias" if self.self_debias else "") + (", with an instruction" if self.instruction else "")
        if self.kind == "server":
            return f"likelihoods of the model {self.name} at a server{rival}"
        return f"likelihoods of the local {self.kind} model {self.name}{rival}"

    def open(self) -> Scorer:
        """The scorer; BackendUnavailable where the model, its package or the server's key is missing.

        SettingsError for Self-Debias with a model that does not tell all probabilities.
        """
        if self.self_debias and self.kind != "causal":
            raise SettingsError("self_debias needs all of a model's probabilities, which `kind: causal` alone has here")
        scorer = self._opened()
        return Instructed(scorer, self.instruction) if self.instruction else scorer

    def _opened(self) -> Scorer:
        if self.kind == "masked":
            from fairagent.likelihood.masked import MaskedModel

            return MaskedScorer(MaskedModel(self.name, self.device, self.dtype, self.batch))
        if self.kind == "causal":
            from fairagent.likelihood.causal import CausalModel

            model = CausalModel(self.name, self.device, self.dtype, self.batch)
            if not (rule := self.self_debias):
                return CausalScorer(model)
            from fairagent.likelihood.self_debias import SelfDebiased

            return CausalScorer(SelfDebiased(model, rule))
        from fairagent.likelihood.endpoint import EndpointModel

        return CausalScorer(EndpointModel(ModelSettings(name=self.name, base_url=self.base_url)))
