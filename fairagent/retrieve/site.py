"""`Site`: what parts are built from: a collection, its index, the settings, and shared resources."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairagent.collection import Collection
from fairagent.llm import Model
from fairagent.llm.models import Models
from fairagent.llm.prompts import Prompts
from fairagent.settings import Settings
from fairagent.storage.threads import Memo

if TYPE_CHECKING:
    from fairagent.llm.embeddings import EmbeddingModel


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """What `Part.build` is given.

    `memo` holds what several pipelines share: indexes, encoders, guests. `engine` is the pipeline's open engine, None
    while that is being built; `words` an engine with the terms of its documents, where it is not the index.
    `stateless`: no part may carry over earlier queries, as in experiments. `device` is torch's, for encoders.
    `earlier` is the index that is replaced, whose embeddings are taken over for texts that are the same.
    """

    collection: Collection
    settings: Settings
    index: Path
    models: Models
    seed: int = 0
    memo: Memo = field(default_factory=Memo)
    engine: Any = None
    words: Any = None
    stateless: bool = False
    device: str = "cpu"
    earlier: Path | None = None

    @property
    def model(self) -> Model:
        """The settings' language model; SettingsError without a name, BackendUnavailable without a key."""
        return self.models.open(self.settings.model)

    def embeddings(self, name: str) -> "EmbeddingModel":
        """The embedding model of this name at the server of the settings' language model; raises as `model`."""
        return self.models.open_embeddings(self.settings.model.model_copy(update={"name": name}))

    @property
    def prompts(self) -> Prompts:
        """The settings' prompt templates."""
        folder = self.settings.prompts
        prompts: Prompts = self.memo.get(("prompts", folder), lambda: Prompts(folder))
        return prompts
