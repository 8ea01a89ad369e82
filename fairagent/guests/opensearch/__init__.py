"""An index on an OpenSearch or Elasticsearch server as an engine: searched where it is, whatever its size."""

from fairagent.retrieve.opensearch.index import ServerIndex
from fairagent.retrieve.opensearch.search import OpenSearchRetriever
from fairagent.retrieve.opensearch.server import Server
from fairagent.retrieve.opensearch.vectors import OpenSearchVectors

__all__ = ["OpenSearchRetriever", "OpenSearchVectors", "Server", "ServerIndex"]
