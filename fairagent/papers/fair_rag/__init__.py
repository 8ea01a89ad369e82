"""The Fair RAG experiment: rankings drawn at random, what exposure items may expect, and what answers gain by it."""
