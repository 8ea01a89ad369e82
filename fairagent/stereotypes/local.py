"""Opening a local model as a scorer."""

from __future__ import annotations

from fairagent.stereotypes.scorers import CausalScorer, MaskedScorer, Scorer


def local_scorer(kind: str, name: str, device: str = "", dtype: str = "", batch: int = 8) -> Scorer:
    """The scorer of a local model, `kind` being "masked" or "causal".

    Raises what `MaskedModel` and `CausalModel` raise.
    """
    if kind == "masked":
        from fairagent.likelihood.masked import MaskedModel

        return MaskedScorer(MaskedModel(name, device, dtype, batch))
    from fairagent.likelihood.causal import CausalModel

    return CausalScorer(CausalModel(name, device, dtype, batch))
