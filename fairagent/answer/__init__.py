"""An answer from a fair ranking: filter, debiasing, context, generator, attribution.

`answering` leads a query through these stages; each of the others holds one of them.
"""
