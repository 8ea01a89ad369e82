"""Tables that a company already has as engines: PostgreSQL with pgvector, and Milvus or Milvus Lite; only read."""
