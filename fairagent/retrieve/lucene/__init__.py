"""BM25 retrieval with Lucene (through pyserini's Anserini jar)."""

from fairagent.retrieve.lucene.index import Manifest, build_index
from fairagent.retrieve.lucene.search import LuceneRetriever

__all__ = ["LuceneRetriever", "Manifest", "build_index"]
