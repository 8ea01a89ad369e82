"""What an experiment on stereotypes may say, and what it measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from fairagent.settings import Section
from fairagent.stereotypes.items import LM_SCORE, MORE, STEREOTYPE

MEASURES: Mapping[str, tuple[str, ...]] = {"stereoset": (STEREOTYPE, LM_SCORE), "crows-pairs": (MORE,)}
"""What every item is measured by."""
OF_ALL: Mapping[str, tuple[str, ...]] = {
    "stereoset": ("LMS", "SS", "ICAT"),
    "crows-pairs": ("CP-S", "CP-S stereo", "CP-S antistereo"),
}
"""What all items together are measured by, in percent."""


class LocalModel(Section):
    """A transformers model on this machine."""

    kind: Literal["masked", "causal"]
    """Whether it fills in masks or tells the next token."""
    name: str = Field(min_length=1)
    """Its folder, or its name in the Hugging Face cache."""
    device: str = ""
    """torch's; empty: a GPU where there is one."""
    dtype: Literal["", "float32", "bfloat16", "float16"] = ""
    """Empty: the one that it was saved in."""
    batch: int = Field(8, ge=1)
    """How many inputs it reads at a time."""

    @property
    def way(self) -> str:
        """How it chooses, for tables."""
        return f"likelihoods of the local {self.kind} model {self.name}"
