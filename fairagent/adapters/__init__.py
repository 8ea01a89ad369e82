"""Adapters, one module each: LlamaIndex, PyTerrier, ir-measures.

A host is imported by its own module here and by nothing else, so it need not be installed until it is used.
"""
