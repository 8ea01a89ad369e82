"""Engines: BM25 as a sparse matrix, light and dense vectors, their fusion, run files and sampled rankings.

Every engine is a `Retriever` (`base`): `search(query, n)` and `score(query, ids)`; further protocols there say what
else an engine can do (texts, terms, vectors). Indexes are memory-mapped arrays, written as a whole and checked when
opened. `site` is what parts are built from.
"""
