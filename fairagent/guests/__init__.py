"""Other software: engines (Lucene, OpenSearch, PostgreSQL ...), frameworks (LlamaIndex ...), ir-measures.

They are add-ons: each imports `fairagent.extend` and nothing else of fairagent, and comes in by entry points. Each
imports its package only when it is used, and names the extra where it is missing. `testing` has what tests of an own
search function or model need.
"""
