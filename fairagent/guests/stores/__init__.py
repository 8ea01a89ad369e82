"""An index of documents that is there already, searched where it is: OpenSearch."""
