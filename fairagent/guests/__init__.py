"""Other software: engines (Lucene, OpenSearch), frameworks (LlamaIndex ...), ir-measures.

They are add-ons: they come in by entry points, and no room imports them. Each imports its package only when it is used,
and names the extra where it is missing. `testing` has what tests of an own
search function or model need.
"""
