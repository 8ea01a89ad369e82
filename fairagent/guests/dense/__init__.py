"""Embeddings by models that torch runs, and nearest neighbors by faiss: the extra `dense`."""
