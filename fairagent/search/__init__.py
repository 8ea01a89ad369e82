"""A fair search: retrieve, measure the groups' exposure, search again for those that lack it, re-rank, serve.

`pipeline` builds an agent from settings, `agent` runs a search, `loop` decides what is done next, `refine` proposes
the next query, and `rerank` orders what is served.
"""
