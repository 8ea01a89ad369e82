"""BM25 retrieval with Lucene (through pyserini's Anserini jar)."""

from fairagent.retrieve.lucene.index import Manifest, build_index
from fairagent.retrieve.lucene.search import LuceneRetriever
from fairagent.retrieve.lucene.update import Changes, update_index

__all__ = ["Changes", "LuceneRetriever", "Manifest", "build_index", "update_index"]
