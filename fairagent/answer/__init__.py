"""From a fair ranking to an answer: filter, debiasing, context, generator, attribution.

`answering` leads a query through these stages; each other module holds one of them. A filter may only remove
documents, and what each group loses is counted. An answer cites documents by number, and attribution measures the
exposure that the cited documents give the groups.
"""
