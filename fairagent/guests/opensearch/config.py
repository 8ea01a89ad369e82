"""An OpenSearch or Elasticsearch index as a part: searched where it is, and never written to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field

from fairagent.extend import BUNDLED, Check, Encoder, Part, Progress, SettingsError, Site, encoder
from fairagent.guests.opensearch.bulk import LoadRecord, LoadSettings, dimensions_of_documents, load
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import LOADED, Fields, ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import Address, Credentials, Server, tls
from fairagent.guests.opensearch.vectors import OpenSearchVectors, likeness
from fairagent.guests.servers import expect_of_collection, with_groups


class OpenSearchConfig(Part):
    """An index on an OpenSearch or Elasticsearch server: its words, or its embeddings."""

    on_server: ClassVar[bool] = True
    kind: Literal["opensearch"] = "opensearch"
    url: str = Field("http://localhost:9200", min_length=1)
    """The server's address; any node of a cluster, or what stands before it."""
    index: str = Field(min_length=1)
    """The index, or a name for several."""
    fields: Fields = LOADED
    """Which fields of the index hold what; not set: those of an index that fairagent made (`fairagent index --engine
    opensearch`)."""
    groups: dict[str, str] = Field(default={})
    """Dimension -> the field with its labels, where the collection has no groups of its own."""
    by: Literal["text", "embeddings"] = "text"
    """What is searched: the words, by the similarity in the index's mapping, or the embeddings in `fields.vector`."""
    encoder: str = Field(BUNDLED, min_length=1)
    """The encoder that made the index's embeddings; named as for `engine: dense`."""
    candidates: int = Field(0, ge=0, le=10_000)
    """`by: embeddings`, Elasticsearch: how many documents each shard looks at; 0: twice as many as are wanted."""
    api_key_env: str = ""
    """The environment variable with an API key, or with a whole `Bearer` token; empty: none is needed."""
    user_env: str = ""
    """The environment variable with the user's name."""
    password_env: str = ""
    """The environment variable with the user's password."""
    ca: str = ""
    """A file with the certificate of the authority that signed the server's; empty: the usual ones."""
    verify: bool = True
    """Whether the server's certificate is checked; false lets anybody between read and change everything."""
    timeout: float = Field(30.0, gt=0)
    """The longest time of one attempt, in seconds."""
    attempts: int = Field(5, ge=1)
    """The largest number of attempts of a request that meets a busy server (429, 502, 503, 504) or none."""
    load: LoadSettings = LoadSettings()
    """What `fairagent index --engine opensearch` makes."""

    def __str__(self) -> str:
        return self.kind if self.by == "text" else f"{self.kind} ({self.by})"

    def relative_to(self, folder: Path) -> Self:
        """With the certificates' path from anywhere."""
        return self.model_copy(update={"ca": str((folder / self.ca).absolute())}) if self.ca else self

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the server or the index is not there, DataError for fields that it lacks."""
        index = self.opened(site)
        index.check_version()
        OpenSearchRetriever(index)
        if self.groups:
            self.group_labels(site).check()
        if self.by == "embeddings":
            likeness(index)
            encoder(site, self.encoder)

    def diagnose(self, site: Site) -> Iterator[Check]:
        """The server, its health, the index, its fields and groups, and what the account may do."""
        from fairagent.guests.opensearch.checks import check_server

        yield from check_server(self, site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Nothing: an index on a server is only written to by `fairagent index --engine opensearch`."""

    @property
    def tells_words(self) -> bool:
        """Whether it tells the terms of its documents."""
        return self.by == "text"

    def with_parts_of(self, site: Site) -> Site:
        """With the groups that the index's documents carry; SettingsError for a dimension that is there already."""
        return with_groups(site, self.groups, lambda: self.group_labels(site))

    def build(self, site: Site) -> OpenSearchRetriever | OpenSearchVectors:
        """The engine; SettingsError in an experiment whose collection does not have the groups."""
        expect_of_collection(site, self.groups)
        groups = self.group_labels(site) if self.groups else None
        self.opened(site).check_version()
        words = OpenSearchRetriever(self.opened(site), groups)
        if self.by == "text":
            return words
        return OpenSearchVectors(words, self._encoder(site), self.candidates, groups)

    def opened(self, site: Site) -> ServerIndex:
        """The index; the parts of a pipeline share it."""
        key = ("opensearch", self.url, self.index, self.fields, self._credentials, self.ca, self.verify, self.timeout)
        index: ServerIndex = site.memo.get(key, self.connect)
        return index

    def connect(self, environ: Mapping[str, str] = os.environ) -> ServerIndex:
        """The index on its server; nothing is requested yet."""
        address = Address.find(self.url, self._credentials, environ)
        secure = tls(self.ca, self.verify) if address.url.startswith("https:") else None
        return ServerIndex(Server(address, self.timeout, self.attempts, secure), self.index, self.fields)

    def group_labels(self, site: Site) -> ServerGroups:
        """The groups that the index's documents carry."""
        index = self.opened(site)
        key = ("opensearch groups", index, tuple(self.groups.items()))
        groups: ServerGroups = site.memo.get(key, lambda: ServerGroups(index, self.groups, site.collection.population))
        return groups

    @property
    def _credentials(self) -> Credentials:
        return Credentials(self.api_key_env, self.user_env, self.password_env)

    def _encoder(self, site: Site) -> Encoder:
        return encoder(site, self.encoder)


def load_site(
    site: Site, progress: Callable[[int], None], force: bool
) -> tuple[ServerIndex, LoadRecord, tuple[str, ...], bool]:
    """Load a site's collection, with its groups, and embeddings where an engine of the settings searches them."""
    engine = site.settings.engine
    parts = [part for part in (engine, *engine.inner) if isinstance(part, OpenSearchConfig)]
    if not parts:
        raise SettingsError(
            "no engine of the settings is an index on a server: engine: {kind: opensearch, index: NAME}"
        )
    if len({(part.url, part.index, part.load) for part in parts}) > 1:
        raise SettingsError("the engines name different indexes, or different `load`; a collection is loaded into one")
    if any(one.fields != LOADED or one.groups for one in parts):
        raise SettingsError(
            "an index that fairagent makes has fields of its own: leave out engine.fields and engine.groups (the "
            "collection's groups go into fields of their names)"
        )
    name = next((one.encoder for one in parts if one.by == "embeddings"), "")
    index, groups = parts[0].opened(site), site.collection.groups
    opened = encoder(site, name) if name else None
    record, done = load(index, site.collection, parts[0].load, opened, groups, progress, force)
    return index, record, dimensions_of_documents(groups), done
