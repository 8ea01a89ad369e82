"""BM25 as one sparse matrix of terms and documents, without Java."""

from fairagent.retrieve.bm25.build import Changes, build_index, update_index
from fairagent.retrieve.bm25.manifest import Manifest
from fairagent.retrieve.bm25.search import BM25Retriever

__all__ = ["BM25Retriever", "Changes", "Manifest", "build_index", "update_index"]
