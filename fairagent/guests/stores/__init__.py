"""Stores of documents that are there already, searched where they are: OpenSearch, PostgreSQL and Milvus."""
