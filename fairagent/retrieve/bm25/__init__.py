"""BM25 as one sparse matrix of terms and documents, without Java."""
