"""Light vectors: projections of the BM25 matrix, which cost seconds and need no model."""
