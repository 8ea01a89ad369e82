"""An index on an OpenSearch or Elasticsearch server as an engine: searched where it is, whatever its size."""

from fairagent.guests.opensearch.index import ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import Server
from fairagent.guests.opensearch.vectors import OpenSearchVectors

__all__ = ["OpenSearchRetriever", "OpenSearchVectors", "Server", "ServerIndex"]
